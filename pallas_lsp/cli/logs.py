"""The log of a command: what the engine says and what the checked code prints."""

from __future__ import annotations

import logging
import logging.handlers
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_BYTES = 2_000_000


@dataclass(frozen=True)
class Log:
    """Where lines go.  ``path`` is None where no log can be written, which must not stop a check."""

    write: Callable[[str], None]
    path: str | None
    close: Callable[[], None]


def log_folder() -> Path:
    return platformdirs.user_log_path("pallas-lsp", appauthor=False)


def cache_folder() -> Path:
    return platformdirs.user_cache_path("pallas-lsp", appauthor=False)


def open_log(path: str | None) -> Log:
    """Open the log that was asked for (OSError where that fails), or the user's own."""
    if path is not None:
        return _opened(
            Path(path).expanduser(), logging.FileHandler(Path(path).expanduser(), encoding="utf-8", delay=False)
        )
    default = log_folder() / "check.log"
    try:
        default.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds what user code prints
        handler = logging.handlers.RotatingFileHandler(default, maxBytes=_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        return Log(lambda _: None, None, lambda: None)
    return _opened(default, handler)


def _opened(path: Path, handler: logging.FileHandler) -> Log:
    handler.errors = "backslashreplace"
    handler.setFormatter(logging.Formatter(f"%(asctime)s {os.getpid()} %(message)s"))
    logger = logging.Logger("pallas_lsp.check")
    logger.addHandler(handler)

    def write(line: str) -> None:
        logger.info("%s", line)

    return Log(write, str(path), handler.close)
