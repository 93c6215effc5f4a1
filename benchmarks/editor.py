"""What the benchmarks share: an editor that drives a real server, and a hot process that does the same work bare."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

HERE = Path(__file__).resolve().parent
SERVER = (sys.executable, "-m", "pallas_lsp", "serve")
LIMIT = 120.0


class Bare:
    """The process that only executes, traces and lowers (``bare.py``)."""

    def __init__(self, python: str) -> None:
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [python, str(HERE / "bare.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.jax = self._read()["jax"]
        self.import_seconds = time.perf_counter() - start

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the process that traces and lowers ended; does its interpreter have jax?")
        return json.loads(line)

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def anew(python: str, request: dict[str, Any]) -> float:
    """Seconds for the same work in a process that is started for it: what running the script once more costs."""
    start = time.perf_counter()
    subprocess.run(
        [python, str(HERE / "bare.py")], input=json.dumps(request) + "\n", stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip
    return time.perf_counter() - start


@dataclass(frozen=True)
class Status:
    """What the server said of a document: whether a check of it runs."""

    arrived: float
    busy: bool


class Editor:
    """A client that has documents open and waits for what the server says of them."""

    def __init__(self) -> None:
        self.client = LanguageClient("pallas-lsp-benchmark", "1")
        self.published: dict[str, list[tuple[float, types.PublishDiagnosticsParams]]] = {}
        self.statuses: dict[str, list[Status]] = {}
        self._news = asyncio.Condition()
        self._listen()

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def published(params: types.PublishDiagnosticsParams) -> None:
            arrived = time.perf_counter()
            async with self._news:
                self.published.setdefault(params.uri, []).append((arrived, params))
                self._news.notify_all()

        @self.client.feature("pallas/status")
        async def status(params: Any) -> None:
            arrived = time.perf_counter()
            async with self._news:
                self.statuses.setdefault(params.uri, []).append(Status(arrived, params.busy))
                self._news.notify_all()

        for name in (types.WINDOW_LOG_MESSAGE, types.WINDOW_SHOW_MESSAGE, types.PROGRESS):
            self.client.feature(name)(lambda _: None)
        self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda _: None)

    @property
    def pid(self) -> int:
        """The server's process."""
        server = self.client._server
        assert server is not None
        return server.pid

    async def start(self, root: Path, python: str, capabilities: types.ClientCapabilities | None = None) -> None:
        """Start a server for one folder; what it remembers between sessions is kept beside that folder."""
        state = str(root.with_name(f"{root.name}-state"))
        await self.client.start_io(*SERVER, env={**os.environ, "XDG_CACHE_HOME": state, "XDG_STATE_HOME": state})
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=capabilities
                or types.ClientCapabilities(
                    text_document=types.TextDocumentClientCapabilities(
                        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True)
                    )
                ),
                process_id=os.getpid(),
                root_uri=root.as_uri(),
                workspace_folders=[types.WorkspaceFolder(root.as_uri(), root.name)],
                initialization_options={"trusted": True, "interpreter": python, "status": True},
            )
        )
        self.client.initialized(types.InitializedParams())

    def open(self, uri: str, text: str) -> None:
        document = types.TextDocumentItem(uri, "python", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, uri: str, version: int, *changes: types.TextDocumentContentChangeEvent | str) -> None:
        """Send changes; a text stands for the whole document."""
        told = [types.TextDocumentContentChangeWholeDocument(c) if isinstance(c, str) else c for c in changes]
        document = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, told))

    async def shows(self, uri: str, version: int, errors: bool) -> float:
        """When the diagnostics of this version of the text, with an error or with none, had arrived."""
        arrived = await self.until(lambda: self.shown(uri, version, errors))
        assert arrived is not None
        return arrived

    def shown(self, uri: str, version: int, errors: bool, since: float = 0.0) -> float | None:
        """The same of what has arrived by now, ``since`` a time."""
        for arrived, params in self.published.get(uri, ()):
            serious = any(each.severity == types.DiagnosticSeverity.Error for each in params.diagnostics)
            if params.version == version and serious == errors and arrived >= since:
                return arrived
        return None

    async def until(self, found: Callable[[], Any]) -> Any:
        """Wait until something that the server told makes ``found`` true; its value."""
        async with asyncio.timeout(LIMIT), self._news:
            await self._news.wait_for(found)
        return found()

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(percent / 100 * len(ordered) + 0.5) - 1))]


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how many processes waited for each core."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else None
    return {
        "system": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version(),
        "load_per_core": load,
    }  # fmt: skip
