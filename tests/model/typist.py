"""An editor that sends an author's steps as a person's editor does, and watches what the server publishes."""

from __future__ import annotations

import asyncio
import difflib
import random
import time
from pathlib import Path

from authors import Author, Change, Step
from editor_client import Editor
from lsprotocol import types

QUIET = 0.25
"""Seconds without a message after which nothing more is expected."""
PATIENCE = 60.0


class UntrueError(Exception):
    """The server published something that cannot be."""


class Typist(Editor):
    def __init__(self, author: Author, home: Path, seed: int) -> None:
        super().__init__(author.folder, "visual-studio-code")
        self.author = author
        self.home = home
        self.faults: list[str] = []
        self._source = random.Random(seed)
        self._versions = dict.fromkeys(author.files, 0)
        self._sent: dict[tuple[str, int | None], str] = {}
        self._newest: dict[str, int] = {}
        self._busy: dict[str, bool] = {}
        self._last: dict[str, types.PublishDiagnosticsParams] = {}
        self._heard = time.monotonic()

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "XDG_STATE_HOME": str(self.home), "XDG_CACHE_HOME": str(self.home)}

    # -- what the server says -----------------------------------------------------------------------------------------

    def on_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        self._heard = time.monotonic()
        name = Path(params.uri).name
        self._last[name] = params
        if params.version is not None:
            if params.version < self._newest.get(name, 0):
                self.faults.append(f"{name}: version {params.version} after version {self._newest[name]}")
            self._newest[name] = max(self._newest.get(name, 0), params.version)
        text = self._sent.get((name, params.version))
        for each in params.diagnostics if text is not None else ():
            if not _inside(each.range, text.split("\n")):
                self.faults.append(f"{name} version {params.version}: {each.range} is outside the text: {each.message}")

    def on_status(self, params: object) -> None:
        self._heard = time.monotonic()
        self._busy[Path(params.uri).name] = params.busy  # type: ignore[attr-defined]

    def shown(self, name: str) -> list[types.Diagnostic]:
        last = self._last.get(name)
        return list(last.diagnostics) if last is not None else []

    async def quiet(self) -> None:
        """Wait until the newest text of each open document has been checked and nothing more comes."""
        until = time.monotonic() + PATIENCE
        while self.waits() or time.monotonic() - self._heard < QUIET:
            if time.monotonic() > until:
                raise UntrueError(f"the check of the newest text does not end: {self.waits()}")
            await asyncio.sleep(0.02)

    def waits(self) -> str:
        for name in self.author.texts:
            last = self._last.get(name)
            if last is None or last.version != self._versions[name]:
                return f"{name}: {last.version if last else 'nothing'} instead of version {self._versions[name]}"
            if self._busy.get(name, True):
                return f"{name} is busy"
        return ""

    # -- what the author does -----------------------------------------------------------------------------------------

    def open_all(self) -> None:
        for name in self.author.texts:
            self._open(name)

    async def do(self, step: Step) -> bool:
        """Do a step; False where it has nothing to do."""
        await asyncio.sleep(step.pause)
        before = self.author.texts.get(step.file, "")
        change = await self._accepted(step) if step.kind == "fix" else self.author.apply(step)
        if change is None:
            return False
        self._heard = time.monotonic()
        if change.event == "open":
            self._open(change.file)
        elif change.event == "close":
            self._busy.pop(change.file, None)
            self.client.text_document_did_close(types.DidCloseTextDocumentParams(self._document(change.file)))
        elif change.event == "save":
            self.client.text_document_did_save(types.DidSaveTextDocumentParams(self._document(change.file)))
            event = types.FileEvent(self.uri(change.file), types.FileChangeType.Changed)
            self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        for text in change.texts:
            self._edit(change.file, before, text)
            before = text
            if len(change.texts) > 1:
                await asyncio.sleep(self._source.choice([0, 0, 0.01, 0.08]))
        return True

    async def _accepted(self, step: Step) -> Change | None:
        """Accept a fix that was verified, where one is offered for the newest text."""
        name, source = step.file, random.Random(step.seed)
        found = self.shown(name)
        if name not in self.author.texts or not found:
            return None
        diagnostic = source.choice(found)
        context = types.CodeActionContext([diagnostic], None, types.CodeActionTriggerKind.Invoked)
        params = types.CodeActionParams(self._document(name), diagnostic.range, context)
        actions = await self.client.text_document_code_action_async(params) or []
        fixes = [each for each in actions if isinstance(each, types.CodeAction) and each.edit is not None]
        if not fixes or self.author.texts[name] != self._sent.get((name, self._versions[name])):
            return None
        changed: dict[str, str] = {}
        for edit in source.choice(fixes).edit.document_changes or ():
            file = Path(edit.text_document.uri).name
            if edit.text_document.version != (self._versions[file] if file in self.author.texts else None):
                raise UntrueError(f"a fix for version {edit.text_document.version} of {file} is offered for another")
            changed[file] = _applied(self.author.texts[file], edit.edits)
        if list(changed) != [name]:
            return None
        return self.author.put(name, changed[name])

    def _open(self, name: str) -> None:
        self._busy[name] = True
        self._versions[name] += 1
        text = self.author.texts[name]
        self._sent[name, self._versions[name]] = text
        item = types.TextDocumentItem(self.uri(name), "python", self._versions[name], text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def _edit(self, name: str, old: str, new: str) -> None:
        """As one range, as a range for each changed place, or as the whole text."""
        self._busy[name] = True
        self._versions[name] += 1
        self._sent[name, self._versions[name]] = new
        document = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        chance = self._source.random()
        if chance < 0.1:
            changes: list[types.TextDocumentContentChangeEvent] = [types.TextDocumentContentChangeWholeDocument(new)]
        elif chance < 0.6:
            changes = [_one_change(old, new)]
        else:
            changes = _changes(old, new)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, changes))

    def _document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))


def place(text: str, offset: int) -> types.Position:
    """A place as LSP counts: lines, and UTF-16 units within them."""
    line = text.count("\n", 0, offset)
    begin = text.rfind("\n", 0, offset) + 1
    return types.Position(line, len(text[begin:offset].encode("utf-16-le")) // 2)


def offset_of(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    units = lines[position.line].encode("utf-16-le")[: position.character * 2]
    return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode("utf-16-le"))


def _change(text: str, start: int, end: int, new: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(place(text, start), place(text, end)), new)


def _one_change(old: str, new: str) -> types.TextDocumentContentChangePartial:
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = min(len(old), len(new)) - start
    end = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return _change(old, start, len(old) - end, new[start : len(new) - end])


def _changes(old: str, new: str) -> list[types.TextDocumentContentChangeEvent]:
    """The last first, so that each is in the text as the ones before it leave it."""
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [_change(old, i1, i2, new[j1:j2]) for tag, i1, i2, j1, j2 in reversed(codes) if tag != "equal"]


def _applied(text: str, edits: object) -> str:
    found = [(offset_of(text, e.range.start), offset_of(text, e.range.end), e.new_text) for e in edits]  # type: ignore[attr-defined]
    for start, end, new in sorted(found, key=lambda each: each[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _inside(range_: types.Range, lines: list[str]) -> bool:
    start, end = range_.start, range_.end
    return (
        (start.line, start.character) <= (end.line, end.character)
        and end.line < len(lines)
        and all(2 * at.character <= len(lines[at.line].encode("utf-16-le")) for at in (start, end))
    )
