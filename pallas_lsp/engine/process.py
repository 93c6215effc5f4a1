"""One worker process: start, handshake, runs with a clock for each stage, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pallas_lsp.engine.child import Child, kill_group
from pallas_lsp.engine.codec import decode
from pallas_lsp.engine.errors import RunFailed, WorkerUnavailable
from pallas_lsp.engine.known_interpreters import Stamps, changed
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.settings import Limits, Start
from pallas_lsp.model import WorkerInfo

PROTOCOL = 1
PROGRAM = str(Path(__file__).resolve().parent.parent / "worker")
_GRACE = 2.0
_SCRATCH = "pallas-lsp-"
_TOO_LONG = "took more processor time than its limit"
_CODES = {1: "crashed", 2: "cancelled", 3: "out-of-memory", 4: "exited", 6: "no-folder"}

OnEvent = Callable[[str, dict[str, Any]], None]


class _Running:
    """A run's clock: a ``stage`` notification restarts it."""

    def __init__(self, on_event: OnEvent, limits: Limits) -> None:
        self.on_event = on_event
        self.limits = limits
        self.begin("import")

    def begin(self, stage: str) -> None:
        self.stage = stage
        self.deadline = asyncio.get_running_loop().time() + self.limits.seconds(stage)


class Worker:
    """A started worker.  ``forks``: it serves any number of runs; else it serves one."""

    def __init__(self, python: str, log: Log) -> None:
        self._log = log
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._running: dict[int, _Running] = {}
        self._started: dict[int, tuple[int, str]] = {}
        self._unasked: dict[str, Any] = {}
        self._child: Child | None = None
        self._watched: dict[str, int] = {}
        self.python = python
        self.info: WorkerInfo | None = None
        self.forks = False
        self.alive = True
        self.on_death: Callable[[str], None] | None = None
        """Called with what happened when the process ends though nobody asked it to."""

    # -- start ------------------------------------------------------------------------------------------------------

    @classmethod
    async def start(
        cls,
        python: str,
        *,
        environment: Mapping[str, str],
        log: Log,
        limits: Limits,
        program: str | None = None,
        how: Start | None = None,
    ) -> Worker:
        """Start a worker and shake hands; raises WorkerUnavailable."""
        variables = {**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace", **environment}
        for name in ("PYTHONHOME", "__PYVENV_LAUNCHER__"):  # of our own interpreter, wrong for another
            variables.pop(name, None)
        worker = cls(python, log)
        how = how or Start()
        try:
            worker._child = await Child.start(
                list(how.command) or [python, "-u", program or PROGRAM],
                environment=variables,
                folder=tempfile.gettempdir(),
                on_line=worker._receive,
                on_end=worker._ended,
                log=log,
            )
        except (OSError, ValueError) as error:
            raise WorkerUnavailable(
                "interpreter-broken",
                f"{python} could not be started: {error}",
                "Choose another interpreter with the setting 'python' (or --python).",
            ) from error
        worker._child.write(how.preamble)
        try:
            await worker._shake_hands(limits.start_seconds, how)
        except BaseException:
            await worker.close(grace=0.1)
            raise
        return worker

    async def _shake_hands(self, seconds: float, how: Start) -> None:
        wishes = {"platforms": how.platforms, "nice": how.nice, "warm": how.warm}
        params: dict[str, Any] = {
            "protocol": PROTOCOL,
            "preimport": [],
            **{name: wish for name, wish in wishes.items() if wish},
        }
        try:
            asked = self._request("initialize", params, next(self._ids))
            answer = await asyncio.wait_for(asked, seconds)
            self.info = decode(answer, WorkerInfo)
        except TimeoutError:
            raise WorkerUnavailable(
                "interpreter-broken",
                f"{self.python} did not import jax within {seconds:g} seconds",
                "Check that 'import jax' works there; on a slow disk try again, the second time is faster.",
            ) from None
        except (RunFailed, ValueError) as error:
            raise self._no_handshake(str(error)) from error
        self.forks = answer.get("mode") == "fork"
        if not self.forks and answer.get("mode_reason"):
            self._log(f"each check uses up a process of its own: {answer['mode_reason']}")
        self._watched = {str(path): int(stamp) for path, stamp in dict(answer.get("watch") or {}).items()}

    def _no_handshake(self, reason: str) -> WorkerUnavailable:
        if self._unasked.get("code") == 5:
            version = self._unasked.get("data", {}).get("python", "too old")
            return WorkerUnavailable(
                "python-too-old",
                f"{self.python} is Python {version}; jax with Pallas kernels needs 3.10 or newer",
                "Choose a newer interpreter with the setting 'python' (or --python).",
            )
        return WorkerUnavailable(
            "interpreter-broken",
            f"{self.python} did not run the checker: it {reason}",
            "The log has what it printed; choose another interpreter with the setting 'python' (or --python).",
        )

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def busy(self) -> bool:
        return bool(self._running)

    @property
    def stamps(self) -> Stamps:
        """When the folders of installed packages changed last before the start."""
        return tuple(sorted(self._watched.items()))

    @property
    def outdated(self) -> bool:
        """Whether packages were installed or removed since the start."""
        return any(changed(path) != then for path, then in self._watched.items())

    # -- messages ---------------------------------------------------------------------------------------------------

    async def _request(self, method: str, params: dict[str, Any], request: int) -> dict[str, Any]:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[request] = future
        try:
            if not self.alive:
                raise self._death()
            self._send({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
            return await future
        finally:
            self._answers.pop(request, None)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._child is not None
        self._child.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if message.get("id") is not None:
                self._started.pop(message["id"], None)
            if "method" in message:
                self._notified(message["method"], message["params"])
            elif message.get("id") is None:
                self._unasked = message.get("error") or {}
            elif (future := self._answers.get(message["id"])) is not None and not future.done():
                if "error" in message:
                    future.set_exception(_failure(message["error"]))
                else:
                    future.set_result(message["result"])
        except Exception as error:
            self._log(f"the worker sent what is no message ({error!r}): {line[:200]!r}")

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "started":
            self._started[params["run"]] = int(params["pid"]), str(params["folder"])
            return
        running = self._running.get(params.get("run", 0))
        if running is None:
            return
        if method == "stage":
            running.begin(str(params.get("stage", "")))
        running.on_event(method, params)

    def _ended(self) -> None:
        self.alive = False
        # A worker cleans up behind its runs, unless it is the one that died.
        for group, folder in self._started.values():
            if group != self.pid:
                kill_group(group)
            if Path(folder).name.startswith(_SCRATCH):
                shutil.rmtree(folder, ignore_errors=True)
        for future in self._answers.values():
            if not future.done():
                future.set_exception(self._death())
        if self.on_death is not None:
            self.on_death(self._death().message)

    def _death(self) -> RunFailed:
        assert self._child is not None
        code = self._child.returncode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            if name == "SIGXCPU":
                return RunFailed("timed-out", _TOO_LONG, worker=True)
            kind = "out-of-memory" if name == "SIGKILL" else "crashed"
            return RunFailed(kind, f"was ended by {name}", detail=name, worker=True)
        return RunFailed("exited", f"ended itself with status {code}", detail=str(code), worker=True)

    # -- runs -------------------------------------------------------------------------------------------------------

    async def run(self, params: dict[str, Any], on_event: OnEvent, limits: Limits) -> dict[str, Any]:
        """Execute a run; raises RunFailed.  Cancelling the task, or a stage that is over its limit, ends the run."""
        loop = asyncio.get_running_loop()
        request = next(self._ids)
        running = _Running(on_event, limits)
        self._running[request] = running
        task = asyncio.ensure_future(self._request("run", params, request))
        end = loop.time() + limits.total_seconds
        try:
            while True:
                # A stage that begins meanwhile may have a shorter limit, so look again after a second.
                await asyncio.wait({task}, timeout=min(running.deadline - loop.time(), 1.0))
                if task.done():
                    return task.result()
                if loop.time() >= running.deadline:
                    raise RunFailed("timed-out", f"took more than {limits.seconds(running.stage):g} s", running.stage)
                if loop.time() >= end:
                    raise RunFailed("timed-out", f"took more than {limits.total_seconds:g} s", running.stage)
        except RunFailed as failed:
            failed.stage = failed.stage or running.stage
            raise
        finally:
            del self._running[request]
            if not task.done():
                self._send({"jsonrpc": "2.0", "method": "cancel", "params": {"run": request}})
                task.cancel()

    # -- end --------------------------------------------------------------------------------------------------------

    async def close(self, grace: float = _GRACE) -> None:
        """End the worker and all that it started; by the end of its input, else by force."""
        child = self._child
        if child is None:
            return
        self.on_death = None
        child.close_input()
        try:
            await asyncio.wait_for(child.wait(), grace)
        except TimeoutError:
            child.kill_group()
            await child.wait()
        except asyncio.CancelledError:
            child.kill_group()
            raise


def _failure(error: dict[str, Any]) -> RunFailed:
    data = error.get("data") or {}
    kind = _CODES.get(error.get("code", 0), "internal-error")
    detail = str(data.get("traceback") or data.get("signal") or data.get("status") or "")
    if data.get("signal") == "SIGXCPU":
        return RunFailed("timed-out", _TOO_LONG, str(data.get("stage") or ""))
    return RunFailed(kind, str(error.get("message")), str(data.get("stage") or ""), detail)
