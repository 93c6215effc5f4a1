"""The zygote: a single-threaded loop that forks a child for each run and never runs user code itself.

It has imported jax and never traced with it: a process that has must not be forked.
"""

from __future__ import annotations

import contextlib
import faulthandler
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

from . import limits, preload, scratch, service, stream, trials

_DONE = "done"
_IMPORTED = "imported"
_IDLE = 0.5
"""Seconds without a run after which modules are imported for those to come."""
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
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
            found = self._selector.select(_IDLE if idle else None)
            if idle and not found:
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
            self._fork(request, params)
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

    def _fork(self, request: Any, params: dict[str, Any]) -> None:
        parent = os.getpid()
        try:
            folder = tempfile.mkdtemp(prefix=scratch.PREFIX)
            reading, writing = os.pipe()
            pid = trials.forked()
        except OSError as reason:
            self._writer.fail(request, stream.error(stream.INTERNAL_ERROR, f"no process could be started: {reason}"))
            return
        if pid == 0:
            try:
                os.close(reading)
                self._become_child(parent, writing, folder, params)
            finally:
                os._exit(70)
        os.close(writing)
        os.set_blocking(reading, False)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # the child does so too; whoever is first, a cancel finds the group
        self._runs[pid] = Run(request, params, pid, reading, folder)
        self._selector.register(reading, selectors.EVENT_READ)
        self._writer.notify("started", {"run": request, "pid": pid, "folder": folder})

    def _detach(self, parent: int) -> None:
        """Give up, in a child, what is the zygote's."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        pipes = [run.pipe for run in self._runs.values() if run.pipe >= 0]  # -1: at its end, but not reaped yet
        for descriptor in (self._incoming, self._wake, self._signalled, *pipes):
            os.close(descriptor)
        self._writer.close()
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        limits.die_with_parent(parent)

    def _become_child(self, parent: int, writing: int, folder: str, params: dict[str, Any]) -> NoReturn:
        self._detach(parent)
        faulthandler.enable()
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
        if run.done is not None and not run.cancelled:
            if run.done.get("error") is not None:
                self._writer.fail(run.request, run.done["error"])
            else:
                self._writer.answer(run.request, run.done.get("result") or {})
            return
        self._writer.fail(run.request, _death(run, status, usage.ru_maxrss * 1024))

    def _end_strays(self) -> None:
        """Kill what runs left behind outside their groups: this process is the parent of all orphans."""
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:
            return
        for child in map(int, children):
            with contextlib.suppress(OSError):
                kept = {*self._runs, self._trials.pid}
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
                if ended is not None and ended.si_pid not in self._runs:
                    os.waitpid(ended.si_pid, 0)
                    continue
                if ended is not None:
                    self._finish(self._runs[ended.si_pid])
                    continue
            return

    def _end_all(self) -> None:
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


def _death(run: Run, status: int, peak: int) -> dict[str, Any]:
    """The error for a child that ended without saying so."""
    if run.cancelled:
        return stream.error(stream.CANCELLED, "cancelled", stage=run.stage)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if name == "SIGKILL" or (name in _FATAL and run.memory and peak > run.memory * 0.8):
            return stream.error(stream.OUT_OF_MEMORY, "out of memory", signal=name, stage=run.stage, peak_bytes=peak)
        return stream.error(stream.CRASHED, f"ended by {name}", signal=name, stage=run.stage)
    code = os.waitstatus_to_exitcode(status)
    return stream.error(stream.EXITED, f"ended itself with status {code}", status=code, stage=run.stage)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _nothing(_number: int, _frame: Any) -> None:
    """A handler that only lets the signal reach the wake-up descriptor."""
