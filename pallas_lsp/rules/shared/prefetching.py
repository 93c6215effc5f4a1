"""``num_scalar_prefetch`` of a grid spec against what the index maps and specs ask for."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fix, Location, Related
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import Launch
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor


def prefetch_count(
    launch: Launch, given: int, wanted: int
) -> tuple[Location, str, list[Related], list[Fix | None]] | None:
    """Place, words and fix for the count, where index maps and specs both ask for another one."""
    count, more = launch.argument("num_scalar_prefetch"), wanted - given
    skip, axes = int(launch.facts.get("scalar_prefetch") or 0), len(launch.facts.get("grid") or ())
    specs = launch.argument("in_specs")
    value = specs.syntax.value(specs.node) if specs is not None else None
    if count is None or specs is None or not more or not isinstance(value, ast.List | ast.Tuple) or not axes:
        return None
    counts = set()
    for element in value.elts:
        spec = specs.syntax.value(element)
        index_map = specs.syntax.argument(spec, 1, "index_map") if isinstance(spec, ast.Call) else None
        function = specs.syntax.callee(index_map) if index_map is not None else None
        if function is not None and function.args.vararg is None:
            counts.add(len(positional(function)))
    if counts != {axes + skip + more}:
        return None
    editor = Editor(count.path, count.syntax)
    editor.replace(count.node, str(skip + more))
    taken = count_text(skip + more, "array")
    message = (
        f"`num_scalar_prefetch` is {skip}, but the index maps take {taken} of numbers after the "
        f"{count_text(axes, 'grid index')}, and `in_specs` leaves {taken} without a spec."
    ).replace("indexs", "indices")
    fix = suggested(f"Prefetch {skip + more}", editor)
    return count.location, message, [Related(specs.location, "The specs, one for each other input.")], [fix]
