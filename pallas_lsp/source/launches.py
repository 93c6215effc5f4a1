"""The places of a file that launch kernels, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from pallas_lsp.model import Backend, Launch, Location, Range
from pallas_lsp.source.definitions import mentions
from pallas_lsp.source.syntax import PARTIAL, Syntax, parse

_PALLAS = "jax.experimental.pallas"
LAUNCH_NAMES = frozenset({"pallas_call", "kernel", "core_map"})
_APIS = {
    f"{_PALLAS}.pallas_call": ("pl.pallas_call", Backend.ANY),
    f"{_PALLAS}.kernel": ("pl.kernel", Backend.ANY),
    f"{_PALLAS}.core_map": ("pl.core_map", Backend.ANY),
    f"{_PALLAS}.mosaic_gpu.kernel": ("plgpu.kernel", Backend.MOSAIC_GPU),
    f"{_PALLAS}.tpu.kernel": ("pltpu.kernel", Backend.TPU),
    f"{_PALLAS}.tpu.core_map": ("pltpu.core_map", Backend.TPU),
    f"{_PALLAS}.tpu_sc.kernel": ("plsc.kernel", Backend.TPU),
    "jax._src.pallas.pallas_call.pallas_call": ("pl.pallas_call", Backend.ANY),
    "jax._src.pallas.helpers.kernel": ("pl.kernel", Backend.ANY),
    "jax._src.pallas.core.core_map": ("pl.core_map", Backend.ANY),
    "jax._src.pallas.mosaic_gpu.core.kernel": ("plgpu.kernel", Backend.MOSAIC_GPU),
}
_BACKENDS = {
    f"{_PALLAS}.mosaic_gpu.": Backend.MOSAIC_GPU,
    f"{_PALLAS}.triton.": Backend.TRITON,
    f"{_PALLAS}.gpu.": Backend.TRITON,
    f"{_PALLAS}.tpu.": Backend.TPU,
    f"{_PALLAS}.tpu_sc.": Backend.TPU,
}
_BODY_NAMES = ("body", "kernel", "f")


def find_launches(path: str, text: str) -> tuple[Launch, ...]:
    """The launches of a file in order; raises SyntaxError or ValueError where the text is no Python."""
    return tuple(
        Launch(Location(path, range_), api, backend, body) for _, range_, api, backend, body in _launches(text)
    )


def launch_nodes(text: str) -> dict[ast.Call, str]:
    """The calls that are launches, with the name of what they call."""
    return {node: api for node, _, api, _, _ in _launches(text)}


def may_launch(text: str) -> bool:
    """False where the text surely launches nothing: a test that needs no parser."""
    return "pallas" in text and any(name in text for name in LAUNCH_NAMES)


@lru_cache(maxsize=64)
def _launches(text: str) -> tuple[tuple[ast.Call, Range, str, Backend, str | None], ...]:
    if not may_launch(text):
        return ()
    syntax = parse(text)
    found = []
    for call in _candidates(syntax):
        known = _APIS.get(_called(syntax, call) or "")
        if known is not None and not _within_kernel(syntax, call):
            api, backend = known
            body = _body(syntax, call, api)
            if backend is Backend.ANY:
                backend = _backend(syntax, call, body)
            found.append((call, syntax.range(call), api, backend, _name(syntax, body)))
    return tuple(sorted(found, key=lambda each: each[1]))


def _within_kernel(syntax: Syntax, call: ast.Call) -> bool:
    """Whether it is the code of single warps, which is a part of a kernel and no launch."""
    mesh = syntax.arguments(call).get(0, "mesh")
    value = syntax.value(mesh) if mesh is not None else None
    called = syntax.called(value) if isinstance(value, ast.Call) else None
    return called is not None and called.startswith(f"{_PALLAS}.mosaic_gpu.") and called.endswith(".WarpMesh")


def _candidates(syntax: Syntax) -> Iterator[ast.Call]:
    """Calls that may be launches: cheap, so that only these are resolved."""
    aliases, nodes = _aliases(syntax)
    decorators = {
        decorator
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
    }
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if _mentions(node.func, aliases) or (node in decorators and any(_mentions(a, aliases) for a in node.args)):
            yield node


def _mentions(node: ast.expr, aliases: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in LAUNCH_NAMES or node.attr in aliases
    if isinstance(node, ast.Name):
        return node.id in aliases
    if isinstance(node, ast.Call):
        return any(_mentions(each, aliases) for each in (node.func, *node.args[:1]))
    return isinstance(node, ast.NamedExpr) and _mentions(node.value, aliases)


def _aliases(syntax: Syntax) -> tuple[set[str], list[ast.AST]]:
    """Names that may stand for a launch function, and all nodes of the top-level statements that mention one.

    A name may be imported, or assigned from another (also by ``functools.partial``).
    """
    statements = mentions(syntax)
    aliases: set[str] = set()
    nodes: dict[ast.stmt, list[ast.AST]] = {}
    assignments: list[tuple[str, ast.expr]] = []
    new = set(LAUNCH_NAMES)
    while new:
        for statement in [s for name in new for s in statements.get(name, ()) if s not in nodes]:
            if statement in nodes:
                continue
            nodes[statement] = list(ast.walk(statement))
            for node in nodes[statement]:
                if isinstance(node, ast.ImportFrom):
                    aliases.update(a.asname or a.name for a in node.names if a.name in LAUNCH_NAMES)
                elif isinstance(node, ast.Assign):
                    assignments += [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
                elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
                    assignments += [(node.target.id, node.value)] if node.value is not None else []
        known = set(aliases)
        while more := {n for n, value in assignments if n not in aliases and _mentions(value, aliases)}:
            aliases |= more
        new = {alias for alias in aliases if alias in aliases - known or alias not in LAUNCH_NAMES}
        new = {alias for alias in new if any(s not in nodes for s in statements.get(alias, ()))}
    return aliases, [node for each in nodes.values() for node in each]


def _called(syntax: Syntax, call: ast.Call) -> str | None:
    """What a call launches with; for ``@functools.partial(pl.kernel, ...)`` what the decorator will call."""
    name = syntax.called(call)
    if name not in PARTIAL:
        return name
    parent = syntax.parent(call)
    decorates = isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and call in parent.decorator_list
    return syntax.dotted(call.args[0]) if decorates and call.args else None


def _body(syntax: Syntax, call: ast.Call, api: str) -> ast.AST | None:
    """The kernel's body: an argument, the function under the decorator, or the argument of the call's result."""
    parent = syntax.parent(call)
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and call in parent.decorator_list:
        return parent
    arguments = syntax.arguments(call)
    if not api.endswith("core_map"):
        for name in _BODY_NAMES:
            if name in arguments.keywords:
                return arguments.keywords[name]
        if arguments.positional:
            return arguments.positional[0]
    if isinstance(parent, ast.Call) and parent.func is call and parent.args:
        return parent.args[0]
    return None


def _name(syntax: Syntax, body: ast.AST | None) -> str | None:
    if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return body.name
    if not isinstance(body, ast.expr):
        return None
    function = syntax.callee(body)
    if function is not None:
        return "<lambda>" if isinstance(function, ast.Lambda) else function.name
    value = syntax.value(body)
    while isinstance(value, ast.Call) and syntax.dotted(value.func) in PARTIAL and value.args:
        value = syntax.value(value.args[0])
    if isinstance(value, ast.Name):
        return value.id
    return value.attr if isinstance(value, ast.Attribute) else None


def _backend(syntax: Syntax, call: ast.Call, body: ast.AST | None) -> Backend:
    """A guess: by what the call's arguments, then the body, then the file's imports name."""
    nodes: list[ast.AST] = [call]
    for argument in (*call.args, *(k.value for k in call.keywords)):
        value = syntax.value(argument) if isinstance(argument, ast.Name) else None
        if isinstance(value, ast.expr):
            nodes.append(value)
    if isinstance(body, ast.expr):
        nodes.append(syntax.callee(body) or body)
    elif body is not None:
        nodes.append(body)
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and (found := _backend_of(syntax.dotted(part))) is not None:
                return found
    imported = {
        found
        for bindings in syntax.scopes[syntax.tree].bindings.values()
        for binding in bindings
        if (found := _backend_of(binding.imported)) is not None
    }
    return imported.pop() if len(imported) == 1 else Backend.ANY


def _backend_of(name: str | None) -> Backend | None:
    for prefix, backend in _BACKENDS.items():
        if name is not None and f"{name}.".startswith(prefix):
            return backend
    return None
