"""The zygote: a single-threaded loop that forks a child for each run and never runs user code itself.

It has imported jax and never traced with it: a process that has must not be forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from . import limits, preload, scratch, service, spare, stream, trials, warming
from .child import Run, death

_DONE = "done"
_IMPORTED = "imported"
_IDLE = 0.5
"""Seconds without a run after which modules are imported for those to come."""
_LULL = 0.02
"""Seconds without anything to do after which a child is forked for the next run."""
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


class Zygote:
    """Serves requests from ``incoming`` until it ends."""

    def __init__(self, incoming: int, writer: stream.Writer, lines: stream.Lines, pending: list[bytes]) -> None:
        self._incoming = incoming
        self._writer = writer
        self._lines = lines
        self._pending = pending
        self._runs: dict[int, Run] = {}
        self._selector = selectors.DefaultSelector()
        self._ending = False
        self._trials = trials.Trials(self._detach)
        self._spare: spare.Spare | None = None
        self._warms = True

    def serve(self) -> None:
        trials.keep()
        limits.adopt_orphans()
        self._wake, signalled = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(signalled, False)
        self._signalled = signalled
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _nothing)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._selector.register(self._incoming, selectors.EVENT_READ)
        try:
            self._loop()
        except BrokenPipeError:
            pass  # nobody reads the answers any more
        finally:
            self._end_all()

    def _loop(self) -> None:
        self._treat_all()
        while not self._ending:
            idle = self._trials.due and not self._runs
            lull = self._spare is None
            found = self._selector.select(_LULL if lull else _IDLE if idle else None)
            if lull and not found:
                self._spare = spare.fork(self._detach, self._become_run, warming.warm if self._warms else _no_warming)
            elif idle and not found:
                self._trials.start()
            for key, _ in found:
                if key.fd == self._incoming:
                    self._read()
                elif key.fd == self._wake:
                    self._signals()
                elif (run := self._run_of(key.fd)) is not None:
                    self._relay(run)

    # -- the engine -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        data = os.read(self._incoming, stream.CHUNK)
        if not data:
            self._ending = True
            return
        self._pending += self._lines.feed(data)
        self._treat_all()

    def _treat_all(self) -> None:
        while self._pending and not self._ending:
            line = self._pending.pop(0)
            if line.strip():
                self._treat(line)

    def _treat(self, line: bytes) -> None:
        try:
            request, method, params = stream.parse(line)
        except stream.BadMessage as bad:
            self._writer.fail(bad.request, bad.error)
            return
        if method == "run" and request is not None:
            self._begin(request, params, line)
        elif method == "cancel":
            for run in list(self._runs.values()):
                if run.request == params.get("run"):
                    run.cancelled = True
                    _kill_group(run.pid)
        elif method == "shutdown":
            self._ending = True
            self._end_all()
            self._writer.answer(request, {})
        elif request is not None:
            self._writer.fail(request, stream.error(stream.METHOD_NOT_FOUND, f"no method {method!r}"))

    # -- children ---------------------------------------------------------------------------------------------------

    def _begin(self, request: Any, params: dict[str, Any], line: bytes) -> None:
        """Have a child carry out a run: the one that waits for it, else a new one."""
        try:
            folder = tempfile.mkdtemp(prefix=scratch.PREFIX)
        except OSError as reason:  # a full disk, or one that nobody may write to
            text = f"needs a temporary folder, which could not be made: {reason.strerror}: {tempfile.gettempdir()}"
            self._writer.fail(request, stream.error(stream.NO_FOLDER, text))
            return
        child, self._spare = (self._spare, None) if self._spare and self._spare.ready() else (None, self._spare)
        child = child or self._new_child()
        if child is not None and not child.begin(folder, line):  # it was ended while it waited
            child.end()
            child = self._new_child()
            if child is not None and not child.begin(folder, line):
                child.end()
                child = None
        if child is None:
            shutil.rmtree(folder, ignore_errors=True)
            self._refuse(request, "no process could be forked")
            return
        os.set_blocking(child.pipe, False)
        self._runs[child.pid] = Run(request, params, child.pid, child.pipe, folder)
        self._selector.register(child.pipe, selectors.EVENT_READ)
        self._writer.notify("started", {"run": request, "pid": child.pid, "folder": folder})

    def _refuse(self, request: Any, reason: object) -> None:
        self._writer.fail(request, stream.error(stream.INTERNAL_ERROR, f"no process could be started: {reason}"))

    def _new_child(self) -> spare.Spare | None:
        return spare.fork(self._detach, self._become_run)

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._spare.end()
            self._spare = None

    def _detach(self, parent: int) -> None:
        """Give up, in a child, what is the zygote's."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        pipes = [run.pipe for run in self._runs.values() if run.pipe >= 0]  # -1: at its end, but not reaped yet
        pipes += self._spare.descriptors() if self._spare is not None else []
        for descriptor in (self._incoming, self._wake, self._signalled, *pipes):
            os.close(descriptor)
        self._writer.close()
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        limits.die_with_parent(parent)

    def _become_run(self, writing: int, folder: str, params: dict[str, Any]) -> NoReturn:
        scratch.enter(folder)
        limits.apply(params.get("limits") or {})
        pipe = stream.Writer(writing)
        result, error = service.perform(params, lambda method, fields: pipe.send({"method": method, "params": fields}))
        for output in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                output.flush()
        pipe.send({"method": _IMPORTED, "params": {"modules": preload.noted()}})
        pipe.send({"method": _DONE, "params": {"result": result, "error": error}})
        os._exit(0)

    def _run_of(self, descriptor: int) -> Run | None:
        return next((run for run in self._runs.values() if run.pipe == descriptor), None)

    def _relay(self, run: Run) -> None:
        """Pass on what a child wrote, whole lines only."""
        while True:
            try:
                data = os.read(run.pipe, stream.CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._selector.unregister(run.pipe)
                os.close(run.pipe)
                run.pipe = -1
                return
            for line in run.lines.feed(data):
                self._pass_on(run, line)

    def _pass_on(self, run: Run, line: bytes) -> None:
        try:
            message = json.loads(line)
            method, fields = message["method"], message["params"]
        except (ValueError, KeyError, TypeError):
            print("pallas-lsp: user code wrote to the run's pipe; ignored", file=sys.stderr)
            return
        if method == _DONE:
            run.done = fields
            if not run.cancelled:
                # It has nothing left to do, and giving back its memory takes time that nobody needs to wait.
                _kill_group(run.pid)
                self._answer(run)
        elif method == _IMPORTED:
            self._trials.add([str(name) for name in fields.get("modules") or ()])
        elif not run.cancelled:
            if method == "stage":
                run.stage = str(fields.get("stage", ""))
            self._writer.notify(method, {**fields, "run": run.request})

    def _signals(self) -> None:
        received = set(os.read(self._wake, stream.CHUNK))
        if received & {signal.SIGTERM, signal.SIGINT}:
            self._ending = True
        for run in list(self._runs.values()):
            # Without reaping: the number of the group must stay taken until everything in it was killed.
            if os.waitid(os.P_PID, run.pid, _ENDED) is not None:
                self._finish(run)
        if self._trials.pid and os.waitid(os.P_PID, self._trials.pid, _ENDED) is not None:
            self._end_trial()
        self._reap_orphans()

    def _end_trial(self) -> None:
        _kill_group(self._trials.pid)
        self._trials.finish()
        self._end_spare()  # it has not what was imported just now

    def _finish(self, run: Run) -> None:
        """A child ended: end its group, answer its request."""
        if run.pipe >= 0:
            self._relay(run)
        _kill_group(run.pid)
        _, status, usage = os.wait4(run.pid, 0)
        del self._runs[run.pid]
        if run.pipe >= 0:  # a process outside the group may still hold the other end
            self._selector.unregister(run.pipe)
            os.close(run.pipe)
        self._end_strays()
        shutil.rmtree(run.folder, ignore_errors=True)
        if not run.answered:
            self._writer.fail(run.request, death(run, status, usage.ru_maxrss * 1024))

    def _answer(self, run: Run) -> None:
        assert run.done is not None
        run.answered = True
        if run.done.get("error") is not None:
            self._writer.fail(run.request, run.done["error"])
        else:
            self._writer.answer(run.request, run.done.get("result") or {})

    def _end_strays(self) -> None:
        """Kill what runs left behind outside their groups: this process is the parent of all orphans."""
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:
            return
        for child in map(int, children):
            with contextlib.suppress(OSError):
                kept = {*self._runs, self._trials.pid, self._spare.pid if self._spare is not None else 0}
                if child not in kept and os.getpgid(child) not in kept:
                    os.kill(child, signal.SIGKILL)

    def _reap_orphans(self) -> None:
        """Reap adopted processes, and only those: a run's own child is reaped by ``_finish``."""
        while True:
            with contextlib.suppress(ChildProcessError):
                ended = os.waitid(os.P_ALL, 0, _ENDED)
                if ended is not None and ended.si_pid == self._trials.pid:
                    self._end_trial()
                    continue
                if ended is not None and self._spare is not None and ended.si_pid == self._spare.pid:
                    self._warms = False  # it died of that, or by accident; the next must not do the same for ever
                    self._end_spare()
                    continue
                if ended is not None and ended.si_pid not in self._runs:
                    os.waitpid(ended.si_pid, 0)
                    continue
                if ended is not None:
                    self._finish(self._runs[ended.si_pid])
                    continue
            return

    def _end_all(self) -> None:
        self._end_spare()
        for run in self._runs.values():
            run.cancelled = True
            _kill_group(run.pid)
        deadline = time.monotonic() + 5
        while self._runs and time.monotonic() < deadline:
            for run in list(self._runs.values()):
                if os.waitid(os.P_PID, run.pid, _ENDED) is not None:
                    with contextlib.suppress(BrokenPipeError):
                        self._finish(run)
            time.sleep(0.005)
        self._end_strays()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _nothing(_number: int, _frame: Any) -> None:
    """A handler that only lets the signal reach the wake-up descriptor."""


def _no_warming() -> None:
    """For children that wait as they are."""
