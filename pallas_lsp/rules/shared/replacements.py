"""What to write instead of an operation that a backend cannot lower: advice by what was called, and fixes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Backend, Fault, Fix, Safety
from pallas_lsp.rules.shared import part_stores, ref_loads, update_stores
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor

_BEFORE = "Compute it outside of the kernel and pass the result as an input."
_LOOP = "Write it as a `jax.lax.fori_loop` that carries the running value"
_STORE_PARTS = "Store each part into its own slice of the output ref instead."
_BY_NAME = {
    "slice": "Take the part from the ref instead: `x_ref[:n]` loads only that part.",
    "dynamic_slice": "Index the ref instead of its value: `x_ref[pl.ds(start, size)]` or `x_ref[i]`.",
    "gather": "Index the ref instead of its value.",
    "scatter": "Store into the output ref at those indices: `o_ref[indices] = value`.",
    "dynamic_update_slice": "Store the part into the ref: `o_ref[pl.ds(start, size)] = part`.",
    "concatenate": _STORE_PARTS,
    "pad": "Store the value into a part of the output ref and the padding into the rest.",
    "rev": "Reverse the array outside of the kernel, or let the index map count down.",
    "sort": "Sort outside of the kernel and pass the sorted array (or the order) as an input.",
    "top_k": "Take the top k outside of the kernel, or find them one by one with `jnp.max` and a mask.",
    "reduce_prod": f"{_LOOP}, or use `jnp.exp(jnp.sum(jnp.log(x), axis))` where all values are positive.",
    "cumprod": f"{_LOOP}, or use `jnp.exp(jnp.cumsum(jnp.log(x), axis))` where all values are positive.",
    "cummax": f"{_LOOP}.",
    "cummin": f"{_LOOP}.",
    "cumlogsumexp": f"{_LOOP}.",
    "cumsum": f"{_LOOP}, or multiply with a triangular matrix of ones: `jnp.dot(x, jnp.triu(ones))`.",
    "reduce_or": "Reduce integers: `jnp.max(mask.astype(jnp.int32), axis) > 0`.",
    "reduce_and": "Reduce integers: `jnp.min(mask.astype(jnp.int32), axis) > 0`.",
    "reduce_xor": f"{_LOOP}.",
    "round": "`jnp.floor(x + 0.5)` rounds halves up and is available.",
    "debug_callback": "A kernel cannot call back to Python; print with `pl.debug_print`.",
    "pure_callback": "A kernel cannot call back to Python. " + _BEFORE,
    "io_callback": "A kernel cannot call back to Python; print with `pl.debug_print`.",
    "custom_linear_solve": _BEFORE,
    "conv_general_dilated": "Write it as shifted multiply-adds, or as a matrix product with `jnp.dot`.",
    "dot_general": "Use a matrix product of two 2-D operands.",
    "iota": "Use `jax.lax.broadcasted_iota` with at least two dimensions.",
    "select_and_gather_add": "Write the pooling as a loop over the window.",
    "while": "Write the loop with `jax.lax.fori_loop`.",
}
_FAMILIES = (
    (("scatter",), "scatter"),
    (("reduce_window", "select_and"), "select_and_gather_add"),
    (("random_", "threefry", "rng_", "prng"), "random"),
    (("cum",), "cummax"),
)
_TRITON = {
    "gather": "Index the ref instead of its value: `x_ref[indices]` loads those rows, whatever the indices are.",
    "random": "Triton kernels have no random numbers: make them outside of the kernel and pass them as an input.",
    "run_scoped": "Triton kernels have no scratch memory: keep the value in a variable or a loop's carry.",
    "scatter": "Choose with a mask, `jnp.where(jnp.arange(n) == i, value, x)`, or store to the ref at those indices.",
    "dynamic_update_slice": "Choose with a mask, `jnp.where(jnp.arange(n) == i, value, x)`, or store only that part.",
    "scatter-add": "Store into the output ref, with `plt.atomic_add(o_ref, indices, value)` where indices may repeat.",
    "cumsum": f"Only a forward `jnp.cumsum` is available. {_LOOP}.",
}
_TPU = {
    "gather": "Take one row at a time from the ref, `x_ref[i]` with a scalar `i` (from SMEM or scalar prefetch), or "
    "use `jnp.take_along_axis` with indices of the output's shape.",
    "random": "Use `pltpu.prng_seed` and `pltpu.prng_random_bits`, or a key from `pltpu.to_pallas_key`.",
    "random_split": "A Pallas key cannot be split: derive keys with `jax.random.fold_in(key, i)`.",
    "dynamic_slice": "Index the ref instead of its value: `x_ref[pl.ds(start, size)]` or `x_ref[i]`.",
}


_PARTS = "Load or store the parts at shifted places of the refs."
# What was called, where the primitive that it came to would not tell.
_CALLS = {
    "jax.numpy.roll": _PARTS,
    "jax.numpy.flip": _BY_NAME["rev"],
    "jax.numpy.convolve": _BY_NAME["conv_general_dilated"],
    "jax.numpy.correlate": _BY_NAME["conv_general_dilated"],
    "jax.lax.associative_scan": _BY_NAME["cummax"],
    "jax.lax.top_k": _BY_NAME["top_k"],
    "jax.numpy.take_along_axis": "Index the ref with one array of indices for each axis, or do it before the launch.",
}
_OUTSIDE_MODULES = ("jax.numpy.linalg.", "jax.scipy.", "jax.numpy.fft.", "jax.image.")
_OUTSIDE = frozenset(
    f"jax.numpy.{name}"
    for name in (
        *("median", "percentile", "quantile", "nanmedian", "unique", "nonzero", "argwhere", "histogram", "bincount"),
        *("searchsorted", "digitize", "interp", "select", "polyfit", "roots", "argpartition", "partition", "lexsort"),
    )
)


def advice(primitive: str, backend: Backend | str, called: str | None = None) -> str:
    """What to do instead of a primitive, or of the function that came to it, in a sentence."""
    if called is not None:
        if called in _CALLS:
            return _CALLS[called]
        if called in _OUTSIDE or called.startswith(_OUTSIDE_MODULES):
            return _BEFORE
    own = _TPU if backend == Backend.TPU else _TRITON
    for table in (own, _BY_NAME):
        if primitive in table:
            return table[primitive]
    for starts, name in _FAMILIES:
        if primitive.startswith(starts):
            return own.get(name) or _BY_NAME.get(name) or _BEFORE
    return _BEFORE


def fixes(details: Details) -> Sequence[Fix]:
    """The fixes for an operation that a backend cannot lower.

    A store over an earlier store is only in order where a kernel is one thread of control, as on TPU.
    """
    in_order = _is_tpu(details.fault)
    equation, spot = details.equation, details.spot
    if equation is None or spot is None:
        return ()
    found: list[Fix | None] = []
    name = equation.primitive
    if name in ("slice", "dynamic_slice") or (name == "gather" and not in_order):
        found.append(ref_loads.read_parts(spot, rank_of(details.inputs(0))))
    if name in ("concatenate", "stack"):
        axis = details.param("dimension") or details.param("axis")
        found.append(part_stores.split_store(spot, equation, int(axis or 0)))
    if name in ("reduce_or", "reduce_and"):
        found.append(_reduce_integers(spot, "max" if name == "reduce_or" else "min"))
    if name == "cumsum" and details.param("reverse") == "True":
        found.append(_reversed_sum(spot))
    one_place = name.startswith("scatter") and rank_of(details.inputs(1)) == 1
    if in_order and (one_place or name == "dynamic_update_slice"):
        found.append(update_stores.store_update(spot))
    if name == "split":
        found.append(part_stores.split_loads(spot, equation, int(details.param("axis") or 0)))
    if in_order and name == "pad":
        found.append(update_stores.store_padded(spot, equation))
    return [fix for fix in found if fix is not None]


def _is_tpu(fault: Fault) -> bool:
    return (fault.target or "").startswith("tpu")


def called(details: Details) -> str | None:
    """The canonical name of what was called at fault."""
    call = details.call
    return details.spot.syntax.called(call) if call is not None and details.spot is not None else None


def needs(details: Details, backend: Backend, what: str) -> str:
    """The sentence for a primitive that a backend does not have at all."""
    name = details.equation.primitive if details.equation is not None else details["name"]
    offered = [fix for fix in fixes(details) if fix.title.startswith("Read `")]
    if offered:
        instead = offered[0].title.partition("`")[2].partition("`")[0]
        return (
            f"`{details.source}` takes a part of a value that is already loaded (`{name}`), which {what} cannot do. "
            f"Read that part from the ref: `{instead}`."
        )
    return f"`{details.source}` needs `{name}`, which {what} does not have. {advice(name, backend, called(details))}"


def rank_of(type_: str) -> int:
    """The rank of a type such as ``f32[8,96]``."""
    inside = type_.partition("[")[2].rstrip("]>")
    return len(inside.split(",")) if inside else 0


_REDUCERS = frozenset({"jax.numpy.any", "jax.numpy.all"})


def _reduce_integers(spot: Spot, function: str) -> Fix | None:
    """``jnp.any(mask, axis=1)`` -> ``(jnp.max((mask).astype(jnp.int32), axis=1) > 0)``."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call) or syntax.dotted(call.func) not in _REDUCERS or not call.args:
        return None
    if not isinstance(call.func, ast.Attribute):
        return None
    editor = Editor(spot.path, syntax)
    int32 = editor.spell("jax.numpy.int32", call, ("jax.numpy", "jnp"))
    if int32 is None:
        return None
    editor.rename(call.func, function)
    start, end = editor.whole(call.args[0])
    simple = isinstance(call.args[0], ast.Name | ast.Subscript | ast.Call | ast.Attribute)
    editor.insert(start, "" if simple else "(")
    editor.insert(end, ("" if simple else ")") + f".astype({int32})")
    start, end = syntax.span(call)
    editor.insert(start, "(")
    editor.insert(end, " > 0)")
    return Fix(f"Reduce integers with jnp.{function}", editor.edits(), Safety.SAFE)


def _reversed_sum(spot: Spot) -> Fix | None:
    """A reversed cumulative sum by the total: ``jnp.sum(x, axis, keepdims=True) - jnp.cumsum(x, axis) + x``."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call) or syntax.dotted(call.func) != "jax.lax.cumsum":
        return None
    given = syntax.arguments(call)
    operand, axis = given.get(0, "operand"), given.get(1, "axis")
    editor = Editor(spot.path, syntax)
    total = editor.spell("jax.numpy.sum", call, ("jax.numpy", "jnp"))
    running = editor.spell("jax.numpy.cumsum", call, ("jax.numpy", "jnp"))
    if operand is None or total is None or running is None:
        return None
    along = syntax.source(axis) if axis is not None else "0"
    x = syntax.source(operand)
    inside = x if isinstance(operand, ast.Name | ast.Subscript | ast.Call | ast.Attribute) else f"({x})"
    text = f"({total}({x}, axis={along}, keepdims=True) - {running}({x}, axis={along}) + {inside})"
    editor.replace(call, text)
    return Fix("Take the forward sum from the total (rounds differently)", editor.edits(), Safety.SUGGESTED)
