"""What to write instead of operations that Mosaic GPU cannot lower: advice, and fixes of source text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import PLGPU
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.part_stores import whole_store
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import is_whole, load_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

NUMPY = ("jax.numpy", "jnp")
_OUTSIDE = "Compute it outside of the kernel and pass the result as an input."
_LOOP = "Write it as a `jax.lax.fori_loop` over rows that carries the running value"
ADVICE: dict[str, str] = {
    "dot_general": "Matrix products are `plgpu.wgmma` on Hopper and `plgpu.tcgen05_mma` on Blackwell: copy both "
    "operands to tiled SMEM, multiply into `plgpu.ACC(...)` (or TMEM) and read the result from there.",
    "slice": "Refs have no such slices either: reshape the array before the launch, so that what is skipped is a "
    "dimension of its own, `x_ref[:, 0]`.",
    "dynamic_slice": "Index the ref instead of its value: `x_ref[pl.ds(start, size)]` or `x_ref[i]`.",
    "gather": "A kernel cannot look up many rows at once: loop with `pl.loop` and take one row from the ref, "
    "`x_ref[indices_ref[i]]`, or gather while copying (`x_ref.at[indices]` in `plgpu.copy_gmem_to_smem`).",
    "scatter": "Store one row at a time into the ref, `o_ref[i] = row`, in a `pl.loop`.",
    "scatter-add": "Add one row at a time, `plgpu.atomic_add(o_ref.at[i], row)` where programs may meet.",
    "dynamic_update_slice": "Store the part into the ref: `o_ref[pl.ds(start, size)] = part`.",
    "concatenate": "Store each part into its own slice of the output ref.",
    "stack": "Store each part into its own slice of the output ref.",
    "split": "Load each part from the ref: `x_ref[:n]`, `x_ref[n:]`.",
    "pad": "Store the value into a part of the output ref and the padding into the rest.",
    "transpose": "Values in registers cannot be transposed: transpose the array outside of the kernel, or give the "
    "operand of a matrix product as `ref.T`.",
    "rev": "Reverse the array outside of the kernel.",
    "sort": "Sort outside of the kernel and pass the sorted array, or the order, as an input.",
    "top_k": "Take the top k outside of the kernel, or find them one by one with `jnp.max` and a mask.",
    "argmax": "Find the maximum with `jnp.max`, and its index as the smallest index where the value equals it: "
    "`jnp.min(jnp.where(x == jnp.max(x), index, n))`.",
    "argmin": "Find the minimum with `jnp.min`, and its index as the smallest index where the value equals it.",
    "cumsum": f"{_LOOP}, one row at a time: `carry = carry + x_ref[i]; o_ref[i] = carry`.",
    "cumprod": f"{_LOOP}, one row at a time.",
    "cummax": f"{_LOOP}, one row at a time.",
    "cummin": f"{_LOOP}, one row at a time.",
    "reduce_or": "Reduce integers: `jnp.max(mask.astype(jnp.int32), axis) > 0`.",
    "reduce_and": "Reduce integers: `jnp.min(mask.astype(jnp.int32), axis) > 0`.",
    "reduce_prod": "Use `jnp.exp(jnp.sum(jnp.log(x), axis))` where all values are positive.",
    "debug_callback": "A kernel cannot call back to Python; print with `pl.debug_print`.",
    "pure_callback": "A kernel cannot call back to Python. " + _OUTSIDE,
    "io_callback": "A kernel cannot call back to Python; print with `pl.debug_print`.",
    "pow": "Use `jnp.exp2(y * jnp.log2(x))` where `x` is positive, or an integer power.",
    "log1p": "Use `jnp.log(1 + x)`.",
    "expm1": "Use `jnp.exp(x) - 1`.",
    "tan": "Use `jnp.sin(x) / jnp.cos(x)`.",
    "floor": "Use `jnp.round(x - 0.5)`, or convert to an integer and back, which rounds towards zero.",
    "ceil": "Use `jnp.round(x + 0.5)`, or convert to an integer and back.",
    "sinh": "Use `(jnp.exp(x) - jnp.exp(-x)) / 2`.",
    "cosh": "Use `(jnp.exp(x) + jnp.exp(-x)) / 2`.",
    "erf": "Use an approximation that is made of other operations, such as `jax.nn.gelu(x, approximate=True)`.",
    "cbrt": "Use `jnp.exp(jnp.log(x) / 3)` where `x` is positive.",
    "core_map": "A `core_map` over warps cannot stand inside another.",
    "mpmd_map": "A `core_map` over warps cannot stand inside another.",
    "conv_general_dilated": "Write it as matrix products with `plgpu.wgmma`, or as shifted multiply-adds.",
    "rem": "Compute the remainder as `x - y * n` with `n = (x / y).astype(jnp.int32)`, or with integers.",
    "program_id": "Ask with `jax.lax.axis_index(name)`, the name that the launch gives the axis.",
}
_FAMILIES = (
    ("scatter", "scatter"),
    ("cum", "cummax"),
)
_RANDOM = ("random_", "threefry", "rng_", "prng")


def advice(primitive: str) -> str:
    if primitive in ADVICE:
        return ADVICE[primitive]
    if primitive.startswith(_RANDOM):
        return "A kernel has no random numbers: make them outside and pass them as an input."
    return next((ADVICE[name] for start, name in _FAMILIES if primitive.startswith(start)), _OUTSIDE)


# -- element-wise functions -------------------------------------------------------------------------------------------


def _numpy(editor: Editor, at: ast.AST, *names: str) -> list[str] | None:
    found = [editor.spell(f"jax.numpy.{name}", at, NUMPY) for name in names]
    return [name for name in found if name is not None] if None not in found else None


def _log1p(x: str, f: list[str]) -> str:
    return f"{f[0]}(1 + {x})"


def _expm1(x: str, f: list[str]) -> str:
    return f"({f[0]}({x}) - 1)"


def _tan(x: str, f: list[str]) -> str:
    return f"({f[0]}({x}) / {f[1]}({x}))"


def _sinh(x: str, f: list[str]) -> str:
    return f"(({f[0]}({x}) - {f[0]}(-{x})) / 2)"


def _cosh(x: str, f: list[str]) -> str:
    return f"(({f[0]}({x}) + {f[0]}(-{x})) / 2)"


_FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[[str, list[str]], str]]] = {
    "log1p": (("log",), _log1p),
    "expm1": (("exp",), _expm1),
    "tan": (("sin", "cos"), _tan),
    "sinh": (("exp",), _sinh),
    "cosh": (("exp",), _cosh),
}


def elementwise(spot: Spot, primitive: str) -> Fix | None:
    """A function of one argument by others: ``jnp.log1p(x)`` -> ``jnp.log(1 + x)``."""
    syntax, call = spot.syntax, spot.node
    if primitive == "pow":
        return _power(spot)
    if primitive not in _FUNCTIONS or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    if (syntax.called(call) or "").rpartition(".")[2] != primitive:
        return None
    names, text = _FUNCTIONS[primitive]
    editor = Editor(spot.path, syntax)
    functions = _numpy(editor, call, *names)
    if functions is None:
        return None
    source = syntax.source(call.args[0])
    plain = isinstance(call.args[0], ast.Name | ast.Call | ast.Subscript | ast.Attribute | ast.Constant)
    new = text(source if plain else f"({source})", functions)
    editor.replace(call, new)
    return suggested(f"Write `{new}`, which rounds differently near zero", editor)


def _power(spot: Spot) -> Fix | None:
    syntax, node = spot.syntax, spot.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = node.left, node.right
    elif (
        isinstance(node, ast.Call) and len(node.args) == 2 and (syntax.called(node) or "").endswith((".power", ".pow"))
    ):
        base, exponent = node.args
    else:
        return None
    editor = Editor(spot.path, syntax)
    functions = _numpy(editor, node, "exp2", "log2")
    if functions is None:
        return None
    plain = isinstance(exponent, ast.Name | ast.Call | ast.Subscript | ast.Attribute | ast.Constant)
    power = syntax.source(exponent)
    new = f"{functions[0]}({power if plain else f'({power})'} * {functions[1]}({syntax.source(base)}))"
    editor.replace(node, new)
    return suggested(f"Write `{new}`, for a positive base", editor)


# -- gathers ----------------------------------------------------------------------------------------------------------


def row_by_row(spot: Spot) -> Fix | None:
    """``o_ref[...] = table[indices]`` as a loop over rows, where both were loaded whole from refs."""
    syntax, node = spot.syntax, spot.node
    store = whole_store(syntax, node)
    taken = _taken(spot)
    if store is None or taken is None or not isinstance(store.targets[0], ast.Subscript):
        return None
    table, indices = (load_of(syntax, each) for each in taken)
    if table is None or indices is None or table.suffix:
        return None
    editor = Editor(spot.path, syntax)
    loop = editor.spell("jax.experimental.pallas.loop", node, ("jax.experimental.pallas", "pl"))
    if loop is None:
        return None
    target = syntax.source(store.targets[0].value)
    rows, source = syntax.source(indices.ref), syntax.source(table.ref)
    line = syntax.lines[syntax.range(store).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    text = syntax.lines.newline.join(
        (
            f"@{loop}(0, {rows}.shape[0])",
            f"{indent}def _(row):",
            f"{indent}    {target}[row] = {source}[{rows}[row]]",
        )
    )
    editor.replace(store, text)
    return suggested("Loop over the rows, and take each from the ref", editor)


def _taken(spot: Spot) -> tuple[ast.expr, ast.expr] | None:
    """(table, indices) of ``table[indices]`` and ``jnp.take(table, indices, axis=0)``."""
    node = spot.node
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    if isinstance(node, ast.Call) and spot.syntax.called(node) == "jax.numpy.take":
        given = spot.syntax.arguments(node)
        table, indices, axis = given.get(0, "a"), given.get(1, "indices"), given.get(2, "axis")
        if table is not None and indices is not None and isinstance(axis, ast.Constant) and axis.value == 0:
            return table, indices
    return None


# -- transposes -------------------------------------------------------------------------------------------------------

_TRANSPOSES = frozenset(
    {"jax.numpy.transpose", "jax.numpy.swapaxes", "jax.lax.transpose", "jax.numpy.matrix_transpose"}
)


def transposed_outside(context: Context, fault: Fault, spot: Spot) -> Fix | None:
    """The value stored as it is, and the result of the launch transposed, where the whole output is a transpose."""
    syntax, node = spot.syntax, spot.node
    store = whole_store(syntax, node)
    inner = _transposed(spot)
    launch = launch_of(fault, context)
    if store is None or inner is None or launch is None:
        return None
    given = launch.argument("out_type", "out_shape")
    run = launch.run()
    made = given.syntax.value(given.node) if given is not None else None
    if given is None or run is None or not isinstance(made, ast.Call):
        return None
    shape = given.syntax.arguments(made).get(0, "shape")
    if not isinstance(shape, ast.Tuple) or len(shape.elts) != 2 or made.func is None:
        return None
    editors = {each.path: Editor(each.path, each.syntax) for each in (spot, given, run)}
    editors[spot.path].replace(node, syntax.source(inner))
    first, second = (given.syntax.source(e) for e in shape.elts)
    editors[given.path].replace(shape, f"({second}, {first})")
    editors[run.path].insert(run.syntax.span(run.node)[1], ".T")
    return suggested("Store it untransposed, and transpose the kernel's result", *editors.values())


def _transposed(spot: Spot) -> ast.expr | None:
    """What an expression transposes, where it swaps two dimensions."""
    node = spot.node
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    if isinstance(node, ast.Call):
        if spot.syntax.called(node) in _TRANSPOSES and node.args:
            return node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("transpose", "swapaxes"):
            return node.func.value
    return None


# -- loads with a layout ----------------------------------------------------------------------------------------------


def loaded_with_layout(context: Context, spot: Spot, operand: ast.expr | None, layout: str = "WGMMA") -> Iterator[Fix]:
    """Fixes that load a value from its ref in a layout: where an expression reads one whole ref."""
    editor = Editor(spot.path, spot.syntax)
    ref = load_in_layout(context, editor, spot.syntax, operand, layout)
    fix = suggested(f"Load `{ref}` in the layout `plgpu.Layout.{layout}`", editor) if ref is not None else None
    if fix is not None:
        yield fix


def load_in_layout(
    context: Context, editor: Editor, syntax: Syntax, operand: ast.expr | None, layout: str = "WGMMA"
) -> str | None:
    """Write the load of a value with a layout; the ref that it is loaded from, None where it is no load."""
    value = syntax.value(operand) if operand is not None else None
    if not isinstance(value, ast.Subscript) or not isinstance(value.ctx, ast.Load):
        return None
    load = editor.spell(f"{PLGPU}.load", value, ALIAS)
    name = editor.spell(f"{PLGPU}.Layout", value, ALIAS)
    if load is None or name is None:
        return None
    ref = syntax.source(value.value)
    view = ref if is_whole(value.slice) else f"{ref}.at[{syntax.source(value.slice)}]"
    index = ", ()" if () < context.jax < (0, 11) else ""
    editor.replace(value, f"{load}({view}{index}, layout={name}.{layout}, optimized=False)")
    return ref


def in_tmem_layout(editor: Editor, value: ast.expr) -> str | None:
    """A value cast to the layout in which rows of TMEM are stored."""
    cast = editor.spell(f"{PLGPU}.layout_cast", value, ALIAS)
    layout = editor.spell(f"{PLGPU}.Layout", value, ALIAS)
    return f"{cast}({editor.syntax.source(value)}, {layout}.TCGEN05)" if cast and layout else None


def first_argument(spot: Spot) -> ast.expr | None:
    """The array that a call such as ``jnp.sum(x, axis=1)`` or ``x.sum(axis=1)`` works on."""
    node = spot.node
    if not isinstance(node, ast.Call):
        return None
    if node.args and not (isinstance(node.func, ast.Attribute) and _is_method(spot, node.func)):
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _is_method(spot: Spot, function: ast.Attribute) -> bool:
    """Whether a call is of a method of an array, not of a module's function."""
    dotted = spot.syntax.dotted(function)
    return dotted is None or not dotted.startswith("jax")
