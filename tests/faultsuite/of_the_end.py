"""Ends of the editor and of the server for which neither is prepared: nothing may be left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from suite import PATIENCE, Faults

EDITOR = Path(__file__).resolve().parent / "editor_process.py"
FAULTS = Faults("The end of a session")


class Session:
    """An editor in a process of its own.  Its server checks a file that loops, with a child that ignores SIGTERM.

    ``held``: another process keeps the server's input open, as one that the editor started may.
    """

    def __init__(self, folder: Path, python: str, *, held: bool = False) -> None:
        command = [sys.executable, str(EDITOR), str(folder), python, *(["held"] if held else [])]
        self.editor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.editor.stdout is not None
        told = json.loads(self.editor.stdout.readline())
        self.server: int = told["server"]
        self.below: list[int] = told["below"]
        self.holder: int | None = told["holder"]

    def gone_after(self, pid: int, number: int) -> float:
        """Seconds from a signal until no process of the server is left."""
        began = time.monotonic()
        os.kill(pid, number)
        left = [self.server, *self.below]
        while left := [each for each in left if _runs(each)]:
            assert time.monotonic() - began < PATIENCE, f"processes are left: {left}"
            time.sleep(0.02)
        return time.monotonic() - began

    def end(self) -> None:
        for pid in (self.editor.pid, self.server, *self.below, self.holder):
            if pid is not None and _runs(pid):
                os.kill(pid, signal.SIGKILL)
        self.editor.wait()
        assert self.editor.stdout is not None
        self.editor.stdout.close()


def _runs(pid: int) -> bool:
    """Whether a process is alive; one that waits to be reaped is not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


Start = Callable[..., Session]


@FAULTS.add("the editor is killed")
def editor_killed(start: Start) -> float:
    session = start()
    return session.gone_after(session.editor.pid, signal.SIGKILL)


@FAULTS.add("the editor is killed, and another process holds the server's input")
def editor_killed_input_held(start: Start) -> float:
    session = start(held=True)
    return session.gone_after(session.editor.pid, signal.SIGKILL)


@FAULTS.add("the server is killed")
def server_killed(start: Start) -> float:
    session = start()
    return session.gone_after(session.server, signal.SIGKILL)


@FAULTS.add("the server is told to end (SIGTERM)")
def server_terminated(start: Start) -> float:
    session = start()
    return session.gone_after(session.server, signal.SIGTERM)
