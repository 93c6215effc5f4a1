"""How long after a keystroke its findings are there, in an editing session at a person's pace.

    .venvs/dev/bin/python benchmarks/keystrokes.py --python .venvs/jax-0.12.0.1/bin/python [--write]

A real ``pallas-lsp serve`` is driven over stdio through the session of ``session.py``.  After each phrase a hot process
does the same work bare, so that what counts is the ratio of the two.  See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from editor import Bare, Editor, anew, machine
from lsprotocol import types
from page import write
from session import SEED, Expected, Keystroke, Phrase, session
from subjects import SUBJECTS, Subject
from summary import Measured, Result, document, markdown

PAUSE = 1.1
"""Seconds that the person looks at a result: the next keystroke is one after a pause."""
SETTLED = 0.5
"""Seconds without a check after which nothing more is to come: longer than the server waits for further edits."""
ANEW = 3


@dataclass
class Typing:
    """A subject that is open in an editor."""

    subject: Subject
    folder: Path
    editor: Editor
    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    def uri(self, file: str) -> str:
        return (self.folder / file).as_uri()

    async def open(self, python: str) -> None:
        self.texts = dict(self.subject.files)
        for file, text in self.texts.items():
            (self.folder / file).write_text(text, encoding="utf-8")
        (self.folder / "pyproject.toml").touch()  # a folder without one is no workspace, and is not searched
        await self.editor.start(self.folder, python)
        for file, text in self.texts.items():
            self.versions[file] = 0
            self.editor.open(self.uri(file), text)
        await self.stable(self.subject.main, 0.0)

    def press(self, stroke: Keystroke) -> float:
        """Send a keystroke; when it was sent."""
        text = self.texts[stroke.file]
        self.texts[stroke.file] = text[: stroke.start] + stroke.text + text[stroke.end :]
        range_ = types.Range(_position(text, stroke.start), _position(text, stroke.end))
        self.versions[stroke.file] += 1
        sent = time.perf_counter()
        change = types.TextDocumentContentChangePartial(range_, stroke.text)
        self.editor.change(self.uri(stroke.file), self.versions[stroke.file], change)
        return sent

    async def stable(self, file: str, sent: float) -> float:
        """When the last check after an edit of ``file`` had ended, of whichever document."""
        while True:
            ended = await self.editor.until(lambda: self._ended(file, sent))
            await asyncio.sleep(max(0.0, ended + SETTLED - time.perf_counter()))
            if self._ended(file, sent) == ended:
                return ended

    def _ended(self, file: str, sent: float) -> float | None:
        statuses = [told for told in self.editor.statuses.values() if told]
        if any(told[-1].busy for told in statuses):
            return None
        concerned = self.uri(self.subject.concerned(file))
        if not any(each.busy and each.arrived >= sent for each in self.editor.statuses.get(concerned, ())):
            return None
        main = self.subject.main
        if file == main and not any(p.version == self.versions[main] for _, p in self._published()):
            return None
        return max(told[-1].arrived for told in statuses)

    def _published(self) -> list[tuple[float, types.PublishDiagnosticsParams]]:
        return self.editor.published.get(self.uri(self.subject.main), [])

    def began(self, file: str, sent: float, before: float) -> float:
        """When the check began that had its result at a time: what came earlier is the wait for further edits."""
        began = sent
        busy = False
        for each in self.editor.statuses[self.uri(self.subject.concerned(file))]:
            if sent <= each.arrived <= before:
                if each.busy and not busy:
                    began = each.arrived
                busy = each.busy
        return began

    def found(self, sent: float) -> float | None:
        """When an error was first shown for the newest text."""
        main = self.subject.main
        return self.editor.shown(self.uri(main), self.versions[main], errors=True, since=sent)

    def shows_errors(self) -> bool:
        return any(d.severity == types.DiagnosticSeverity.Error for d in self._published()[-1][1].diagnostics)


def _position(text: str, offset: int) -> types.Position:
    line = text.count("\n", 0, offset)
    return types.Position(line, offset - (text.rfind("\n", 0, offset) + 1))  # the texts are ASCII


async def _phrase(typing: Typing, phrase: Phrase, bare: Bare) -> Measured | None:
    """Type a phrase, wait for the results, and have the bare process do the same; None where that has no meaning."""
    for stroke in phrase.keystrokes:
        await asyncio.sleep(stroke.wait)
        sent = typing.press(stroke)
    file = phrase.keystrokes[-1].file
    ended = await typing.stable(file, sent)
    faulty = phrase.expected in (Expected.TRACE, Expected.LOWER)
    found = typing.found(sent) if faulty else None
    if phrase.expected is Expected.SYNTAX:
        return Measured(phrase, typing.began(file, sent, ended) - sent, ended - sent)
    if typing.shows_errors() != faulty:
        raise SystemExit(f"{typing.subject.name}, {phrase.kind}: expected {phrase.expected.value}, which is not shown")
    alone = await asyncio.to_thread(bare.measure, typing.subject.request(typing.texts, typing.folder))
    stage = {Expected.TRACE: "trace", Expected.LOWER: "lower"}.get(phrase.expected)
    if (alone["stage"] if alone["error"] else None) != stage:
        raise SystemExit(f"{typing.subject.name}, {phrase.kind}: jax itself says {alone}")
    result = found if found is not None else ended
    return Measured(
        phrase,
        typing.began(file, sent, result) - sent,
        ended - sent,
        found - sent if found is not None else None,
        alone["traced"] if phrase.expected is Expected.TRACE else alone["seconds"],
    )


async def measure(subject: Subject, options: argparse.Namespace, bare: Bare) -> Result:
    phrases = session(subject, options.keystrokes, options.seed)
    result = Result(subject.name, sum(len(phrase.keystrokes) for phrase in phrases))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve() / "workspace"
        folder.mkdir()
        typing = Typing(subject, folder, Editor())
        start = time.perf_counter()
        await typing.open(options.python)
        result.open_seconds = time.perf_counter() - start - SETTLED
        try:
            request = subject.request(subject.files, folder)
            for _ in range(2):
                bare.measure(request)
            for phrase in phrases:
                shown = time.perf_counter()
                measured = await _phrase(typing, phrase, bare)
                result.measured.append(measured)
                await asyncio.sleep(max(0.0, shown + measured.stable + options.pause - time.perf_counter()))
        finally:
            await typing.editor.stop()
        result.anew = [await asyncio.to_thread(anew, options.python, request) for _ in range(options.anew)]
    return result


async def run(options: argparse.Namespace) -> int:
    bare = Bare(options.python)
    results: list[Result] = []
    try:
        for name in options.kernel or SUBJECTS:
            results.append(await measure(SUBJECTS[name](options.python), options, bare))
            print(f"{name}: measured", file=sys.stderr, flush=True)
    finally:
        bare.close()
    figures: dict[str, Any] = document(results, bare.jax, machine())
    table = markdown(figures)
    print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if options.write:
        write("keystrokes", table)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    parser.add_argument("--kernel", action="append", choices=list(SUBJECTS), help="only this one (may be repeated)")
    parser.add_argument("--keystrokes", type=int, default=200, help="so many at least for each kernel (default: 200)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the typist's pace")
    parser.add_argument("--pause", type=float, default=PAUSE, help=f"seconds between phrases (default: {PAUSE})")
    parser.add_argument("--anew", type=int, default=ANEW, help=f"runs of the script anew (default: {ANEW})")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    options.python = os.path.abspath(options.python)  # noqa: PTH100  # a virtual environment's link must stay
    return asyncio.run(run(options))


if __name__ == "__main__":
    sys.exit(main())
