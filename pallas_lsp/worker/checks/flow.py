"""How the machine goes through programs inside a program: scopes, branches, loops and calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import compat
from .kernel import is_variable
from .machine import SYNC, At, LostError, Machine, Steps
from .regions import Memory

_CALLS = ("pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call")
_LONGEST = 4096


def follow(at: At) -> Steps:
    equation = at.equation
    name = equation.primitive.name
    given = [at.value(v) for v in equation.invars]
    results: list[Any] = []
    if name == "cond":
        yield from _branch(at, given, results)
    elif name == "scan":
        yield from _scan(at, given, results)
    elif name == "while":
        yield from _while(at, given, results)
    elif name == "run_scoped":
        yield from _scope(at, given, results)
    elif name == "run_state":
        yield from _state(at, given, results)
    elif name in _CALLS:
        inner = next(compat.sub_jaxprs(equation))
        yield from _inline(at, inner, given, results)
    elif _matters(equation):
        raise LostError
    else:
        _skip(at.machine, given, results)
    at.env.update(zip(at.equation.outvars, results, strict=False))


def _inline(at: At, jaxpr: Any, given: Sequence[Any], results: list[Any]) -> Steps:
    if len(given) != len(jaxpr.invars):
        raise LostError
    consts: list[Any] = [None] * len(jaxpr.constvars)
    yield from at.machine.follow(at.thread, jaxpr, consts, given, at.chain, results)


def _matters(equation: Any) -> bool:
    """Whether anything in the programs of an equation waits, or is waited for."""
    for jaxpr in compat.sub_jaxprs(equation):
        for each in jaxpr.eqns:
            if each.effects and any(word in each.primitive.name for word in SYNC):
                return True
            if _matters(each):
                return True
    return False


def _skip(machine: Machine, given: Sequence[Any], results: list[Any]) -> None:
    """Leave something out whose course is not known and that nothing waits for."""
    for each in given:
        if isinstance(each, Memory):
            machine.hazards.blur(each)
    results.clear()


def _branch(at: At, given: Sequence[Any], results: list[Any]) -> Steps:
    branches = list(compat.sub_jaxprs(at.equation))
    which = given[0]
    if which is None:
        if _matters(at.equation):
            raise LostError
        _skip(at.machine, given, results)
        return
    chosen = branches[min(max(int(which), 0), len(branches) - 1)]
    for other in (each for each in branches if each is not chosen):
        _blur_used(at.machine, other, given[1:])
    yield from _inline(at, chosen, given[1:], results)


def _blur_used(machine: Machine, jaxpr: Any, given: Sequence[Any]) -> None:
    """What another block writes under a condition is read at will: the reader masks it, or does nothing with it."""
    used = {v for equation in jaxpr.eqns for v in equation.invars if is_variable(v)}
    for variable, each in zip(jaxpr.invars, given, strict=False):
        if isinstance(each, Memory) and variable in used:
            machine.hazards.blur(each)


def _scan(at: At, given: Sequence[Any], results: list[Any]) -> Steps:
    params = at.equation.params
    consts, carried = _counts(params)
    jaxpr = next(compat.sub_jaxprs(at.equation))
    length = params["length"]
    if not isinstance(length, int) or length > _LONGEST or (not at.equation.effects and not _scalars(at.equation)):
        if at.equation.effects and _matters(at.equation):
            raise LostError
        _skip(at.machine, given, results)
        return
    carry = list(given[consts : consts + carried])
    xs: list[Any] = [None] * (len(given) - consts - carried)
    for _ in range(length):
        out: list[Any] = []
        yield from _inline(at, jaxpr, [*given[:consts], *carry, *xs], out)
        if len(out) < carried:
            return
        carry = out[:carried]
    results += [*carry, *[None] * (len(at.equation.outvars) - carried)]


def _scalars(equation: Any) -> bool:
    return any(not getattr(out.aval, "shape", (1,)) for out in equation.outvars)


def _counts(params: Any) -> tuple[int, int]:
    """How many constants and how many carried values a scan has."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    parts = [len(list(part)) for part in params["ft_in"].unpack()]
    return parts[0], parts[1]


def _while(at: At, given: Sequence[Any], results: list[Any]) -> Steps:
    params = at.equation.params
    test, body = compat.open_jaxpr(params["cond_jaxpr"]), compat.open_jaxpr(params["body_jaxpr"])
    first, second = params["cond_nconsts"], params["body_nconsts"]
    carry = list(given[first + second :])
    while True:
        out: list[Any] = []
        yield from _inline(at, test, [*given[:first], *carry], out)
        if not out:
            return
        if out[0] is None:
            if _matters(at.equation):
                raise LostError
            _skip(at.machine, given, results)
            return
        if not out[0]:
            break
        out = []
        yield from _inline(at, body, [*given[first : first + second], *carry], out)
        if len(out) < len(carry):
            return
        carry = out
    results += carry


def _scope(at: At, given: Sequence[Any], results: list[Any]) -> Steps:
    jaxpr = next(compat.sub_jaxprs(at.equation))
    if not at.equation.params.get("collective_axes") or len(at.machine.threads) == 1:
        memory = [Memory(v.aval) for v in jaxpr.invars]
    else:
        barrier, memory = at.machine.shared(at.thread, at.equation, lambda: [Memory(v.aval) for v in jaxpr.invars])
        barrier.arrive(at.thread, at.chain)
        yield from at.machine.wait(at.thread, barrier, at.chain)
    yield from at.machine.follow(at.thread, jaxpr, given, memory, at.chain, results)


def _state(at: At, given: Sequence[Any], results: list[Any]) -> Steps:
    if not all(at.equation.params.get("is_initialized", ())):
        raise LostError
    jaxpr = next(compat.sub_jaxprs(at.equation))
    memory = []
    for own, each in zip(jaxpr.invars, given, strict=True):
        fresh = each if isinstance(each, Memory) else Memory(own.aval)
        at.machine.hazards.blur(fresh)
        memory.append(fresh)
    outside: list[Any] = [None] * len(jaxpr.constvars)
    yield from at.machine.follow(at.thread, jaxpr, outside, memory, at.chain, [])
    at.thread.known.update(at.thread.wgmmas)
    at.thread.wgmmas.clear()
    outs = zip(at.equation.outvars, memory, strict=False)
    results += [each if is_variable(v) and compat.is_ref(v.aval) else None for v, each in outs]
