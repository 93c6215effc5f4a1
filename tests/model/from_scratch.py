"""A check that knows nothing of any other: the measure for what an engine with a memory says.

It runs in a process of its own, with an engine of its own and an empty cache directory for each check.  Only the
worker, which has imported jax and forks for each run, serves all checks; ``alone`` starts everything anew.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import re
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from typing import Any
from unittest import mock

from pallas_lsp.engine import Engine
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import Document, Finding, LaunchStatus, Report, Snapshot

Texts = dict[str, str]
"""The open documents by path."""


class FromScratch:
    def __init__(self, settings: Settings, *, alone: bool = False) -> None:
        self._settings = replace(settings, kept=None)
        self._alone = alone
        self._process = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), max_tasks_per_child=1 if alone else None
        )

    async def check(self, texts: Texts, root: str, path: str, *, further: bool = True) -> Report:
        work = asyncio.get_running_loop().run_in_executor(
            self._process, _check, self._settings, texts, root, path, further, self._alone
        )
        return await work

    def close(self) -> None:
        self._process.shutdown()


class _Own:
    """What the process keeps: an event loop and a worker."""

    runner: asyncio.Runner | None = None
    pool: Pool | None = None


def _check(settings: Settings, texts: Texts, root: str, path: str, further: bool, alone: bool) -> Report:
    if _Own.runner is None:
        _Own.runner = asyncio.Runner()
        _Own.pool = _Own.runner.run(_make_pool(settings))
        atexit.register(_end)
    report = _Own.runner.run(_checked(settings, texts, root, path, further))
    if alone:
        _end()
    return report


async def _make_pool(settings: Settings) -> Pool:
    return Pool(settings, lambda _: None)


def _end() -> None:
    if _Own.runner is not None and _Own.pool is not None:
        _Own.runner.run(_Own.pool.close())
        _Own.runner.close()
        _Own.runner = _Own.pool = None


async def _checked(settings: Settings, texts: Texts, root: str, path: str, further: bool) -> Report:
    assert _Own.pool is not None
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, XDG_CACHE_HOME=cache):
        engine = engine_on(_Own.pool, settings)
        snapshot = snapshot_of(texts, root)
        report = await engine.check(snapshot, path)
        return await engine.further(snapshot, path, report) if further else report


def engine_on(pool: Pool, settings: Settings) -> Engine:
    """A new engine with a worker that runs already; the pool is to be closed, not the engine."""
    with mock.patch("pallas_lsp.engine.engine.Pool", lambda *_: pool):
        return Engine(settings)


def snapshot_of(texts: Texts, root: str, version: int | None = None) -> Snapshot:
    return Snapshot({path: Document(path, text, version) for path, text in texts.items()}, (root,))


_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def _plain(value: Any) -> Any:
    """A value without what differs from process to process."""
    if isinstance(value, str):
        return _ADDRESS.sub("0x", value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def facts(report: Report) -> dict[str, list[Any]]:
    """All that a report says to a user, in a form in which two of the same text are equal."""
    return {
        "findings": [_plain(asdict(_without_trace(each))) for each in report.findings],
        "launches": [_launch(each) for each in report.launches],
        "problems": [_plain(asdict(each)) for each in report.problems],
        "stage": [str(report.stage), report.final],
    }


def _without_trace(finding: Finding) -> Finding:
    """Without the data that only other parts of the server read."""
    return replace(finding, data={name: finding.data[name] for name in ("tags", "behind") if name in finding.data})


def _launch(status: LaunchStatus) -> Any:
    captures = sorted(
        (each.driver, each.arguments, str(each.stage), each.targets, each.call and each.call.line,
         each.body and (each.body.path, each.body.line)) for each in status.captures
    )  # fmt: skip
    return _plain([asdict(status.launch), status.reason, status.remedy, captures])
