"""A child that is forked before its run is asked for: the fork then takes none of the time that a user waits.

It warms up, says that it is ready, and waits for two lines: the folder to work in and the request as it came from the
engine.  It ends when its zygote does.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from . import stream, trials

_READY = b"\n"


class Spare:
    """What the zygote has of it: its number, the pipe that takes the request and the one that its messages come by."""

    def __init__(self, pid: int, requests: int, pipe: int) -> None:
        self.pid = pid
        self.requests = requests
        self.pipe = pipe

    def ready(self) -> bool:
        """Whether it has warmed up; a run is not to wait for that."""
        if not select.select([self.pipe], [], [], 0)[0]:
            return False
        return os.read(self.pipe, 1) == _READY

    def begin(self, folder: str, line: bytes) -> bool:
        """Hand over a request; False where the process is gone."""
        data = memoryview(json.dumps({"folder": folder}).encode() + b"\n" + line + b"\n")
        try:
            while data:
                data = data[os.write(self.requests, data) :]
        except OSError:
            return False
        finally:
            os.close(self.requests)
            self.requests = -1
        return True

    def descriptors(self) -> list[int]:
        return [each for each in (self.requests, self.pipe) if each >= 0]

    def end(self) -> None:
        """Kill and reap it."""
        for descriptor in self.descriptors():
            os.close(descriptor)
        self.requests = self.pipe = -1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def fork(
    detach: Callable[[int], None],
    become: Callable[[int, str, dict[str, Any]], NoReturn],
    warm: Callable[[], object] | None = None,
) -> Spare | None:
    """Fork a child that waits for its run; None where the system refuses.

    ``detach(parent)`` gives up in the child what is the zygote's; ``become(pipe, folder, parameters)`` is the run.
    ``warm()`` comes before the child is ready; without it, it is so from the start and does not say it.
    """
    parent = os.getpid()
    opened: list[int] = []
    try:
        for _ in range(2):
            opened += os.pipe()
        pid = trials.forked()
    except OSError as reason:
        print(f"pallas-lsp: no process could be forked: {reason}", file=sys.stderr)
        for descriptor in opened:
            os.close(descriptor)
        return None
    pipe, writing, requests, taking = opened
    if pid == 0:
        try:
            os.close(pipe)
            os.close(taking)
            detach(parent)
            faulthandler.enable()
            if warm is not None:
                warm()
                os.write(writing, _READY)
            become(writing, *_wait(requests))
        except BaseException:
            traceback.print_exc()  # nothing above this tells it
        finally:
            os._exit(70)
    os.close(writing)
    os.close(requests)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # the child does so too; whoever is first, a cancel finds the group
    return Spare(pid, taking, pipe)


def _wait(requests: int) -> tuple[str, dict[str, Any]]:
    """In the child: the folder and the parameters of its run; ends the process where there will be none."""
    lines = stream.Lines()
    found: list[bytes] = []
    while len(found) < 2:
        data = os.read(requests, stream.CHUNK)
        if not data:
            os._exit(0)
        found += lines.feed(data)
    os.close(requests)
    _, _, params = stream.parse(found[1])
    return str(json.loads(found[0])["folder"]), params
