"""
## What it does
Finds copies (DMAs) of TPU kernels and uses of semaphores with arguments that do not go together: values instead of
refs, source and target of different shapes or types, a missing semaphore, a whole array of semaphores, one of the wrong
kind, and devices that the mesh does not have.

## Why it is wrong
A copy moves the bytes of one ref to another of the same shape and type, and announces its end at one DMA semaphore. A
value that was loaded (`x_ref[...]`) is in registers and cannot be copied; a part of a ref is `x_ref.at[...]`.

## Example
```python
copy = pltpu.make_async_copy(x_hbm[pl.ds(0, 8)], x_vmem, sems)  # a value; an array of semaphores
copy.start()
copy.wait()
```

## Use instead
```python
copy = pltpu.make_async_copy(x_hbm.at[pl.ds(0, 8)], x_vmem, sems.at[0])
copy.start()
copy.wait()
```

## Fix safety
Copying the ref instead of its value is safe. Choosing a semaphore, or another kind of semaphore, is suggested.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_dma_start_abstract_eval`, `_dma_wait_abstract_eval`, `AsyncCopyDescriptor` and `make_async_remote_copy` in
`jax/_src/pallas/mosaic/primitives.py`; `check_sem_avals` and `device_id_to_logical` in `jax/_src/pallas/primitives.py`;
the lowering rules of copies in `jax/_src/pallas/mosaic/lowering.py`, and Mosaic's verifier of `tpu.enqueue_dma`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import compiler_params, keyword_edits, site_table, tpu_copies
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "copies")

_PRIMITIVES = "jax/_src/pallas/mosaic/primitives.py"
_SHARED = "jax/_src/pallas/primitives.py"
_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_START, _WAIT = ("_dma_start_abstract_eval",), ("_dma_wait_abstract_eval",)
_VERIFY = ("_lower_jaxpr_to_func_common",)
_ALLOCATE = "Allocate one with `scratch_shapes=[pltpu.SemaphoreType.REGULAR]` and use that."
_MEMREF = re.compile(r"memref<((?:\d+x)*)([\w!.]+)")


def _semaphore(details: Details) -> str:
    spot = tpu_copies.semaphore(details)
    return f"`{spot.source}`" if spot is not None else "The semaphore"


def _array_of_semaphores(details: Details) -> str:
    if not tpu_copies.is_semaphore(details):
        return f"{_semaphore(details)} is no semaphore. {_ALLOCATE}"
    return (
        f"{_semaphore(details)} is an array of semaphores of shape {details['shape']}, but this needs a single one: "
        "index it, as in `sems.at[0]`."
    )


def _values(details: Details) -> str:
    spot = tpu_copies.value_operand(details)
    if spot is None and "semaphore" in details.fault.message:
        return (
            f"{_semaphore(details)} is no semaphore, but `{details.source}` needs one to announce its end at: allocate "
            "`scratch_shapes=[pltpu.SemaphoreType.DMA]` and give it to the copy."
        )
    what = f"`{spot.source}` is" if spot is not None else "An operand of this copy is"
    return f"{what} a value, but a copy moves refs: give it the ref itself, or a part of it as `ref.at[...]`."


def _written(details: Details) -> str:
    call = tpu_copies.made(details)
    return short(call.source) if call is not None else details.source


def _operands(details: Details) -> list[tuple[str, str]]:
    """(shape, type) of source and target, from the operation that the verifier refused."""
    inside = details.fault.message.rpartition(" : (")[2]
    found = []
    for sizes, dtype in _MEMREF.findall(inside)[:2]:
        found.append((shape_text([int(d) for d in sizes.split("x") if d]), dtype))
    return found


def _shapes(details: Details) -> str:
    shapes = [shape for shape, _ in _operands(details)]
    given = f" ({shapes[0]} and {shapes[1]})" if len(shapes) == 2 else ""
    return (
        f"Source and target of `{_written(details)}` differ in shape{given}: a copy moves equal shapes. Take a part of "
        "the larger one with `ref.at[...]`."
    )


def _types(details: Details) -> str:
    given = [t.partition("[")[0].removeprefix("Ref<") for t in (details.inputs(0), details.inputs(1))]
    return (
        f"Source and target of `{_written(details)}` differ in type ({given[0]} and {given[1]}): a copy converts "
        "nothing. Load, cast and store instead, or make both alike."
    )


_ROWS = (
    Row(
        _PRIMITIVES,
        _START,
        _values,
        "source/destination",
        at=tpu_copies.value_or_semaphore,
        fixes=tpu_copies.as_views,
    ),
    Row(
        _PRIMITIVES,
        _START,
        _array_of_semaphores,
        r"non-\(\)-shaped semaphore: (?P<shape>\([\d, ]*\))",
        at=tpu_copies.semaphore,
        fixes=tpu_copies.first_semaphore,
        related=tpu_copies.allocated_here,
    ),
    Row(
        _PRIMITIVES,
        (*_START, *_WAIT),
        "A semaphore of `{source}` is a value, but has to be a ref: give it the semaphore itself, `sem` or "
        "`sems.at[i]`.",
        r"semaphore must be a Ref|semaphore to be a reference",
        at=tpu_copies.semaphore,
    ),
    Row(
        _PRIMITIVES,
        _START,
        "The priority of a copy cannot be negative, but is {priority}.",
        "priority must be non-negative",
        at=((None, "priority"),),
    ),
    Row(
        _PRIMITIVES,
        _WAIT,
        lambda d: (
            f"{_semaphore(d)} is a regular semaphore, but a copy needs a DMA semaphore: allocate "
            "`pltpu.SemaphoreType.DMA`."
        ),
        "requires a DMA semaphore",
        at=tpu_copies.semaphore,
        fixes=tpu_copies.as_dma_semaphore,
        related=tpu_copies.allocated_here,
    ),
    Row(
        _PRIMITIVES,
        ("wait_send",),
        "`{source}` waits for a copy within the device, which is not sent anywhere: use `wait()`.",
        fixes=lambda d: keyword_edits.rename_method(d.spot, "wait", "Use wait()"),
    ),
    Row(
        _PRIMITIVES,
        ("__post_init__",),
        "A copy to another device needs two semaphores, one for sending and one for receiving, and the device "
        "(`device_id`): give all three, or use `pltpu.make_async_copy` within the device.",
        "device_id",
    ),
    Row(
        _PRIMITIVES,
        ("make_async_remote_copy",),
        "`{source}` copies to another device, but names none: give it `device_id`, or use `pltpu.make_async_copy` "
        "within the device.",
        "device_id",
        at=((4, "device_id"), (None, "device_id")),
    ),
    Row(
        _PRIMITIVES,
        ("make_async_remote_copy",),
        "A logical `device_id` is one number, not a tuple or dictionary: use `device_id_type=pl.DeviceIdType.MESH` for "
        "coordinates in the mesh.",
        "LOGICAL",
        at=((4, "device_id"), (None, "device_id")),
    ),
    *(
        Row(
            _LOWERING,
            _VERIFY,
            text,
            f"'tpu.enqueue_dma' op .*{what} mismatch",
            at=tpu_copies.made,
            related=tpu_copies.started_here,
        )
        for text, what in ((_types, "element type"), (_shapes, "shape"))
    ),
    Row(
        _LOWERING,
        ("_dma_start_lowering_rule", "_dma_wait_lowering_rule"),
        "`{source}` has no semaphore to announce its end at: allocate one with "
        "`scratch_shapes=[pltpu.SemaphoreType.DMA]` and give it to the copy.",
        "semaphore cannot be None",
        at=tpu_copies.semaphore,
    ),
    Row(
        _LOWERING,
        ("_dma_start_lowering_rule",),
        "`{source}` adds to its target, which only a SparseCore can do: copy, then add.",
        "add=True",
        at=((None, "add"),),
    ),
    Row(
        _LOWERING,
        ("_dma_start_lowering_rule",),
        "`{source}` has a semaphore for its source, which a copy within the device cannot have on a TensorCore: leave "
        "out `src_sem`.",
        "src_sem",
        at=((None, "src_sem"),),
        fixes=lambda d: keyword_edits.remove_keyword(tpu_copies.made(d), "src_sem", "Leave out `src_sem`"),
    ),
    Row(
        _LOWERING,
        ("_dma_wait_lowering_rule",),
        "`{source}` waits for the source of a copy within the device, which a TensorCore cannot: use `wait()`.",
        "wait_read",
        fixes=lambda d: keyword_edits.rename_method(d.spot, "wait", "Use wait()"),
    ),
    Row(
        _LOWERING,
        ("_dma_start_lowering_rule",),
        "`{source}` copies booleans, which is not possible in this version of jax: copy int8 or int32 instead.",
        "bool",
    ),
    Row(
        _LOWERING,
        ("_semaphore_wait_lowering_rule",),
        "`{source}` waits without counting down, which a TPU kernel cannot: leave out `decrement=False`.",
        "Non-decrementing",
        at=((None, "decrement"),),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "decrement", "Count down"),
    ),
    Row(
        _LOWERING,
        ("_semaphore_signal_lowering_rule",),
        "`{source}` names the core twice, by `core_index` and by an axis of `device_id`: give only one of them.",
        "core_index",
        at=((None, "core_index"),),
    ),
    Row(
        _LOWERING,
        ("_prepare_mesh_info",),
        "The kernel communicates with other devices, but is not launched inside `jax.shard_map`: there is no mesh that "
        "they could belong to.",
        "without shard_map",
        at=compiler_params.launch_name,
    ),
    Row(
        _LOWERING,
        ("_prepare_mesh_info",),
        "An axis of the grid has the same name as one of the mesh: {names}. Give the grid's axes other names.",
        r"axis names: (?P<names>.*)",
        at=compiler_params.launch_name,
    ),
    Row(
        _SHARED,
        ("check_sem_avals",),
        _array_of_semaphores,
        r"non-\(\)-shaped semaphore: (?P<shape>\([\d, ]*\))",
        at=tpu_copies.semaphore,
        fixes=tpu_copies.first_semaphore,
        related=tpu_copies.allocated_here,
    ),
    Row(
        _SHARED,
        ("check_sem_avals",),
        lambda d: (
            f"{_semaphore(d)} is a semaphore of copies (DMA), which only copies signal: wait for the copy with "
            "its `wait()`, or allocate a `pltpu.SemaphoreType.REGULAR`."
        ),
        "Got dma_sem",
        at=tpu_copies.semaphore,
        fixes=tpu_copies.as_regular_semaphore,
        related=tpu_copies.allocated_here,
    ),
    Row(
        _SHARED,
        ("check_sem_avals",),
        lambda d: (
            f"{_semaphore(d)} is no semaphore: allocate one with "
            "`scratch_shapes=[pltpu.SemaphoreType.REGULAR]` and use that."
        ),
        "non-semaphore|of the following types",
        at=tpu_copies.semaphore,
    ),
    Row(
        _SHARED,
        ("_semaphore_signal_abstract_eval", "_semaphore_wait_abstract_eval"),
        "`{source}` counts with a value that is not int32: cast it with `.astype(jnp.int32)`.",
        "int32 value",
        at=((1, "inc"), (1, "value")),
    ),
    Row(
        _SHARED,
        ("device_id_to_logical",),
        "`device_id` has {ids} numbers, but the mesh of the kernel has {axes} axes: give one for each axis of the mesh "
        "(`jax.shard_map` makes the mesh known).",
        r"got (?P<ids>\d+) ids for a (?P<axes>\d+)D mesh",
        at=tpu_copies.device,
    ),
    Row(
        _SHARED,
        ("device_id_to_logical",),
        "A `device_id` given by axis names needs `device_id_type=pl.DeviceIdType.MESH`.",
        "must be MESH",
        at=tpu_copies.device,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    if (fault.target or "").startswith("cuda"):
        return None
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
