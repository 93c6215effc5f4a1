"""What the rules say of a raise site when nothing is known but the raise itself: where, what, and its words."""

from __future__ import annotations

from pallas_lsp import model
from pallas_lsp.model import Fault, Snapshot, Stage
from pallas_lsp.rules.base import FALLBACK, registry
from pallas_lsp.rules.catalogue.claims import samples
from pallas_lsp.rules.catalogue.sites import Site
from pallas_lsp.rules.context import Context

_NOTHING = Context(Snapshot({}, ()))


def told_by(site: Site) -> str | None:
    """The rule that explains a fault raised there without any fact of the program; None where only the fall-back does.

    Rules that need facts (operands, the text) stay silent here, so that a None says nothing against a claim.
    """
    for message in samples(site.text) if not site.silent else ("",):
        for rule in registry():
            if rule.name != FALLBACK and _speaks(rule.judge, _fault(site, message)):
                return rule.name
    return None


def _speaks(judge: object, fault: Fault) -> bool:
    try:
        return callable(judge) and judge(fault, _NOTHING) is not None
    except Exception:
        return False  # it asked for a fact that a real fault has


def _fault(site: Site, message: str) -> Fault:
    lowered = "lowering" in site.file or "experimental/mosaic" in site.file or "lowering" in site.function
    name = "AssertionError" if site.exception == "assert" else site.exception
    place = model.Site(site.file, site.function)
    stage = Stage.LOWER if lowered else Stage.TRACE
    return Fault("f", stage, f"builtins.{name}", message, "", site=place, calls=(place,))
