"""``pl.core_map`` (and a launch that is given refs): its body is traced where it stands, over refs from around it.

It takes no arguments of its own, so it cannot be lowered alone: it is lowered with the nearest equation around it that
takes and gives values only (a ``run_state``, a jitted function).
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from . import backends, capture, compat, frames
from .session import Capture, Session

API = "pl.core_map"
KERNELS = ("core_map", "mpmd_map", "pallas_call")


def install(session: Session) -> None:
    pallas: Any = importlib.import_module("jax.experimental.pallas")
    original = getattr(pallas, "core_map", None)
    if original is None:
        return

    @functools.wraps(original)
    def core_map(*args: Any, **options: Any) -> Any:
        if session.inside:
            return original(*args, **options)
        here = frames.of_stack(sys._getframe(1))
        if "interpret" in options:
            options["interpret"] = False
        mesh = args[0] if args else options.get("mesh")
        decorate = original(*args, **options)

        def launch(body: Callable[[], Any]) -> Any:
            return _launch(session, decorate, body, mesh, here)

        return launch

    pallas.core_map = core_map


def _launch(
    session: Session, decorate: Callable[..., Any], body: Callable[[], Any], mesh: Any, here: list[frames.Frame]
) -> Any:
    if session.failure_is_expected():
        return decorate(body)
    namespace = getattr(capture.unwrapped(body), "__globals__", {})
    known = session.new_capture(
        api=API,
        arguments="",
        launch=here,
        call=here,
        body=capture.body_of(body),
        options={"mesh": mesh},
        namespace=namespace,
    )
    known.stateful = True
    known.backend = backends.of_launch(API, {"mesh": mesh}, namespace)
    session.launched += 1
    session.tell_capture(known)
    if session.mode == "concrete":
        return None  # nothing runs on a device
    try:
        with session.launching():
            result = decorate(body)
    except Exception as error:
        known.failed = True
        session.tell_fault(error, stage="trace", capture=known, launch=here)
        return None
    known.stage = "trace"
    session.tell_capture(known)
    return result


def find(session: Session, chain: tuple[Any, ...]) -> tuple[Capture, Any] | None:
    """The capture that the innermost equation of a chain is the launch of, with the equation to lower it by."""
    if chain[-1].primitive.name not in KERNELS:
        return None
    # What jax wraps a launch in may know its place where the launch's own equation does not.
    each = (frames.of_codes(compat.equation_frames(equation)) for equation in reversed(chain))
    places: list[frames.Frame] = next((found for found in each if found), [])
    for known in session.captures.values():
        around = [*known.launch[-1:], *known.call[-1:]]
        if known.stateful and not known.failed and any(_through(place, places) for place in around):
            for equation in reversed(chain[:-1]):
                if not any(compat.is_ref(var.aval) for var in (*equation.invars, *equation.outvars)):
                    return known, equation
    return None


def _through(launch: frames.Frame, places: list[frames.Frame]) -> bool:
    """Whether an equation was made where a launch stands; a decorator's line may be told as its function's."""
    lines = range(launch["line"], (launch.get("end_line") or launch["line"]) + 2)
    return any(place["path"] == launch["path"] and place["line"] in lines for place in places)
