"""An author at work on the files of a workspace: a list of steps, made from a seed, and what each does to the texts.

Each step has a seed of its own, so that a list from which steps were taken out still means something: that is how a
failing one is made shorter (``shrinking``).
"""

from __future__ import annotations

import difflib
import random
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from layout_edits import BREAKING, LAYOUT
from meaning_edits import MEANING
from python_text import parses

WORKSPACES = Path(__file__).parent / "workspaces"

_KINDS = {
    "layout": 26,
    "meaning": 40,
    "break": 6,
    "type": 4,
    "undo": 12,
    "start": 3,
    "save": 4,
    "close": 2,
    "reopen": 3,
}
_SHOWN = 12
"""Lines of a change that are shown of it."""
_TYPED = (
    "    y = jnp.cumsum(x, axis=1)\n",
    "    x = x_ref[...]\n",
    "# why \u00e9\U0001f600\n",
    "    pl.program_id(0)\n",
)


class Step(NamedTuple):
    """``pause``: seconds before it, as a person takes them; ``look``: the results are compared after it."""

    kind: str
    file: str
    seed: int
    pause: float = 0.0
    look: bool = True


class Change(NamedTuple):
    """What a step did: ``open``, ``close``, ``save``, or ``edit`` with the texts in between, the last one included."""

    event: str
    file: str
    texts: tuple[str, ...] = ()


def plan(seed: int, count: int, files: tuple[str, ...]) -> list[Step]:
    """Most steps are edits of the first file.  What breaks a text is mostly repaired soon."""
    source = random.Random(seed)
    steps: list[Step] = []
    broken: str | None = None
    while len(steps) < count:
        (kind,) = source.choices(list(_KINDS), list(_KINDS.values()))
        file = files[0] if len(files) == 1 or source.random() < 0.7 else source.choice(files[1:])
        if broken is not None and source.random() < 0.6:
            kind, file, broken = "repair", broken, None
        elif kind in ("break", "type"):
            broken = file
        steps.append(Step(kind, file, source.randrange(1 << 30), source.choice(_PAUSES), source.random() < 0.4))
    return steps


_PAUSES = (0.0, 0.0, 0.0, 0.01, 0.05, 0.12, 0.35, 0.8)


@dataclass
class Author:
    """The texts on the screen and on the disk.  ``folder``: a copy of the workspace that it may write to.

    ``newline``: how lines end for everybody else; here they end with a line feed.
    """

    folder: Path
    files: tuple[str, ...]
    newline: str = "\n"
    texts: dict[str, str] = field(default_factory=dict)
    """The open documents."""
    history: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def at(cls, workspace: str, folder: Path, newline: str = "\n") -> Author:
        source = WORKSPACES / workspace
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        names = sorted(path.name for path in source.glob("*.py"))
        main = "kernels.py" if "kernels.py" in names else "ops.py"
        author = cls(folder, (main, *(name for name in names if name != main)), newline)
        for name in names:
            author.write(name, (source / name).read_text(encoding="utf-8"))
        for name in author.files:
            author.texts[name] = author.on_disk(name)
            author.history[name] = [author.texts[name]]
        return author

    def on_disk(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", newline=self.newline)

    def sent(self, text: str) -> str:
        return text.replace("\n", self.newline)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def apply(self, step: Step) -> Change | None:
        """Do a step; None where it has nothing to do."""
        source = random.Random(step.seed)
        name, text = step.file, self.texts.get(step.file)
        if text is None:
            if step.kind not in ("reopen", "start", "repair") and source.random() < 0.5:
                return None
            # Editors keep unsaved texts, too.
            self.texts[name] = self.on_disk(name) if source.random() < 0.7 else self.history[name][-1]
            self.history[name].append(self.texts[name])
            return Change("open", name)
        if step.kind in ("close", "reopen"):
            del self.texts[name]
            return Change("close", name)
        if step.kind == "save":
            self.write(name, text)
            return Change("save", name)
        return self._edit(name, [each for each in self._edited(step.kind, name, text, source) if each != text])

    def put(self, name: str, text: str) -> Change | None:
        """Take a text that somebody else made."""
        return self._edit(name, [text] if text != self.texts[name] else [])

    def _edit(self, name: str, texts: list[str]) -> Change | None:
        if not texts:
            return None
        self.texts[name] = texts[-1]
        self.history[name].append(texts[-1])
        return Change("edit", name, tuple(texts))

    def _edited(self, kind: str, name: str, text: str, source: random.Random) -> list[str]:
        past = self.history[name]
        if kind == "undo":
            return [past[-2] if len(past) > 1 and source.random() < 0.6 else source.choice(past)]
        if kind == "start":
            return [past[0]]
        if kind == "repair":
            return [next((each for each in reversed(past) if parses(each)), past[0])]
        if kind == "type":
            return self._typed(text, source)
        edits = {"layout": LAYOUT, "meaning": MEANING, "break": BREAKING}.get(kind, ())
        if not edits:
            raise ValueError(f"there is no step {kind!r}")
        for _ in range(5):
            new = source.choice(edits)(text, source)
            if new != text:
                return [new]
        return []

    @staticmethod
    def _typed(text: str, source: random.Random) -> list[str]:
        """A line that comes character by character."""
        places = [match.start() for match in re.finditer(r"^    (?=\S)", text, re.MULTILINE)] or [0]
        at, line = source.choice(places), source.choice(_TYPED)
        return [text[:at] + line[:length] + text[at:] for length in range(1, len(line) + 1)]


def described(workspace: str, steps: list[Step], folder: Path) -> str:
    """A list of steps as a reader can follow it: what each changed."""
    author = Author.at(workspace, folder)
    lines = [f"workspace {workspace}, {len(steps)} steps:"]
    for step in steps:
        before = author.texts.get(step.file, "")
        change = author.apply(step) if step.kind != "fix" else None
        lines.append(repr(step) + ("" if change is None else f" -> {change.event}"))
        if change is not None and change.event == "edit":
            after = author.texts[step.file]
            diff = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0))[2:]
            lines += diff[:_SHOWN] + ["..."] * (len(diff) > _SHOWN)
    return "\n".join(lines)
