"""A wait on a barrier, the barrier's allocation, and the number of arrivals that it is said to wait for."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_operands import allocation
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor


def barrier_name(wait: Spot | None) -> str:
    """What a wait is on, as the source names it."""
    given = wait.syntax.arguments(wait.node).get(0, "barrier") if wait and isinstance(wait.node, ast.Call) else None
    return f"`{short(wait.syntax.source(given), 40)}`" if wait is not None and given is not None else "This barrier"


def allocated_at(fault: Fault, context: Context) -> Spot | None:
    made = fault.facts.get("allocation")
    return allocation(made).spot(context) if isinstance(made, Mapping) else None


def wait_for(barrier: Spot, came: int) -> Fix | None:
    """The number of arrivals that come, where the barrier is allocated."""
    call = barrier.node
    if not isinstance(call, ast.Call):
        return None
    edits = Editor(barrier.path, barrier.syntax)
    given = barrier.syntax.arguments(call).get(0, "num_arrivals")
    if given is not None and given in ast.walk(call):
        edits.replace(given, str(came))
    elif given is not None or call.args or any(each.arg is None for each in call.keywords):
        return None
    else:
        end = barrier.syntax.span(call.func)[1]
        edits.insert(end + 1, f"num_arrivals={came}" + (", " if call.keywords else ""))
    return suggested(f"Wait for {count_text(came, 'arrival')}", edits)
