"""An editor that sends an author's steps as a person's editor does, and watches what the server publishes."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from authors import Author, Change, Step
from editor_client import Editor
from lsprotocol import types
from ranges import applied, changes, is_inside

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
        self.mended: tuple[str, types.Diagnostic, list[types.Diagnostic]] | None = None
        """The file, the finding that the last accepted action was for, and all that were shown."""
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
            if not is_inside(each.range, text.split("\n")):
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
        if name not in self.author.texts:
            return None
        await self.quiet()
        found = self.shown(name)
        if not found:
            return None
        diagnostic = source.choice(found)
        context = types.CodeActionContext([diagnostic], None, types.CodeActionTriggerKind.Invoked)
        params = types.CodeActionParams(self._document(name), diagnostic.range, context)
        actions = await self.client.text_document_code_action_async(params) or []
        offered = [each for each in actions if isinstance(each, types.CodeAction) and each.disabled is None]
        if not offered:
            return None
        action = source.choice(offered)
        if action.edit is None:
            action = await self.client.code_action_resolve_async(action)
        if action.edit is None:  # it does not hold, and says so
            return None
        changed: dict[str, str] = {}
        for edit in action.edit.document_changes or ():
            file = Path(edit.text_document.uri).name
            if edit.text_document.version != (self._versions[file] if file in self.author.texts else None):
                raise UntrueError(f"a fix for version {edit.text_document.version} of {file} is offered for another")
            changed[file] = applied(self.author.texts[file], edit.edits).replace("\r\n", "\n")
        if list(changed) != [name]:
            return None
        self.mended = name, diagnostic, found
        return self.author.put(name, changed[name])

    def _open(self, name: str) -> None:
        self._busy[name] = True
        self._versions[name] += 1
        text = self.author.texts[name]
        self._sent[name, self._versions[name]] = text
        item = types.TextDocumentItem(self.uri(name), "python", self._versions[name], self.author.sent(text))
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def _edit(self, name: str, old: str, new: str) -> None:
        self._busy[name] = True
        self._versions[name] += 1
        self._sent[name, self._versions[name]] = new
        document = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        changed = changes(old, new, self._source)
        for each in changed:
            each.text = self.author.sent(each.text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, changed))

    def _document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))
