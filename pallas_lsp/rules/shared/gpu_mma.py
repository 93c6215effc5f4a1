"""Operands of the matrix units: what wgmma and tcgen05 take, and the fixes that several of their rules offer."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_operands import PLGPU, PRIMITIVES, Operand, operands
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

ALIAS = (PLGPU, "plgpu")
FP8 = frozenset({"float8_e4m3fn", "float8_e5m2"})
ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "float8_e4m3fn": ("float32", "float16"),
    "float8_e5m2": ("float32", "float16"),
    "int8": ("int32",),
}
"""What each operand type of wgmma can be accumulated in."""


@dataclass(frozen=True)
class Mma:
    """The operands of one matrix multiplication: ``acc += a @ b``."""

    acc: Operand
    a: Operand
    b: Operand

    @property
    def two_dimensional(self) -> bool:
        return all(o.shape is not None and len(o.shape) == 2 for o in (self.acc, self.a, self.b))

    @property
    def mnk(self) -> tuple[int, int, int, int, int, int]:
        """(rows of acc, columns of acc, rows of a, columns of a, rows of b, columns of b)."""
        shapes = [o.shape for o in (self.acc, self.a, self.b)]
        flat = [d for shape in shapes if shape is not None for d in shape]
        return (flat[0], flat[1], flat[2], flat[3], flat[4], flat[5])


def mma_of(fault: Fault, *names: str) -> Mma | None:
    """The multiplication at fault, where it is by one of the named primitives (``wgmma``, ``tcgen05_mma``)."""
    at_equation = fault.equation is not None and fault.equation.primitive.removesuffix("_ref") in names
    at_call = fault.equation is None and passed_through(fault, PRIMITIVES, *names)
    if not (at_equation or at_call):
        return None
    found = operands(fault)
    if not all(name in found for name in ("acc", "a", "b")):
        return None
    return Mma(found["acc"], found["a"], found["b"])


def swizzle_for(*refs: Operand) -> int | None:
    """The largest swizzle whose row divides the last dimension of all refs."""
    for swizzle in (128, 64, 32):
        if all(r.shape and r.bits and r.shape[-1] % (swizzle * 8 // r.bits) == 0 for r in refs):
            return swizzle
    return None


def tiled(operand: Operand) -> bool:
    """Whether an operand's allocation has the tiling and swizzle that the matrix units read."""
    made = operand.allocation
    if made is None or made.tiling is None or made.swizzle is None or not operand.bits:
        return False
    return made.tiling == (8, made.swizzle * 8 // operand.bits)


def transforms_text(editor: Editor, at: ast.AST, swizzle: int, element_bits: int) -> str | None:
    """``(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))``."""
    tiling = editor.spell(f"{PLGPU}.TilingTransform", at, ALIAS)
    swizzling = editor.spell(f"{PLGPU}.SwizzleTransform", at, ALIAS)
    if tiling is None or swizzling is None or not element_bits:
        return None
    return f"({tiling}((8, {swizzle * 8 // element_bits})), {swizzling}({swizzle}))"


def with_transforms(context: Context, refs: Sequence[Operand], swizzle: int | None) -> Fix | None:
    """A fix that gives SMEM allocations the tiling and swizzle that the matrix units read."""
    editors: dict[str, Editor] = {}
    for ref in refs:
        spot = ref.allocation.spot(context) if ref.allocation is not None else None
        if spot is None or swizzle is None or not isinstance(spot.node, ast.Call):
            return None
        editor = editors.setdefault(spot.path, Editor(spot.path, spot.syntax))
        text = transforms_text(editor, spot.node, swizzle, ref.bits)
        if text is None:
            return None
        set_keyword(editor, spot.node, "transforms", text, position=2)
    if not editors:
        return None
    what = "the allocation" if len(refs) == 1 else "both allocations"
    tile = swizzle * 8 // refs[0].bits if swizzle is not None else 0
    return suggested(
        f"Give {what} the transforms TilingTransform((8, {tile})) and SwizzleTransform({swizzle})", *editors.values()
    )


def set_keyword(editor: Editor, call: ast.Call, name: str, text: str, position: int | None = None) -> None:
    """Write a keyword argument of a call: instead of the one given, else at its end."""
    for keyword in call.keywords:
        if keyword.arg == name:
            editor.replace(keyword.value, text)
            return
    if position is not None and position < len(call.args):
        editor.replace(call.args[position], text)
        return
    editor.insert_argument(call, f"{name}={text}")


def dtype_text(editor: Editor, at: ast.AST, dtype: str) -> str | None:
    """``jnp.float32``."""
    return editor.spell(f"jax.numpy.{dtype}", at, ("jax.numpy", "jnp"))


def dtype_argument(spot: Spot) -> ast.expr | None:
    """The dtype that an allocation is given."""
    if not isinstance(spot.node, ast.Call):
        return None
    return spot.syntax.argument(spot.node, 1, "dtype")


def loads(syntax: Syntax, name: ast.arg | ast.Name) -> list[ast.Subscript]:
    """The places where a ref is read as a whole or in part: ``acc[...]``."""
    found = []
    for use in syntax.uses(name):
        parent = syntax.parent(use)
        if isinstance(parent, ast.Subscript) and parent.value is use and isinstance(parent.ctx, ast.Load):
            found.append(parent)
    return found
