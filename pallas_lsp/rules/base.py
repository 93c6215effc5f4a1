"""What a rule is, and the registry: the rule modules of this folder.

A rule is one file here that has

- a docstring: its documentation page, with the headings of ``HEADINGS``;
- ``SINCE``: the version of Pallas LSP that brought it;
- ``CONSTRUCTS``: the headings of the index that it stands under, the first that it belongs to most;
- ``judge(fault, context)``: a finding, or None where the fault is not this rule's;
- optionally ``read(path, syntax, context)``: the findings that the text alone shows, without running any of it;
- ``SITES``: where jax raises what the rule explains, as (file, function) for all that the function raises, or (file,
  function, pattern) for the messages that the pattern is found in; ``*`` in a file stands for any name, and as the
  function for all.  The catalogue of raise sites is made from them.

``OF_ORDER = True`` says that a rule's findings are about the order of operations (what is waited for, what comes before
what) and come out the same whatever the sizes and types are.  ``SPECIFICITY`` (50 where absent) orders the rules: the
first finding wins, and ``pallas-error`` with 0 comes last.  The rule's name is the file's, with hyphens.  Nothing
else has to be touched to add one.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.source.syntax import Syntax

HEADINGS = (
    "What it does",
    "Why it is wrong",
    "Example",
    "Use instead",
    "Fix safety",
    "Applies to",
    "Source",
)
FALLBACK = "pallas-error"
DEFAULT_SPECIFICITY = 50

Judge = Callable[[Fault, Context], Finding | None]
Read = Callable[[str, Syntax, Context], Iterable[Finding]]
Sites = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Rule:
    name: str
    since: str
    page: str
    """The documentation page as Markdown, without a title."""
    judge: Judge
    specificity: int = DEFAULT_SPECIFICITY
    read: Read | None = None
    sites: Sites = ()
    """Its module's ``SITES``."""
    constructs: tuple[str, ...] = ()
    """Its module's ``CONSTRUCTS``."""
    of_order: bool = False
    """Its module's ``OF_ORDER``."""

    @property
    def summary(self) -> str:
        """The first sentence of the section ``What it does``."""
        body = self.page.partition(f"## {HEADINGS[0]}\n")[2].strip()
        paragraph = " ".join(body.partition("\n\n")[0].split())
        head, stop, _ = paragraph.partition(". ")
        return head + "." if stop else paragraph


@functools.cache
def registry() -> tuple[Rule, ...]:
    """All rules, the most specific first."""
    package = importlib.import_module("pallas_lsp.rules")
    rules = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        judge = getattr(module, "judge", None)
        since = getattr(module, "SINCE", None)
        if judge is None or since is None:
            continue
        rules.append(
            Rule(
                name=info.name.replace("_", "-"),
                since=since,
                page=inspect.cleandoc(module.__doc__ or ""),
                judge=judge,
                specificity=getattr(module, "SPECIFICITY", DEFAULT_SPECIFICITY),
                read=getattr(module, "read", None),
                sites=tuple(getattr(module, "SITES", ())),
                constructs=tuple(getattr(module, "CONSTRUCTS", ())),
                of_order=getattr(module, "OF_ORDER", False),
            )
        )
    return tuple(sorted(rules, key=lambda rule: (-rule.specificity, rule.name)))


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in registry() if rule.name == name), None)


def rule_name(module: str) -> str:
    """The rule's name from its module's ``__name__``."""
    return module.rpartition(".")[2].replace("_", "-")
