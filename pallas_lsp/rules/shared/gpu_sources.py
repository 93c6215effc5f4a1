"""From a ref in shared memory back to the array that it is filled from."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.gpu_operands import called
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot


def copied_from(ref: Spot) -> Spot | None:
    """The ref in GMEM, as a whole, that the one copy into a ref in SMEM reads."""
    syntax = ref.syntax
    if not isinstance(ref.node, ast.Name):
        return None
    found = []
    for use in syntax.uses(ref.node):
        call = syntax.parent(use)
        if isinstance(call, ast.Call) and called(syntax, call) == "copy_gmem_to_smem":
            given = syntax.arguments(call)
            if given.get(1, "dst") is use:
                found.append(given.get(0, "src"))
    if len(found) != 1 or not isinstance(found[0], ast.Name):
        return None
    return ref.at(found[0])


def operand_at_launch(context: Context, fault: Fault, ref: Spot) -> Spot | None:
    """The expression that the launch gets for a ref that is a parameter of the kernel's body."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if launch is None or body is None or not isinstance(ref.node, ast.Name) or body[0] != ref.path:
        return None
    binding = ref.syntax.binding(ref.node)
    names = positional(body[2])
    if binding is None or binding.node not in names:
        return None
    index = names.index(binding.node)
    operands = launch.operands()
    return operands[index] if index < len(operands) else None
