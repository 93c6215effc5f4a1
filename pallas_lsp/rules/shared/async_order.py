"""The order of copies, waits and commits in a Mosaic GPU kernel: statements put before a use or after a copy."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.accumulators import MOSAIC_GPU
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.gpu_operands import called
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax


def own_statement(spot: Spot) -> ast.stmt | None:
    """The statement of an expression, where another can stand beside it."""
    statement = spot.syntax.statement(spot.node)
    if statement is None or isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If | ast.While | ast.For):
        return None
    return statement if not isinstance(spot.syntax.function(spot.node), ast.Lambda) else None


def block_of(syntax: Syntax, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that a statement stands among."""
    parent = syntax.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def memory_used(use: Spot | None) -> ast.AST | None:
    """The ref that a copy into SMEM or an indexed expression is about; of other expressions the whole."""
    node = use.node if use is not None else None
    if use is not None and isinstance(node, ast.Call) and called(use.syntax, node) == "copy_gmem_to_smem":
        return use.syntax.arguments(node).get(1, "dst")
    return node.value if isinstance(node, ast.Subscript) else node


def commit_before(use: Spot, name: str = "commit_smem") -> Fix | None:
    """``plgpu.commit_smem()`` before the statement of a use."""
    statement = own_statement(use)
    if statement is None:
        return None
    edits = Editor(use.path, use.syntax)
    function = edits.spell(f"{MOSAIC_GPU[0]}.{name}", statement, MOSAIC_GPU)
    if function is None:
        return None
    edits.add_before(statement, f"{function}()")
    return safe(f"Insert `{function}()` before it", edits)


def wait_before(copy: Spot, read: Spot) -> Fix | None:
    """``plgpu.barrier_wait(bar)`` of a copy's barrier before the statement of a read.

    A wait for the same barrier that stands further down moves up.
    """
    syntax = copy.syntax
    if not isinstance(copy.node, ast.Call):
        return None
    position = 3 if called(syntax, copy.node) == "tcgen05_mma" else 2
    barrier = syntax.arguments(copy.node).get(position, "barrier")
    same = copy.path == read.path and syntax.function(copy.node) is syntax.function(read.node)
    at = own_statement(read if same else copy)
    if barrier is None or at is None:
        return None
    edits = Editor(copy.path, syntax)
    function = edits.spell(f"{MOSAIC_GPU[0]}.barrier_wait", at, MOSAIC_GPU)
    if function is None:
        return None
    text = syntax.source(barrier)
    block = block_of(syntax, at)
    for later in block[block.index(at) :] if same else ():
        call = later.value if isinstance(later, ast.Expr) else None
        if isinstance(call, ast.Call) and called(syntax, call) == "barrier_wait":
            given = syntax.arguments(call).get(0, "barrier")
            if given is not None and syntax.source(given) == text:
                edits.remove_statement(later, block)
                edits.add_before(at, syntax.source(call))
                return safe(f"Move `{syntax.source(call)}` before the read", edits)
    if same:
        edits.add_before(at, f"{function}({text})")
    else:
        edits.add_after(at, f"{function}({text})")
    return safe(f"Insert `{function}({text})` {'before the read' if same else 'after the copy'}", edits)


def wait_for_store(copy: Spot) -> Fix | None:
    """``plgpu.wait_smem_to_gmem(0)`` after the statement of a copy."""
    return _waited(copy, "wait_smem_to_gmem", before=False)


def wait_between(read: Spot, write: Spot, name: str) -> Fix | None:
    """``plgpu.NAME(0)`` before the statement of a write, or after that of the read where that comes later in a loop."""
    first, last = own_statement(read), own_statement(write)
    if first is None or last is None or read.path != write.path:
        return None
    block = block_of(read.syntax, first)
    in_order = last in block and block.index(first) < block.index(last)
    return _waited(write if in_order else read, name, before=in_order)


def _waited(spot: Spot, name: str, *, before: bool) -> Fix | None:
    statement = own_statement(spot)
    if statement is None:
        return None
    edits = Editor(spot.path, spot.syntax)
    function = edits.spell(f"{MOSAIC_GPU[0]}.{name}", statement, MOSAIC_GPU)
    if function is None:
        return None
    (edits.add_before if before else edits.add_after)(statement, f"{function}(0)")
    return safe(f"Wait for it: `{function}(0)`", edits)
