"""
## What it does
Finds `jax.lax.scan` and `jax.lax.map` in a kernel that take rows of an array or stack their outputs, and scans that run
backwards or are unrolled where the backend cannot do that.

## Why it is wrong
Inside a kernel a scan becomes a plain loop that carries values. Taking a row of an array in registers at each step, or
collecting a row in such an array, would need an index that is known only at run time, which registers do not have. Refs
do: a loop can read `x_ref[i]` and store `o_ref[i]`.

## Example
```python
def kernel(x_ref, o_ref):
    def step(h, x):
        h = 0.9 * h + 0.1 * x
        return h, h

    _, hs = jax.lax.scan(step, jnp.zeros((128,)), x_ref[...])
    o_ref[...] = hs
```

## Use instead
```python
def kernel(x_ref, o_ref):
    def step(i, h):
        h = 0.9 * h + 0.1 * x_ref[i]
        o_ref[i] = h
        return h

    jax.lax.fori_loop(0, x_ref.shape[0], step, jnp.zeros((128,)))
```

## Fix safety
The loop does the same steps in the same order; the fix is offered where the inputs are whole loads of refs that the
kernel does not store to, and the outputs are only stored to a ref, and is safe.

## Applies to
Triton, Mosaic GPU and TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`pattern_match_scan_to_fori_loop` in `jax/_src/pallas/utils.py`, and `_scan_lowering_rule` of each backend.
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Backend, Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, scan_loops, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)

_BACKENDS = {Backend.TPU: "a TPU kernel", Backend.TRITON: "a Triton kernel", Backend.MOSAIC_GPU: "a Mosaic GPU kernel"}


def _where(details: Details) -> str:
    capture = details.context.capture(details.fault)
    target = details.fault.target or ""
    if capture is not None and capture.backend in _BACKENDS:
        return _BACKENDS[capture.backend]
    return "a TPU kernel" if target.startswith("tpu") else "a kernel"


def _stacked(details: Details) -> str:
    count = details["outputs"]
    outputs = details.equation.outputs[-int(count) :] if details.equation is not None else ()
    takes = _takes_rows(details)
    also = f" and takes the rows of {takes}" if takes else ""
    return (
        f"`{details.source}` stacks its outputs to {' and '.join(outputs)}{also}, but a loop in {_where(details)} can "
        "only carry values: store each row to the output ref inside `jax.lax.fori_loop`."
    )


def _rows(details: Details) -> str:
    takes = _takes_rows(details) or "an array"
    return (
        f"`{details.source}` takes the rows of {takes} one by one, but a loop in {_where(details)} can only carry "
        "values: read each row from the ref inside `jax.lax.fori_loop`, `x_ref[i]`."
    )


def _takes_rows(details: Details) -> str:
    """The inputs of a scan that it takes apart, as written, else their types."""
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Call):
        return ""
    name = spot.syntax.dotted(spot.node.func)
    position = {scan_loops.SCAN: 2, scan_loops.MAP: 1}.get(name or "")
    given = spot.syntax.argument(spot.node, position, "xs") if position is not None else None
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return ""
    return f"`{spot.syntax.source(given)}`"


def _fixes(details: Details) -> list[Fix]:
    length = details.param("length")
    if details.spot is None or not re.fullmatch(r"\d+", length):
        return []
    fix = scan_loops.as_loop(details.spot, length, reverse=details.param("reverse") == "True")
    return [fix] if fix is not None else []


def _backwards(details: Details) -> str:
    return (
        f"`{details.source}` runs backwards, but a loop in {_where(details)} only counts up: "
        f"use `jax.lax.fori_loop(0, {details.param('length')}, ...)` with the index counted down inside."
    )


_UTILS = "jax/_src/pallas/utils.py"
_BACKEND_FILES = ("triton", "mosaic", "mosaic_gpu")
_ROWS = (
    Row(
        _UTILS,
        ("pattern_match_scan_to_fori_loop",),
        _stacked,
        r"(?P<outputs>\d+) extensive output",
        fixes=_fixes,
    ),
    Row(_UTILS, ("pattern_match_scan_to_fori_loop",), _rows, r"extensive (?:argument|input)", fixes=_fixes),
)
_SCAN_FILES = tuple(f"jax/_src/pallas/{name}/lowering.py" for name in _BACKEND_FILES)
SITES = (
    *site_table.sites(_ROWS),
    *((file, "_scan_lowering_rule") for file in _SCAN_FILES),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    found = site_table.judge(rule_name(__name__), _ROWS, fault, context)
    if found is not None:
        return found
    equation = fault.equation
    if equation is None or equation.primitive != "scan":
        return None
    for file in _SCAN_FILES:
        rows = (
            Row(file, ("_scan_lowering_rule",), _backwards, at=((5, "reverse"),), fixes=_fixes),
            Row(
                file,
                ("_scan_lowering_rule",),
                "`{source}` is unrolled ({unroll} steps at a time), which a kernel loop of this backend cannot do. "
                "Leave out `unroll`.",
                at=((6, "unroll"),),
                fixes=lambda details: keyword_edits.remove_keyword(details.spot, "unroll", "Do not unroll the loop"),
            ),
        )
        row = rows[0] if equation.params.get("reverse") == "True" else rows[1]
        if row is rows[1] and equation.params.get("unroll") in ("1", "True", "", None):
            continue
        found = site_table.judge(rule_name(__name__), (row,), fault, context)
        if found is not None:
            return found
    return None
