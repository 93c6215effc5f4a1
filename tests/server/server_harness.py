"""A client and a fake engine in the server's own loop, on virtual time: races happen in the order that a test says."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pallas_lsp.confirm.confirmation import Confirmation
from pallas_lsp.model import (
    Backend,
    Capture,
    Edit,
    Entry,
    Finding,
    Fix,
    Launch,
    LaunchStatus,
    Location,
    Position,
    Problem,
    Range,
    Report,
    Safety,
    Severity,
    Snapshot,
    Stage,
    WorkerInfo,
)
from pallas_lsp.server.app import PallasServer
from pallas_lsp.server.features import register
from pallas_lsp.server.main import run_session
from pallas_lsp.server.trust import TrustStore


class _VirtualSelector(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    """Sleeping takes no time: where nothing is ready, the clock jumps to the next timer."""

    now = 0.0

    def select(self, timeout=None):
        events = super().select(0)
        if not events:
            if timeout is None:
                events = super().select(5)  # another thread is at work
                if not events:
                    raise RuntimeError("deadlock: nothing is ready and nothing is planned")
            elif timeout > 0:
                self.now += timeout
        return events


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on virtual time."""
    selector = _VirtualSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        loop.run_until_complete(test)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def at(line: int, start: int, end: int) -> Range:
    return Range(Position(line, start), Position(line, end))


def finding(path: str, range_: Range, rule: str = "pallas-error", **fields: Any) -> Finding:
    fields.setdefault("message", f"{rule} at {range_.start.line}")
    return Finding(rule, Location(path, range_), severity=fields.pop("severity", Severity.ERROR), **fields)


def fix(path: str, range_: Range, new: str, title: str = "Do it", safety: Safety = Safety.SAFE) -> Fix:
    return Fix(title, (Edit(path, range_, new),), safety)


def launch(path: str, range_: Range, *captures: Capture, reason: str = "", remedy: str = "") -> LaunchStatus:
    status = Launch(Location(path, range_), "pl.pallas_call", Backend.MOSAIC_GPU, "kernel")
    return LaunchStatus(status, captures, reason, remedy)


def capture(
    arguments: str = "f32[8]", stage: Stage = Stage.LOWER, driver: str = "main", entry: Entry | None = None
) -> Capture:
    return Capture(
        "c1", "pl.pallas_call", Backend.MOSAIC_GPU, driver, arguments, targets=("9.0",), stage=stage, entry=entry
    )


@dataclass
class Call:
    """One ``check`` that the server asked for."""

    snapshot: Snapshot
    path: str
    run: bool
    on_report: Callable[[Report], Any] | None
    done: asyncio.Future[Report]
    cancelled: bool = False

    @property
    def text(self) -> str:
        return self.snapshot.documents[self.path].text

    @property
    def version(self) -> int | None:
        return self.snapshot.documents[self.path].version

    def make(self, *findings: Finding, stage: Stage = Stage.LOWER, final: bool = True, **fields: Any) -> Report:
        return Report(self.path, self.version, stage, final, tuple(findings), **fields)

    def report(self, *findings: Finding, stage: Stage = Stage.TRACE, **fields: Any) -> None:
        assert self.on_report is not None
        self.on_report(self.make(*findings, stage=stage, final=False, **fields))

    def finish(self, *findings: Finding, **fields: Any) -> None:
        self.done.set_result(self.make(*findings, **fields))


@dataclass
class FakeEngine:
    """Does what a test says.  ``auto``: answers checks at once, by the snapshot."""

    auto: Callable[[Call], Report] | None = None
    verdict: Callable[[Fix], Fix] = field(default=lambda fix: replace(fix, verified=True))
    calls: list[Call] = field(default_factory=list)
    verified: list[Fix] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    hold_verify: asyncio.Event | None = None
    closed: int = 0
    settings: Any = None

    async def check(self, snapshot, path, on_report=None, *, run=True):
        call = Call(snapshot, path, run, on_report, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        if self.auto is not None:
            call.done.set_result(self.auto(call))
        try:
            report = await call.done
        except asyncio.CancelledError:
            call.cancelled = True
            raise
        if on_report is not None:
            on_report(report)
        return report

    async def further(self, snapshot, path, report):
        return report

    async def verify(self, snapshot, path, finding, fix, before=None):
        self.verified.append(fix)
        if self.hold_verify is not None:
            await self.hold_verify.wait()
        return self.verdict(fix)

    async def confirm(self, snapshot, path, report, *, launch=False):
        return Confirmation(report)

    async def worker_info(self, path, roots=()):
        return WorkerInfo(1, "3.12", "/usr/bin/python3", "0.11.2")

    def renew(self, path: str) -> None:
        self.renewed.append(path)

    async def aclose(self):
        self.closed += 1

    async def called(self, number: int) -> Call:
        """The call with this number, counted from 0; waits for it."""
        for _ in range(10_000):
            if len(self.calls) > number:
                return self.calls[number]
            await asyncio.sleep(0.01)
        raise AssertionError(f"no call {number}: only {len(self.calls)}")


VSCODE: dict[str, Any] = {
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True,
            "codeDescriptionSupport": True,
            "dataSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "source"]}},
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
    "workspace": {"workspaceEdit": {"documentChanges": True}},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}
PLAIN: dict[str, Any] = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}}
}


class Session:
    """A client: sends what a test says, keeps what the server sends."""

    def __init__(self, folder: Path, engine: FakeEngine | None = None, answers: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.engine = engine or FakeEngine()
        self.received: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {"window/workDoneProgress/create": None, **(answers or {})}
        self.engines_made: list[Any] = []
        self._arrived = asyncio.Condition()
        self._next_id = 0
        self.server = PallasServer(self._make, TrustStore(folder / "state" / "trust.json"))
        register(self.server)
        self._reader = asyncio.StreamReader()
        self._session = asyncio.ensure_future(run_session(self.server, self._reader, self))

    def _make(self, settings):
        self.engines_made.append(settings)
        self.engine.settings = settings
        return self.engine

    # -- the server's writer --

    def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        self.received.append(message)
        if "method" in message and "id" in message:
            self._answer(message)

    def close(self) -> None:
        pass

    def _answer(self, message: dict[str, Any]) -> None:
        if message["method"] not in self.answers:
            self.send({"id": message["id"], "error": {"code": -32601, "message": "not supported"}})
            return
        answer = self.answers[message["method"]]
        self.send({"id": message["id"], "result": answer(message["params"]) if callable(answer) else answer})

    # -- sending --

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._reader.feed_data(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def start(self, method: str, params: Any) -> int:
        """Send a request; returns its id."""
        self._next_id += 1
        self.send({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    async def response(self, number: int) -> dict[str, Any]:
        return await self.wait(lambda m: m.get("id") == number and "method" not in m)

    async def request(self, method: str, params: Any) -> Any:
        answer = await self.response(self.start(method, params))
        assert "error" not in answer, answer["error"]
        return answer["result"]

    async def wait(self, wanted: Callable[[dict[str, Any]], bool], since: int = 0) -> dict[str, Any]:
        for _ in range(10_000):
            for message in self.received[since:]:
                if wanted(message):
                    return message
            await asyncio.sleep(0.01)
        raise AssertionError(f"it did not come; received: {[m.get('method', m.get('id')) for m in self.received]}")

    async def initialize(self, capabilities: dict[str, Any] | None = None, options: Any = None, **params: Any) -> Any:
        params.setdefault("workspaceFolders", [{"uri": self.folder.as_uri(), "name": "w"}])
        options = {"trusted": True} if options is None else options
        result = await self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "capabilities": VSCODE if capabilities is None else capabilities,
                "initializationOptions": options,
                **params,
            },
        )
        self.notify("initialized", {})
        return result

    def uri(self, name: str = "a.py") -> str:
        return self.path_of(name).as_uri()

    def path(self, name: str = "a.py") -> str:
        return str(self.path_of(name))

    def path_of(self, name: str) -> Path:
        return self.folder / name

    def open(self, text: str, name: str = "a.py", version: int = 1, language: str = "python") -> None:
        item = {"uri": self.uri(name), "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, text: str, version: int, name: str = "a.py") -> None:
        document = {"uri": self.uri(name), "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def shut(self, name: str = "a.py") -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    # -- looking --

    def published(self, name: str = "a.py") -> list[dict[str, Any]]:
        """All diagnostics notifications for a file."""
        return [
            m["params"]
            for m in self.received
            if m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == self.uri(name)
        ]

    async def publication(self, number: int, name: str = "a.py") -> dict[str, Any]:
        for _ in range(10_000):
            if len(self.published(name)) > number:
                return self.published(name)[number]
            await asyncio.sleep(0.01)
        raise AssertionError(f"no publication {number} of {name}: {self.published(name)}")

    def rules(self, publication: dict[str, Any]) -> list[tuple[str, int, int]]:
        return [(d["code"], d["range"]["start"]["line"], d["range"]["start"]["character"]) for d in
                publication["diagnostics"]]  # fmt: skip

    def sent(self, method: str) -> list[Any]:
        return [m["params"] for m in self.received if m.get("method") == method]

    async def actions(self, range_: Range, name: str = "a.py", **context: Any) -> list[dict[str, Any]] | None:
        return await self.request("textDocument/codeAction", self.action_params(range_, name, **context))

    def action_params(self, range_: Range, name: str = "a.py", **context: Any) -> dict[str, Any]:
        start, end = range_.start, range_.end
        return {
            "textDocument": {"uri": self.uri(name)},
            "range": {
                "start": {"line": start.line, "character": start.character},
                "end": {"line": end.line, "character": end.character},
            },
            "context": {"diagnostics": [], **context},
        }

    async def end(self) -> int:
        await self.request("shutdown", None)
        self.notify("exit", None)
        return await self._session


def syntax_problem() -> Problem:
    return Problem("syntax", "the file does not parse", "Correct the syntax.")
