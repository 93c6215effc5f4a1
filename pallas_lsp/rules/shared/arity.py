"""Python's own TypeErrors for calls with the wrong arguments: whose function, what it takes, what it was given."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pallas_lsp.model import Fault
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.syntax import PARTIAL

_TAKES = re.compile(
    r"^(?P<name>[\w.<>]+)\(\) takes (?:from \d+ to )?(?P<takes>\d+) (?:positional )?arguments? but (?P<given>\d+)"
)
_MISSING = re.compile(
    r"^(?P<name>[\w.<>]+)\(\) missing \d+ required (?P<kind>positional|keyword-only) arguments?: (?P<names>.*)"
)
_UNEXPECTED = re.compile(r"^(?P<name>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<names>\w+)'")
_MULTIPLE = re.compile(r"^(?P<name>[\w.<>]+)\(\) got multiple values for argument '(?P<names>\w+)'")
_TRACING = frozenset(
    {
        "jax/_src/api_util.py",
        "jax/_src/linear_util.py",
        "jax/_src/interpreters/partial_eval.py",
        "jax/_src/util.py",
        "jax/_src/profiler.py",
        "jax/_src/state/discharge.py",
    }
)


@dataclass(frozen=True)
class Arity:
    """``function``: its qualified name.  ``keywords``: keyword arguments that are missing or unexpected."""

    function: str
    text: str
    takes: int | None = None
    given: int | None = None
    missing: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    unexpected: bool = False


def arity_of(fault: Fault) -> Arity | None:
    """What a TypeError says about a call; None where it is about something else."""
    if not fault.exception.endswith("TypeError"):
        return None
    message = fault.message.split("\n")[0]
    text = message.partition("() ")[2]
    if match := _TAKES.match(message):
        return Arity(match["name"], text, int(match["takes"]), int(match["given"]))
    if match := _MISSING.match(message):
        names = tuple(re.findall(r"'(\w+)'", match["names"]))
        if match["kind"] == "positional":
            return Arity(match["name"], text, missing=names)
        return Arity(match["name"], text, keywords=names)
    if (match := _UNEXPECTED.match(message)) or (match := _MULTIPLE.match(message)):
        return Arity(match["name"], text, keywords=(match["names"],), unexpected=True)
    return None


def called_by(fault: Fault, callers: Mapping[str, Sequence[str]], skip: Sequence[str] = ()) -> bool:
    """Whether the innermost function of jax that is no part of its tracing machinery is one of ``callers``.

    ``skip``: functions that are passed over like the machinery.
    """
    for site in (*((fault.site,) if fault.site is not None else ()), *fault.calls):
        name = site.function.rpartition(".")[2]
        if name in callers.get(site.file, ()):
            return True
        if site.file in _TRACING or name in skip or site.function.endswith(("<genexpr>", "<lambda>")):
            continue
        if site.file == "jax/_src/pallas/primitives.py" and site.function.startswith("wrap_with_transforms"):
            continue
        return False
    return False


def partial_names(body: Spot | None) -> set[str]:
    """The keywords that ``functools.partial`` gives to a kernel, through names."""
    found: set[str] = set()
    node = body.syntax.value(body.node) if body is not None else None
    while body is not None and isinstance(node, ast.Call) and body.syntax.dotted(node.func) in PARTIAL and node.args:
        found |= {k.arg for k in node.keywords if k.arg is not None}
        node = body.syntax.value(node.args[0])
    return found


def partial_positional(body: Spot | None) -> int:
    """How many positional arguments ``functools.partial`` gives to a kernel."""
    count = 0
    node = body.syntax.value(body.node) if body is not None else None
    while body is not None and isinstance(node, ast.Call) and body.syntax.dotted(node.func) in PARTIAL and node.args:
        count += len(node.args) - 1
        node = body.syntax.value(node.args[0])
    return count
