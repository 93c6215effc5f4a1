"""Copies of TPU kernels in the source: what ``.start()`` and ``.wait()`` belong to, and where its refs come from."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fix, Related, Safety
from pallas_lsp.rules.shared import operand_refs
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import parameters

_TPU = "jax.experimental.pallas.tpu."
_LOCAL = frozenset({f"{_TPU}make_async_copy", f"{_TPU}async_copy", f"{_TPU}sync_copy"})
_REMOTE = frozenset({f"{_TPU}make_async_remote_copy", f"{_TPU}async_remote_copy"})
_SEMAPHORES = {"local": ((2, "sem"),), "remote": ((2, "send_sem"), (3, "recv_sem"))}
_SCALAR_CALLS = frozenset({"jax.experimental.pallas.semaphore_signal", "jax.experimental.pallas.semaphore_wait"})


def made(details: Details) -> Spot | None:
    """The call that made a copy: ``pltpu.make_async_copy(...)`` behind ``copy.start()``, or the call itself."""
    spot = details.spot
    node = spot.node if spot is not None else None
    while isinstance(node, ast.Call):
        name = spot.syntax.dotted(node.func) if spot is not None else None
        if name in _LOCAL | _REMOTE:
            return spot.at(node) if spot is not None else None
        if not isinstance(node.func, ast.Attribute) or spot is None:
            return None
        value = spot.syntax.value(node.func.value)
        node = value if isinstance(value, ast.expr) else None
    return None


def _argument(details: Details, position: int, name: str) -> Spot | None:
    call = made(details)
    if call is None or not isinstance(call.node, ast.Call):
        return None
    found = call.syntax.argument(call.node, position, name)
    return call.at(found) if found is not None else None


def source(details: Details) -> Spot | None:
    return _argument(details, 0, "src_ref")


def target(details: Details) -> Spot | None:
    return _argument(details, 1, "dst_ref")


def started_here(details: Details) -> Sequence[Related]:
    """Where a copy is started that was made elsewhere."""
    call = made(details)
    if call is None or details.spot is None or call.node is details.spot.node:
        return ()
    return (Related(details.location, "The copy is started here."),)


def semaphores(details: Details) -> list[Spot]:
    """The semaphores of a copy, or of a signal or wait, as they are written."""
    call = made(details)
    if call is not None and isinstance(call.node, ast.Call):
        remote = call.syntax.dotted(call.node.func) in _REMOTE
        found = [_argument(details, p, n) for p, n in _SEMAPHORES["remote" if remote else "local"]]
        return [spot for spot in found if spot is not None]
    spot = details.spot
    if spot is not None and isinstance(spot.node, ast.Call) and spot.syntax.dotted(spot.node.func) in _SCALAR_CALLS:
        first = details.argument(0, "sem_or_view")
        return [first] if first is not None else []
    return []


def semaphore(details: Details) -> Spot | None:
    found = semaphores(details)
    return found[0] if found else None


def value_operand(details: Details) -> Spot | None:
    """The operand of a copy that is a loaded value: ``x_ref[...]`` instead of ``x_ref``."""
    for spot in (source(details), target(details)):
        if spot is None:
            continue
        value = spot.syntax.value(spot.node)
        view = isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute) and value.value.attr == "at"
        if isinstance(value, ast.Subscript | ast.BinOp | ast.Call | ast.Constant | ast.UnaryOp) and not view:
            return spot.at(value)
    return None


def value_or_semaphore(details: Details) -> Spot | None:
    return value_operand(details) or semaphore(details) or source(details)


def as_views(details: Details) -> Sequence[Fix]:
    """``x_ref[...]`` -> ``x_ref`` and ``x_ref[i]`` -> ``x_ref.at[i]``, for both operands."""
    call = made(details)
    if call is None:
        return ()
    editor = Editor(call.path, call.syntax)
    for spot in (source(details), target(details)):
        node = spot.syntax.value(spot.node) if spot is not None else None
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        whole = isinstance(node.slice, ast.Constant) and node.slice.value is Ellipsis
        end = call.syntax.span(node.value)[1]
        if whole:
            editor.delete(end, call.syntax.span(node)[1])
        else:
            editor.insert(end, ".at")
    edits = editor.edits()
    return (Fix("Copy the ref, not its value", edits, Safety.SAFE),) if edits else ()


def is_semaphore(details: Details) -> bool:
    """Whether what is used as a semaphore is one, as far as the facts tell."""
    given = [each for each in details.fault.facts.get("operands", ()) if str(each.get("name", "")).startswith("sem")]
    return not given or "sem" in str(given[0].get("dtype", ""))


def first_semaphore(details: Details) -> Sequence[Fix]:
    """``sem`` -> ``sem.at[0]``."""
    found = semaphore(details)
    if found is None or not is_semaphore(details) or not isinstance(found.node, ast.Name | ast.Attribute):
        return ()
    editor = Editor(found.path, found.syntax)
    editor.insert(found.syntax.span(found.node)[1], ".at[0]")
    return (Fix(f"Use the first semaphore, `{found.source}.at[0]`", editor.edits(), Safety.SUGGESTED),)


def scratch_of(details: Details, spot: Spot | None) -> Spot | None:
    """The scratch type that a parameter of the kernel's body stands for."""
    launch = launch_of(details.fault, details.context)
    found = operand_refs.body_function(details.fault, details.context)
    node = spot.node if spot is not None else None
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if launch is None or found is None or not isinstance(node, ast.Name):
        return None
    names = [p.arg for p in parameters(found[0])]
    if node.id not in names:
        return None
    role, index = operand_refs.position(details.fault, names.index(node.id), details.context)
    return launch.part(f"[{index}]", launch.scratch) if role == "scratch" else None


def allocated_here(details: Details) -> Sequence[Related]:
    spot = semaphore(details)
    scratch = scratch_of(details, spot)
    if spot is None or scratch is None:
        return ()
    return (Related(scratch.location, f"`{spot.source}` is allocated here."),)


def as_dma_semaphore(details: Details) -> Sequence[Fix]:
    """``pltpu.SemaphoreType.REGULAR`` -> ``pltpu.SemaphoreType.DMA``."""
    return _other_kind(details, "DMA")


def as_regular_semaphore(details: Details) -> Sequence[Fix]:
    return _other_kind(details, "REGULAR")


def _other_kind(details: Details, kind: str) -> Sequence[Fix]:
    scratch = scratch_of(details, semaphore(details))
    if scratch is None:
        return ()
    node = scratch.node.func if isinstance(scratch.node, ast.Call) else scratch.node
    if not isinstance(node, ast.Attribute) or node.attr not in ("DMA", "REGULAR", "BARRIER"):
        return ()
    editor = Editor(scratch.path, scratch.syntax)
    editor.rename(node, kind)
    return (Fix(f"Allocate a {kind} semaphore", editor.edits(), Safety.SUGGESTED),)


def device(details: Details) -> Spot | None:
    """``device_id`` of a copy or signal, as it is written."""
    call = made(details)
    if call is not None and isinstance(call.node, ast.Call):
        return _argument(details, 4, "device_id")
    return details.argument(None, "device_id")
