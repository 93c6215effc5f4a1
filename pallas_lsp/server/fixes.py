"""Verifying fixes, each once for the same texts, and applying safe ones in a chain."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace

from pallas_lsp.model import Document, Edit, Finding, Fix, Report, Safety, Snapshot, Stage
from pallas_lsp.server.documents import lines_on_disk
from pallas_lsp.server.engines import EngineLike
from pallas_lsp.server.results import Known, Result
from pallas_lsp.server.workspace_edits import difference
from pallas_lsp.source.edits import OverlapError, apply_edits

logger = logging.getLogger(__name__)

_MOST_FIXES = 50
"""Fixes applied in one chain at most."""

_MOST_KEPT = 256

Key = tuple[str, str, int]
Identity = tuple[bytes, str, str, object, str, Fix]
"""The texts of all open documents and of those that fixes edit, the checked one, the finding and the fix."""


class Verifier:
    """Verifies for the newest texts, and keeps what became known for when the same texts come back."""

    def __init__(self) -> None:
        self._tasks: dict[Key, tuple[Snapshot, asyncio.Task[Fix]]] = {}
        self._kept: OrderedDict[Identity, Fix] = OrderedDict()

    def known(self, result: Result, known: Known, index: int) -> Fix:
        """A fix with what is known of it by now."""
        fix = known.finding.fixes[index]
        task = self._task(result, known, index)
        if fix.verified is None and task is not None and task.done() and not task.cancelled():
            return task.result()
        return self._kept.get(_identity(result, known, index), fix)

    def start(self, engine: EngineLike, result: Result, known: Known, index: int) -> asyncio.Task[Fix]:
        """Begin to verify a fix, or join in."""
        task = self._task(result, known, index)
        if task is None or task.cancelled():
            assert result.snapshot is not None
            task = asyncio.ensure_future(self._verified(engine, result, known, index))
            self._tasks[(result.owner, known.id, index)] = (result.snapshot, task)
        return task

    async def _verified(self, engine: EngineLike, result: Result, known: Known, index: int) -> Fix:
        assert result.snapshot is not None
        identity = _identity(result, known, index)
        if identity in self._kept:
            self._kept.move_to_end(identity)
            return self._kept[identity]
        fix = known.finding.fixes[index]
        try:
            fix = await _tried(engine, result.snapshot, result.owner, known.finding, fix, result.report)
        except Exception as error:
            return _not_tried(fix, error)
        self._kept[identity] = fix
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return fix

    def _task(self, result: Result, known: Known, index: int) -> asyncio.Task[Fix] | None:
        snapshot, task = self._tasks.get((result.owner, known.id, index), (None, None))
        return task if snapshot is result.snapshot else None

    def forget(self, owner: str | None = None) -> None:
        """A document was edited, checked again or closed (None: all): what was verified is no longer of use."""
        for key in [key for key in self._tasks if owner is None or key[0] == owner]:
            _, task = self._tasks.pop(key)
            task.cancel()

    def forget_kept(self) -> None:
        """Files on the disk or settings changed: what was verified before may no longer hold."""
        self._kept.clear()


def _identity(result: Result, known: Known, index: int) -> Identity:
    assert result.snapshot is not None
    digest = hashlib.sha256()
    texts = {path: document.text for path, document in result.snapshot.documents.items()}
    for path, text in sorted({**result.texts, **texts}.items()):
        for part in (path, text):
            digest.update(len(part).to_bytes(8, "little") + part.encode("utf-8", "surrogatepass"))
    finding = known.finding
    return (
        digest.digest(), result.owner, finding.rule, finding.location, finding.message, finding.fixes[index],
    )  # fmt: skip


async def _tried(
    engine: EngineLike, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None
) -> Fix:
    if fix.verified is not None:
        return fix
    if finding.stage is Stage.CONFIRM:
        return replace(fix, verified=False, reason="only a GPU shows this finding, and can tell whether it is gone")
    return await engine.verify(snapshot, path, finding, fix, before)


def _not_tried(fix: Fix, error: Exception) -> Fix:
    logger.exception("A fix could not be tried. Please report this.")
    return replace(fix, verified=False, reason=f"it could not be tried: {error}")


async def _verify(
    engine: EngineLike, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None
) -> Fix:
    try:
        return await _tried(engine, snapshot, path, finding, fix, before)
    except Exception as error:
        return _not_tried(fix, error)


async def fix_all(
    engine: EngineLike,
    snapshot: Snapshot,
    report: Report,
    wanted: Callable[[Finding], bool],
    checked: Mapping[str, str],
) -> tuple[list[Edit], dict[str, str]]:
    """The edits that apply one safe, verified fix after the other, each to the text that it was verified on; and the
    texts that they are for.

    ``wanted``: whether a finding is to be fixed.  ``checked``: the texts that the report's fixes were made for.
    """
    path = report.path
    texts: dict[str, str] = {}
    original: dict[str, str] = {}
    seen: set[frozenset[tuple[str, str]]] = set()
    for _ in range(_MOST_FIXES):
        fix = await _next(engine, snapshot, report, wanted)
        if fix is None:
            break
        changed = dict(texts)
        for file in {edit.path for edit in fix.edits}:
            before = changed[file] if file in changed else checked.get(file) or _text(snapshot, file)
            original.setdefault(file, before)
            try:
                changed[file] = apply_edits(before, [edit for edit in fix.edits if edit.path == file])
            except OverlapError as error:
                logger.warning("The fix %r cannot be applied: %s. Please report this.", fix.title, error)
                return _edits(original, texts), original
        state = frozenset(changed.items())
        if state in seen:  # fixes that undo each other
            break
        seen.add(state)
        texts = changed
        documents = {**snapshot.documents, **{file: Document(file, text) for file, text in texts.items()}}
        snapshot = Snapshot(documents, snapshot.roots)
        report = await engine.check(snapshot, path)
    return _edits(original, texts), original


async def _next(
    engine: EngineLike, snapshot: Snapshot, report: Report, wanted: Callable[[Finding], bool]
) -> Fix | None:
    for finding in filter(wanted, report.findings):
        if finding.data.get("behind"):
            continue  # its turn comes when the fault before it is mended
        for fix in finding.fixes:
            if fix.safety is Safety.SAFE and fix.edits:
                tried = await _verify(engine, snapshot, report.path, finding, fix, report)
                if tried.verified:
                    return tried
    return None


def _text(snapshot: Snapshot, path: str) -> str:
    document = snapshot.documents.get(path)
    if document is not None:
        return document.text
    lines = lines_on_disk(path)
    return lines.text if lines is not None else ""


def _edits(original: dict[str, str], texts: dict[str, str]) -> list[Edit]:
    return [edit for path, text in texts.items() for edit in difference(path, original[path], text)]
