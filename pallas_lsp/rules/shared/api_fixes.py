"""Today's form of calls of Pallas functions that changed: ``pl.load``, ``pl.store``, ``plgpu.load`` with an index."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.api_table import PALLAS
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_TRITON = (f"{PALLAS}.triton", "pltriton")
_OPTIONS = ("mask", "other", "eviction_policy", "cache_modifier", "volatile")


def load_or_store(path: str, syntax: Syntax, name: ast.expr) -> Fix | None:
    """``pl.load(ref, i)`` -> ``ref[i]``, ``pl.store(ref, i, value)`` -> ``ref[i] = value``; with a mask: Triton's."""
    call = syntax.parent(name)
    if not isinstance(call, ast.Call) or call.func is not name or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    kind = (syntax.dotted(name) or "").rpartition(".")[2]
    wanted = {"load": ("x_ref_or_view", "idx"), "store": ("x_ref_or_view", "idx", "val")}.get(kind)
    if wanted is None:
        return None
    given = [syntax.argument(call, position, each) for position, each in enumerate(wanted)]
    if any(part is None for part in given):
        return None
    ref, index, *rest = (part for part in given if part is not None)
    where = index_text(syntax, index)
    options = [k for k in call.keywords if k.arg in _OPTIONS]
    editor = Editor(path, syntax)
    source = syntax.source(ref)
    if not options:
        if kind == "load":
            editor.replace(call, f"{source}[{where}]")
            return suggested(f"Read by index: `{source}[{where}]`", editor)
        statement = syntax.parent(call)
        if not isinstance(statement, ast.Expr):
            return None
        editor.replace(statement, f"{source}[{where}] = {syntax.source(rest[0])}")
        return suggested(f"Store by index: `{source}[{where}] = ...`", editor)
    function = editor.spell(f"{_TRITON[0]}.{kind}", call, _TRITON)
    if function is None:
        return None
    parts = [f"{source}.at[{where}]", *(syntax.source(r) for r in rest), *(syntax.source(k) for k in options)]
    editor.replace(call, f"{function}({', '.join(parts)})")
    return suggested(f"Use `{function}` on a view of the ref", editor)


def dot(path: str, syntax: Syntax, name: ast.expr) -> Fix | None:
    """``pl.dot(a, b, trans_b=True, allow_tf32=False)`` -> ``jnp.dot(a, b.T, precision=..., ...)``."""
    call = syntax.parent(name)
    if not isinstance(call, ast.Call) or call.func is not name or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    parts = ("a", "b", "trans_a", "trans_b", "allow_tf32", "precision")
    given = dict(zip(parts, (syntax.argument(call, n, part) for n, part in enumerate(parts)), strict=True))
    editor = Editor(path, syntax)
    function = editor.spell("jax.numpy.dot", call, ("jax.numpy", "jnp"))
    kind = editor.spell("jax.numpy.float32", call, ("jax.numpy", "jnp"))
    precision = syntax.source(given["precision"]) if given["precision"] is not None else None
    tf32 = given["allow_tf32"]
    if isinstance(tf32, ast.Constant) and tf32.value is not None:
        precision = editor.spell(f"jax.lax.Precision.{'HIGH' if tf32.value else 'HIGHEST'}", call, ("jax", "jax"))
    elif tf32 is not None and not isinstance(tf32, ast.Constant):
        high, highest = (
            editor.spell(f"jax.lax.Precision.{each}", call, ("jax", "jax")) for each in ("HIGH", "HIGHEST")
        )
        precision = f"{high} if {syntax.source(tf32)} else {highest}" if high and highest else None
        if precision is None:
            return None
    texts = []
    for operand, turned in (("a", "trans_a"), ("b", "trans_b")):
        node, turn = given[operand], given[turned]
        if node is None or (turn is not None and not isinstance(turn, ast.Constant)):
            return None
        text = syntax.source(node)
        if isinstance(turn, ast.Constant) and turn.value:
            plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
            text = f"{text}.T" if plain else f"({text}).T"
        texts.append(text)
    if function is None or kind is None:
        return None
    texts += [f"precision={precision}"] if precision else []
    editor.replace(call, f"{function}({', '.join(texts)}, preferred_element_type={kind})")
    return suggested(f"Write `{function}`", editor)


def without_index(path: str, syntax: Syntax, call: ast.Call) -> Fix | None:
    """``plgpu.load(ref, idx)`` -> ``plgpu.load(ref.at[idx])``."""
    index = syntax.argument(call, 1, "idx")
    if index is None or not call.args:
        return None
    editor = Editor(path, syntax)
    source, where = syntax.source(call.args[0]), index_text(syntax, index)
    whole = where in ("", "...", ":")
    keyword = next((k for k in call.keywords if k.value is index), None)
    editor.remove_argument(call, keyword if keyword is not None else index)
    if not whole:
        editor.replace(call.args[0], f"{source}.at[{where}]")
    return suggested(f"Load from a view: `{source}.at[{where}]`" if not whole else "Leave the index out", editor)


def index_text(syntax: Syntax, index: ast.expr) -> str:
    """An index given as a value, as it stands between brackets."""
    value = syntax.value(index)
    entries = value.elts if isinstance(value, ast.Tuple | ast.List) else [index]
    return ", ".join(_slice_text(syntax, entry) for entry in entries)


def _slice_text(syntax: Syntax, node: ast.expr) -> str:
    if isinstance(node, ast.Call) and syntax.dotted(node.func) == "slice":
        bounds = ["" if isinstance(a, ast.Constant) and a.value is None else syntax.source(a) for a in node.args]
        if len(bounds) == 1:
            return f":{bounds[0]}"
        return ":".join(bounds[:2]) + (f":{bounds[2]}" if len(bounds) == 3 and bounds[2] else "")
    return syntax.source(node)
