"""The standard streams, as a shell, a pipe or a service manager may have left them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import IO, TextIO, cast


def ensure_standard_streams() -> None:
    """Point standard descriptors that are closed at the null device.

    A closed descriptor would be handed to the next file or pipe that is opened, and what is printed would end there.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, None)
        if getattr(sys, name) is None:
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A name or a message that the terminal's encoding lacks must not end the check.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: IO[str]) -> None:
    """Nobody reads the stream any more: what is still buffered goes nowhere, so that the interpreter ends quietly."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def supports_unicode(stream: IO[str]) -> bool:
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "").replace("_", "")
    return encoding.startswith("utf")


def is_terminal(stream: IO[str]) -> bool:
    with contextlib.suppress(ValueError, OSError):
        return cast(TextIO, stream).isatty()
    return False


def use_color(stream: IO[str], choice: str) -> bool:
    """``always``, ``never``, or by the terminal and the variables NO_COLOR, FORCE_COLOR and TERM."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"
