"""What is known of each checked document, at the places of the newest text.

A document's check may find faults in other files; each finding belongs to the document whose check found it, and goes
with it.  Findings of the last check stay, moved with the text, until a newer one replaces them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pallas_lsp.model import Finding, LaunchStatus, Location, Problem, Report, Snapshot, Stage
from pallas_lsp.server.documents import Documents, lines_on_disk
from pallas_lsp.server.moving import Move
from pallas_lsp.source.positions import Lines

_ORDER = list(Stage)


@dataclass(frozen=True)
class Known:
    """A finding at its present place.  ``id`` stays the same while it moves.

    ``text`` is what it marked when it was found.  ``fresh`` is False once its file has changed: its fixes were made for
    the older text and are no longer offered.
    """

    id: str
    finding: Finding
    text: str
    fresh: bool = True


@dataclass
class Result:
    """What the last check of one document found, ``owner`` being its path."""

    owner: str
    found: tuple[Known, ...] = ()
    launches: tuple[LaunchStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    stage: Stage = Stage.READ
    final: bool = False
    parsed: bool = True
    ran: bool = True
    """False where the code stopped before any kernel was reached, so that older findings are kept."""
    seconds: float = 0.0
    snapshot: Snapshot | None = None
    report: Report | None = None
    """What was checked, and the final report on it as it was: fixes are verified against both."""
    read: Mapping[str, str] = field(default_factory=dict)
    """The texts on the disk that fixes were made for, of files that were not open."""

    @property
    def paths(self) -> set[str]:
        return {known.finding.location.path for known in self.found}

    @property
    def texts(self) -> dict[str, str]:
        """What its fixes were made for."""
        documents = self.snapshot.documents if self.snapshot is not None else {}
        return {**self.read, **{path: document.text for path, document in documents.items()}}

    @property
    def reached(self) -> int:
        return sum(1 for status in self.launches if status.captures)


class Results:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._by_owner: dict[str, Result] = {}

    def get(self, owner: str) -> Result | None:
        return self._by_owner.get(owner)

    def all(self) -> list[Result]:
        return list(self._by_owner.values())

    def at(self, path: str) -> list[Known]:
        """The findings that stand in a file, each once though several checks found it."""
        seen: dict[tuple[object, ...], Known] = {}
        for result in self._by_owner.values():
            for known in result.found:
                finding = known.finding
                if finding.location.path == path:
                    first_line = finding.message.partition("\n")[0]
                    seen.setdefault((finding.rule, finding.location, finding.severity, first_line), known)
        return sorted(seen.values(), key=lambda k: (k.finding.location.range, k.finding.rule))

    def owner_of(self, known: Known) -> Result | None:
        return next((result for result in self._by_owner.values() if known in result.found), None)

    def forget(self, owner: str) -> set[str]:
        """Drop a document's results.  Returns the paths whose findings changed."""
        result = self._by_owner.pop(owner, None)
        return result.paths if result is not None else set()

    def replace(self, report: Report, shown: Report, snapshot: Snapshot, *, parsed: bool) -> set[str]:
        """Take in a report, of which ``shown`` is what the settings leave.  Returns the paths whose findings may have
        changed.

        Before the final report, findings of later stages stay: they are about to be confirmed or replaced.  A text
        that does not parse tells nothing, so that all findings stay.  One whose code stops before any kernel is
        reached (a name that is half typed) tells nothing of kernels either: findings stay whose own text did.
        """
        old = self._by_owner.get(report.path) or Result(report.path)
        if not parsed:
            new = replace(old, problems=report.problems, parsed=False, final=report.final, stage=report.stage)
            self._by_owner[report.path] = new
            return new.paths
        placer = _Placer(self._documents, snapshot)
        found = [known for known in map(placer.known, shown.findings) if known is not None]
        read = _on_disk(shown.findings, snapshot)
        ran = not _stopped_early(report) or not old.found
        if not ran:
            found += [replace(known, fresh=False) for known in old.found if self._is_untouched(known)]
        elif not report.final:
            read = {**read, **old.read}
            reached = _ORDER.index(report.stage)
            found += [known for known in old.found if _ORDER.index(known.finding.stage) > reached]
        new = Result(
            owner=report.path,
            found=tuple(found),
            launches=tuple(filter(None, map(placer.launch, shown.launches))),
            problems=report.problems,
            stage=report.stage,
            final=report.final,
            ran=ran,
            seconds=report.seconds,
            snapshot=snapshot,
            # One that was cut off before lowering says too little to compare with.
            report=report if report.final and ran and report.stage is not Stage.TRACE else None,
            read=read,
        )
        self._by_owner[report.path] = new
        return old.paths | new.paths

    def _is_untouched(self, known: Known) -> bool:
        location = known.finding.location
        lines = self._documents.lines(location.path)
        return lines is not None and lines.slice(location.range) == known.text

    def edited(self, path: str, before: Lines, after: Lines) -> None:
        """A file has another text: move everything that stands in it."""
        if before.text == after.text:
            return
        move: Move | None = None
        for result in self._by_owner.values():
            if not _mentions(result, path):
                continue
            move = move or Move(before, after)
            result.found = tuple(filter(None, (_moved(known, path, move) for known in result.found)))
            result.launches = tuple(filter(None, (_moved_launch(s, path, move) for s in result.launches)))


def _on_disk(findings: Iterable[Finding], snapshot: Snapshot) -> dict[str, str]:
    """The texts of files that fixes change and that are not open."""
    paths = {edit.path for finding in findings for fix in finding.fixes for edit in fix.edits}
    lines = {path: lines_on_disk(path) for path in paths - set(snapshot.documents)}
    return {path: each.text for path, each in lines.items() if each is not None}


def _stopped_early(report: Report) -> bool:
    """Whether the file's code was run, has kernels, and stopped before it reached any."""
    if report.stage is Stage.READ or report.findings or not report.launches:
        return False
    return not any(status.captures for status in report.launches)


class _Placer:
    """Takes places in the checked snapshot to the present texts, which may be newer."""

    def __init__(self, documents: Documents, snapshot: Snapshot) -> None:
        self._documents = documents
        self._snapshot = snapshot
        self._moves: dict[str, Move | None] = {}

    def _move(self, path: str) -> Move | None:
        if path not in self._moves:
            document = self._documents.at(path)
            then = self._snapshot.documents.get(path)
            now = document.lines if document is not None else None
            if then is None:  # read from disk by the worker; opened since, with what may be another text
                before = lines_on_disk(path) if now is not None else None
            elif now is None:  # closed since
                before, now = Lines(then.text), lines_on_disk(path)
            else:
                before = Lines(then.text)
            move = Move(before, now) if before is not None and now is not None else None
            self._moves[path] = None if move is None or move.same else move
        return self._moves[path]

    def known(self, finding: Finding) -> Known | None:
        document = self._snapshot.documents.get(finding.location.path)
        lines = Lines(document.text) if document is not None else self._documents.lines(finding.location.path)
        text = lines.slice(finding.location.range) if lines is not None else ""
        known: Known | None = Known(finding_id(finding), finding, text)
        paths = {finding.location.path, *(related.location.path for related in finding.related)}
        for path in paths | {edit.path for fix in finding.fixes for edit in fix.edits}:
            move = self._move(path)
            if move is not None and known is not None:
                known = _moved(known, path, move)
        return known

    def launch(self, status: LaunchStatus) -> LaunchStatus | None:
        path = status.launch.location.path
        move = self._move(path)
        return _moved_launch(status, path, move) if move is not None else status


def _mentions(result: Result, path: str) -> bool:
    return any(path in _paths(known.finding) for known in result.found) or any(
        status.launch.location.path == path for status in result.launches
    )


def _paths(finding: Finding) -> Iterable[str]:
    yield finding.location.path
    for related in finding.related:
        yield related.location.path
    for fix in finding.fixes:
        for edit in fix.edits:
            yield edit.path


def _moved_location(location: Location, path: str, move: Move) -> Location | None:
    if location.path != path:
        return location
    range_ = move.range(location.range)
    return Location(path, range_) if range_ is not None else None


def _moved(known: Known, path: str, move: Move) -> Known | None:
    finding = known.finding
    if path not in _paths(finding):
        return known
    location = _moved_location(finding.location, path, move)
    if location is None:
        return None
    related = []
    for each in finding.related:
        place = _moved_location(each.location, path, move)
        if place is not None:
            related.append(replace(each, location=place))
    moved = replace(finding, location=location, related=tuple(related))
    return replace(known, finding=moved, fresh=False)


def _moved_launch(status: LaunchStatus, path: str, move: Move) -> LaunchStatus | None:
    location = _moved_location(status.launch.location, path, move)
    if location is None:
        return None
    return replace(status, launch=replace(status.launch, location=location))


def finding_id(finding: Finding) -> str:
    where = finding.location
    key = repr((finding.rule, where.path, where.range, finding.message))
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
