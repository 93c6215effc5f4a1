"""
## What it does
Finds TPU kernels with float64 inputs or outputs.

## Why it is wrong
A TPU has no 64-bit registers. jax lowers such a kernel without complaint, and only the compiler for the TPU refuses it,
with an internal error. Arrays become float64 where `jax_enable_x64` is on and nobody asked for another type.

## Example
```python
jax.config.update("jax_enable_x64", True)
x = jnp.ones((8, 128))  # float64
pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
```

## Use instead
```python
x = jnp.ones((8, 128), jnp.float32)
```

## Fix safety
This rule offers no fix: where to give up the precision is the user's choice.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
Nothing in jax raises here; the types of the kernel's operands tell.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.compiler_params import launch_name
from pallas_lsp.rules.shared.site_table import Details

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "element types")
SITES = ()
CHECK = "tpu-float64"


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.facts.get("check") != CHECK:
        return None
    details = Details(fault, context)
    name = launch_name(details)
    operand = str(fault.facts.get("operand", "an operand"))
    type_ = str(fault.facts.get("type", "float64")).removeprefix("Ref<").removesuffix(">")
    message = (
        f"{operand[0].upper()}{operand[1:]} of this TPU kernel is {type_}, but a TPU has no 64-bit "
        "floats: its compiler refuses the kernel. Use float32."
    )
    place = name.location if name is not None else details.location
    return site_table.make(rule_name(__name__), fault, context, place, message)
