"""The engine with a worker that has no jax: what a run does stands in the file, in lines that start with ``#: ``."""

from __future__ import annotations

import contextlib
import sys
import textwrap
from pathlib import Path

import pytest
from fake_kernels import KERNEL

from pallas_lsp.engine import Engine, Limits, Settings
from pallas_lsp.model import Document, Snapshot

FAKE = str(Path(__file__).resolve().parent.parent / "worker_process" / "fake_worker")

# Drives what the request names; ``DO`` says, by driver, what happens in it.
DRIVE = """
import os, sys, time
open({trace!r}, 'a').write(' '.join(d['id'] for d in params['drivers']) + '\\n')
here = {{'path': params['path'], 'line': {line}}}
DO = {do!r}
emit('stage', {{'stage': 'import', 'driver': 'module', 'capture': None}})
exec(DO.get('import', ''))
captures = []
for number, driver in enumerate(params['drivers'], 1):
    name = driver['id']
    emit('stage', {{'stage': 'drive', 'driver': name, 'capture': None}})
    error = ''
    capture = dict(id='c%d' % number, api='pl.pallas_call', backend='any', driver=name, arguments='f32[8]')
    capture.update(launch=here, body=dict(path=params['path'], line=6, name='body'), stage='trace')
    if DO.get(name, 'reach') == 'reach':
        captures.append(capture)
        emit('capture', {{'capture': capture}})
    elif DO[name].startswith('raise '):
        error = DO[name][6:]
    else:
        exec(DO[name])
    frame = dict(here, line=99) if error else None
    emit('driver', {{'outcome': dict(driver=name, finished=not error, error=error, frame=frame)}})
for capture in captures:
    if capture['id'] in params['skip']: continue
    emit('stage', {{'stage': 'lower', 'driver': capture['driver'], 'capture': capture['id']}})
    exec(DO.get('lower ' + capture['driver'], ''))
    emit('capture', {{'capture': dict(capture, stage='lower')}})
"""


class Checker:
    """An engine, a file, and what the runs of the file were asked for."""

    def __init__(self, folder: Path, settings: Settings, log: list[str]) -> None:
        self.engine = Engine(settings, log.append)
        self.path = str(folder / "kernels.py")
        self.log = log
        self._trace = folder / "trace.txt"

    @property
    def runs(self) -> list[str]:
        return self._trace.read_text().splitlines() if self._trace.exists() else []

    def text(self, do: dict[str, str] | None = None, source: str = KERNEL) -> str:
        """A file's text with the script of its run."""
        line = next((n for n, text in enumerate(source.splitlines(), 1) if "pallas_call(" in text), 1)
        script = DRIVE.format(trace=str(self._trace), line=line, do=do or {})
        return source + "".join(f"#: {each}\n" for each in script.splitlines())

    def snapshot(self, do: dict[str, str] | None = None, source: str = KERNEL, version: int = 1) -> Snapshot:
        document = Document(self.path, self.text(do, textwrap.dedent(source)), version)
        return Snapshot({self.path: document}, (str(Path(self.path).parent),))

    async def check(self, do: dict[str, str] | None = None, source: str = KERNEL, on_report=None):
        return await self.engine.check(self.snapshot(do, source), self.path, on_report)


@pytest.fixture(params=["fork", "single"])
def fork(request) -> bool:
    if request.param == "fork" and sys.platform != "linux":
        pytest.skip("workers fork on Linux only")
    return request.param == "fork"


@pytest.fixture
async def make_checker(tmp_path):
    """Makes engines with the fake worker and ends them; keywords are Settings'."""
    made: list[Checker] = []

    def make(**settings) -> Checker:
        settings.setdefault("python", sys.executable)
        # The script of a run knows the file's own drivers only.
        settings.setdefault("discovery", False)
        settings.setdefault("guess", False)
        settings.setdefault("limits", Limits(import_seconds=20, trace_seconds=20, lower_seconds=20))
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Checker(folder, Settings(worker=FAKE, **settings), []))
        return made[-1]

    yield make
    for each in made:
        with contextlib.suppress(Exception):
            await each.engine.aclose()


@pytest.fixture
def checker(make_checker) -> Checker:
    return make_checker()
