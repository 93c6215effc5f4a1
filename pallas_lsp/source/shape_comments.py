"""Shapes that the user says: the comment ``# pallas: matmul(bf16[512,256], bf16[256,128], block_m=64)``.

Array types are in JAX's notation; every other value is an expression that is evaluated in the module, so that
``config=TuningConfig(...)`` works, and ``# pallas: matmul(*shapes())`` takes the types from a function that returns
``jax.ShapeDtypeStruct`` objects.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Position, Range
from pallas_lsp.source.syntax import Syntax

MARK = "pallas:"
_COMMENT = re.compile(r"#\s*pallas:\s*(.*?)\s*$")
_SCALAR = re.compile(r"\b([a-z][a-z0-9]*)\[\s*\]")
DTYPES = {
    "bool": "bool",
    **{f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "int"), ("u", "uint")) for bits in (4, 8, 16, 32, 64)},
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f4e2m1fn": "float4_e2m1fn",
}
"""JAX's short names of array types, and numpy's names for them."""

TYPE = "__pallas_type__"
"""The function that stands for a type in the expression that the worker evaluates."""


@dataclass(frozen=True)
class ShapeComment:
    """One comment: its range, the call as an expression (empty where ``error`` says why it is none), and the name."""

    range: Range
    call: str
    entry: str
    error: str = ""


def find_comments(syntax: Syntax) -> Iterator[ShapeComment]:
    """The shape comments of a file, in order."""
    if MARK not in syntax.text:
        return
    for line, comment in sorted(syntax.comments.items()):
        match = _COMMENT.search(comment)
        if match is None:
            continue
        whole = syntax.lines[line]
        start = whole.rfind(comment) + match.start()
        range_ = Range(Position(line, start), Position(line, start + len(match[0].rstrip())))
        try:
            call, entry = translate(match[1])
        except ValueError as error:
            yield ShapeComment(range_, "", "", str(error))
        else:
            yield ShapeComment(range_, call, entry)


def translate(text: str) -> tuple[str, str]:
    """The call of a comment as a Python expression, and the name that is called; raises ValueError with the reason."""
    if not text:
        raise ValueError("a call is missing: write for example '# pallas: entry(bf16[512,256])'")
    try:
        tree = ast.parse(_SCALAR.sub(r"\1[()]", text), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"'{text}' is no call in Python's syntax: {error.msg}") from error
    if not isinstance(tree.body, ast.Call):
        reason = f"'{text}' is no call: write for example '# pallas: entry(bf16[512,256])'"
        raise ValueError(reason)  # noqa: TRY004 - of the text
    entry = ast.unparse(tree.body.func)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", entry):
        raise ValueError(f"'{entry}' is no name of a function")
    call = _Types().visit(tree)
    return ast.unparse(ast.fix_missing_locations(call)), entry


class _Types(ast.NodeTransformer):
    """Types in JAX's notation become calls of ``TYPE``."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.value, ast.Name) or node.value.id not in DTYPES:
            if isinstance(node.value, ast.Name) and re.fullmatch(
                r"(?:bf|f|i|u|c|int|uint|float|bfloat|complex)\d+\w*", node.value.id
            ):
                raise ValueError(_unknown(node.value.id))
            return self.generic_visit(node)
        dimensions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ast.Call(
            ast.Name(TYPE, ast.Load()),
            [ast.Constant(DTYPES[node.value.id]), ast.Tuple(list(dimensions), ast.Load())],
            [],
        )


def _unknown(name: str) -> str:
    """Why a name is no array type."""
    short = next((short for short, long in DTYPES.items() if long == name), None)
    if short is not None:
        return f"'{name}' is written '{short}' here, as JAX does"
    return f"'{name}' is no array type that JAX knows; there are {', '.join(DTYPES)}"


def comment_for(call: str) -> str:
    """The comment that says a call (an ``Entry``'s)."""
    return f"# {MARK} {call}"
