"""``jax.lax.scan`` over the rows of a ref, and ``jax.lax.map``, as a ``jax.lax.fori_loop`` with a row at a time."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared.part_stores import statement_block, whole_store
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import is_stored_to, is_whole, load_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SCAN = "jax.lax.scan"
MAP = "jax.lax.map"
_LAX = ("jax.lax", "lax")


class _NoFormError(Exception):
    """The source is of a form that cannot be rewritten."""


@dataclass(frozen=True)
class _Scan:
    """A scan in the source.

    ``carry``: what its final carry is assigned to; ``store``: what takes its outputs; ``index``: the loop's variable;
    ``row``: the row that a step is for.
    """

    statement: ast.stmt
    body: str
    init: str
    length: str
    item: str
    carry: str
    store: ast.Assign | None
    index: str
    row: str
    loop_name: str


def as_loop(spot: Spot, length: str, *, reverse: bool) -> Fix | None:
    """The scan or map at ``spot`` as a loop, where its inputs are loads and its outputs are stored whole."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call):
        return None
    editor = Editor(spot.path, syntax)
    try:
        scan = _scan(editor, call, length, reverse)
        _write(editor, call, scan)
    except _NoFormError:
        return None
    return Fix("Loop with jax.lax.fori_loop, one row at a time", editor.edits(), Safety.SAFE)


def _scan(editor: Editor, call: ast.Call, length: str, reverse: bool) -> _Scan:
    syntax = editor.syntax
    name = syntax.dotted(call.func)
    given = syntax.arguments(call)
    body = given.get(0, "f")
    is_map = name == MAP
    if name not in (SCAN, MAP) or body is None or not given.complete:
        raise _NoFormError
    if not isinstance(body, ast.Name | ast.Lambda | ast.Attribute):
        raise _NoFormError
    init = None if is_map else given.get(1, "init")
    inputs = given.get(1, "xs") if is_map else given.get(2, "xs")
    taken = set(given.keywords) - {"f", "init", "xs", "length", "reverse"}
    if taken or (not is_map and init is None):
        raise _NoFormError
    statement = syntax.statement(call)
    if statement is None or isinstance(syntax.function(call), ast.Lambda):
        raise _NoFormError
    length = _length(syntax, given.keywords.get("length"), inputs) or length
    at = _fresh(syntax, call, ("i", "row", "t", "step_index"))
    index = f"{length} - 1 - {at}" if reverse else at
    item = "None" if inputs is None or _is_none(inputs) else _item(syntax, inputs, index)
    loop = _fresh(syntax, call, ("loop_body", "scan_body", "map_body"))
    carry, store = _outputs(editor, call, statement, is_map)
    start = "None" if is_map else syntax.source(init) if init is not None else "None"
    return _Scan(statement, _callable(syntax, body), start, length, item, carry, store, at, index, loop)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _length(syntax: Syntax, given: ast.expr | None, inputs: ast.expr | None) -> str:
    """How many steps there are, in the user's own terms where they are written."""
    if given is not None:
        return syntax.source(given)
    first = inputs.elts[0] if isinstance(inputs, ast.Tuple) and inputs.elts else inputs
    load = load_of(syntax, first) if first is not None else None
    return f"{syntax.source(load.ref)}.shape[0]" if load is not None else ""


def _callable(syntax: Syntax, body: ast.expr) -> str:
    source = syntax.source(body)
    return f"({source})" if isinstance(body, ast.Lambda) else source


def _item(syntax: Syntax, inputs: ast.expr, index: str) -> str:
    """What a step gets: the row of each input."""
    if isinstance(inputs, ast.Tuple):
        parts = [_item(syntax, each, index) for each in inputs.elts]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    load = load_of(syntax, inputs)
    if load is None or is_stored_to(syntax, load.ref):
        raise _NoFormError
    return f"{syntax.source(load.ref)}[{index}]{load.suffix}"


def _outputs(editor: Editor, call: ast.Call, statement: ast.stmt, is_map: bool) -> tuple[str, ast.Assign | None]:
    """(name of the final carry, the statement that stores the outputs)."""
    syntax = editor.syntax
    if is_map:
        store = whole_store(syntax, call) or _named_store(syntax, statement, call)
        if store is None:
            raise _NoFormError
        return "", store
    if isinstance(statement, ast.Expr):
        return "", None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise _NoFormError
    target = statement.targets[0]
    if statement.value is not call:
        # carry = jax.lax.scan(...)[0]
        inner = statement.value
        if not (isinstance(inner, ast.Subscript) and inner.value is call and isinstance(target, ast.Name)):
            raise _NoFormError
        if not (isinstance(inner.slice, ast.Constant) and inner.slice.value == 0):
            raise _NoFormError
        return syntax.source(target), None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        raise _NoFormError
    carry, outputs = target.elts
    if not isinstance(outputs, ast.Name):
        raise _NoFormError
    uses = [use for use in syntax.uses(outputs) if isinstance(use.ctx, ast.Load) and syntax.value(use) is not use]
    uses = uses or [u for u in syntax.uses(outputs) if isinstance(u.ctx, ast.Load) and u.lineno > statement.lineno]
    unused = isinstance(carry, ast.Name) and not [u for u in syntax.uses(carry) if isinstance(u.ctx, ast.Load)]
    final = "" if unused else syntax.source(carry)
    if not uses:
        return final, None
    if len(uses) != 1:
        raise _NoFormError
    stored = syntax.statement(uses[0])
    if not isinstance(stored, ast.Assign) or stored.value is not uses[0] or not _stores_whole(stored):
        raise _NoFormError
    return final, stored


def _named_store(syntax: Syntax, statement: ast.stmt, call: ast.Call) -> ast.Assign | None:
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    uses = [u for u in syntax.uses(target) if isinstance(u.ctx, ast.Load)] if isinstance(target, ast.Name) else []
    store = syntax.statement(uses[0]) if len(uses) == 1 else None
    if isinstance(store, ast.Assign) and store.value is uses[0] and _stores_whole(store):
        return store
    return None


def _stores_whole(store: ast.Assign) -> bool:
    target = store.targets[0]
    return len(store.targets) == 1 and isinstance(target, ast.Subscript) and is_whole(target.slice)


def _fresh(syntax: Syntax, at: ast.AST, wanted: tuple[str, ...]) -> str:
    taken = {n.id for n in syntax.nodes if isinstance(n, ast.Name)}
    taken |= {n.arg for n in syntax.nodes if isinstance(n, ast.arg)}
    taken |= {n.name for n in syntax.nodes if isinstance(n, ast.FunctionDef)}
    for name in wanted:
        if name not in taken and syntax.scope(at).lookup(name) is None:
            return name
    raise _NoFormError


def _write(editor: Editor, call: ast.Call, scan: _Scan) -> None:
    syntax = editor.syntax
    loop = editor.spell("jax.lax.fori_loop", call, _LAX)
    if loop is None:
        raise _NoFormError
    newline = syntax.lines.newline
    line = syntax.lines[syntax.range(scan.statement).start.line]
    indentation = line[: len(line) - len(line.lstrip())]
    is_map = syntax.dotted(call.func) == MAP
    inner = indentation + "    "
    head = f"def {scan.loop_name}({scan.index}, carry):"
    if is_map:
        assert scan.store is not None
        lines = [head, f"{inner}{_row(syntax, scan)} = {scan.body}({scan.item})", f"{inner}return carry", ""]
    elif scan.store is not None:
        lines = [
            head,
            f"{inner}carry, output = {scan.body}(carry, {scan.item})",
            f"{inner}{_row(syntax, scan)} = output",
            f"{inner}return carry",
            "",
        ]
    else:
        lines = [head, f"{inner}return {scan.body}(carry, {scan.item})[0]", ""]
    run = f"{loop}(0, {scan.length}, {scan.loop_name}, {scan.init})"
    last = indentation + (f"{scan.carry} = {run}" if scan.carry else run)
    text = newline.join([*lines, last])
    if scan.store is not None and scan.store is not scan.statement:
        block = statement_block(syntax, scan.store)
        if block is None or scan.statement not in block:
            raise _NoFormError
        editor.remove_statement(scan.store, block)
    editor.replace(scan.statement, text)


def _row(syntax: Syntax, scan: _Scan) -> str:
    """The row of the output ref that a step stores to."""
    assert scan.store is not None
    target = scan.store.targets[0]
    assert isinstance(target, ast.Subscript)
    return f"{syntax.source(target.value)}[{scan.row}]"
