"""
## What it does
Reports calls of kernels that a library provides (`jax.experimental.pallas.ops`, `jax.lax.ragged_dot`, installed
packages of Pallas kernels) with arguments that the library refuses: shapes that do not go together, block sizes that do
not divide a dimension, group sizes that do not match the groups.

## Why it is wrong
The library checks its arguments before it launches a kernel, or its kernel cannot be lowered with them. The place is
your call, with the argument in question where it can be told; the message says which condition does not hold and with
which values.

## Example
```python
decode_attention.gqa(q, k, v, k_splits=16)  # 1000 keys
```

## Use instead
```python
decode_attention.gqa(q, k, v, k_splits=8)
```

## Fix safety
Another block size is suggested: the largest one that divides the dimension. Other findings have no fix.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Any `raise` or `assert` in a library that uses Pallas; `_ragged_dot_general_shape_rule` in `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details

SINCE = "0.1.0"
CONSTRUCTS = ("library kernels",)
SPECIFICITY = 20
SITES = (
    ("jax/_src/lax/lax.py", "_ragged_dot_general_shape_rule"),
    ("jax/experimental/pallas/ops/*", "*"),
)

_LAX = "jax._src.lax.lax"
_DIVISIBLE = re.compile(r"(\w+)=(\d+) (?:must|should|has to) b[ey] (?:divisible by|a multiple of) (?:and )?(\w+)=(\d+)")
_DIVIDES = re.compile(r"(\w+)=(\d+) (?:must|should) divide (\w+)=(\d+)")
_SMALLER = re.compile(r"(\w+)=(\d+) (?:must|should) be smaller (?:than|or equal to) (\w+)=(\d+)")


def judge(fault: Fault, context: Context) -> Finding | None:
    library = fault.facts.get("library")
    if not isinstance(library, Mapping):
        return None
    details = Details(fault, context)
    call = details.spot
    if call is None or not isinstance(call.node, ast.Call):
        return None
    if library.get("module") == _LAX:
        message, names, others = _grouped(fault, library)
    else:
        message, names, others = _refused(fault, library), _named(fault, library), []
    given = _given(call, library)
    marked = next((given[name] for name in names if name in given), None)
    place = marked.location if marked is not None else _callee(call).location
    return site_table.make(
        rule_name(__name__),
        fault,
        context,
        place,
        message,
        fixes=_fixes(fault, call, library),
        related=[Related(given[name].location, text) for name, text in others if name in given],
    )


def _callee(call: Spot) -> Spot:
    assert isinstance(call.node, ast.Call)
    return call.at(call.node.func)


def _given(call: Spot, library: Mapping[str, Any]) -> dict[str, Spot]:
    """The arguments of the call by the names of the library's parameters."""
    assert isinstance(call.node, ast.Call)
    arguments = call.syntax.arguments(call.node)
    names = list(library.get("parameters") or ())
    found = {name: call.at(node) for name, node in arguments.keywords.items()}
    for name, node in zip(names, arguments.positional, strict=False):
        found.setdefault(name, call.at(node))
    return found


def _function(library: Mapping[str, Any]) -> str:
    module = str(library.get("module", "")).rpartition(".")[2]
    name = str(library.get("function", ""))
    return f"`{module}`" if name.startswith("__") else f"`{name}`"


def _types(library: Mapping[str, Any], text: str) -> str:
    """The types of the arrays that were given, where the text does not tell them."""
    arrays = [f"{n}: {t}" for n, t in (library.get("parameters") or {}).items() if re.fullmatch(r"\w+\[[\d,]*\]", t)]
    return f" It was given {', '.join(arrays[:6])}." if arrays and "[" not in text else ""


def _refused(fault: Fault, library: Mapping[str, Any]) -> str:
    said = clean(fault.message)
    condition = library.get("condition")
    if said:
        text = f"{_function(library)} refuses this call: {said[0].lower() + said[1:] if said[:2].istitle() else said}"
    elif condition:
        values = [f"{name} is {value}" for name, value in (library.get("values") or {}).items()]
        but = f", but {' and '.join(values)}" if values else ", which does not hold"
        text = f"{_function(library)} needs `{condition}`{but}."
    else:
        text = f"{_function(library)} refuses this call without saying why (in `{library.get('raised_in', '?')}`)."
    return text + _types(library, text)


def _named(fault: Fault, library: Mapping[str, Any]) -> list[str]:
    """The parameters that the message or the condition speaks of, settings before arrays."""
    words = re.findall(r"[A-Za-z_]\w*", f"{fault.message} {library.get('condition', '')}")
    parameters = dict(library.get("parameters") or {})
    names = [w for w in dict.fromkeys(words) if w in parameters or not parameters]
    settings = [name for name in names if "[" not in str(parameters.get(name, ""))]
    return settings or (names if len(names) == 1 else [])


def _grouped(fault: Fault, library: Mapping[str, Any]) -> tuple[str, list[str], list[tuple[str, str]]]:
    """The message for ``jax.lax.ragged_dot``, the argument at fault, and what to say of others."""
    types = dict(library.get("parameters") or {})
    lhs, rhs, sizes = (str(types.get(name, "?")) for name in ("lhs", "rhs", "group_sizes"))
    ranks = [_rank(t) for t in (lhs, rhs, sizes)]
    if str(types.get("group_offset", "None")) != "None":
        return "`group_offset` is not available: leave it out, and cut the groups off beforehand.", ["group_offset"], []
    if library.get("function") != "ragged_dot":
        return f"`ragged_dot_general` refuses this call: {clean(fault.message)}{_types(library, '')}", [], []
    wanted = "`ragged_dot` multiplies lhs (m, k) with rhs (groups, k, n), by group_sizes (groups,)"
    for name, rank, wants, type_ in zip(
        ("lhs", "rhs", "group_sizes"), ranks, (2, 3, 1), (lhs, rhs, sizes), strict=True
    ):
        if rank != wants:
            return f"{wanted}, but {name} is {type_}, which has {rank} dimensions instead of {wants}.", [name], []
    if "group" in fault.message and _sizes(rhs)[0] != _sizes(sizes)[0]:
        count, groups = _sizes(sizes)[0], _sizes(rhs)[0]
        text = f"There are {count} group sizes ({sizes}), but rhs has {groups} groups ({rhs}): {wanted}."
        return text, ["rhs"], [("group_sizes", f"These are {count} group sizes.")]
    if _sizes(lhs)[1] != _sizes(rhs)[1]:
        text = f"lhs ({lhs}) and rhs ({rhs}) differ in k: {wanted}."
        return text, ["rhs"], [("lhs", f"Here k is {_sizes(lhs)[1]}.")]
    return f"`ragged_dot` refuses this call: {clean(fault.message)}{_types(library, '')}", [], []


def _rank(type_: str) -> int:
    return len(_sizes(type_))


def _sizes(type_: str) -> list[int]:
    return [int(n) for n in type_.partition("[")[2].rstrip("]>").split(",") if n.isdigit()]


def _fixes(fault: Fault, call: Spot, library: Mapping[str, Any]) -> Sequence[Fix]:
    """Another size for the block that a dimension is divided by."""
    given = _given(call, library)
    parameters = library.get("parameters") or {}
    for pattern, block, whole in ((_DIVISIBLE, 3, 1), (_DIVIDES, 1, 3), (_SMALLER, 1, 3)):
        match = pattern.search(fault.message)
        if match is None:
            continue
        name, old, limit = match[block], int(match[block + 1]), int(match[whole + 1])
        better = limit if pattern is _SMALLER else next((d for d in range(min(old, limit), 0, -1) if limit % d == 0), 0)
        spot = given.get(name)
        node = spot.syntax.value(spot.node) if spot is not None else None
        if spot is not None and isinstance(node, ast.Constant) and node.value == old:
            return keyword_edits.replace(spot.at(node), str(better), f"Use {name}={better}")
        if spot is None and name in parameters and better:
            return keyword_edits.set_keyword(call, name, str(better), f"Use {name}={better}")
    return ()
