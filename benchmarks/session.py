"""A person's editing session as keystrokes: the same for the same seed, whatever the machine does.

It goes through phrases: a few keystrokes one after the other, then a pause in which the person looks at the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from subjects import Replacement, Subject

SEED = 20261201
PACE = 0.15
"""Seconds between two keystrokes of a phrase, in the middle: 80 words a minute."""


class Expected(Enum):
    """What the server is to say of the kernel's file after a phrase."""

    CLEAN = "clean"
    TRACE = "trace finding"
    LOWER = "lowering finding"
    SYNTAX = "no syntax"
    """The text does not parse: what was found before stays."""


@dataclass(frozen=True)
class Keystroke:
    """In ``file``, ``text`` takes the place of what stands from ``start`` to ``end``; ``wait`` seconds come first."""

    file: str
    start: int
    end: int
    text: str
    wait: float


@dataclass(frozen=True)
class Phrase:
    kind: str
    keystrokes: tuple[Keystroke, ...]
    expected: Expected
    back: bool = False
    """Whether it leads to a text that stood there before."""


class Typist:
    """Turns changes of texts into keystrokes; ``texts`` is what stands in the editor once they were made."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self.texts = dict(subject.files)
        self._subject = subject
        self._random = Random(seed)
        self._number = 1
        self._before: list[tuple[str, str]] = []

    def phrases(self) -> Iterator[Phrase]:
        """Phrases without end."""
        subject = self._subject
        factor = Replacement(subject.main, subject.value, f"{subject.value} * NUMBER.25")
        broken = Replacement(subject.main, subject.value, f"{subject.value} * ((")
        while True:
            yield self._change("insert", factor, Expected.CLEAN, typed=True)
            yield self._change("fault in tracing", subject.trace_fault, Expected.TRACE, typed=True)
            yield self._back("delete", typed=True)
            yield self._change("paste", subject.lower_fault, Expected.LOWER, typed=False)
            yield self._back("undo", typed=False)
            yield self._change("break", broken, Expected.SYNTAX, typed=True)
            yield self._back("repair", typed=True)
            yield self._change("helper", subject.helper, Expected.CLEAN, typed=True)
            yield self._change("fault in lowering", subject.lower_fault, Expected.LOWER, typed=True)
            yield self._back("undo", typed=False)
            yield self._change("driver", subject.driver, Expected.CLEAN, typed=True)
            yield self._change("paste", subject.trace_fault, Expected.TRACE, typed=False)
            while self._before:
                yield self._back("undo", typed=False)

    def _change(self, kind: str, change: Replacement, expected: Expected, *, typed: bool) -> Phrase:
        self._number += 1
        self._before.append((change.file, self.texts[change.file]))
        text = self.texts[change.file].replace(change.old, change.numbered(self._number))
        return self._phrase(kind, change.file, text, expected, typed=typed)

    def _back(self, kind: str, *, typed: bool) -> Phrase:
        """Take the last change back."""
        return replace(self._phrase(kind, *self._before.pop(), Expected.CLEAN, typed=typed), back=True)

    def _phrase(self, kind: str, file: str, text: str, expected: Expected, *, typed: bool) -> Phrase:
        old, self.texts[file] = self.texts[file], text
        start = _common(old, text)
        tail = _common(old[start:][::-1], text[start:][::-1])
        end, new = len(old) - tail, text[start : len(text) - tail]
        if not typed:
            return Phrase(kind, (Keystroke(file, start, end, new, 0.0),), expected)
        changes = [(at, at + 1, "") for at in range(end - 1, start - 1, -1)]
        changes += [(start + n, start + n, letter) for n, letter in enumerate(new)]
        waits = [0.0, *(PACE * self._random.lognormvariate(0.0, 0.35) for _ in changes[1:])]
        strokes = (Keystroke(file, *change, wait) for change, wait in zip(changes, waits, strict=True))
        return Phrase(kind, tuple(strokes), expected)


def _common(one: str, other: str) -> int:
    """How many letters two texts have in common from their start on."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def session(subject: Subject, keystrokes: int, seed: int = SEED) -> list[Phrase]:
    """Whole phrases with at least so many keystrokes together."""
    subject.check()
    found: list[Phrase] = []
    made = 0
    for phrase in Typist(subject, seed).phrases():
        if made >= keystrokes:
            return found
        found.append(phrase)
        made += len(phrase.keystrokes)
    raise AssertionError("a session has no end of its own")
