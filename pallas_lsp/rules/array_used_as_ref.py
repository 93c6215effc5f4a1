"""
## What it does
Finds values that are used as if they were refs: assigned to by index, or given to a function that copies, waits or
stores.

## Why it is wrong
`x_ref[...]` reads a value. A value is an array: it cannot be changed in place, and it has no place in memory that
could be copied to or from.

## Example
```python
def kernel(x_ref, o_ref):
    acc = jnp.zeros(o_ref.shape, jnp.float32)
    acc[...] += x_ref[...]
    o_ref[...] = acc
```

## Use instead
```python
def kernel(x_ref, o_ref):
    acc = jnp.zeros(o_ref.shape, jnp.float32)
    acc += x_ref[...]
    o_ref[...] = acc
```

Or a ref, from `scratch_shapes` or `pl.run_scoped`, which can be changed in place. A function that takes a ref gets
`x_ref` or a view of it, `x_ref.at[index]`, not `x_ref[index]`.

## Fix safety
Giving the ref or its view where a function takes a ref is safe. The fixes of stores are suggestions: another value
under the same name, or a store into the ref that the value was read from.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_unimplemented_setitem` in `jax/_src/numpy/array_methods.py`, "JAX arrays are immutable"; `get_ref_and_transforms` in
`jax/_src/state/primitives.py`, "Can only call ... on a `Ref`"; checks of operands in the backends' primitives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import type_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SPECIFICITY = 55
SITES = (
    ("jax/_src/state/primitives.py", "get_ref_and_transforms"),
    ("jax/_src/state/primitives.py", "_get_abstract_eval"),
)

_OPERATORS = {
    ast.Add: "add",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
_NO_REF = re.compile(
    r"Can only call `(\w+)` on a `Ref`|must be Refs\b|must be a reference|must be called on `Ref`|"
    r"has no attribute '(?:at|memory_space|inner_aval)'|must be a (?:memory )?[Rr]ef\b"
)


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context)
    if line is None:
        return None
    immutable = raised_in(fault, "jax/_src/numpy/array_methods.py", "_unimplemented_setitem")
    if immutable or "does not support item assignment" in fault.message:
        value = fault.facts.get("value")
        if not immutable and not (isinstance(value, Mapping) and value.get("kind") in ("traced", "array")):
            return None
        return _store(fault, context, line)
    if fault.stage == "trace" and _NO_REF.search(fault.message) and isinstance(line.node, ast.Call):
        return _argument(fault, context, line)
    return None


# -- stores ----------------------------------------------------------------------------------------------------------


def _store(fault: Fault, context: Context, line: Line) -> Finding | None:
    target = line.node if isinstance(line.node, ast.Subscript) else None
    statement = line.statement
    if target is None and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        target = statement.target
    if target is None:
        return None
    base = target.value
    fact = line.fact(base) or fault.facts.get("value")
    described = f" ({type_text(fact)})" if isinstance(fact, Mapping) else ""
    message = (
        f"`{short(line.syntax.source(base))}` is an array{described}, not a ref: arrays cannot be changed in place. "
        "Make a new value of it, or store into a ref."
    )
    return finding(__name__, fault, context, line.at(target), message, (), _store_fixes(line, target, statement))


def _store_fixes(line: Line, target: ast.Subscript, statement: ast.stmt | None) -> Iterator[Fix | None]:
    syntax, base, index = line.syntax, target.value, target.slice
    if not isinstance(statement, ast.Assign | ast.AugAssign) or not isinstance(base, ast.Name):
        return
    name, where = base.id, syntax.source(index)
    whole = _takes_all(index)
    value = syntax.source(statement.value)
    if whole and value != name:
        editor = Editor(line.path, syntax)
        if isinstance(statement, ast.AugAssign) or not isinstance(statement.value, ast.Constant):
            editor.replace(target, name)
            yield suggested(f"Give `{name}` a new value", editor)
        else:
            function = editor.spell("jax.numpy.full_like", statement, ("jax.numpy", "jnp"))
            if function is not None:
                editor.replace(statement, f"{name} = {function}({name}, {value})")
                yield suggested(f"Give `{name}` a new value with `{function}`", editor)
    source = _read_from(line, base)
    if source is not None:
        editor = Editor(line.path, syntax)
        editor.replace(base, source)
        yield suggested(f"Store into `{source}`, which `{name}` was read from", editor)
    if whole:
        return
    method = "set" if isinstance(statement, ast.Assign) else _OPERATORS.get(type(statement.op))
    sign = ""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Sub):
        method, sign = "add", "-"
    if method is not None:
        editor = Editor(line.path, syntax)
        argument = f"{sign}({value})" if sign else value
        editor.replace(statement, f"{name} = {name}.at[{where}].{method}({argument})")
        yield suggested(f"Make a changed copy of it: `{name}.at[{short(where, 20)}].{method}(...)`", editor)


def _takes_all(index: ast.expr) -> bool:
    """``...``, ``:``, ``:, :``"""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(part, ast.Constant) and part.value is Ellipsis)
        or (isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None)
        for part in parts
    )


def _read_from(line: Line, base: ast.Name) -> str | None:
    """The ref that a name's value was read from as a whole."""
    value = line.syntax.value(base)
    if isinstance(value, ast.Subscript) and line.kind(value.value) == "ref":
        index = value.slice
        if isinstance(index, ast.Constant) and index.value is Ellipsis:
            return line.syntax.source(value.value)
    return None


# -- arguments -------------------------------------------------------------------------------------------------------


def _argument(fault: Fault, context: Context, line: Line) -> Finding | None:
    call = line.node
    assert isinstance(call, ast.Call)
    wrong = next((a for a in (*call.args, *(k.value for k in call.keywords)) if _is_value(line, a)), None)
    if wrong is None:
        return None
    function = short(line.syntax.source(call.func), 40)
    fact = line.fact(wrong)
    described = f" ({type_text(fact)})" if fact is not None else ""
    message = (
        f"`{short(line.syntax.source(wrong))}` is a value{described}, but `{function}` takes a ref here: a place in "
        "memory. A part of a ref is given as `ref.at[index]`."
    )
    return finding(__name__, fault, context, line.at(wrong), message, (), _argument_fixes(line, wrong))


def _is_value(line: Line, node: ast.expr) -> bool:
    """Whether an argument is the value of a ref, or the name of an array."""
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Attribute):
        return line.kind(node.value) == "ref"
    if isinstance(node, ast.Name):
        return line.kind(node) in ("traced", "array")
    return isinstance(node, ast.BinOp)


def _argument_fixes(line: Line, wrong: ast.expr) -> Iterator[Fix | None]:
    value = line.syntax.value(wrong)
    if not isinstance(value, ast.Subscript) or line.kind(value.value) != "ref":
        return
    ref, index = line.syntax.source(value.value), line.syntax.source(value.slice)
    text = ref if index.strip() in ("...", ":") else f"{ref}.at[{index}]"
    editor = Editor(line.path, line.syntax)
    editor.replace(wrong, text)
    make = safe if value is wrong else suggested
    yield make(f"Give the ref: `{short(text, 50)}`", editor)
