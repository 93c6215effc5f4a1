"""What the zygote knows of a child that carries out a run, and what to say of one that died."""

from __future__ import annotations

import os
import signal
from typing import Any

from . import stream

_FATAL = {"SIGABRT", "SIGSEGV", "SIGBUS", "SIGKILL"}


class Run:
    """A child and what is known of it."""

    def __init__(self, request: Any, params: dict[str, Any], pid: int, pipe: int, folder: str) -> None:
        self.request = request
        self.memory = int((params.get("limits") or {}).get("memory_bytes") or 0)
        self.pid = pid
        self.pipe = pipe
        self.folder = folder
        self.lines = stream.Lines()
        self.stage = ""
        self.done: dict[str, Any] | None = None
        self.cancelled = False
        self.answered = False


def death(run: Run, status: int, peak: int) -> dict[str, Any]:
    """The error for a child that ended without saying so."""
    if run.cancelled:
        return stream.error(stream.CANCELLED, "cancelled", stage=run.stage)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if name == "SIGKILL" or (name in _FATAL and run.memory and peak > run.memory * 0.8):
            return stream.error(stream.OUT_OF_MEMORY, "out of memory", signal=name, stage=run.stage, peak_bytes=peak)
        return stream.error(stream.CRASHED, f"was ended by {name}", signal=name, stage=run.stage)
    code = os.waitstatus_to_exitcode(status)
    return stream.error(stream.EXITED, f"ended itself with status {code}", status=code, stage=run.stage)
