"""
## What it does
Finds calls of `plgpu.set_max_registers` with a number of registers that the GPU does not have, or an unknown action.

## Why it is wrong
A warpgroup gives up registers or takes more in steps of 8, from 24 up to 256 for each CUDA thread; the action is
`"increase"` or `"decrease"`.

## Example
```python
plgpu.set_max_registers(100, action="decrease")
```

## Use instead
```python
plgpu.set_max_registers(96, action="decrease")
```

## Fix safety
The nearest numbers are suggestions.

## Applies to
Mosaic GPU on Hopper and Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_set_max_registers_abstract_eval` in `jax/_src/pallas/mosaic_gpu/primitives.py`; in jax 0.10 the verifier of
`nvvm.setmaxregister`. The range is that of `setmaxnreg` in the PTX documentation, which jax does not check.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Severity
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, VERIFIER, argument, place, quoted
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, silent_finding
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SPECIFICITY = 56
SITES = ((PRIMITIVES, "_set_max_registers_abstract_eval"), (f"{MGPU}core.py", VERIFIER))
_STEP, _LEAST, _MOST = 8, 24, 256


def judge(fault: Fault, context: Context) -> Finding | None:
    verified = raised_in(fault, f"{MGPU}core.py", VERIFIER) and "setmaxregister" in fault.message
    raised = raised_in(fault, PRIMITIVES, "_set_max_registers_abstract_eval")
    unknown = "action must" in fault.message or checked(fault, "register-action")
    if not verified and not raised and not unknown and not checked(fault, "register-count"):
        return None
    if unknown:
        action = argument(context, fault, "action")
        text = f'{quoted(context, fault, "action", "The action")} is no action: it is "increase" or "decrease".'
        where = place(context, fault, "action")
        return silent_finding(__name__, fault, context, where, text, (), _actions(action), severity=Severity.ERROR)
    spot = argument(context, fault, "n", "set_max_registers")
    if spot is None:
        return None
    number = _number(spot)
    shown = number if number is not None else f"`{spot.source}`"
    text = f"{shown} registers cannot be set: a CUDA thread has {_LEAST} to {_MOST} of them, in steps of {_STEP}."
    fixes = _numbers(spot, number)
    return silent_finding(__name__, fault, context, spot.location, text, (), fixes, severity=Severity.ERROR)


def _number(spot: Spot) -> int | None:
    value = spot.syntax.value(spot.node)
    if isinstance(value, ast.Constant) and type(value.value) is int:
        return value.value
    return None


def _numbers(spot: Spot, number: int | None) -> Iterator[Fix | None]:
    if number is None:
        return
    below = max(_LEAST, min(_MOST, number // _STEP * _STEP))
    above = max(_LEAST, min(_MOST, below + _STEP))
    for new in dict.fromkeys((below, above)):
        edits = Editor(spot.path, spot.syntax)
        edits.replace(spot.node, str(new))
        yield suggested(f"Set {new} registers", edits)


def _actions(spot: Spot | None) -> Iterator[Fix | None]:
    for action in ("increase", "decrease") if spot is not None else ():
        assert spot is not None
        edits = Editor(spot.path, spot.syntax)
        edits.replace(spot.node, f'"{action}"')
        yield suggested(f'Use the action "{action}"', edits)
