"""Which rule explains a raise site, by what the rules declare in ``SITES``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pallas_lsp.rules.base import registry
from pallas_lsp.rules.catalogue.sites import HOLE, Site

# What a value in a message may look like, for the patterns that ask for it.
_VALUES = (
    "8",
    "<class 'jax._src.pallas.core.Name'>",
    "(8, 8)",
    "[8, 8]",
    "float32",
    "name",
    "f32[8,8]",
    "1",
    "",
    "'name'",
    "i8",
)


@dataclass(frozen=True)
class Claim:
    rule: str
    file: str
    function: str
    pattern: str = ""

    def fits(self, site: Site) -> bool:
        return self.in_function(site) and (not self.pattern or says(site, self.pattern))

    def in_function(self, site: Site) -> bool:
        """Whether the site lies in the claimed function, which may be named by its last part alone.

        File and function may be globs, for rules that explain whatever a package raises.
        """
        if not fnmatchcase(site.file, self.file):
            return False
        return self.function == "*" or f".{site.function}".endswith(f".{self.function}")


def claims() -> tuple[Claim, ...]:
    """The claims of all rules, the most specific rule's first."""
    return tuple(Claim(rule.name, *entry) for rule in registry() for entry in rule.sites)


def of(site: Site, every: Iterable[Claim]) -> tuple[str, ...]:
    """The rules that explain a site."""
    return tuple(dict.fromkeys(claim.rule for claim in every if claim.fits(site)))


def stale(every: Iterable[Claim], known: Iterable[Site], functions: Iterable[tuple[str, str]]) -> list[Claim]:
    """Claims that nothing in jax bears out.

    A claim is for a site, or for a function whose errors no ``raise`` of its own makes: Python's, MLIR's.
    """
    sites = list(known)
    names = {(file, part) for file, name in functions for part in _endings(name)}
    return [
        claim
        for claim in every
        if (claim.file, claim.function.replace(".<locals>.<genexpr>", "")) not in names
        and claim.function != "<lambda>"
        and not any(claim.fits(site) for site in sites)
    ]


def _endings(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[start:]) for start in range(len(parts)))


def says(site: Site, pattern: str) -> bool:
    """Whether the message of a site, whatever its values, may be one that a pattern is found in."""
    if site.silent:
        return False
    return any(_compiled(pattern).search(text) for text in samples(site.text)) or _shares_words(site.text, pattern)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


@functools.cache
def samples(text: str) -> tuple[str, ...]:
    """A message with each kind of value in its places."""
    # A hole that follows a letter ends a word: "argument{}" is "argument" or "arguments".
    plural = re.sub(r"(?<=[a-z])\{\}", "s", text)
    return tuple(each.replace(HOLE, value) for value in _VALUES for each in dict.fromkeys((text, plural)))


def _shares_words(text: str, pattern: str) -> bool:
    """Patterns that ask for different values in one message: whether all their words are the message's."""
    if "|" in pattern:
        return False
    plain = re.sub(r"\(\?P<\w+>|\\[a-zA-Z]", "(", pattern)
    words = re.findall(r"[A-Za-z][A-Za-z ]{5,}", plain)
    return bool(words) and all(each.strip() in text for each in words)
