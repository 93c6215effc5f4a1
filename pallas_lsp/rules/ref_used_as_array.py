"""
## What it does
Finds refs that are used as if they were arrays: in arithmetic, as arguments of `jnp` and `jax.lax` functions, or stored
into another ref.

## Why it is wrong
A ref is a place in memory, not a value. Its value is read with `ref[...]`, a part of it with `ref[index]`.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref)
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref[...])
```

## Fix safety
Reading the whole ref is safe: no operation on arrays takes a ref, so nothing else can have been meant.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Attributes and operators that `AbstractRef` in `jax/_src/state/types.py` lacks; `check_arraylike` in
`jax/_src/numpy/util.py`; `standard_abstract_eval` in `jax/_src/lax/utils.py`; `_swap_abstract_eval` in
`jax/_src/state/primitives.py`; conversions of tracers in `jax/_src/core.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.user_line import Line, line_of, operands, stored_value
from pallas_lsp.rules.shared.wording import type_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SPECIFICITY = 55
SITES = (
    ("jax/_src/state/primitives.py", "_swap_abstract_eval"),
    ("jax/_src/state/types.py", "disallow_transformed_ref_avals"),
)

_REF = re.compile(
    r"'(?:Abstract\w*Ref|\w*AbstractAccumulatorRef|TransformedRef|Ref)' object has no attribute|got a Ref of type|"
    r"requires (?:ndarray|scalar)[^\n]*(?:AbstractRef|TransformedRef|Ref<)|Attempting to pass a Ref|"
    r"Cannot store a Ref into another Ref|TransformedRefs cannot be abstractified|"
    r"(?:operand type|instances of)[^\n]*TransformedRef|"
    r"(?:AbstractRef|TransformedRef|Ref[<{])[^\n]*is not a valid JAX type"
)
_UNSUPPORTED = re.compile(r"unsupported operand type\(s\)|not supported between instances")
_POSITION = re.compile(r"^(\w+) (?:got a Ref|requires ndarray).*at position (\d+)")
_REVERSED = re.compile(r"attribute '_r(\w+)'")
_EXCEPTIONS = ("TypeError", "AttributeError", "ValueError", "TransformedRefAvalError", "TracerArrayConversionError")
_NUMBERS = ("jax.lax.fori_loop", "jax.experimental.pallas.loop", "jax.experimental.pallas.ds", "range")
_CONVERSIONS = ("__bool__", "__int__", "__float__", "__index__", "__iter__", "__array__", "__complex__")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not fault.exception.endswith((*_EXCEPTIONS, "ConversionError", "ConcretizationTypeError")):
        return None
    if not _about_refs(fault):
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    found = [_without_property(line, node) for node in _offenders(fault, line)]
    if not found:
        return None
    first = found[0]
    location = line.at(first)
    fact = line.fact(_base(first)) or fault.facts.get("value")
    described = f" ({type_text(fact)})" if isinstance(fact, Mapping) and fact.get("shape") is not None else ""
    whole = isinstance(first, ast.Name)
    read = _read_text(line, first)
    message = (
        f"`{short(line.syntax.source(first))}` is a ref{described if whole else ''}, a place in memory, but a value "
        f"is needed here: read it with `{short(read, 50)}`."
    )
    related = [Related(line.at(other), "This is a ref, too.") for other in found[1:]]
    editor = Editor(line.path, line.syntax)
    for node in found:
        _read(editor, line, node)
    title = f"Read the ref: `{short(read, 50)}`" if len(found) == 1 else "Read the refs with `[...]`"
    return finding(__name__, fault, context, location, message, related, [safe(title, editor)])


def _about_refs(fault: Fault) -> bool:
    value = fault.facts.get("value")
    names = fault.facts.get("names") or {}
    has_refs = any(isinstance(n, Mapping) and n.get("kind") in ("ref", "refs") for n in names.values())
    if isinstance(value, Mapping) and value.get("kind") == "ref":
        site = fault.site.function if fault.site is not None else ""
        functions = {c.function.rpartition(".")[2] for c in fault.calls[:2]} | {site.rpartition(".")[2]}
        if functions & set(_CONVERSIONS):
            return True
    if _REF.search(fault.message):
        return True
    if passed_through(fault, "jax/_src/numpy/util.py", "check_arraylike"):
        return has_refs
    return bool(_UNSUPPORTED.search(fault.message)) and "Tracer" in fault.message and has_refs


def _offenders(fault: Fault, line: Line) -> Iterator[ast.expr]:
    """The operands that are refs."""
    node: ast.expr = line.node
    value = stored_value(line)
    statement = line.statement
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        if line.kind(statement.target) == "ref":
            yield statement.target
        if line.kind(statement.value) == "ref":
            yield statement.value
        return
    if value is not None:
        yield from _refs_in(line, value)
        return
    if isinstance(statement, ast.AugAssign) and line.syntax.range(line.node) == line.syntax.range(statement):
        yield from _refs_in(line, statement.value)
        return
    direct = [o for o in operands(node) if _is_ref(line, o)]
    if direct:
        yield from direct
        return
    if isinstance(node, ast.Call):
        match = _POSITION.search(fault.message)
        called = (line.syntax.dotted(node.func) or "").rpartition(".")[2]
        if match is not None and called == match.group(1) and int(match.group(2)) < len(node.args):
            yield node.args[int(match.group(2))]
            return
    if isinstance(node, ast.BinOp):
        yield node.right if _REVERSED.search(fault.message) else node.left


def _refs_in(line: Line, value: ast.expr) -> Iterator[ast.expr]:
    """The refs in a stored value that stand where a value is needed."""
    if _is_ref(line, value):
        yield value
        return
    if isinstance(value, ast.Attribute | ast.Call):
        yield from (o for o in operands(value) if _is_ref(line, o))
        return
    yield from (o for o in operands(value) if _is_ref(line, o))


def _is_ref(line: Line, node: ast.expr) -> bool:
    """Whether an expression is a ref: a name of one, or a view of one."""
    if isinstance(node, ast.Name):
        return line.kind(node) == "ref"
    if isinstance(node, ast.Subscript) and line.kind(node.value) == "refs":
        return True
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at":
        return _is_ref(line, node.value.value) or line.kind(_base(node)) == "ref"
    return False


def _base(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node


def _without_property(line: Line, node: ast.expr) -> ast.expr:
    """The ref of ``ref.T``, which makes a view that few operations take: its value can be turned as well."""
    turned = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
    return node.value if isinstance(node, ast.Attribute) and turned and line.kind(node.value) == "ref" else node


def _whole(line: Line, node: ast.expr) -> str:
    """The index that reads a ref: its only element where a single number is needed, else all of it."""
    fact, call = line.fact(node), line.syntax.parent(node)
    shape = fact.get("shape") if isinstance(fact, Mapping) else None
    number = isinstance(call, ast.Call) and line.syntax.dotted(call.func) in _NUMBERS
    if number and isinstance(shape, list) and shape and all(size == 1 for size in shape):
        return f"[{', '.join('0' for _ in shape)}]"
    return "[...]"


def _read_text(line: Line, node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at":
        return f"{line.syntax.source(node.value.value)}[{line.syntax.source(node.slice)}]"
    return f"{line.syntax.source(node)}{_whole(line, node)}"


def _read(editor: Editor, line: Line, node: ast.expr) -> None:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at":
        editor.replace(node, _read_text(line, node))
    else:
        editor.insert(line.syntax.span(node)[1], _whole(line, node))
