"""32-bit types written where jax chose 64 bits because ``jax_enable_x64`` is on, or where the user asked for them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_NUMPY = ("jax.numpy", "jnp")
_LAX = ("jax.lax", "lax")
NARROW = {
    f"{module}.{name}64": f"{name}32" for module in ("jax.numpy", "numpy") for name in ("int", "uint", "float")
} | {"float": "float32", "int": "int32", "jax.numpy.complex128": "complex64", "numpy.double": "float32"}
_INDEX = {"jax.numpy.argmax": "jax.lax.argmax", "jax.numpy.argmin": "jax.lax.argmin"}
# Functions that choose a type of their own, with the position of `dtype`.
_CHOOSING = {
    "jax.numpy.arange": None,
    "jax.numpy.sum": None,
    "jax.numpy.cumsum": None,
    "jax.numpy.zeros": 1,
    "jax.numpy.ones": 1,
    "jax.numpy.full": 2,
    "jax.numpy.array": 1,
    "jax.numpy.asarray": 1,
    "jax.numpy.linspace": None,
    "jax.numpy.prod": None,
    "jax.numpy.mean": None,
}


def fixes(details: Details) -> Sequence[Fix]:
    """Ways to have 32 bits at the expression at fault."""
    spot = details.spot
    if spot is None:
        return ()
    for make in (_named, _index, _chosen):
        fix = make(spot, details)
        if fix is not None:
            return (fix,)
    return ()


def place(details: Details) -> Spot | None:
    """The 64-bit type that is written in the expression at fault."""
    spot = details.spot
    found = _written(spot.syntax, spot.node) if spot is not None else None
    return spot.at(found) if spot is not None and found is not None else None


def _written(syntax: Syntax, node: ast.AST) -> ast.expr | None:
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and syntax.dotted(part) in NARROW:
            return part
        if isinstance(part, ast.Constant) and part.value in ("int64", "uint64", "float64"):
            return part
    return None


def _narrow_outputs(editor: Editor, details: Details) -> None:
    """The 64-bit types of the launch's outputs, where they are written in the same file."""
    launch = launch_of(details.fault, details.context)
    given = launch.argument(launch.output) if launch is not None else None
    if given is None or given.path != editor.path:
        return
    value = given.syntax.value(given.node)
    for part in ast.walk(value):
        wide = isinstance(part, ast.Name | ast.Attribute) and NARROW.get(given.syntax.dotted(part) or "")
        written = editor.spell(f"jax.numpy.{wide}", part, _NUMPY) if wide else None
        if written is not None:
            editor.replace(part, written)


def _named(spot: Spot, details: Details) -> Fix | None:
    """``.astype(jnp.int64)`` -> ``.astype(jnp.int32)``."""
    found = _written(spot.syntax, spot.node)
    if found is None:
        return None
    editor = Editor(spot.path, spot.syntax)
    if isinstance(found, ast.Constant):
        narrow = str(found.value).replace("64", "32")
        editor.replace(found, f'"{narrow}"')
        return Fix(f"Use {narrow}", editor.edits())
    narrow = NARROW[spot.syntax.dotted(found) or ""]
    written = editor.spell(f"jax.numpy.{narrow}", found, _NUMPY)
    if written is None:
        return None
    editor.replace(found, written)
    _narrow_outputs(editor, details)
    return Fix(f"Use {narrow}", editor.edits())


def _index(spot: Spot, details: Details) -> Fix | None:
    """``jnp.argmax(x, axis=1)`` -> ``jax.lax.argmax(x, 1, jnp.int32)``."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call):
        return None
    target = _INDEX.get(syntax.dotted(call.func) or "")
    given = syntax.arguments(call)
    x, axis, keep = given.get(0, "a"), given.get(1, "axis"), given.keywords.get("keepdims")
    editor = Editor(spot.path, syntax)
    int32 = editor.spell("jax.numpy.int32", call, _NUMPY)
    if target is None or x is None or axis is None or int32 is None:
        return None
    function = editor.spell(target, call, _LAX)
    if function is None:
        return None
    text = f"{function}({syntax.source(x)}, {syntax.source(axis)}, {int32})"
    if keep is not None:
        expand = editor.spell("jax.numpy.expand_dims", call, _NUMPY)
        text = f"{expand}({text}, {syntax.source(axis)})"
    editor.replace(call, text)
    _narrow_outputs(editor, details)
    return Fix("Use a 32-bit index", editor.edits())


def _chosen(spot: Spot, details: Details) -> Fix | None:
    """``jnp.arange(n)`` -> ``jnp.arange(n, dtype=jnp.int32)``, for the first such call in the expression."""
    syntax = spot.syntax
    for node in ast.walk(spot.node):
        if not isinstance(node, ast.Call) or (name := syntax.dotted(node.func) or "") not in _CHOOSING:
            continue
        given = syntax.arguments(node)
        if given.get(_CHOOSING[name], "dtype") is not None:
            continue
        editor = Editor(spot.path, syntax)
        dtype = "float32" if "f64" in f"{details.output()}" else "int32"
        written = editor.spell(f"jax.numpy.{dtype}", node, _NUMPY)
        if written is None:
            return None
        editor.insert_argument(node, f"dtype={written}")
        return Fix(f"Have {dtype} from the start", editor.edits())
    return None
