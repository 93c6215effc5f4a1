"""Uses of ``pl.run_state`` and ``pl.run_scoped``: the call, the body, the values, and in which form it is written."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

from pallas_lsp.rules.shared.places import Spot, is_decorator
from pallas_lsp.source.syntax import PARTIAL, Function, Syntax, parameters

PALLAS = ("jax.experimental.pallas", "pl")
RUN_STATE = frozenset({"jax.experimental.pallas.run_state", "jax._src.state.discharge.run_state"})
RUN_SCOPED = frozenset({"jax.experimental.pallas.run_scoped", "jax._src.pallas.primitives.run_scoped"})


class Form(StrEnum):
    """How a use is written.

    ``direct``: ``run_state(body)(x)``, ``run_scoped(body, x)``.  ``stored``: ``run = run_state(body)``, later
    ``run(x)``.  ``decorated``: ``@run_state`` over the body, later ``body(x)``.  ``applied``:
    ``@partial(run_scoped, acc=x)`` over the body.  ``other``: through ``functools.partial`` or a function around it.
    """

    DIRECT = "direct"
    STORED = "stored"
    DECORATED = "decorated"
    APPLIED = "applied"
    OTHER = "other"


@dataclass(frozen=True)
class Use:
    """``call`` runs the body.  ``maker``: for run_state the expression that made what ``call`` calls."""

    spot: Spot
    form: Form
    call: ast.expr
    maker: ast.Call | None = None
    body: ast.expr | Function | None = None
    """The expression given as the body, or the decorated function itself."""

    @property
    def syntax(self) -> Syntax:
        return self.spot.syntax

    @property
    def function(self) -> Function | None:
        """The body's definition, where it is in the same file."""
        if isinstance(self.body, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.body
        return self.syntax.callee(self.body) if isinstance(self.body, ast.expr) else None


def state_use(spot: Spot) -> Use | None:
    """The use of run_state that a call makes."""
    syntax, call = spot.syntax, spot.node
    if not isinstance(call, ast.Call):
        return None
    if syntax.called(call) in RUN_STATE:
        return None  # this makes the function; the call of it is what fails
    made = syntax.value(call.func)
    if isinstance(made, ast.Call):
        if syntax.called(made) in RUN_STATE:
            given = syntax.arguments(made)
            body = given.get(0, "f")
            form = Form.DIRECT if made is call.func else Form.STORED
            if syntax.dotted(made.func) not in RUN_STATE or len(made.args) != 1 or made.keywords:
                form = Form.OTHER
            return Use(spot, form, call, made, body)
        if syntax.dotted(made.func) in PARTIAL and made.args:
            inner = syntax.value(made.args[0])
            if isinstance(inner, ast.Call) and syntax.called(inner) in RUN_STATE:
                return Use(spot, Form.OTHER, call, inner, syntax.arguments(inner).get(0, "f"))
    if isinstance(made, ast.FunctionDef) and any(syntax.dotted(d) in RUN_STATE for d in made.decorator_list):
        return Use(spot, Form.DECORATED, call, None, made)
    return None


def state_value(use: Use) -> ast.expr | None:
    """The tree of refs given to a use of run_state."""
    assert isinstance(use.call, ast.Call)
    return use.syntax.arguments(use.call).get(0, "args")


def scoped_use(spot: Spot) -> Use | None:
    """The use of run_scoped that a call or a decorator makes."""
    syntax, node = spot.syntax, spot.node
    decorated = is_decorator(syntax, node)
    if decorated is not None and isinstance(node, ast.Call):
        partial = syntax.dotted(node.func) in PARTIAL
        if partial and node.args and syntax.dotted(node.args[0]) in RUN_SCOPED:
            return Use(spot, Form.APPLIED, node, node, decorated)
    if not isinstance(node, ast.Call) or syntax.called(node) not in RUN_SCOPED:
        return None
    body = syntax.arguments(node).get(0, "f")
    direct = syntax.dotted(node.func) in RUN_SCOPED and bool(node.args) and body is node.args[0]
    return Use(spot, Form.DIRECT if direct else Form.OTHER, node, None, body)


def scoped_argument(use: Use, step: int | str) -> ast.expr | None:
    """The type given to run_scoped at a position (the body not counted) or by a name."""
    assert isinstance(use.call, ast.Call)
    given = use.syntax.arguments(use.call)
    if isinstance(step, str):
        return given.keywords.get(step)
    if use.form is Form.APPLIED:
        return given.positional[step + 1] if step + 1 < len(given.positional) else None
    offset = 0 if "f" in given.keywords else 1
    return given.positional[step + offset] if step + offset < len(given.positional) else None


def parameter(use: Use, position: int, name: str | None = None) -> ast.arg | None:
    """The parameter of the body that receives a ref: by name, or by position after what ``partial`` bound."""
    function = use.function
    if function is None:
        return None
    every = parameters(function)
    if name is not None:
        return next((p for p in every if p.arg == name), None)
    bound = 0
    given = use.body
    while isinstance(given, ast.expr):
        value = use.syntax.value(given)
        if not isinstance(value, ast.Call) or not value.args:
            break
        bound += len(value.args) - 1
        taken = {k.arg for k in value.keywords}
        every = [p for p in every if p.arg not in taken]
        given = value.args[0]
    positional = [p for p in every if p not in function.args.kwonlyargs]
    return positional[bound + position] if bound + position < len(positional) else None
