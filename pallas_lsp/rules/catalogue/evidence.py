"""What the source of a site itself tells of whether a user's code can reach it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pallas_lsp.rules.catalogue.sites import Found

REACHABLE, INTERNAL, UNCLASSIFIED = "reachable", "internal", "unclassified"

_OWN_FAULT = re.compile(
    r"\bunreachable\b|\bshould (?:never|not happen|be unreachable)\b|\binternal error\b|\bthis is a bug\b|"
    r"\bnever happen\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Verdict:
    kind: str
    reason: str


def of(found: Found, origin: str | None) -> Verdict:
    """``origin``: what leads to the function, None where nothing does."""
    site = found.site
    if origin is None:
        return Verdict(INTERNAL, "no public name of Pallas leads to this function")
    if site.exception == "re-raise":
        return Verdict(INTERNAL, "passes on an error that was raised elsewhere")
    if found.only:
        return Verdict(INTERNAL, "a method that every subclass overrides")
    if not site.silent and _OWN_FAULT.search(site.text):
        return Verdict(INTERNAL, "the message says that it is a fault of jax's own")
    if found.test is not None and narrows(found.test):
        return Verdict(INTERNAL, "an assertion about the kind of a value, for the type checker")
    if site.exception == "assert" and site.silent:
        return Verdict(UNCLASSIFIED, "")
    return Verdict(REACHABLE, origin)


def narrows(test: ast.expr) -> bool:
    """Whether a condition asks only for what kind of Python object something is: ``x is not None``, ``isinstance``."""
    match test:
        case ast.BoolOp(values=values):
            return all(narrows(value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrows(operand) or isinstance(operand, ast.Name | ast.Attribute)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None | True | False)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass" | "callable" | "hasattr")):
            return True
        case ast.Call(func=ast.Attribute(attr="isinstance")):
            return True
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp(elt=elt)]):
            return narrows(elt)
        case ast.Constant(value=False | 0):
            return True
        case ast.Name() | ast.Attribute():
            return True
    return False
