"""Thousands of edits on virtual time, against checks that take any time: nothing old is published, nothing outlives.

After every publication: its version is not older than one before; each diagnostic is from a check that is no older than
the newest finished one, lies inside the text, and marks what it was found at, where that was not edited.  At rest: the
diagnostics are those of the newest texts.  Every fix that is offered or resolved changes what it was made for.

``PALLAS_LSP_MODEL_EDITS``: how many edits (default 3000).  ``PALLAS_LSP_MODEL_SEED``: the first seed (default 1).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from authors import Author, Step, described, plan
from lsprotocol import converters, types
from oracles import WORDS, Oracle, Tag, findings, shown, tells_of, texts_of
from ranges import applied, changes, is_inside, offset_of, place
from server_harness import Session, run
from shrinking import shrunken

from pallas_lsp.model import Finding
from pallas_lsp.source.positions import Lines

EDITS = int(os.environ.get("PALLAS_LSP_MODEL_EDITS", "3000"))
SEED = int(os.environ.get("PALLAS_LSP_MODEL_SEED", "1"))
STEPS = 60
WORKSPACES = ("gpu", "blocks", "elsewhere")
_CONVERTER = converters.get_converter()


class Watched(Session):
    """A client that looks at each message when it comes."""

    watch = staticmethod(lambda message: None)

    def write(self, data: bytes) -> None:
        super().write(data)
        self.watch(self.received[-1])


@dataclass
class Model:
    """What the client has sent, and what must hold of what it gets."""

    author: Author
    source: random.Random
    oracle: Oracle
    session: Watched | None = None
    versions: dict[str, int] = field(default_factory=Counter)
    sent: dict[tuple[str, int], str] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=Counter)
    last: dict[str, list[Any]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    # -- what comes ---------------------------------------------------------------------------------------------------

    def look(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            self._published(**message["params"])
        elif message.get("id") in self.asked and "result" in message:
            for action in message["result"] or () if isinstance(message["result"], list) else [message["result"]]:
                self._offered(action)

    def _published(self, uri: str, diagnostics: list[Any], version: int | None = None) -> None:
        name = Path(uri).name
        self.counted["publications"] += 1
        self.last[name] = diagnostics
        if version is not None and version < self.published[name]:
            self.faults.append(f"{name}: version {version} after {self.published[name]}")
        self.published[name] = max(version or 0, self.published[name])
        if version is None and name in self.author.texts:
            return  # just opened again
        text = self.sent[name, version] if version is not None else self.author.on_disk(name)
        for each in diagnostics:
            tag = Tag.of(each["message"])
            range_ = _CONVERTER.structure(each["range"], types.Range)
            told = self.oracle.told.get(tag.owner, {})
            if tag.checked < told.get(tag.owner, 0) or 0 < tag.marked < told.get(name, 0):
                self.faults.append(f"{name}: {tag} though {told} has been checked")
            if not is_inside(range_, text.split("\n")):
                self.faults.append(f"{name} version {version}: {range_} is outside the text, {tag}")
            elif tag.marked == version and _slice(text, range_) != tag.word:
                self.faults.append(f"{name} version {version}: {tag} marks {_slice(text, range_)!r}")

    def _offered(self, action: dict[str, Any] | None) -> None:
        """A fix replaces a whole word, as it was made for one, in the version that it names."""
        for change in ((action or {}).get("edit") or {}).get("documentChanges") or ():
            name, version = Path(change["textDocument"]["uri"]).name, change["textDocument"]["version"]
            text = self.sent[name, version] if version is not None else self.author.on_disk(name)
            for edit in _CONVERTER.structure(change["edits"], list[types.TextEdit]):
                self.counted["fix edits"] += 1
                if edit.new_text.startswith("FIXED") and not WORDS.fullmatch(_slice(text, edit.range)):
                    self.faults.append(f"{name} version {version}: a fix replaces {_slice(text, edit.range)!r}")
                elif "ignore" in edit.new_text and applied(text, [edit]).replace(edit.new_text, "", 1) != text:
                    self.faults.append(f"{name} version {version}: silencing changes the text")

    # -- what is sent -------------------------------------------------------------------------------------------------

    def open(self, name: str) -> None:
        assert self.session is not None
        self.versions[name] += 1
        self.sent[name, self.versions[name]] = self.author.texts[name]
        self.session.open(self.author.texts[name], name, self.versions[name])

    def do(self, step: Step) -> None:
        session, name = self.session, step.file
        assert session is not None
        before = self.author.texts.get(name, "")
        change = self.author.apply(step)
        if change is None:
            return
        self.counted[change.event] += 1
        if change.event == "open":
            self.open(name)
        elif change.event == "close":
            session.shut(name)
            self.oracle.told.pop(name, None)
        elif change.event == "save":
            session.notify("textDocument/didSave", {"textDocument": {"uri": session.uri(name)}})
        for text in change.texts:
            self.counted["edits"] += 1
            self.versions[name] += 1
            self.sent[name, self.versions[name]] = text
            events = _CONVERTER.unstructure(changes(before, text, self.source))
            document = {"uri": session.uri(name), "version": self.versions[name]}
            session.notify("textDocument/didChange", {"textDocument": document, "contentChanges": events})
            before = text

    def ask(self) -> None:
        """For fixes somewhere, or for what an action does that was offered some time ago."""
        assert self.session is not None
        name = self.source.choice(list(self.author.texts) or ["none"])
        offered = [
            action
            for message in self.session.received[-40:]
            if message.get("id") in self.asked and isinstance(message.get("result"), list)
            for action in message["result"]
            if "data" in action
        ]
        if offered and self.source.random() < 0.5:
            self.asked.add(self.session.start("codeAction/resolve", self.source.choice(offered)))
        elif self.last.get(name):
            diagnostic = self.source.choice(self.last[name])
            params = {"textDocument": {"uri": self.session.uri(name)}, "range": diagnostic["range"]}
            context = {"diagnostics": [diagnostic], "triggerKind": self.source.choice([1, 2])}
            self.asked.add(self.session.start("textDocument/codeAction", {**params, "context": context}))

    def at_rest(self) -> None:
        """Compare with what there is to be found in the texts as they are."""
        opened = {self.author.path(name): (text, 0) for name, text in self.author.texts.items()}
        texts = texts_of(self.author.folder, opened)
        if not all(tells_of(path, texts) for path in opened):
            return
        self.counted["compared"] += 1
        wanted: dict[str, set[Any]] = {name: set() for name in self.author.files}
        for path in opened:
            for each in findings(path, texts):
                text = texts[each.location.path][0]
                wanted[Path(each.location.path).name].add((Path(path).name, *_at(each, text)))
        for name, expected in wanted.items():
            if name in self.author.texts and self.published[name] != self.versions[name]:
                self.faults.append(f"{name}: version {self.versions[name]} is at rest and was not published")
            got = {shown(each)[:6] for each in self.last.get(name, ())}
            if got != expected:
                self.faults.append(f"{name} at rest: missing {expected - got}, without a cause {got - expected}")


def _at(each: Finding, text: str) -> tuple[Any, ...]:
    lines = Lines(text)
    first, last = (place(text, lines.offset(at)) for at in (each.location.range.start, each.location.range.end))
    return Tag.of(each.message).word, first.line, first.character, last.line, last.character


def _slice(text: str, range_: types.Range) -> str:
    return text[offset_of(text, range_.start) : offset_of(text, range_.end)]


def faults_of(workspace: str, steps: list[Step], folder: Path, counted: Counter[str] | None = None) -> list[str]:
    """Let the author do the steps, ask for fixes in between, and come to rest at times and at the end."""
    author = Author.at(workspace, folder / workspace)
    source = random.Random(repr(steps[:1]))
    model = Model(author, source, Oracle(source))

    async def session() -> None:
        model.session = Watched(author.folder, model.oracle)
        model.session.watch = model.look  # type: ignore[method-assign]
        documents = model.session.server.documents
        model.oracle.is_newest = lambda path, version: getattr(documents.at(path), "version", None) == version
        await model.session.initialize()
        for name in author.files:
            model.open(name)
        for step in steps:
            await asyncio.sleep(step.pause)
            model.do(step)
            if source.random() < 0.3:
                model.ask()
            if step.look and source.random() < 0.3:
                await asyncio.sleep(40)
                model.at_rest()
            if model.faults:
                return
        await asyncio.sleep(40)
        model.at_rest()
        if unanswered := model.asked - {m["id"] for m in model.session.received if "id" in m and "method" not in m}:
            model.faults.append(f"requests without an answer: {unanswered}")
        assert await model.session.end() == 0

    run(session())
    if counted is not None:
        counted.update(model.counted)
    return model.faults


@pytest.mark.parametrize("workspace", WORKSPACES)
def test_nothing_old_is_published_and_nothing_outlives_its_cause(workspace: str, tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    seed = SEED
    files = Author.at(workspace, tmp_path / workspace).files
    while counted["edits"] < EDITS / len(WORKSPACES):
        steps = plan(seed, STEPS, files)
        if faults := faults_of(workspace, steps, tmp_path, counted):
            fewest = shrunken(steps, lambda some: bool(faults_of(workspace, some, tmp_path)), 60)
            raise AssertionError(
                f"PALLAS_LSP_MODEL_SEED={seed}: {faults[0]}\n\nThe fewest steps that fail:\n"
                f"{described(workspace, fewest, tmp_path / 'described')}\n{faults_of(workspace, fewest, tmp_path)}"
            )
        seed += 1
    assert min(counted[each] for each in ("publications", "compared", "fix edits", "close", "save")) > 0
    print(f"\n{workspace}: {seed - SEED} seeds, {dict(counted)}")
