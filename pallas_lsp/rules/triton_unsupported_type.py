"""
## What it does
Finds operations in a Triton kernel on a type that they are not there for: 64-bit indices, complex numbers, atomic
operations on small types, mathematical functions of types without one, and casts that the GPU does not have.

## Why it is wrong
Triton knows integers of 1 to 64 bits, float16, bfloat16, float32, float64 and some 8-bit floats; not every operation is
there for each. `jnp.argmax` gives 32-bit indices only, but with `jax_enable_x64` jax asks for 64 bits.

## Example
```python
jax.config.update("jax_enable_x64", True)

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.argmax(x_ref[...], axis=1)  # int64
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jax.lax.argmax(x_ref[...], 1, jnp.int32)
```

For small types, cast to float32 or int32 first and back afterwards.

## Fix safety
A 32-bit index is suggested: it has another type. The other findings have no fix.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
The dispatch tables, `_argreduce_lowering`, `_ir_cast` and others in `jax/_src/pallas/triton/lowering.py`;
`_atomic_abstract_eval` and `approx_tanh` in `jax/_src/pallas/triton/primitives.py`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import narrow_types, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "element types")

_FILE = "jax/_src/pallas/triton/lowering.py"
_PRIMITIVES = "jax/_src/pallas/triton/primitives.py"


def _function(details: Details) -> str:
    types = " and ".join(dict.fromkeys(re.findall(r"'(\w+)'", details["types"]))) or details.inputs(0)
    if "complex" in types:
        return (
            f"`{details.source}` works on {types}, but Triton has no complex numbers: pass the real and the imaginary "
            "part as two arrays."
        )
    return (
        f"`{details.source}` needs `{details['name']}` of {types}, which Triton does not have: cast to float32 (or "
        "int32) first, and back afterwards."
    )


_ROWS = (
    Row(_FILE, ("inner",), _function, r"unsupported types for (?P<name>\w+): (?P<types>.*)"),
    Row(
        _FILE,
        ("_argreduce_lowering",),
        "`{source}` gives {out}, but indices in a Triton kernel have 32 bits: use `jax.lax.argmax(x, axis, jnp.int32)` "
        "(or argmin). jax asks for 64 bits because `jax_enable_x64` is on.",
        "index_type",
        fixes=narrow_types.fixes,
    ),
    Row(
        _FILE,
        ("_argreduce_lowering",),
        "`{source}` looks for the index along {axes} of {a}, but a Triton kernel can do that along one axis only: "
        "reshape to one axis first.",
        "one reduce axis",
    ),
    Row(
        _FILE,
        ("_ir_cast",),
        "`{source}` casts {dir} `{type}`, which the GPU that is compiled for does not have: use another 8-bit "
        "type, or a newer GPU.",
        r"cannot cast (?P<dir>from|to) `(?P<type>\w+)`",
    ),
    Row(
        _FILE,
        ("_ir_cast", "_float_int_cast", "_int_float_cast", "_float_float_cast"),
        "`{source}` casts {a} to {out}, which Triton cannot do: cast by way of float32 (or int32).",
    ),
    Row(
        _FILE,
        (*("_add", "_sub", "_mul", "_floordiv", "_truediv", "_mod", "_cmp", "_minus"), "_full", "_ir_constant"),
        "`{source}` works on {a}, a type that Triton cannot compute with here: cast to float32 (or int32) first.",
        exceptions=("NotImplementedError",),
    ),
    Row(
        _FILE,
        ("_min_lowering_rule", "_max_lowering_rule"),
        "`{source}` compares {a}, a type that Triton has no {primitive} for: cast to float32 (or int32) first.",
    ),
    Row(
        "jax/_src/pallas/utils.py",
        ("erf_inv_lowering_helper", "sign_lowering_helper", "nextafter_lowering_helper"),
        "`{source}` is not available for {a}: cast to float32 first.",
    ),
    Row(
        _PRIMITIVES,
        ("_atomic_abstract_eval",),
        "`{operation}` does not work on {type}: GPUs have no atomic operation for it. Use float32 or int32, or "
        "`atomic_add` for float16.",
        r"`(?P<operation>\w+)` does not support (?P<type>\w+)",
        at=((0, "x_ref_or_view"),),
    ),
    Row(
        _PRIMITIVES,
        ("approx_tanh",),
        "`approx_tanh` works on floats of 16 and 32 bits, not on {type}: cast first.",
        r"does not accept (?P<type>\w+)",
        at=((0, "x"),),
    ),
    Row(
        _PRIMITIVES,
        ("_elementwise_inline_asm_lowering",),
        "`{source}` works on floats of 16 and 32 bits; NVIDIA GPUs have no approximate tanh of float64: use "
        "`jnp.tanh`.",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
