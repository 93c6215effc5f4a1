"""Lane and warpgroup semantics: which one a kernel is lowered under, and a fix that chooses the latter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import PLGPU
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.source.edits import Editor

DEFAULT_SINCE = (0, 11)
"""From this jax on kernels are lowered under warpgroup semantics where nothing else is said."""


def under_warpgroup_semantics(context: Context, fault: Fault) -> Iterator[Fix]:
    """A fix that lowers the kernel under warpgroup semantics, where it is lowered under lane semantics."""
    launch = launch_of(fault, context)
    if launch is None:
        return
    given = launch.argument("compiler_params")
    if given is None:
        if context.jax >= DEFAULT_SINCE:
            return
        edits = Editor(launch.spot.path, launch.syntax)
        params = edits.spell(f"{PLGPU}.CompilerParams", launch.call, ALIAS)
        semantics = edits.spell(f"{PLGPU}.LoweringSemantics", launch.call, ALIAS)
        if params is None or semantics is None:
            return
        text = f"{params}(lowering_semantics={semantics}.Warpgroup)"
        edits.insert_argument(launch.call, f"compiler_params={text}")
    else:
        made = given.syntax.value(given.node)
        semantic = None
        if isinstance(made, ast.Call):
            semantic = next((k.value for k in made.keywords if k.arg == "lowering_semantics"), None)
        if not isinstance(semantic, ast.Attribute) or semantic.attr != "Lane":
            return
        edits = Editor(given.path, given.syntax)
        edits.rename(semantic, "Warpgroup")
    fix = suggested("Lower it under warpgroup semantics, which infer layouts", edits)
    if fix is not None:
        yield fix
