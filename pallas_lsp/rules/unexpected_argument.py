"""
## What it does
Finds calls of Pallas functions with arguments that they do not take in the installed jax: a keyword that was renamed
or is misspelt, a positional argument that must be a keyword, an argument that is missing. They are found without
running the file, too.

## Why it is wrong
Python cannot call a function with arguments that it does not know. `plgpu.kernel` hands keywords that it does not
know on to its mesh, so jax's message names `Mesh` instead.

## Example
```python
plgpu.kernel(body, out_shape=out, scratch_shapes=[...])      # jax 0.11
```

## Use instead
```python
plgpu.kernel(body, out_type=out, scratch_types=[...])
```

## Fix safety
The new name of a parameter that was only renamed is safe. What a misspelt keyword may have meant is a suggestion.

## Applies to
All backends. The parameters are known for jax 0.10.2, 0.11.2 and 0.12.0.1. What stands in a `try` that catches the
error, or under a test of the version, is left alone.

## Source
Python's own TypeErrors for functions and classes of the public modules of Pallas.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean, short
from pallas_lsp.rules.shared import api_table
from pallas_lsp.rules.shared.api_fixes import without_index
from pallas_lsp.rules.shared.arity import Arity, arity_of
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.version_guards import guarded
from pallas_lsp.rules.shared.wording import and_list
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("API names",)
SPECIFICITY = 48


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    """The calls of a file with arguments that its jax does not take."""
    if "pallas" not in syntax.text:
        return
    for node in syntax.nodes:
        if isinstance(node, ast.Call) and not guarded(syntax, node):
            yield from _wrong(path, syntax, node, context)


def judge(fault: Fault, context: Context) -> Finding | None:
    arity = arity_of(fault)
    if arity is None:
        return None
    place = context.locate(fault)
    syntax = context.syntax(place.path)
    node = context.node(place)
    if syntax is None or node is None:
        return None
    call = node if isinstance(node, ast.Call) else syntax.call(node)
    while call is not None:
        found = list(_wrong(place.path, syntax, call, context))
        if found:
            first = found[0]
            return finding(__name__, fault, context, first.location, first.message, (), first.fixes)
        # A launch's call runs what another call made.
        call = call.func if isinstance(call.func, ast.Call) else None
    if not isinstance(node, ast.Call) or not _is_pallas(syntax, node) or _is_given(syntax, node, arity):
        return None
    name = arity.function.rpartition(".")[2].removeprefix("__init__") or arity.function.partition(".")[0]
    called = f"`{short(syntax.source(node.func), 40)}`"
    if arity.missing and not arity.keywords:
        wanted = and_list([f"`{n}`" for n in arity.missing])
        return finding(__name__, fault, context, _name(place.path, syntax, node), f"{called} needs {wanted}, too.")
    message = f"{called} cannot be called like that: {clean(fault.message)}" if name else clean(fault.message)
    return finding(__name__, fault, context, _name(place.path, syntax, node), message)


def _is_given(syntax: Syntax, call: ast.Call, arity: Arity) -> bool:
    """Whether the function that was called wrongly is one that the call was given."""
    given = (syntax.callee(each) for each in (*call.args, *(k.value for k in call.keywords)))
    names = {"<lambda>" if isinstance(each, ast.Lambda) else each.name for each in given if each is not None}
    return arity.function.rpartition(".")[2] in names


def _is_pallas(syntax: Syntax, call: ast.Call) -> bool:
    return (syntax.dotted(call.func) or "").startswith(f"{api_table.PALLAS}.")


def _name(path: str, syntax: Syntax, call: ast.Call) -> Location:
    return Location(path, syntax.range(call.func))


def _wrong(path: str, syntax: Syntax, call: ast.Call, context: Context) -> Iterator[Finding]:
    """Findings for one call: unknown keywords, then positional arguments that are too many."""
    dotted, skip = _called(syntax, call)
    if dotted is None:
        return
    found = api_table.signatures(dotted, context.jax)
    if not found:
        return
    known = {name for signature in found for name in signature.names}
    shown = f"`{api_table.ALIASES.get(dotted.rpartition('.')[0], '')}.{dotted.rpartition('.')[2]}`"
    version = ".".join(map(str, context.jax))
    if not any(s.any_keyword for s in found):
        for keyword in (*call.keywords, *_opened(syntax, call)):
            if keyword.arg is not None and keyword.arg not in known:
                yield _keyword(path, syntax, call, keyword, dotted, shown, context)
    positional = call.args[skip:]
    limit = max(len(s.positional) for s in found)
    given = [a for a in positional if not isinstance(a, ast.Starred)]
    if len(given) != len(positional) or any(s.any_positional for s in found) or len(given) <= limit:
        return
    extra = given[limit]
    name = api_table.positional_name(dotted, limit, context.jax)
    message = f"{shown} takes no {_ordinal(limit)} positional argument in jax {version}"
    message += f": give it as `{name}=...`." if name else "."
    fixes: list[Fix | None] = []
    if dotted.endswith(".mosaic_gpu.load"):
        fixes.append(without_index(path, syntax, call))
        message = f"{shown} takes no index in jax {version}: load from a view of the ref, `ref.at[index]`."
    elif name is not None and len(given) == limit + 1:
        editor = Editor(path, syntax)
        editor.insert(syntax.span(extra)[0], f"{name}=")
        fixes.append(safe(f"Give it as `{name}=`", editor))
    yield Finding(
        rule_name(__name__),
        Location(path, syntax.range(extra)),
        message,
        stage=Stage.READ,
        fixes=tuple(f for f in fixes if f is not None),
    )


def _opened(syntax: Syntax, call: ast.Call) -> Iterator[ast.keyword]:
    """The keywords of ``**dict(...)``, through names."""
    for keyword in call.keywords:
        value = syntax.value(keyword.value) if keyword.arg is None else None
        if isinstance(value, ast.Call) and syntax.dotted(value.func) == "dict":
            yield from (k for k in value.keywords if k.arg is not None)


def _called(syntax: Syntax, call: ast.Call) -> tuple[str | None, int]:
    """The Pallas function that a call gives arguments to, directly or by ``functools.partial``."""
    dotted = syntax.dotted(call.func)
    if dotted in PARTIAL and call.args:
        inner = syntax.dotted(call.args[0])
        return (inner, 1) if inner is not None and inner.startswith(api_table.PALLAS) else (None, 0)
    if dotted is not None and dotted.startswith(f"{api_table.PALLAS}."):
        return dotted, 0
    called = syntax.called(call)
    # Through functools.partial: its positional arguments come first, so only keywords can be judged.
    return (called, 10**6) if called is not None and called.startswith(f"{api_table.PALLAS}.") else (None, 0)


def _keyword(
    path: str, syntax: Syntax, call: ast.Call, keyword: ast.keyword, dotted: str, shown: str, context: Context
) -> Finding:
    version = ".".join(map(str, context.jax))
    assert keyword.arg is not None
    start, _ = syntax.span(keyword)
    location = Location(path, syntax.lines.range(start, start + len(keyword.arg)))
    meant = api_table.keyword_for(dotted, keyword.arg, context.jax)
    message = f"{shown} takes no argument `{keyword.arg}` in jax {version}."
    fixes: list[Fix | None] = []
    given = {k.arg for k in call.keywords}
    if meant is not None and meant[0] not in given:
        message += f" {'It is' if meant[1] else 'Perhaps'} `{meant[0]}`{'.' if meant[1] else ' was meant.'}"
        editor = Editor(path, syntax)
        editor.change(start, start + len(keyword.arg), meant[0])
        others = _renamed_too(syntax, call, keyword, dotted, editor, context)
        title = f"Write `{meant[0]}`" + (f", and {others}" if others else "")
        fixes.append(safe(title, editor) if meant[1] else suggested(title, editor))
    elif dotted.endswith(".mosaic_gpu.load") and keyword.arg == "idx":
        fixes.append(without_index(path, syntax, call))
    if not fixes:
        editor = Editor(path, syntax)
        holder = syntax.parent(keyword)
        editor.remove_argument(holder if isinstance(holder, ast.Call) else call, keyword)
        fixes.append(suggested(f"Leave `{keyword.arg}` out", editor))
    return Finding(
        rule_name(__name__), location, message, stage=Stage.READ, fixes=tuple(f for f in fixes if f is not None)
    )


def _renamed_too(
    syntax: Syntax, call: ast.Call, keyword: ast.keyword, dotted: str, editor: Editor, context: Context
) -> str:
    """Rename the other unknown keywords of the call in the same fix; jax stops at the first."""
    known = {n for s in api_table.signatures(dotted, context.jax) for n in s.names}
    names = []
    for other in call.keywords:
        if other is keyword or other.arg is None or other.arg in known:
            continue
        meant = api_table.keyword_for(dotted, other.arg, context.jax)
        if meant is not None and meant[0] not in {k.arg for k in call.keywords}:
            start = syntax.span(other)[0]
            editor.change(start, start + len(other.arg), meant[0])
            names.append(f"`{meant[0]}`")
    return and_list(names)


def _ordinal(index: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth")
    return names[index] if index < len(names) else f"{index + 1}th"
