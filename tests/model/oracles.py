"""An engine that says at once, after any time, what a text holds; and what a client may then be shown.

It finds some words of each text that parses, some of them early and the others at the end, and some in the helper that
the kernels import.  Every message carries the versions of the texts that it is about, so that nothing can be published
that is older than it may be without being noticed.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from python_text import parses
from server_harness import Call, FakeEngine, capture, finding, fix, launch, syntax_problem

from pallas_lsp.model import Finding, Report, Severity, Snapshot, Stage
from pallas_lsp.source.positions import Lines

WORDS = re.compile(r"jnp\.\w+|axis=\d|\bx_ref\[\S*\]|# \w+")
_LAUNCH = re.compile(r"(?:plgpu\.kernel|pl\.pallas_call)\(")
_DELAYS = (0.0, 0.0, 0.01, 0.1, 0.4, 3.0)


class Tag(NamedTuple):
    """What a message says of itself: whose check it is from, and the versions of that text and of the marked one."""

    owner: str
    checked: int
    marked: int
    word: str

    @classmethod
    def of(cls, message: str) -> Tag:
        return cls(*json.loads(message))


class Oracle(FakeEngine):
    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.source = source
        self.is_newest: Callable[[str, int | None], bool] = lambda path, version: True
        self.told: dict[str, dict[str, int]] = {}
        """By file, the versions of the texts that the newest finished check of it told something of."""

    async def check(self, snapshot, path, on_report=None, *, run=True):
        await asyncio.sleep(self.source.choice(_DELAYS))
        call = Call(snapshot, path, run, on_report, asyncio.get_running_loop().create_future())
        report = self.report(call)
        if report.stage is not Stage.READ and on_report is not None and self.source.random() < 0.6:
            early = [each for each in report.findings if each.stage is Stage.TRACE]
            call.report(*early, launches=report.launches)
            await asyncio.sleep(self.source.choice(_DELAYS))
        if on_report is not None:
            on_report(report)
            # One that ends as its text is edited is not taken in.
            if self.is_newest(path, call.version) and tells_of(path, _texts(snapshot, path)):
                versions = {Path(each.path).name: each.version or 0 for each in snapshot.documents.values()}
                self.told[Path(path).name] = versions
        return report

    async def verify(self, snapshot, path, finding, fix, before=None):
        await asyncio.sleep(self.source.choice(_DELAYS))
        return await super().verify(snapshot, path, finding, fix, before)

    def report(self, call: Call) -> Report:
        if not parses(call.text):
            return call.make(problems=(syntax_problem(),), stage=Stage.READ)
        found = findings(call.path, _texts(call.snapshot, call.path))
        lines = Lines(call.text)
        reached = (capture(),) if _reaches(call.text) else ()
        launches = [launch(call.path, lines.range(m.start(), m.end()), *reached) for m in _LAUNCH.finditer(call.text)]
        return call.make(*found, launches=tuple(launches))


def texts_of(folder: Path, opened: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """The texts that a check sees, with their versions: open documents, and what is on the disk."""
    disk = {str(path): (path.read_text(encoding="utf-8"), 0) for path in folder.glob("*.py") if str(path) not in opened}
    return {**disk, **opened}


def _texts(snapshot: Snapshot, path: str) -> dict[str, tuple[str, int]]:
    opened = {other: (each.text, each.version or 0) for other, each in snapshot.documents.items()}
    return texts_of(Path(path).parent, opened)


def _reaches(text: str) -> bool:
    return "__main__" in text or "def test" in text


def tells_of(path: str, texts: Mapping[str, tuple[str, int]]) -> bool:
    """Whether older findings go: not for a text that does not parse, or whose code reaches no kernel."""
    text, _ = texts[path]
    if not parses(text):
        return False
    return _reaches(text) or not _LAUNCH.search(text) or bool(findings(path, texts))


def findings(path: str, texts: Mapping[str, tuple[str, int]]) -> list[Finding]:
    """What there is to be found: in the text itself, and in each helper that it imports."""
    own, version = texts[path]
    found = []
    for other, (text, marked) in texts.items():
        if other != path and f"import {Path(other).stem}" not in own:
            continue
        lines = Lines(text)
        for match in WORDS.finditer(text):
            if (kind := crc32(f"{match.group()} {Path(path).stem}".encode()) % 5) > 2:
                continue
            place = lines.range(*match.span())
            tag = json.dumps([Path(path).name, version, marked, match.group()])
            found.append(
                finding(
                    other,
                    place,
                    rule=("early", "late", "late")[kind],
                    message=tag,
                    stage=(Stage.TRACE, Stage.LOWER, Stage.LOWER)[kind],
                    severity=(Severity.ERROR, Severity.ERROR, Severity.HINT)[kind],
                    fixes=(fix(other, place, f"FIXED_{version}"),) if kind else (),
                )
            )
    return found


def shown(diagnostic: Mapping[str, Any]) -> tuple[Any, ...]:
    """A diagnostic without the versions, which differ where nothing else does."""
    tag = Tag.of(diagnostic["message"])
    start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
    return tag.owner, tag.word, start["line"], start["character"], end["line"], end["character"], diagnostic["severity"]
