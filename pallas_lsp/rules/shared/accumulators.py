"""WGMMA accumulators in the source: ``plgpu.ACC(shape, dtype)`` and ``plgpu.ACC.init(value)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import NotPossible
from pallas_lsp.rules.shared.places import Spot, expression_at, frame_from
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

MOSAIC_GPU = ("jax.experimental.pallas.mosaic_gpu", "plgpu")
NUMPY = ("jax.numpy", "jnp")
_NAMES = (
    "jax.experimental.pallas.mosaic_gpu.ACC",
    "jax.experimental.pallas.mosaic_gpu.WGMMAAccumulatorRef",
    "jax._src.pallas.mosaic_gpu.core.WGMMAAccumulatorRef",
)
KIND = "WGMMAAccumulatorRef"
_ZEROS = frozenset({"jax.numpy.zeros", "jax.numpy.zeros_like", "jax.lax.zeros_like_array"})
_UNIFORM = frozenset(
    {"jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.full", "jax.numpy.empty", "jax.lax.full"}
    | {f"jax.numpy.{name}_like" for name in ("zeros", "ones", "full", "empty")}
    | {"jax.numpy.broadcast_to", "jax.lax.broadcast", "jax.lax.full_like"}
)
_LAYOUT_CAST = "jax.experimental.pallas.mosaic_gpu.layout_cast"
_INFERS_LAYOUTS = (0, 11)
"""From this jax on the layout of a start value is inferred; before, it has to be a WGMMA layout."""


def constructor(syntax: Syntax, node: ast.AST | None) -> ast.Call | None:
    """``ACC(...)``, where a node is that call."""
    return node if isinstance(node, ast.Call) and syntax.dotted(node.func) in _NAMES else None


def initialiser(syntax: Syntax, node: ast.AST | None) -> ast.Call | None:
    """``ACC.init(...)``, where a node is that call."""
    if isinstance(node, ast.Call) and (syntax.dotted(node.func) or "").removesuffix(".init") in _NAMES:
        return node if (syntax.dotted(node.func) or "").endswith(".init") else None
    return None


def start_value(syntax: Syntax, init: ast.Call) -> ast.expr | None:
    return syntax.argument(init, 0, "array")


def birth(context: Context, leaf: Mapping[str, Any]) -> Spot | None:
    """Where the accumulator of a fact was made, if that is in the user's own files."""
    frames = leaf.get("frames") or ()
    frame = frame_from(frames[-1]) if frames else None
    if frame is None or frame.origin != "workspace":
        return None
    return expression_at(context, frame)


def is_zero(syntax: Syntax, node: ast.expr) -> bool:
    """Whether a start value is zeros, through names and ``layout_cast``."""
    value = syntax.value(node)
    if not isinstance(value, ast.Call):
        return False
    name = syntax.dotted(value.func)
    if name == _LAYOUT_CAST and value.args:
        return is_zero(syntax, value.args[0])
    if name in ("jax.numpy.full", "jax.lax.full"):
        fill = syntax.argument(value, 1, "fill_value")
        return isinstance(fill, ast.Constant) and fill.value in (0, 0.0)
    return name in _ZEROS


def needs_cast(context: Context, syntax: Syntax, node: ast.expr) -> bool:
    """Whether a start value needs a cast to a WGMMA layout: in old versions, where every element is the same."""
    if not old_layouts(context):
        return False
    value = syntax.value(node)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and syntax.dotted(value.func) in _UNIFORM)


def old_layouts(context: Context) -> bool:
    return () < context.jax < _INFERS_LAYOUTS


def cast(editor: Editor, at: ast.AST) -> tuple[str, str]:
    """What stands before and after a value that is cast to a WGMMA layout."""
    function = editor.spell(_LAYOUT_CAST, at, MOSAIC_GPU)
    layout = editor.spell(f"{MOSAIC_GPU[0]}.Layout", at, MOSAIC_GPU)
    if function is None or layout is None:
        raise NotPossible
    return f"{function}(", f", {layout}.WGMMA)"


def spell_accumulator(editor: Editor, at: ast.AST) -> str | None:
    """``plgpu.ACC`` as it is written at a place."""
    for name in _NAMES[1::-1]:
        known = editor.syntax.spelled(name, at)
        if known is not None and not known.endswith(".WGMMAAccumulatorRef"):
            return known
    return editor.spell(_NAMES[0], at, MOSAIC_GPU)


def shape_text(leaf: Mapping[str, Any]) -> str:
    shape = leaf.get("shape") or ()
    return "(" + ", ".join(str(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"


def unique_name(syntax: Syntax, at: ast.AST, wanted: str) -> str:
    """A name that nothing has at a place."""
    scope = syntax.scope(at)
    taken = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name)} | set(scope.bindings)
    name, number = wanted, 2
    while name in taken or scope.lookup(name) is not None:
        name, number = f"{wanted}_{number}", number + 1
    return name
