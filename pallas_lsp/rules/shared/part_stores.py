"""A joined value stored part by part: ``o_ref[...] = jnp.concatenate([a, b], axis=1)`` as two stores."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Equation, Fix, Safety
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import is_stored_to, is_whole, load_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_JOINS = frozenset({f"jax.numpy.{n}" for n in ("concatenate", "concat", "hstack", "vstack")} | {"jax.lax.concatenate"})
_STACKS = frozenset({"jax.numpy.stack"})


def split_store(spot: Spot, equation: Equation, axis: int) -> Fix | None:
    """Store the parts of a concatenation or stack one by one, where it is only stored."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call) or not call.args:
        return None
    name = syntax.dotted(call.func)
    joined = syntax.value(call.args[0])
    if not isinstance(joined, ast.List | ast.Tuple) or any(isinstance(e, ast.Starred) for e in joined.elts):
        return None
    if name not in _JOINS | _STACKS or len(joined.elts) != len(equation.inputs):
        return None
    found = _store(syntax, call)
    if found is None:
        return None
    store, made = found
    target = store.targets[0]
    assert isinstance(target, ast.Subscript)
    ref = syntax.source(target.value)
    editor = Editor(spot.path, syntax)
    indices = _stacked(axis, len(joined.elts)) if name in _STACKS else _joined(syntax, joined.elts, equation, axis)
    line = syntax.lines[syntax.range(store).start.line]
    indentation = line[: len(line) - len(line.lstrip())]
    stores = [f"{ref}[{index}] = {syntax.source(e)}" for index, e in zip(indices, joined.elts, strict=True)]
    editor.replace(store, (syntax.lines.newline + indentation).join(stores))
    if made is not None:
        editor.remove_statement(made, statement_block(syntax, made) or [made])
    return Fix(f"Store each part into its own slice of `{ref}`", editor.edits(), Safety.SAFE)


def _store(syntax: Syntax, value: ast.expr) -> tuple[ast.Assign, ast.Assign | None] | None:
    """The statement that stores a value whole, and the one that names it before, if any."""
    statement = syntax.statement(value)
    if not isinstance(statement, ast.Assign) or statement.value is not value or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Subscript):
        return (statement, None) if is_whole(target.slice) else None
    if not isinstance(target, ast.Name):
        return None
    uses = [use for use in syntax.uses(target) if isinstance(use.ctx, ast.Load)]
    if len(uses) != 1:
        return None
    other = syntax.statement(uses[0])
    if not isinstance(other, ast.Assign) or other.value is not uses[0] or len(other.targets) != 1:
        return None
    stored = other.targets[0]
    whole = isinstance(stored, ast.Subscript) and is_whole(stored.slice)
    return (other, statement) if whole else None


def whole_store(syntax: Syntax, value: ast.expr) -> ast.Assign | None:
    """``ref[...] = value``: the statement that does nothing but store a value whole."""
    found = _store(syntax, value)
    return found[0] if found is not None and found[1] is None else None


def split_loads(spot: Spot, equation: Equation, axis: int) -> Fix | None:
    """``a, b = jnp.split(x_ref[...], ...)`` -> ``a, b = x_ref[:16], x_ref[16:]``."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call) or not call.args:
        return None
    load = load_of(syntax, call.args[0])
    statement = syntax.statement(call)
    if load is None or not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    target = statement.targets[0]
    count = len(equation.outputs)
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != count:
        return None
    lead, parts, start = [":"] * axis, [], 0
    for type_ in equation.outputs:
        size = int(type_.partition("[")[2].rstrip("]").split(",")[axis])
        parts.append(f"{syntax.source(load.ref)}[{', '.join([*lead, f'{start}:{start + size}'])}]{load.suffix}")
        start += size
    editor = Editor(spot.path, syntax)
    editor.replace(call, ", ".join(parts))
    safety = Safety.SUGGESTED if is_stored_to(syntax, load.ref) else Safety.SAFE
    return Fix(f"Read the parts from `{syntax.source(load.ref)}`", editor.edits(), safety)


def statement_block(syntax: Syntax, statement: ast.stmt) -> list[ast.stmt] | None:
    """The block that a statement stands in."""
    parent = syntax.parent(statement)
    blocks = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    return next((block for block in blocks if isinstance(block, list) and statement in block), None)


def _stacked(axis: int, count: int) -> list[str]:
    return [", ".join([":"] * axis + [str(i)]) for i in range(count)]


def _joined(syntax: Syntax, parts: Sequence[ast.expr], equation: Equation, axis: int) -> list[str]:
    """The slices of the parts: by the size of the first one where there are two and it has a name, else in numbers."""
    numbers = [int(t.partition("[")[2].rstrip("]").split(",")[axis]) for t in equation.inputs]
    lead = [":"] * axis
    if len(parts) == 2:
        load = load_of(syntax, parts[0])
        named = load.ref if load is not None else parts[0] if isinstance(parts[0], ast.Name) else None
        if isinstance(named, ast.Name):
            first = f"{named.id}.shape[{axis}]"
            return [", ".join([*lead, f":{first}"]), ", ".join([*lead, f"{first}:"])]
    found, start = [], 0
    for size in numbers:
        found.append(", ".join([*lead, f"{start}:{start + size}"]))
        start += size
    return found
