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
