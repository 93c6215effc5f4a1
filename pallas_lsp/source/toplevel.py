"""A file's top level: its main block, and the statements that compute arrays for a launch."""

from __future__ import annotations

import ast

from pallas_lsp.source.free_names import DEFINITIONS, executed, free_names
from pallas_lsp.source.syntax import PARTIAL, Syntax

_WRAPPERS = PARTIAL | {
    "jax.jit",
    "jax.pmap",
    "jax.vmap",
    "jax.grad",
    "jax.value_and_grad",
    "jax.vjp",
    "jax.jvp",
    "jax.checkpoint",
    "jax.remat",
    "jax.custom_vjp",
    "jax.custom_jvp",
    "jax.named_call",
    "jax.shard_map",
    "jax.experimental.shard_map.shard_map",
    "functools.wraps",
    "functools.lru_cache",
    "functools.cache",
}
"""Calls that take a function and give one, without calling it."""
_VALUES = frozenset({"int", "float", "bool", "str", "len", "range"})
"""Calls that need a value: these stay concrete."""


def is_main_block(statement: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__":`` in any spelling."""
    if not isinstance(statement, ast.If):
        return False
    nodes = list(ast.walk(statement.test))
    return any(isinstance(n, ast.Name) and n.id == "__name__" for n in nodes) and any(
        isinstance(n, ast.Constant) and n.value == "__main__" for n in nodes
    )


def abstract_lines(
    syntax: Syntax, launches: set[ast.Call], references: dict[str, set[str]], reaching: set[str]
) -> set[int]:
    """First lines of the top-level statements to evaluate abstractly.

    These are the statements that run a launch, with those that compute (by calls) what they read, and those that read
    what they compute.  ``references``: the names that each top-level name's definition reads.
    """
    statements = [
        s
        for s in syntax.tree.body
        if not isinstance(s, (*DEFINITIONS, ast.Import, ast.ImportFrom)) and not is_main_block(s)
    ]
    nodes = {s: list(executed(s)) for s in statements}
    reads = {s: free_names(s) for s in statements}
    abstract = {s for s in statements if _runs_launch(syntax, nodes[s], launches, reaching)}
    if not abstract:
        return set()
    computed = {s for s in statements if _computes(s, nodes[s])}
    while True:
        wanted: set[str] = set().union(*(reads[s] for s in abstract))
        tainted: set[str] = set().union(*(bound_names(s) for s in abstract))
        tainted |= _readers(references, tainted)
        more = {
            s
            for s in statements
            if s not in abstract
            and ((s in computed and not wanted.isdisjoint(bound_names(s))) or not tainted.isdisjoint(reads[s]))
        }
        if not more:
            return {s.lineno for s in abstract}
        abstract |= more


def bound_names(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds or changes (``x = ...``, ``x[0] = ...``, ``x.append(...)``)."""
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    found: set[str] = set()
    loop_targets: set[ast.AST] = set()
    for node in executed(statement):
        if isinstance(node, ast.comprehension):
            loop_targets.update(ast.walk(node.target))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in loop_targets:
            found.add(node.id)
        elif isinstance(node, DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found |= _root(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func
            if isinstance(func, ast.Attribute):
                found |= _root(func.value)
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _runs_launch(syntax: Syntax, nodes: list[ast.AST], launches: set[ast.Call], reaching: set[str]) -> bool:
    for call in nodes:
        if not isinstance(call, ast.Call) or call in launches:
            continue
        if isinstance(call.func, ast.Call) and call.func in launches:
            return True
        if syntax.dotted(call.func) in _WRAPPERS:
            continue
        for part in (call.func, *call.args, *(k.value for k in call.keywords)):
            # A function given to a call is taken to be called.
            if isinstance(part, ast.Call):
                if part in launches:
                    return True
                if syntax.dotted(part.func) not in _WRAPPERS:
                    continue  # a call of its own, looked at by itself
            if any(isinstance(n, ast.Name) and n.id in reaching for n in ast.walk(part)):
                return True
            if isinstance(part, ast.Lambda) and any(n in launches for n in ast.walk(part)):
                return True
    return False


def _computes(statement: ast.stmt, nodes: list[ast.AST]) -> bool:
    """Whether a statement computes by a call what may be an array."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _VALUES:
        return False
    return any(isinstance(node, ast.Call) for node in nodes)


def _readers(references: dict[str, set[str]], names: set[str]) -> set[str]:
    """The top-level names whose definitions read some names, directly or through others."""
    found: set[str] = set()
    while True:
        more = {n for n, read in references.items() if n not in found and not read.isdisjoint(names | found)}
        if not more:
            return found
        found |= more
