"""An engine that answers from a script, for tests of the command line without jax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pallas_lsp.cli.diffs import edited
from pallas_lsp.confirm.confirmation import Confirmation
from pallas_lsp.model import (
    Backend,
    Capture,
    Document,
    Edit,
    Finding,
    Fix,
    Frame,
    Launch,
    LaunchStatus,
    Location,
    Position,
    Range,
    Report,
    Safety,
    Severity,
    Snapshot,
    Stage,
    WorkerInfo,
)
from pallas_lsp.source.positions import Lines

INFO = WorkerInfo(1, "3.12.1", "/env/bin/python", "0.11.2", ("mosaic_gpu", "triton", "tpu"))
Judge = Callable[[Snapshot, str], Report]


@dataclass
class FakeEngine:
    """``judge`` says what a file's report is; a fix holds where the judge finds less after it."""

    judge: Judge
    calls: list[str] = field(default_factory=list)
    closed: bool = False

    async def check(self, snapshot: Snapshot, path: str) -> Report:
        self.calls.append(f"check {path.rpartition('/')[2]}")
        return self.judge(snapshot, path)

    async def verify(self, snapshot: Snapshot, path: str, finding: Finding, fix: Fix) -> Fix:
        self.calls.append(f"verify {fix.title}")
        documents = dict(snapshot.documents)
        for name in {edit.path for edit in fix.edits}:
            text = edited(documents[name].text, [edit for edit in fix.edits if edit.path == name])
            documents[name] = Document(name, text)
        before = len(self.judge(snapshot, path).findings)
        after = len(self.judge(replace(snapshot, documents=documents), path).findings)
        return replace(fix, verified=after < before, reason="" if after < before else "the finding stays")

    async def further(self, snapshot: Snapshot, path: str, report: Report) -> Report:
        return report

    async def confirm(self, snapshot: Snapshot, path: str, report: Report) -> Confirmation:
        return Confirmation(report, "no GPU: this engine has none")

    async def worker_info(self, path: str, roots: tuple[str, ...] = ()) -> WorkerInfo:
        return INFO

    async def aclose(self) -> None:
        self.closed = True


def where(text: str, part: str, path: str = "", nth: int = 0) -> Location:
    """The place of the nth occurrence of a part of a text."""
    lines = Lines(text)
    start = -1
    for _ in range(nth + 1):
        start = text.index(part, start + 1)
    return Location(path, lines.range(start, start + len(part)))


def replacing(title: str, path: str, text: str, old: str, new: str, safety: Safety = Safety.SAFE) -> Fix:
    return Fix(title, (Edit(path, where(text, old).range, new),), safety)


def word_judge(words: dict[str, str], severity: Severity = Severity.ERROR) -> Judge:
    """Finds each word of a table in the text, and offers to replace it."""

    def judge(snapshot: Snapshot, path: str) -> Report:
        text = snapshot.documents[path].text
        findings = []
        for word, new in words.items():
            if word in text:
                findings.append(
                    Finding(
                        "bad-word",
                        where(text, word, path),
                        f"`{word}` is wrong.",
                        severity,
                        fixes=(replacing(f"Write {new}", path, text, word, new),),
                        kernel="kernel",
                        arguments=("f32[8,128]",),
                    )
                )
        return report(path, findings=tuple(findings), launches=(reached(path),))

    return judge


def report(path: str, **fields: object) -> Report:
    return Report(path, None, Stage.LOWER, True, **fields)  # type: ignore[arg-type]


def launch(path: str, line: int = 0) -> Launch:
    return Launch(Location(path, Range(Position(line, 0), Position(line, 4))), "pl.pallas_call", Backend.ANY, "kernel")


def reached(path: str, line: int = 0, arguments: str = "f32[8,128]") -> LaunchStatus:
    capture = Capture(
        "c1", "pl.pallas_call", Backend.TPU, "main", arguments, Frame(path, line + 1), Frame(path, line + 2),
        targets=("TPU v6e",), stage=Stage.LOWER, seconds=0.05,
    )  # fmt: skip
    return LaunchStatus(launch(path, line), (capture,))
