"""Index maps of pipelines that take or give another number of indices than grid and block have dimensions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import (
    add_parameters,
    fresh_names,
    head_location,
    positional,
    remove_parameter,
    unused,
)
from pallas_lsp.rules.shared.gpu_pipelines import Pipeline
from pallas_lsp.rules.shared.index_maps import result_fixes
from pallas_lsp.rules.shared.launches import function_at
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

_ARITY = re.compile(r"positional argument")


def result_count(module: str, fault: Fault, context: Context, pipeline: Pipeline | None, place: Location) -> Finding:
    """The finding for an index map that gives another number of indices than its block has dimensions."""
    for spot, shape in pipeline.index_maps() if pipeline is not None else ():
        given = spot.node.body if isinstance(spot.node, ast.Lambda) else None
        if given is None or not isinstance(spot.node, ast.Lambda) or not isinstance(shape, ast.Tuple):
            continue
        have, want = len(given.elts) if isinstance(given, ast.Tuple) else 1, len(shape.elts)
        if have != want:
            text = (
                f"This index map gives {_indices(have)}, but its block has {want} dimensions, "
                f"{spot.syntax.source(shape)}: it gives one index for each."
            )
            fixes = result_fixes((spot.path, spot.syntax, spot.node), given, have, want)
            return finding(module, fault, context, spot.at(given).location, text, (), fixes)
    specs = pipeline.argument("in_specs") if pipeline is not None else None
    text = "The index map of a block of this pipeline gives another number of indices than the block has dimensions."
    return finding(module, fault, context, specs.location if specs is not None else place, text)


def arity(module: str, fault: Fault, context: Context, pipeline: Pipeline | None) -> Finding | None:
    """The finding for an index map that takes another number of indices than the grid has dimensions."""
    if pipeline is None or _ARITY.search(fault.message) is None:
        return None
    grid = pipeline.argument("grid")
    value = grid.syntax.value(grid.node) if grid is not None else None
    dimensions = len(value.elts) if isinstance(value, ast.Tuple | ast.List) else None
    has = f"has {dimensions} dimension{'s' if dimensions != 1 else ''}" if dimensions else "has another number"
    related = [Related(grid.location, "The grid of the pipeline.")] if grid is not None else []
    found = _function(fault, context)
    if found is None:
        text = f"An index map of this pipeline takes another number of indices than its grid has: it {has}."
        return finding(module, fault, context, pipeline.name, text, related)
    taken = positional(found[2])
    text = (
        f"An index map of this pipeline takes {_indices(len(taken))}, but the grid of the pipeline {has}: it gets one "
        "index for each."
    )
    fixes = _fixes(*found, taken, dimensions) if dimensions is not None else ()
    return finding(module, fault, context, head_location(*found), text, related, fixes)


def _indices(count: int) -> str:
    return f"{count} ind{'ex' if count == 1 else 'ices'}"


def _function(fault: Fault, context: Context) -> tuple[str, Syntax, Function] | None:
    """The index map at fault."""
    known = fault.facts.get("index_map")
    if not isinstance(known, Mapping) or known.get("origin") != "workspace":
        return None
    path = str(known.get("path"))
    syntax = context.syntax(path)
    if syntax is None:
        return None
    line, name = int(known.get("line", 0)), str(known.get("function", ""))
    function = function_at(syntax, line, name, takes=known.get("parameters") or ())
    return (path, syntax, function) if function is not None else None


def _fixes(
    path: str, syntax: Syntax, function: Function, taken: list[ast.arg], dimensions: int
) -> Iterator[Fix | None]:
    edits = Editor(path, syntax)
    if dimensions > len(taken):
        edit = add_parameters(syntax, function, fresh_names(function, ("i", "j", "k"), dimensions - len(taken)))
        if edit is not None:
            edits.change(*edit)
            yield suggested("Take the missing indices", edits)
        return
    surplus = [p for p in reversed(taken) if unused(syntax, p)][: len(taken) - dimensions]
    if len(surplus) == len(taken) - dimensions:
        for parameter in surplus:
            edits.delete(*remove_parameter(syntax, function, parameter))
        names = ", ".join(f"`{p.arg}`" for p in reversed(surplus))
        yield suggested(f"Leave out {names}, which nothing uses", edits)
