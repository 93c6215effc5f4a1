"""Matrix products in the source, and other ways to write them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor

_CALLS = frozenset(
    {
        *("jax.numpy.dot", "jax.numpy.matmul", "jax.lax.dot", "jax.lax.dot_general"),
        *("jax.experimental.pallas.dot", "jax.numpy.vdot", "jax.numpy.inner"),
    }
)
_NUMPY = ("jax.numpy", "jnp")
WIDTHS = ("f64", "f32", "bf16", "f16", "f8", "i64", "i32", "i16", "i8", "i4", "u32", "u16", "u8")
NAMES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}


def operands(spot: Spot | None) -> tuple[Spot, Spot] | None:
    """The two factors of ``a @ b`` or ``jnp.dot(a, b)``."""
    if spot is None:
        return None
    node = spot.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return spot.at(node.left), spot.at(node.right)
    if isinstance(node, ast.Call):
        called = spot.syntax.dotted(node.func)
        given = spot.syntax.arguments(node)
        if called in _CALLS and len(given.positional) >= 2:
            return spot.at(given.positional[0]), spot.at(given.positional[1])
        if called == "jax.numpy.einsum" and len(given.positional) == 3:
            return spot.at(given.positional[1]), spot.at(given.positional[2])
    return None


def dtype_of(type_: str) -> str:
    """``float32`` of ``f32[8,8]``."""
    short = type_.partition("[")[0]
    letters = short.rstrip("0123456789")
    return NAMES.get(letters, letters) + short[len(letters) :] if letters in NAMES else short


def cast(editor: Editor, spot: Spot, dtype: str) -> bool:
    """Append ``.astype(jnp.dtype)`` to an expression."""
    written = editor.spell(f"jax.numpy.{dtype}", spot.node, _NUMPY)
    if written is None:
        return False
    start, end = editor.whole(spot.node)
    simple = isinstance(spot.node, ast.Name | ast.Subscript | ast.Call | ast.Attribute)
    if not simple and (start, end) == editor.syntax.span(spot.node):
        editor.insert(start, "(")
        editor.insert(end, f").astype({written})")
    else:
        editor.insert(end, f".astype({written})")
    return True


def cast_to_same(details: Details) -> Sequence[Fix]:
    """Cast one factor to the type of the other: the wider one first, which loses nothing."""
    factors = operands(details.spot)
    if factors is None:
        return ()
    types = [details.inputs(0).partition("[")[0], details.inputs(1).partition("[")[0]]
    if any(t not in WIDTHS for t in types) or types[0] == types[1]:
        return ()
    found = []
    wide = 0 if WIDTHS.index(types[0]) < WIDTHS.index(types[1]) else 1
    for target in (wide, 1 - wide):
        editor = Editor(factors[0].path, factors[0].syntax)
        dtype = dtype_of(details.inputs(target))
        if cast(editor, factors[1 - target], dtype):
            note = "" if target == wide else " (loses precision)"
            found.append(
                Fix(f"Cast the {'second' if target == 0 else 'first'} factor to {dtype}{note}", editor.edits())
            )
    return found


def cast_both(details: Details, dtype: str, note: str = "") -> Sequence[Fix]:
    """Cast both factors."""
    factors = operands(details.spot)
    if factors is None:
        return ()
    editor = Editor(factors[0].path, factors[0].syntax)
    if not (cast(editor, factors[0], dtype) and cast(editor, factors[1], dtype)):
        return ()
    return (Fix(f"Cast both factors to {dtype}{note}", editor.edits(), Safety.SUGGESTED),)


def with_sum(details: Details) -> Sequence[Fix]:
    """A product with a vector as an element-wise product and a sum."""
    factors, spot = operands(details.spot), details.spot
    ranks = [rank(details.inputs(0)), rank(details.inputs(1))]
    if factors is None or spot is None or not details.param("dimension_numbers").endswith("((), ()))"):
        return ()
    a, b = (_atom(f) for f in factors)
    editor = Editor(spot.path, spot.syntax)
    total = editor.spell("jax.numpy.sum", spot.node, _NUMPY)
    text = {
        (2, 1): f"{total}({a} * {b}[None, :], axis=1)",
        (1, 2): f"{total}({a}[:, None] * {b}, axis=0)",
        (1, 1): f"{total}({a} * {b})",
    }.get((ranks[0], ranks[1]))
    if total is None or text is None:
        return ()
    editor.replace(spot.node, text)
    return (Fix("Multiply element-wise and sum (rounds differently)", editor.edits(), Safety.SUGGESTED),)


def _atom(spot: Spot) -> str:
    simple = isinstance(spot.node, ast.Name | ast.Subscript | ast.Call | ast.Attribute)
    return spot.source if simple else f"({spot.source})"


def rank(type_: str) -> int:
    inside = type_.partition("[")[2].rstrip("]>")
    return len(inside.split(",")) if inside else 0


def accumulate_wide(details: Details) -> Sequence[Fix]:
    """The product in 32 bits, and its result in the type that it had."""
    spot, factors = details.spot, operands(details.spot)
    if spot is None or factors is None:
        return ()
    small = dtype_of(details.output())
    wide = "int32" if small.startswith(("int", "uint")) else "float32"
    editor = Editor(spot.path, spot.syntax)
    dtype = editor.spell(f"jax.numpy.{wide}", spot.node, _NUMPY)
    back = editor.spell(f"jax.numpy.{small}", spot.node, _NUMPY)
    if dtype is None or back is None:
        return ()
    suffix = "" if _is_widened(spot) else f".astype({back})"
    if isinstance(spot.node, ast.Call):
        given = next((k for k in spot.node.keywords if k.arg == "preferred_element_type"), None)
        if given is not None:
            editor.replace(given.value, dtype)
        else:
            editor.insert_argument(spot.node, f"preferred_element_type={dtype}")
        editor.insert(spot.syntax.span(spot.node)[1], suffix)
    else:
        matmul = editor.spell("jax.numpy.matmul", spot.node, _NUMPY)
        if matmul is None:
            return ()
        a, b = (f.source for f in factors)
        editor.replace(spot.node, f"{matmul}({a}, {b}, preferred_element_type={dtype}){suffix}")
    return (Fix(f"Accumulate in {wide}", editor.edits(), Safety.SAFE),)


def _is_widened(spot: Spot) -> bool:
    """Whether a product is cast right away, or added to something that keeps its own type."""
    parent = spot.syntax.parent(spot.node)
    if isinstance(parent, ast.Attribute) and parent.attr == "astype":
        return True
    return isinstance(parent, ast.AugAssign) and parent.value is spot.node
