"""
## What it does
Finds names of Pallas that the installed jax does not have: renamed, moved, removed, not there yet, or misspelt. They
are found without running the file, too.

## Why it is wrong
Pallas changes from release to release. The name is looked up when its line runs, and jax raises an AttributeError or
an ImportError.

## Example
```python
compiler_params=pltpu.TPUCompilerParams(dimension_semantics=("parallel",))
```

## Use instead
```python
compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",))
```

## Fix safety
Writing the new name of something that was only renamed or moved is safe. Other replacements, and what a misspelt name
may have meant, are suggestions.

## Applies to
All backends. The names are known for jax 0.10.2, 0.11.2 and 0.12.0.1; between them a name counts as missing where it
is missing on both sides. What stands in a `try` that catches the error, or under a test of the version, is left
alone.

## Source
The public modules `jax.experimental.pallas` and below; `deprecation_getattr` in `jax/_src/deprecations.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean, short
from pallas_lsp.rules.shared import api_table
from pallas_lsp.rules.shared.api_fixes import dot, load_or_store
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.version_guards import guarded
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("API names",)
SPECIFICITY = 80
SITES = (("jax/_src/deprecations.py", "deprecation_getattr.<locals>.getattr"),)

_BACKENDS = tuple(f"{api_table.PALLAS}.{name}" for name in ("tpu", "tpu_sc", "triton", "mosaic_gpu"))
_LOADING = (*_BACKENDS, f"{api_table.PALLAS}.ops", f"{api_table.PALLAS}.fuser")
_OTHERS = ("jax", "numpy", "functools", "math", "typing", "dataclasses", "itertools", "operator", "os", "sys", "time")
_INDEXED = (f"{api_table.PALLAS}.load", f"{api_table.PALLAS}.store")


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    """The names of a file that its jax does not have."""
    if "pallas" not in syntax.text:
        return
    for node, dotted in _uses(syntax):
        if api_table.missing(dotted, context.jax) and not guarded(syntax, node):
            yield _found(path, syntax, node, dotted, context)
    for alias, module in _imports(syntax):
        gone = api_table.missing_module(module, context.jax)
        if gone is not None and not guarded(syntax, alias):
            yield _module(path, syntax, alias, module, gone)
    yield from _not_imported(path, syntax)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not fault.exception.endswith(("AttributeError", "ImportError", "ModuleNotFoundError")):
        return None
    enumeration = fault.message.startswith("type object '")
    if (
        not enumeration
        and "jax.experimental.pallas" not in fault.message
        and "pl" not in fault.message.partition(".")[0]
    ):
        return None
    if "object has no attribute" in fault.message:
        return None
    place = context.locate(fault)
    syntax = context.syntax(place.path)
    if syntax is None:
        return None
    line = place.range.start.line
    every = [(n, d) for n, d in _uses(syntax) if syntax.range(n).start.line <= line <= syntax.range(n).end.line]
    named = [(n, d) for n, d in every if d.rpartition(".")[2] in fault.message]
    if not named:
        modules = [(a, m) for a, m in _imports(syntax) if syntax.range(a).start.line == line]
        for alias, module in modules:
            gone = api_table.missing_module(module, context.jax)
            if gone is not None:
                return _module(place.path, syntax, alias, module, gone)
        return None
    found = _found(place.path, syntax, *named[0], context)
    mine = finding(__name__, fault, context, found.location, found.message, found.related, found.fixes)
    if not api_table.missing(named[0][1], context.jax):
        reason = clean(fault.message)
        return finding(__name__, fault, context, found.location, reason, (), found.fixes)
    return mine


def _uses(syntax: Syntax) -> Iterable[tuple[ast.Attribute | ast.alias, str]]:
    """Every ``pl.name`` and imported name, with its canonical dotted name."""
    for node in syntax.nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
            dotted = syntax.dotted(node)
            owner = dotted.rpartition(".")[0] if dotted is not None else ""
            if dotted is not None and (api_table.is_module(owner) or api_table.is_enumeration(owner)):
                yield node, dotted
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and api_table.is_module(node.module):
            names = [(alias, f"{node.module}.{alias.name}") for alias in node.names if alias.name != "*"]
            yield from ((a, d) for a, d in names if not api_table.was_module(d))


def _not_imported(path: str, syntax: Syntax) -> Iterator[Finding]:
    """``pl.tpu``: Pallas does not import its backends, so that one has no attribute until something imports it."""
    imported = [name for _, name in _imports(syntax)]
    unknown = any(name.partition(".")[0] not in _OTHERS or name.startswith(_LOADING) for name in imported)
    if unknown or any(isinstance(node, ast.ImportFrom) and node.level for node in syntax.nodes):
        return  # something may import it
    for node in syntax.nodes:
        dotted = syntax.dotted(node) if isinstance(node, ast.Attribute) else None
        if not isinstance(node, ast.Attribute) or dotted not in _BACKENDS or guarded(syntax, node):
            continue
        alias = api_table.ALIASES.get(dotted, dotted.rpartition(".")[2])
        parent = syntax.parent(node)
        fixes: tuple[Fix, ...] = ()
        if isinstance(parent, ast.Attribute):
            editor = Editor(path, syntax)
            spelled = editor.spell(f"{dotted}.{parent.attr}", node, (dotted, alias))
            if spelled is not None:
                editor.replace(parent, spelled)
                fix = safe(f"Import `{dotted}` as `{alias}`", editor)
                fixes = (fix,) if fix is not None else ()
        text = f"`{short(syntax.source(node), 40)}` is a module that nothing imports here: Pallas does not by itself."
        yield Finding(rule_name(__name__), Location(path, syntax.range(node)), text, stage=Stage.READ, fixes=fixes)


def _imports(syntax: Syntax) -> Iterable[tuple[ast.alias, str]]:
    for node in syntax.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias, f"{node.module}.{alias.name}") for alias in node.names)


def _found(path: str, syntax: Syntax, node: ast.Attribute | ast.alias, dotted: str, context: Context) -> Finding:
    module, _, name = dotted.rpartition(".")
    said = f"`{short(syntax.source(node), 50)}`" if isinstance(node, ast.Attribute) else f"`{name}` of `{module}`"
    version = ".".join(map(str, context.jax))
    new = api_table.replacement(dotted, context.jax)
    first, last = api_table.since(dotted)
    message = f"{said} is not there in jax {version}"
    if last and api_table.next_version(last) and not new:
        message += f"; jax {last} had it"
    elif first and first != api_table.since(f"{api_table.PALLAS}.pallas_call")[0] and not new:
        message += f"; it came after that, with jax {first} at the latest"
    message += "."
    if new is not None:
        owner, _, target = new.dotted.rpartition(".")
        shown = f"{api_table.shown(owner)}.{target}"
        message += f" {'It is now' if new.certain else 'Use'} `{shown}`."
    fixes = [fix for fix in _fixes(path, syntax, node, dotted, new) if fix is not None]
    return Finding(rule_name(__name__), _location(path, syntax, node), message, stage=Stage.READ, fixes=tuple(fixes))


def _location(path: str, syntax: Syntax, node: ast.Attribute | ast.alias) -> Location:
    whole = syntax.range(node)
    if isinstance(node, ast.alias):
        start = syntax.lines.offset(whole.start)
        return Location(path, syntax.lines.range(start, start + len(node.name)))
    return Location(path, whole)


def _fixes(
    path: str,
    syntax: Syntax,
    node: ast.Attribute | ast.alias,
    dotted: str,
    new: api_table.Replacement | None,
) -> Iterator[Fix | None]:
    if isinstance(node, ast.Attribute) and dotted in _INDEXED:
        yield load_or_store(path, syntax, node)
        return
    if isinstance(node, ast.Attribute) and dotted == f"{api_table.PALLAS}.dot":
        fix = dot(path, syntax, node)
        if fix is not None:
            yield fix
            return
    if new is None:
        return
    owner, _, target = new.dotted.rpartition(".")
    make = safe if new.certain else suggested
    editor = Editor(path, syntax)
    if isinstance(node, ast.alias):
        module, _, name = dotted.rpartition(".")
        if owner == module:
            editor.replace(node, f"{target} as {node.asname or name}")
            yield make(f"Import `{target}` instead", editor)
        return
    alias = api_table.ALIASES.get(owner, "jnp" if owner == "jax.numpy" else owner.rpartition(".")[2])
    spelled = editor.spell(new.dotted, node, (owner, alias))
    if spelled is not None:
        editor.replace(node, spelled)
        yield make(f"Write `{spelled}`", editor)


def _module(path: str, syntax: Syntax, alias: ast.alias, module: str, gone: str) -> Finding:
    editor = Editor(path, syntax)
    statement = syntax.statement(alias)
    start, _ = syntax.span(alias)
    last = module.rpartition(".")[2]
    if isinstance(statement, ast.ImportFrom):
        new = gone.rpartition(".")[2]
        editor.change(start, start + len(alias.name), new if alias.asname else f"{new} as {last}")
    else:
        editor.change(start, start + len(alias.name), gone)
    message = f"There is no module `{module}` in Pallas any more; it is now `{gone}`."
    fix = safe(f"Import `{gone}`", editor) if alias.asname or isinstance(statement, ast.ImportFrom) else None
    return Finding(
        rule_name(__name__),
        Location(path, syntax.lines.range(start, start + len(alias.name))),
        message,
        stage=Stage.READ,
        fixes=(fix,) if fix is not None else (),
    )
