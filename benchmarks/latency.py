"""How long after an edit its diagnostics are there, against what jax alone needs for the same kernel.

    .venvs/dev/bin/python benchmarks/latency.py --python .venvs/jax-0.12.0.1/bin/python

A real ``pallas-lsp serve`` is driven over stdio.  In the same run, interleaved with it edit by edit, a process that is
hot traces and lowers the same texts (``bare.py``); the figures of interest are the ratios.  See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels import KERNELS, Kernel
from lsprotocol import types
from pygls.lsp.client import LanguageClient

HERE = Path(__file__).resolve().parent
LIMIT = 120.0


class Bare:
    """The process that only traces and lowers."""

    def __init__(self, python: str) -> None:
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [python, str(HERE / "bare.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.jax = self._read()["jax"]
        self.import_seconds = time.perf_counter() - start

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the process that traces and lowers ended; does its interpreter have jax?")
        return json.loads(line)

    def measure(self, kernel: Kernel, text: str) -> dict[str, Any]:
        assert self._process.stdin
        request = {
            "text": text, "path": str(kernel.path), "entry": kernel.entry, "arguments": kernel.arguments,
            "platform": kernel.platform, "device": kernel.device,
        }  # fmt: skip
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class Editor:
    """A client that has one document open and waits for what the server says of it."""

    def __init__(self) -> None:
        self.client = LanguageClient("pallas-lsp-benchmark", "1")
        self.published: dict[str, list[tuple[float, types.PublishDiagnosticsParams]]] = {}
        self._news = asyncio.Condition()
        self._listen()

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def published(params: types.PublishDiagnosticsParams) -> None:
            arrived = time.perf_counter()
            async with self._news:
                self.published.setdefault(params.uri, []).append((arrived, params))
                self._news.notify_all()

        for name in (types.WINDOW_LOG_MESSAGE, types.WINDOW_SHOW_MESSAGE, types.PROGRESS):
            self.client.feature(name)(lambda _: None)
        self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda _: None)

    async def start(self, command: list[str], root: Path, python: str) -> None:
        await self.client.start_io(*command)
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    text_document=types.TextDocumentClientCapabilities(
                        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True)
                    )
                ),
                process_id=os.getpid(),
                root_uri=root.as_uri(),
                workspace_folders=[types.WorkspaceFolder(root.as_uri(), root.name)],
                initialization_options={"trusted": True, "interpreter": python},
            )
        )
        self.client.initialized(types.InitializedParams())

    def open(self, uri: str, text: str) -> None:
        document = types.TextDocumentItem(uri, "python", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, uri: str, version: int, text: str) -> None:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def shows(self, uri: str, version: int, errors: bool) -> float:
        """When the diagnostics of this version of the text, with an error or with none, had arrived."""

        def found() -> float | None:
            for arrived, params in self.published.get(uri, ()):
                serious = any(each.severity == types.DiagnosticSeverity.Error for each in params.diagnostics)
                if params.version == version and serious == errors:
                    return arrived
            return None

        async with asyncio.timeout(LIMIT), self._news:
            await self._news.wait_for(lambda: found() is not None)
        arrived = found()
        assert arrived is not None
        return arrived

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


@dataclass
class Result:
    kernel: str
    driver: str
    open_seconds: float = 0.0
    edits: list[float] = field(default_factory=list)
    typed: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        def of(values: list[float]) -> dict[str, float]:
            return {"median_ms": 1000 * statistics.median(values), "p95_ms": 1000 * percentile(values, 95)}

        bare = statistics.median(self.bare)
        ratios = [edit / alone for edit, alone in zip(self.edits, self.bare, strict=True)]
        return {
            "kernel": self.kernel,
            "driver": self.driver,
            "open_ms": 1000 * self.open_seconds,
            "edit": of(self.edits),
            "typing": of(self.typed),
            "bare": of(self.bare),
            "edit_to_bare": {"median": statistics.median(ratios), "p95": percentile(ratios, 95)},
            "open_to_bare": self.open_seconds / bare,
            "edits": len(self.edits),
        }


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(percent / 100 * len(ordered) + 0.5) - 1))]


async def measure(kernel: Kernel, options: argparse.Namespace, bare: Bare) -> Result:
    result = Result(kernel.name, kernel.driver)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / kernel.path.name
        original = kernel.text
        path.write_text(original, encoding="utf-8")
        if kernel.driver == "test":
            path.with_name(f"test_{path.name}").write_text(kernel.test, encoding="utf-8")
            path.with_name("pyproject.toml").touch()  # a folder without one is no workspace, and is not searched
        editor, uri = Editor(), path.as_uri()
        start = time.perf_counter()
        await editor.start([sys.executable, "-m", "pallas_lsp", "serve"], path.parent, options.python)
        try:
            editor.open(uri, original)
            result.open_seconds = await editor.shows(uri, 0, errors=False) - start
            bare.measure(kernel, original)
            version = 0
            edits = list(kernel.edits(options.warm_up + options.edits))
            for n, (text, faulty) in enumerate(edits):
                await asyncio.sleep(options.pause)
                version += 1
                start = time.perf_counter()
                editor.change(uri, version, text)
                seconds = await editor.shows(uri, version, faulty) - start
                alone = await asyncio.to_thread(bare.measure, kernel, text)
                if (alone["error"] is not None) != faulty:
                    raise SystemExit(f"{kernel.name}: jax itself says {alone} of edit {n}, which is faulty: {faulty}")
                if n >= options.warm_up:
                    result.edits.append(seconds)
                    result.bare.append(alone["seconds"])
            for text, faulty in list(kernel.edits(2 * options.bursts + 1))[1:]:
                await asyncio.sleep(options.pause)
                for keystroke in range(8):
                    version += 1
                    start = time.perf_counter()
                    editor.change(uri, version, text + "#" * keystroke)
                    await asyncio.sleep(0.08)
                result.typed.append(await editor.shows(uri, version, faulty) - start)
        finally:
            await editor.stop()
    return result


def table(results: list[Result], bare: Bare) -> str:
    columns = ("kernel, driver", "edit", "edit p95", "bare", "edit/bare", "p95", "typing", "open")
    lines = ["".join(f"{column:>{20 if n == 0 else 11}}" for n, column in enumerate(columns))]
    for each in (result.summary() for result in results):
        edit, alone, ratio = each["edit"], each["bare"], each["edit_to_bare"]
        times = [edit["median_ms"], edit["p95_ms"], alone["median_ms"], each["typing"]["median_ms"], each["open_ms"]]
        cells = [f"{milliseconds:.0f} ms" for milliseconds in times]
        cells[3:3] = [f"{ratio['median']:.2f}", f"{ratio['p95']:.2f}"]
        name = f"{each['kernel']}, {each['driver']}"
        lines += [f"{name:>20}" + "".join(f"{cell:>11}" for cell in cells)]
    lines.append(f"jax {bare.jax}; importing it alone took {1000 * bare.import_seconds:.0f} ms. Medians unless said.")
    return "\n".join(lines)


async def run(options: argparse.Namespace) -> int:
    bare = Bare(options.python)
    try:
        chosen = [
            each for each in KERNELS if options.kernel in (None, each.name) and options.driver in (None, each.driver)
        ]
        results = [await measure(kernel, options, bare) for kernel in chosen]
    finally:
        bare.close()
    print(table(results, bare))
    if options.json:
        document = {
            "jax": bare.jax,
            "machine": {"system": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()},
            "import_ms": 1000 * bare.import_seconds,
            "results": [result.summary() for result in results],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    parser.add_argument("--kernel", choices=sorted({kernel.name for kernel in KERNELS}), help="measure this one only")
    parser.add_argument(
        "--driver", choices=("own", "test"), help="measure kernels with this driver only (see kernels.py)"
    )
    parser.add_argument("--edits", type=int, default=20, help="edits that count (default: 20)")
    parser.add_argument("--warm-up", type=int, default=2, help="edits before them that do not (default: 2)")
    parser.add_argument("--bursts", type=int, default=5, help="bursts of typing (default: 5)")
    parser.add_argument("--pause", type=float, default=1.2, help="seconds between edits (default: 1.2)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    options.python = os.path.abspath(options.python)  # noqa: PTH100  # a virtual environment's link must stay
    return asyncio.run(run(options))


if __name__ == "__main__":
    sys.exit(main())
