"""
## What it does
Finds derivatives of functions that launch kernels: `jax.grad`, `jax.value_and_grad`, `jax.vjp`, `jax.linearize`,
`jax.jacrev`, and forward derivatives of kernels that jax cannot take either.

## Why it is wrong
jax does not know how to run a kernel backwards. A kernel is differentiable where the function around its launch has a
derivative of its own, given with `jax.custom_vjp`, which may be another kernel.

## Example
```python
grads = jax.grad(lambda x: activation(x).sum())(x)      # activation launches a kernel
```

## Use instead
```python
@jax.custom_vjp
def activation_with_gradient(x):
    return activation(x)

def forward(x):
    return activation(x), x

def backward(x, g):
    return (g * derivative(x),)

activation_with_gradient.defvjp(forward, backward)
```

## Fix safety
This rule offers no fix: the derivative has to be written.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_pallas_call_jvp_rule` in `jax/_src/pallas/pallas_call.py`; `linearize_from_jvp` and `process_primitive` in
`jax/_src/interpreters/ad.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Related
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot, expression_at
from pallas_lsp.source.syntax import PARTIAL

SINCE = "0.1.0"
CONSTRUCTS = ("derivatives and vmap",)
SPECIFICITY = 70
SITES = (
    ("jax/_src/pallas/pallas_call.py", "_pallas_call_jvp_rule"),
    ("jax/_src/pallas/core.py", "axis_frame"),
    ("jax/_src/state/primitives.py", "_swap_jvp"),
    ("jax/_src/state/discharge.py", "_run_state_jvp"),
)

_AD = "jax/_src/interpreters/ad.py"
_REVERSE = ("grad", "value_and_grad", "vjp", "linearize", "jacrev", "jacobian", "hessian", "checkpoint", "custom_vjp")
_DERIVATIVES = frozenset(f"jax.{name}" for name in (*_REVERSE, "jvp", "jacfwd")) | {"jax.experimental.jet.jet"}


def judge(fault: Fault, context: Context) -> Finding | None:
    differentiated = passed_through(fault, _AD) or passed_through(
        fault, "jax/_src/pallas/pallas_call.py", "_pallas_call_jvp_rule"
    )
    if not differentiated or (fault.stage == "lower" and not passed_through(fault, _AD, "process_primitive")):
        return None
    spot = _derivative(fault, context)
    name = context.kernel(fault)
    kernel = f"the kernel `{name}`" if name and name != "<lambda>" else "a kernel"
    location = spot.location if spot is not None else context.locate(fault)
    by = f"`{short(spot.source, 40)}`" if spot is not None else "This derivative"
    message = (
        f"{by} would differentiate {kernel}, which jax cannot do. Give the function around the launch a derivative "
        "of its own with `jax.custom_vjp`."
    )
    return finding(__name__, fault, context, location, message, _related(fault, context, location))


def _related(fault: Fault, context: Context, location: Location) -> Iterator[Related]:
    launch = launch_of(fault, context)
    if launch is not None and launch.name != location:
        yield Related(launch.name, "This launch has no derivative.")


def _derivative(fault: Fault, context: Context) -> Spot | None:
    """``jax.grad`` in the innermost user frame that asks for a derivative."""
    every = [a.frames for a in fault.anchors if a.by in ("traceback", "launch")] + [fault.frames]
    for frames in every:
        for frame in reversed([f for f in frames if f.origin == "workspace"]):
            spot = expression_at(context, frame)
            found = _asked(spot) if spot is not None else None
            if found is not None:
                return found
    return None


def _asked(spot: Spot) -> Spot | None:
    """The name of the function that takes a derivative, within or behind an expression."""
    syntax = spot.syntax
    call = spot.node if isinstance(spot.node, ast.Call) else None
    func: ast.expr | None = call.func if call is not None else spot.node
    for _ in range(8):
        if func is None:
            return None
        if syntax.dotted(func) in _DERIVATIVES:
            return spot.at(func)
        value = syntax.value(func)
        if isinstance(value, ast.Call):
            func = value.func
            if syntax.dotted(func) in PARTIAL | {"jax.jit"} and value.args:
                func = value.args[0]
            continue
        if isinstance(value, ast.FunctionDef):
            for decorator in value.decorator_list:
                inner = decorator.func if isinstance(decorator, ast.Call) else decorator
                if syntax.dotted(inner) in _DERIVATIVES:
                    return spot.at(inner)
                if isinstance(decorator, ast.Call) and decorator.args and syntax.dotted(inner) in PARTIAL:
                    first = decorator.args[0]
                    if syntax.dotted(first) in _DERIVATIVES:
                        return spot.at(first)
        return None
    return None
