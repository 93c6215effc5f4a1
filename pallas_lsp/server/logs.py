"""The log: to the client (``window/logMessage``), to a file, and to standard error while there is no client.

Source text is never logged above DEBUG; pygls' own records, which hold whole payloads, are cut short.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types

ROOT = logging.getLogger("pallas_lsp")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_TYPES = {
    logging.CRITICAL: types.MessageType.Error,
    logging.ERROR: types.MessageType.Error,
    logging.WARNING: types.MessageType.Warning,
    logging.INFO: types.MessageType.Info,
    logging.DEBUG: types.MessageType.Log,
}
LEVELS = {
    "off": logging.CRITICAL + 1,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_LONGEST_ARGUMENT = 200
_LONGEST_MESSAGE = 8000


class _Shorten(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("pygls") and isinstance(record.args, tuple):
            record.args = tuple(
                argument if isinstance(argument, int | float) else f"{argument!s:.{_LONGEST_ARGUMENT}}"
                for argument in record.args
            )
        return True


class ClientHandler(logging.Handler):
    """Sends records to the client.  ``send`` must be callable from any thread."""

    def __init__(self, send: Callable[[types.LogMessageParams], None]) -> None:
        super().__init__()
        self._send = send
        self._sending = False

    def emit(self, record: logging.LogRecord) -> None:
        if self._sending:  # a record about a message that could not be sent
            return
        self._sending = True
        try:
            text = f"{self.format(record):.{_LONGEST_MESSAGE}}"
            self._send(types.LogMessageParams(_TYPES.get(record.levelno, types.MessageType.Log), text))
        except Exception:
            self.handleError(record)
        finally:
            self._sending = False


def start(log_file: str | None, level: str) -> logging.Handler:
    """Log to standard error, and to a file where one is named.  Returns the handler for standard error."""
    set_level(level)
    ROOT.propagate = False
    logging.raiseExceptions = False  # a broken standard error must not raise in the middle of anything
    console = logging.StreamHandler(sys.stderr)
    handlers: list[logging.Handler] = [console]
    if log_file:
        path = Path(log_file).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # it holds what user code prints
        handlers.append(logging.FileHandler(path, encoding="utf-8", errors="backslashreplace"))
    pygls = logging.getLogger("pygls")
    pygls.setLevel(logging.WARNING)
    pygls.propagate = False
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT))
        handler.addFilter(_Shorten())
        ROOT.addHandler(handler)
        pygls.addHandler(handler)
    return console


def add(handler: logging.Handler) -> None:
    ROOT.addHandler(handler)
    logging.getLogger("pygls").addHandler(handler)


def remove(handler: logging.Handler) -> None:
    ROOT.removeHandler(handler)
    logging.getLogger("pygls").removeHandler(handler)


def set_level(name: str) -> None:
    ROOT.setLevel(LEVELS.get(name, logging.INFO))
