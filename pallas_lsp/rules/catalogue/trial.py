"""What the rules say of a raise site when nothing is known but the raise itself: where, what, and its words."""

from __future__ import annotations

from typing import NamedTuple

from pallas_lsp import model
from pallas_lsp.model import Fault, Finding, Snapshot, Stage
from pallas_lsp.rules.base import FALLBACK, Judge, registry
from pallas_lsp.rules.catalogue.claims import samples
from pallas_lsp.rules.catalogue.sites import Site
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean

_NOTHING = Context(Snapshot({}, ()))


_SHORT = 12
"""Of fewer letters a message may stand in another by chance."""


class Told(NamedTuple):
    rule: str
    echoed: bool
    """Whether the rule passes jax's own words on, with something around them."""


def told_by(site: Site) -> Told | None:
    """The rule that explains a fault raised there without any fact of the program; None where only the fall-back does.

    Rules that need facts (operands, the text) stay silent here, so that a None says nothing against a claim.
    """
    for message in samples(site.text) if not site.silent else ("",):
        for rule in registry():
            found = _judged(rule.judge, _fault(site, message)) if rule.name != FALLBACK else None
            if found is not None:
                said = clean(message).lower().rstrip(".")
                return Told(rule.name, len(said) > _SHORT and said in found.message.lower())
    return None


def _judged(judge: Judge, fault: Fault) -> Finding | None:
    try:
        return judge(fault, _NOTHING)
    except Exception:
        return None  # it asked for a fact that a real fault has


def _fault(site: Site, message: str) -> Fault:
    lowered = "lowering" in site.file or "experimental/mosaic" in site.file or "lowering" in site.function
    name = "AssertionError" if site.exception == "assert" else site.exception
    place = model.Site(site.file, site.function)
    stage = Stage.LOWER if lowered else Stage.TRACE
    return Fault("f", stage, f"builtins.{name}", message, "", site=place, calls=(place,))
