"""A file's top level: its main block, and the statements that compute arrays for a launch."""

from __future__ import annotations

import ast

from pallas_lsp.source.definitions import Definitions, bound_names
from pallas_lsp.source.free_names import DEFINITIONS, executed
from pallas_lsp.source.syntax import PARTIAL, Syntax

WRAPPERS = PARTIAL | {
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


def abstract_lines(syntax: Syntax, launches: set[ast.Call], definitions: Definitions, reaching: set[str]) -> set[int]:
    """First lines of the top-level statements to evaluate abstractly.

    These are the statements that run a launch, with those that compute (by calls) what they read, and those that read
    what they compute.
    """
    statements = [
        s
        for s in syntax.tree.body
        if not isinstance(s, (*DEFINITIONS, ast.Import, ast.ImportFrom)) and not is_main_block(s)
    ]
    nodes = {s: list(executed(s)) for s in statements}
    reads = {s: definitions.reads(s) for s in statements}
    abstract = {s for s in statements if _runs_launch(syntax, nodes[s], launches, reaching)}
    if not abstract:
        return set()
    computed = {s for s in statements if _computes(syntax, s, nodes[s], launches)}
    while True:
        wanted: set[str] = set().union(*(reads[s] for s in abstract))
        tainted = definitions.closure(set().union(*(bound_names(s) for s in abstract)))
        more = {
            s
            for s in statements
            if s not in abstract
            and ((s in computed and not wanted.isdisjoint(bound_names(s))) or not tainted.isdisjoint(reads[s]))
        }
        if not more:
            return {s.lineno for s in abstract}
        abstract |= more


def _runs_launch(syntax: Syntax, nodes: list[ast.AST], launches: set[ast.Call], reaching: set[str]) -> bool:
    for call in nodes:
        if not isinstance(call, ast.Call) or call in launches:
            continue
        if isinstance(call.func, ast.Call) and call.func in launches:
            return True
        if syntax.dotted(call.func) in WRAPPERS:
            continue
        for part in (call.func, *call.args, *(k.value for k in call.keywords)):
            # A function given to a call is taken to be called.
            if isinstance(part, ast.Call):
                if part in launches:
                    return True
                if syntax.dotted(part.func) not in WRAPPERS:
                    continue  # a call of its own, looked at by itself
            if any(isinstance(n, ast.Name) and n.id in reaching for n in ast.walk(part)):
                return True
            functions = [n for n in ast.walk(part) if isinstance(n, ast.Lambda)]
            if any(n in launches for function in functions for n in ast.walk(function)):
                return True
    return False


def _computes(syntax: Syntax, statement: ast.stmt, nodes: list[ast.AST], launches: set[ast.Call]) -> bool:
    """Whether a statement computes by a call what may be an array."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name) and value.func.id in _VALUES:
            return False
        if value in launches or syntax.dotted(value.func) in WRAPPERS:
            return False
    return any(isinstance(node, ast.Call) for node in nodes)
