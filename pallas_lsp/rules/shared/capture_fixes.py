"""Fixes for arrays that a kernel uses without having been given them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fix
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import fresh_names, positional
from pallas_lsp.rules.shared.launches import Launch
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Function, Syntax, parameters

_COMPUTABLE = frozenset(
    f"jax.numpy.{name}"
    for name in ("arange", "zeros", "ones", "full", "eye", "linspace", "tri", "identity", "logspace")
)
_NUMPY = ("jax.numpy", "jnp")
_BLOCK_SPEC = "jax.experimental.pallas.BlockSpec"


def fixes(launch: Launch, entry: Mapping[str, Any], spot: Spot) -> Iterator[Fix | None]:
    found = launch.body()
    node = spot.node
    if not isinstance(node, ast.expr) or found is None or spot.path != found[0]:
        return
    if entry.get("kind") == "array" and entry.get("shape") == [] and entry.get("scope") in ("global", "closure"):
        yield _number(spot, str(entry.get("dtype")))
    if isinstance(node, ast.Name):
        yield _inside(spot)
    yield _as_input(launch, entry, spot, found)


def _number(spot: Spot, dtype: str) -> Fix | None:
    """``float(SCALE)``: the Python number of a concrete scalar."""
    function = "int" if "int" in dtype else "float"
    editor = Editor(spot.path, spot.syntax)
    editor.replace(spot.node, f"{function}({spot.source})")
    return suggested(f"Use the Python number: `{function}({short(spot.source, 30)})`", editor)


def _inside(spot: Spot) -> Fix | None:
    """Compute the array in the kernel, where its definition is one call of ``jnp`` with numbers."""
    value = spot.syntax.value(spot.node)
    if not isinstance(value, ast.Call) or spot.syntax.dotted(value.func) not in _COMPUTABLE:
        return None
    for part in (*value.args, *(k.value for k in value.keywords)):
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                return None
    editor = Editor(spot.path, spot.syntax)
    editor.replace(spot.node, spot.syntax.source(value))
    return suggested(f"Compute it in the kernel: `{short(spot.syntax.source(value), 40)}`", editor)


def _as_input(launch: Launch, entry: Mapping[str, Any], spot: Spot, found: tuple[str, Syntax, Function]) -> Fix | None:
    """One more input: a parameter, its spec, an argument of the call, and the ref in place of the name."""
    path, syntax, function = found
    run = launch.run()
    inputs = launch.facts.get("inputs")
    if not isinstance(inputs, list):
        inputs = launch.operands()
    if run is None or not isinstance(run.node, ast.Call) or run.path != path:
        return None
    argument = _argument(launch, entry, spot, run)
    if argument is None or launch.spot.path != path:
        return None
    given = positional(function)
    if len(inputs) > len(given) or run.node.keywords:
        return None
    ref = fresh_names(function, (f"{_base_name(spot.node)}_ref",), 1)[0]
    editor = Editor(path, syntax)
    if len(inputs) < len(given):
        editor.insert(syntax.span(given[len(inputs)])[0], f"{ref}, ")
    elif given:
        editor.insert(syntax.span(given[-1])[1], f", {ref}")
    else:
        return None
    scalar = entry.get("shape") == []
    uses = _uses(syntax, function, spot)
    for use in uses:
        editor.replace(use, f"{ref}[0]" if scalar else f"{ref}[...]")
    if scalar:
        reshape = editor.spell("jax.numpy.reshape", run.node, _NUMPY)
        if reshape is None:
            return None
        argument = f"{reshape}({argument}, (1,))"
    if not _add_spec(launch, editor, [1] if scalar else list(entry.get("shape") or ())):
        return None
    if entry.get("scope") == "partial" and not _unbind(launch, editor, str(entry.get("name")), function):
        return None
    editor.insert_argument(run.node, argument)
    return suggested(f"Pass `{short(argument, 40)}` as an input, and read it from `{ref}`", editor)


def _base_name(node: ast.expr) -> str:
    """A name for the ref of an array: after the array's own."""
    if isinstance(node, ast.Name):
        return node.id.lower()
    if isinstance(node, ast.Attribute):
        return node.attr.lower()
    return _base_name(node.value) if isinstance(node, ast.Subscript) else "table"


def _uses(syntax: Syntax, function: Function, spot: Spot) -> Sequence[ast.expr]:
    """The expressions in the kernel that stand for the array."""
    if not isinstance(spot.node, ast.Name):
        return [spot.node]
    inside = set(ast.walk(function))
    return [use for use in syntax.uses(spot.node) if use in inside and isinstance(use.ctx, ast.Load)]


def _argument(launch: Launch, entry: Mapping[str, Any], spot: Spot, run: Spot) -> str | None:
    """What the array is called where the kernel is run."""
    if not isinstance(spot.node, ast.Name):
        return spot.source if _is_global(spot) else None
    if entry.get("scope") == "partial":
        body = launch.argument("kernel", "body")
        value = body.syntax.value(body.node) if body is not None else None
        if body is None or not isinstance(value, ast.Call) or body.syntax.dotted(value.func) not in PARTIAL:
            return None
        keyword = next((k for k in value.keywords if k.arg == entry.get("name")), None)
        return body.syntax.source(keyword.value) if keyword is not None else None
    here = spot.syntax.scope(run.node).lookup(spot.node.id)
    there = spot.syntax.scope(spot.node).lookup(spot.node.id)
    if here is not None and here == there:
        return spot.node.id
    return _given_to_maker(launch, spot)


def _is_global(spot: Spot) -> bool:
    """Whether an expression means the same anywhere in the file."""
    for node in ast.walk(spot.node):
        if isinstance(node, ast.Name):
            found = spot.syntax.scope(node).lookup(node.id)
            if found is not None and found[0].parent is not None:
                return False
    return True


def _given_to_maker(launch: Launch, spot: Spot) -> str | None:
    """Where the kernel is made by ``make_kernel(scale)``: what stands for the parameter ``scale`` there."""
    body = launch.argument("kernel", "body")
    made = body.syntax.value(body.node) if body is not None else None
    binding = spot.syntax.binding(spot.node) if isinstance(spot.node, ast.Name) else None
    if body is None or not isinstance(made, ast.Call) or binding is None or not isinstance(binding.node, ast.arg):
        return None
    maker = body.syntax.callee(made.func)
    if maker is None or body.path != spot.path or binding.node not in parameters(maker):
        return None
    names = [p.arg for p in positional(maker)]
    position = names.index(binding.node.arg) if binding.node.arg in names else None
    given = body.syntax.argument(made, position, binding.node.arg)
    return body.syntax.source(given) if given is not None else None


def _add_spec(launch: Launch, editor: Editor, shape: list[Any]) -> bool:
    """A spec for the whole array, where the launch gives specs."""
    specs = launch.argument("in_specs")
    if specs is None:
        return True
    literal = specs.syntax.value(specs.node)
    name = editor.spell(_BLOCK_SPEC, launch.call)
    if not isinstance(literal, ast.List | ast.Tuple) or name is None or specs.path != editor.path:
        return False
    axes = len(launch.facts.get("grid") or ()) + int(launch.facts.get("scalar_prefetch") or 0)
    parameters = ", ".join(("i", "j", "k", "l", "m")[:axes]) if axes <= 5 else "*_"
    zeros = f"({', '.join(['0'] * len(shape))}{',' if len(shape) == 1 else ''})"
    size = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    spec = f"{name}({size}, lambda {parameters}: {zeros})" if parameters else f"{name}({size}, lambda: {zeros})"
    if literal.elts:
        editor.insert(editor.whole(literal.elts[-1])[1], f", {spec}")
    else:
        editor.replace(literal, f"[{spec}]")
    return True


def _unbind(launch: Launch, editor: Editor, name: str, function: Function) -> bool:
    """Take a keyword out of ``functools.partial``, and its parameter out of the kernel."""
    body = launch.argument("kernel", "body")
    value = body.syntax.value(body.node) if body is not None else None
    if body is None or not isinstance(value, ast.Call) or body.path != editor.path:
        return False
    keyword = next((k for k in value.keywords if k.arg == name), None)
    if keyword is None:
        return False
    if len(value.keywords) == 1 and len(value.args) == 1:
        editor.replace(value, body.syntax.source(value.args[0]))
    else:
        editor.remove_argument(value, keyword)
    return remove_named(editor, function, name)


def remove_named(editor: Editor, function: Function, name: str) -> bool:
    """Take a parameter out of a function, keyword-only ones included."""
    syntax = editor.syntax
    keywords = function.args.kwonlyargs
    every = [*positional(function), *keywords]
    index = next((i for i, p in enumerate(every) if p.arg == name), None)
    if index is None or function.args.defaults or any(d is not None for d in function.args.kw_defaults):
        return False
    parameter = every[index]
    start, end = syntax.span(parameter)
    if parameter in keywords and len(keywords) == 1 and function.args.vararg is None:
        star = syntax.text.rindex("*", 0, start)
        before = syntax.text[:star].rstrip()
        editor.delete(len(before) - 1 if before.endswith(",") else star, end)
        return True
    if index + 1 < len(every) and (parameter in keywords) == (every[index + 1] in keywords):
        editor.delete(start, syntax.span(every[index + 1])[0])
    elif index > 0:
        editor.delete(syntax.span(every[index - 1])[1], end)
    else:
        editor.delete(start, end)
    return True
