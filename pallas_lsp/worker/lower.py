"""From a driver's program to lowered kernels: each captured launch is lowered alone, so that no fault hides another."""

from __future__ import annotations

import contextlib
import re
import time
from typing import Any

from . import abstract_devices, backends, checks, compat, confirming, core_maps, device_limits, equations, views
from .capture import UNIT
from .session import Capture, Session, of_a_test_elsewhere

_MARK = re.compile(rf"{UNIT}(c\d+)")
MOST_UNITS_PER_CAPTURE = 3
MOST_PER_KERNEL = 4
"""The captures of one launch and kernel that are lowered, of those that tests of other files bring."""
MOST_BODIES = 6
"""The kernels of other files that are lowered for one launch: those of a project's launch helper are many."""


def harvest(session: Session, closed_jaxpr: Any) -> list[tuple[Capture, Any, tuple[Any, ...]]]:
    """The captured launches in a driver's program: (capture, equation, equations around it).

    A launch inside ``shard_map`` is taken with it, for its axes have no meaning outside.
    """
    found: list[tuple[Capture, Any, tuple[Any, ...]]] = []
    seen: set[int] = set()
    for chain in equations.chains(compat.open_jaxpr(closed_jaxpr)):
        match = _MARK.search(str(chain[-1].params.get("name", "")))
        if match is None or match[1] not in session.captures:
            stateful = core_maps.find(session, chain)
            if stateful is not None and id(stateful[1]) not in seen:
                seen.add(id(stateful[1]))
                found.append((*stateful, chain))
            continue
        outer = next((e for e in chain if e.primitive.name == "shard_map"), chain[-1])
        if id(outer) not in seen:
            seen.add(id(outer))
            found.append((session.captures[match[1]], outer, chain))
    return found


def lower_all(session: Session, programs: list[tuple[str, Any]]) -> None:
    """Lower every captured launch of the drivers' programs (driver, closed jaxpr)."""
    counts: dict[str, int] = {}
    skipped = set(session.params.get("skip") or ())  # their lowering ended an earlier run
    kernels = _Kernels()
    for driver, program in [*programs, *_alone(session, programs)]:
        session.driver = driver
        for capture, equation, _ in harvest(session, program):
            counts[capture.id] = counts.get(capture.id, 0) + 1
            if counts[capture.id] > MOST_UNITS_PER_CAPTURE or capture.id in skipped or not session.concerns(capture):
                continue
            if not of_a_test_elsewhere(capture.driver) or kernels.few(capture, session.focus):
                _lower(session, capture, equation, program)


class _Kernels:
    """Counts the captures of each launch and kernel."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, set[str]]] = {}

    def few(self, capture: Capture, focus: str | None) -> bool:
        bodies = self._known.setdefault(repr(capture.launch[-1:]), {})
        known = bodies.setdefault(repr(capture.body), set())
        known.add(capture.id)
        foreign = capture.body is not None and capture.body["path"] != focus
        return len(known) <= MOST_PER_KERNEL and not (foreign and len(bodies) > MOST_BODIES)


def _alone(session: Session, programs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Programs of the captures whose traces user code kept to itself (``jax.jit(f).lower(x)``): traced again."""
    import jax

    found = {capture.id for _, program in programs for capture, _, _ in harvest(session, program)}
    more = []
    for capture in list(session.captures.values()):
        if capture.id in found or capture.again is None or capture.stage != "trace" or not session.concerns(capture):
            continue
        function, types = capture.again
        capture.again = None
        with contextlib.suppress(Exception), session.launching():
            more.append((capture.driver, jax.make_jaxpr(jax.jit(function))(*types)))
    return more


def _lower(session: Session, capture: Capture, equation: Any, program: Any) -> None:
    capture.again = None
    session.stage("lower", capture.id)
    started = time.perf_counter()
    inside = [chain[-1] for chain in equations.chains(_mini(equation, program))]
    if not any(e.primitive.name in core_maps.KERNELS for e in inside):
        return
    jaxpr = _mini(equation, program)
    if session.params.get("views") is not None:
        views.tell(session, capture, jaxpr, _lower_for)
        return
    if session.params.get("confirm") is not None:
        confirming.confirm(session, capture, jaxpr)
        return
    failures: list[tuple[BaseException, str]] = []
    wanted = backends.targets(capture.backend, jaxpr, session.params.get("targets") or {}, capture.tpu)
    for platform, kind in wanted:
        try:
            _lower_for(jaxpr, platform, kind)
        except Exception as error:
            failures.append((error, f"{platform}:{kind}"))
        else:
            capture.targets.append(f"{platform}:{kind}")
            failures.clear()
            break
    capture.seconds += time.perf_counter() - started
    if failures:
        first, target = failures[0]
        session.tell_fault(
            first, stage="lower", capture=capture, target=target, program=jaxpr, launch=capture.call or capture.launch
        )
        capture.failed = True
    elif not capture.failed:
        capture.stage = "lower"
        for found in checks.run(jaxpr, capture.backend, program):
            session.tell_silent(found.check, found.frames, found.facts, found.related, capture)
    if session.params.get("figures"):
        _tell_figures(capture, jaxpr)
    session.tell_capture(capture)


def _tell_figures(capture: Capture, jaxpr: Any) -> None:
    """What the program alone tells, and the digest by which a GPU's verdict on it is kept."""
    known = device_limits.known_figures(jaxpr) if capture.backend == "mosaic_gpu" else {}
    capture.resources.setdefault("programs", {})[confirming.digest(jaxpr)] = {"state": "lowered", **known}


def _lower_for(jaxpr: Any, platform: str, kind: str) -> Any:
    import jax

    function = compat.jaxpr_function(compat.closed(jaxpr))
    function = compat.in_memory_spaces(function, [var.aval for var in jaxpr.invars])
    with abstract_devices.abstract_device(platform, kind, abstract_devices.mesh_of(jaxpr)):
        return jax.jit(function).trace(*compat.abstract_arguments(jaxpr)).lower(lowering_platforms=(platform,))


def _mini(equation: Any, program: Any) -> Any:
    """A program of one equation: its operands become arguments.

    Of a jitted function it is the function's own program: the call remembers the device that it was traced for.
    """
    inner = equation.params.get("jaxpr") if equation.primitive.name in ("jit", "pjit") else None
    if inner is not None and not getattr(inner, "consts", ()):
        return compat.open_jaxpr(inner)
    return compat.one_equation(equation, compat.open_jaxpr(program))
