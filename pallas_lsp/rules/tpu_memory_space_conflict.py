"""
## What it does
Finds inputs and outputs of a TPU kernel whose memory cannot be where they say: an output that is written over an input
(`input_output_aliases`) in another memory, memory that the kind of core does not have.

## Why it is wrong
An aliased output is the same memory as its input, so both lie in one place. Each kind of core has memories of its own:
the TensorCore VMEM, SMEM and semaphores, the cores of a SparseCore SMEM, and only the scalar one semaphores.

## Example
```python
x = pltpu.with_memory_space_constraint(x, pltpu.VMEM)
pl.pallas_call(kernel, out_shape=pltpu.HBM(x.shape, x.dtype), input_output_aliases={0: 0})(x)
```

## Use instead
```python
x = pltpu.with_memory_space_constraint(x, pltpu.HBM)
pl.pallas_call(kernel, out_shape=pltpu.HBM(x.shape, x.dtype), input_output_aliases={0: 0})(x)
```

## Fix safety
This rule offers no fix: either of the two may be meant.

## Applies to
TPU; jax 0.10, 0.11 and 0.12.

## Source
`_resolve_memory_spaces` and `_get_memory_space_from_aval` in `jax/_src/pallas/mosaic/pallas_call_registration.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "outputs and scratch")
_FILE = "jax/_src/pallas/mosaic/pallas_call_registration.py"


def _aliases(details: Details) -> Spot | None:
    launch = launch_of(details.fault, details.context)
    return launch.argument("input_output_aliases") if launch is not None else None


def _conflict(details: Details) -> str:
    one, two = (details[name].rpartition(".")[2] for name in ("one", "two"))
    return (
        f"Output {details['out']} is written over input {details['in']}, but the input lies in {one} and the output in "
        f"{two}: give both the same memory, or leave the alias out."
    )


def _kind(details: Details) -> str:
    core = details["core"].rpartition(".")[2]
    where = "a core of this kind" if core in ("", "None") else f"a core of the kind {core}"
    return f"An input or output of this kernel lies in {details['space']}, which {where} does not have: use HBM."


_ROWS = (
    Row(
        _FILE,
        ("_resolve_memory_spaces",),
        _conflict,
        r"for alias (?P<in>\d+)->(?P<out>\d+): ?(?P<one>\S+) != (?P<two>\S+?)\.?$",
        at=_aliases,
    ),
    Row(
        _FILE,
        ("_get_memory_space_from_aval",),
        _kind,
        r"Invalid (?:core|kernel) type for (?P<space>\w+): (?P<core>\S*)",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
