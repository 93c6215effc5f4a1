"""Updated copies stored whole, as stores to the part: ``o_ref[...] = x.at[0].set(v)`` and ``dynamic_update_slice``."""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Equation, Fix, Safety
from pallas_lsp.rules.shared.part_stores import whole_store
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import PALLAS, load_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_UPDATES = {"set": "=", "add": "+=", "multiply": "*=", "mul": "*="}


def store_update(spot: Spot) -> Fix | None:
    """``o_ref[...] = x.at[i].set(v)`` -> ``o_ref[...] = x`` and ``o_ref[i] = v``."""
    syntax, node = spot.syntax, spot.node
    if not isinstance(node, ast.Call):
        return None
    store = whole_store(syntax, node)
    ref = syntax.source(store.targets[0].value) if store and isinstance(store.targets[0], ast.Subscript) else ""
    if store is None or not ref:
        return None
    editor = Editor(spot.path, syntax)
    parts = _of_at(syntax, node) or _of_slice(editor, node)
    if parts is None:
        return None
    base, index, operator, value = parts
    line = syntax.lines[syntax.range(store).start.line]
    indentation = line[: len(line) - len(line.lstrip())]
    if _is_number(value) and operator == "=":
        full = editor.spell("jax.numpy.full_like", node, ("jax.numpy", "jnp"))
        if full is None:
            return None
        value = f"{full}({ref}[{index}], {value})"
    second = f"{ref}[{index}] {operator} {value}"
    own = load_of(syntax, base)
    if own is not None and syntax.source(own.ref) == ref and not own.suffix:
        editor.replace(store, second)
    else:
        editor.replace(store, f"{ref}[...] = {syntax.source(base)}{syntax.lines.newline}{indentation}{second}")
    return Fix(f"Store the part into `{ref}[{index}]`", editor.edits(), Safety.SAFE)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d.]+(e-?\d+)?", text) is not None


def _of_at(syntax: Syntax, call: ast.Call) -> tuple[ast.expr, str, str, str] | None:
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in _UPDATES or len(call.args) != 1 or call.keywords:
        return None
    place = method.value
    if not isinstance(place, ast.Subscript) or not isinstance(place.value, ast.Attribute) or place.value.attr != "at":
        return None
    return place.value.value, syntax.source(place.slice), _UPDATES[method.attr], syntax.source(call.args[0])


def _of_slice(editor: Editor, call: ast.Call) -> tuple[ast.expr, str, str, str] | None:
    """``jax.lax.dynamic_update_slice(x, part, starts)``, ``..._in_dim(x, part, start, axis)``."""
    syntax = editor.syntax
    name = syntax.dotted(call.func)
    given = syntax.arguments(call)
    operand, update = given.get(0, "operand"), given.get(1, "update")
    ds = editor.spell(f"{PALLAS[0]}.ds", call, PALLAS)
    if operand is None or update is None or ds is None:
        return None
    part = syntax.source(update)
    load = load_of(syntax, update)
    sized = syntax.source(load.ref) if load is not None else part
    if name == "jax.lax.dynamic_update_slice":
        starts = given.get(2, "start_indices")
        value = syntax.value(starts) if starts is not None else None
        if not isinstance(value, ast.Tuple | ast.List):
            return None
        texts = [f"{ds}({syntax.source(e)}, {sized}.shape[{i}])" for i, e in enumerate(value.elts)]
        return operand, ", ".join(texts), "=", part
    if name == "jax.lax.dynamic_update_slice_in_dim":
        start, axis = given.get(2, "start_index"), given.get(3, "axis")
        if start is None or not isinstance(axis, ast.Constant) or not isinstance(axis.value, int) or axis.value < 0:
            return None
        text = f"{ds}({syntax.source(start)}, {sized}.shape[{axis.value}])"
        return operand, ", ".join([":"] * axis.value + [text]), "=", part
    return None


def store_padded(spot: Spot, equation: Equation) -> Fix | None:
    """``o_ref[...] = jnp.pad(x, ...)`` -> the padding everywhere, then the value in its place."""
    syntax, node = spot.syntax, spot.node
    if not isinstance(node, ast.Call) or syntax.dotted(node.func) != "jax.numpy.pad" or len(equation.inputs) != 2:
        return None
    given = syntax.arguments(node)
    operand, fill = given.get(0, "array"), given.keywords.get("constant_values")
    mode = given.get(2, "mode")
    store = whole_store(syntax, node)
    if operand is None or store is None or not isinstance(store.targets[0], ast.Subscript):
        return None
    if mode is not None and not (isinstance(mode, ast.Constant) and mode.value == "constant"):
        return None
    editor = Editor(spot.path, syntax)
    full = editor.spell("jax.numpy.full", node, ("jax.numpy", "jnp"))
    sizes, padded = _shape(equation.inputs[0]), _shape(equation.outputs[0])
    lows = _lows(equation.params.get("padding_config", ""))
    if full is None or len(lows) != len(sizes) or any(low < 0 for low in lows):
        return None
    index = ", ".join(
        ":" if size == whole else f"{low}:{low + size}" for size, whole, low in zip(sizes, padded, lows, strict=True)
    )
    ref = syntax.source(store.targets[0].value)
    line = syntax.lines[syntax.range(store).start.line]
    indentation = line[: len(line) - len(line.lstrip())]
    value = syntax.source(fill) if fill is not None else "0"
    lines = [
        f"{ref}[...] = {full}({ref}.shape, {value}, {ref}.dtype)",
        f"{ref}[{index}] = {syntax.source(operand)}",
    ]
    editor.replace(store, (syntax.lines.newline + indentation).join(lines))
    return Fix(f"Fill `{ref}`, then store the value into its part", editor.edits(), Safety.SAFE)


def _shape(type_: str) -> list[int]:
    return [int(d) for d in type_.partition("[")[2].rstrip("]").split(",") if d.strip().isdigit()]


def _lows(config: str) -> list[int]:
    """The first number of each triple of a padding configuration, ``((np.int64(0), np.int64(64), 0), ...)``."""
    numbers = [int(n) for n in _numbers(config)]
    return numbers[::3] if len(numbers) % 3 == 0 and not any(numbers[2::3]) else []


def _numbers(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])-?\d+", text.replace("np.int64", ""))
