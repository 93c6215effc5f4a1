"""One block of a Mosaic GPU kernel followed step by step: its threads, its barriers and the memory they use.

Integers are worked out, arrays are not.  Where an unknown value decides what is waited for, the machine gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import compat
from .hazards import Chain, Hazards, Thread
from .kernel import is_variable
from .regions import Memory, Operand, operands, region, slot
from .scalars import scalar

MOST_STEPS = 10000
_HARMLESS = ("debug_print", "print_layout", "async_prefetch", "set_max_registers", "griddepcontrol", "debug_callback")
SYNC = ("barrier", "wait", "copy", "commit", "tcgen05", "wgmma", "semaphore", "async", "run_scoped", "core_map")


class LostError(Exception):
    """The machine cannot tell how the kernel goes on."""


@dataclass(frozen=True)
class Arrival:
    """``known`` and ``clock``: what it tells who waits for it.  ``waited``: how often who arrives had waited before."""

    chain: Chain
    known: frozenset[int]
    clock: dict[int, int]
    waited: int


@dataclass(eq=False)
class Barrier:
    """One barrier: the arrivals of the phase that is open, and those of each closed one."""

    expected: int
    memory: Memory | None = None
    arrived: list[Arrival] = field(default_factory=list)
    closed: list[list[Arrival]] = field(default_factory=list)
    waits: dict[int, int] = field(default_factory=dict)
    waited: dict[int, Chain] = field(default_factory=dict)
    """How often each thread has waited for it, and where last."""

    def arrive(self, t: Thread, chain: Chain, tokens: frozenset[int] = frozenset()) -> None:
        """A thread arrives; ``tokens``: what is over when it counts."""
        known = frozenset(t.known) | tokens
        self.arrived.append(Arrival(chain, known, dict(t.clock), self.waits.get(t.number, 0)))
        if len(self.arrived) == self.expected:
            self.closed.append(self.arrived)
            self.arrived = []


@dataclass(frozen=True)
class Blocked:
    """A thread that waits for a barrier that does not open."""

    barrier: Barrier
    chain: Chain
    wait: int


Env = dict[Any, Any]
Steps = Iterator[Blocked]


class Machine:
    """``axes``: the index of the block along each axis of the grid, and the axis of the threads with -1."""

    def __init__(self, axes: Mapping[str, int], thread_axis: str | None, threads: int) -> None:
        self.hazards = Hazards()
        self.threads = [Thread(number) for number in range(threads)]
        self._axes, self._thread_axis = dict(axes), thread_axis
        self._barriers: dict[tuple[Memory, tuple[int, ...]], Barrier] = {}
        self._shared: dict[tuple[int, int], tuple[Barrier, list[Memory]]] = {}
        self._entered: dict[tuple[int, int], int] = {}
        self._programs: dict[int, list[Any]] = {}
        self._operands: dict[int, dict[str, Operand]] = {}
        self._steps = 0

    def run(self, jaxpr: Any, chain: Chain) -> list[Blocked]:
        """Where threads are stuck at the end; none where all came to theirs or memory was misused before."""
        arguments = [self._given(v) for v in jaxpr.invars]
        outside = [self._given(v) for v in jaxpr.constvars]
        going = {t: self.follow(t, jaxpr, outside, arguments, chain, []) for t in self.threads}
        stuck: dict[Thread, Blocked] = {}
        while going and self.hazards.found is None:
            progress = False
            for thread, steps in list(going.items()):
                before = stuck.get(thread)
                if before is not None and before.wait >= len(before.barrier.closed):
                    continue
                progress = True
                blocked = next(steps, None)
                if blocked is None:
                    del going[thread]
                    stuck.pop(thread, None)
                else:
                    stuck[thread] = blocked
            if not progress:
                return list(stuck.values())
            self.hazards.forget(self.threads)
        return []

    @staticmethod
    def _given(variable: Any) -> Any:
        if not compat.is_ref(variable.aval):
            return None
        return Memory(variable.aval)

    def _program(self, jaxpr: Any) -> list[Any]:
        """The equations that matter: those with effects, and scalars."""
        found = self._programs.get(id(jaxpr))
        if found is None:
            found = [
                e
                for e in jaxpr.eqns
                if e.effects
                or any(not getattr(out.aval, "shape", ()) or compat.is_ref(out.aval) for out in e.outvars)
                or any(is_variable(v) and compat.is_ref(v.aval) for v in e.invars)
            ]
            self._programs[id(jaxpr)] = found
        return found

    def follow(
        self, t: Thread, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], chain: Chain, results: list[Any]
    ) -> Steps:
        """A program in one thread; ``results`` gets what it returns."""
        env: Env = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, arguments, strict=True))
        for equation in self._program(jaxpr):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise LostError
            if self.hazards.found is not None:
                return
            name = equation.primitive.name
            handler = _HANDLERS.get(name)
            if handler is not None:
                yield from handler(At(self, t, equation, env, (*chain, equation)))
            elif any(True for _ in compat.sub_jaxprs(equation)):
                yield from _follow(At(self, t, equation, env, (*chain, equation)))
            elif name == "axis_index":
                env[equation.outvars[0]] = self._axis(t, equation.params["axis_name"])
            else:
                self._other(equation, env)
        results += [value(env, out) for out in jaxpr.outvars]

    def _axis(self, t: Thread, name: Any) -> int | None:
        return t.number if name == self._thread_axis else self._axes.get(name)

    def _other(self, equation: Any, env: Env) -> None:
        name = equation.primitive.name
        refs = [v for v in equation.invars if is_variable(v) and compat.is_ref(v.aval)]
        if (refs or equation.effects) and not any(word in name for word in _HARMLESS):
            if any(word in name for word in (*SYNC, "inline", "cluster", "multimem")):
                raise LostError
            for ref in refs:
                self.hazards.blur(env[ref])
        if len(equation.outvars) == 1:
            env[equation.outvars[0]] = scalar(equation, [value(env, v) for v in equation.invars])

    # -- what the operations are made of ------------------------------------------------------------------------------

    def operands(self, equation: Any) -> dict[str, Operand]:
        found = self._operands.get(id(equation))
        if found is None:
            found = self._operands[id(equation)] = operands(equation)
        return found

    def barrier(self, operand: Operand, env: Env) -> Barrier:
        memory = env[operand.ref]
        index = slot(operand, memory, lambda v: value(env, v))
        if index is None or memory.cluster or not isinstance(memory.barrier, int):
            raise LostError
        key = (memory, index)
        if key not in self._barriers:
            self._barriers[key] = Barrier(memory.barrier, memory)
        return self._barriers[key]

    def shared(self, t: Thread, equation: Any, allocate: Callable[[], list[Memory]]) -> tuple[Barrier, list[Memory]]:
        """What the threads allocate together, each time that they come to it, and where they meet for it."""
        key = (id(equation), t.number)
        self._entered[key] = self._entered.get(key, 0) + 1
        both = (id(equation), self._entered[key])
        if both not in self._shared:
            self._shared[both] = Barrier(len(self.threads)), allocate()
        return self._shared[both]

    def wait(self, t: Thread, barrier: Barrier, chain: Chain) -> Steps:
        number = barrier.waits.get(t.number, 0)
        while len(barrier.closed) <= number:
            yield Blocked(barrier, chain, number)
        barrier.waits[t.number] = number + 1
        barrier.waited[t.number] = chain
        for arrival in barrier.closed[number]:
            t.hear(arrival.known, arrival.clock)

    def awaited(self, copy: Chain, thread: int) -> tuple[Barrier, bool] | None:
        """The barrier that a copy arrived on after the arrivals that a thread had waited for on it.

        And whether who started the copy had not waited for them either.
        """
        for barrier in self._barriers.values():
            if thread not in barrier.waited:
                continue
            for phase, arrivals in enumerate([*barrier.closed, barrier.arrived]):
                for arrival in arrivals if phase >= barrier.waits[thread] else ():
                    if arrival.chain is copy:
                        return barrier, arrival.waited < phase
        return None


@dataclass(frozen=True)
class At:
    """One operation of a thread, with the values that are known there."""

    machine: Machine
    thread: Thread
    equation: Any
    env: Env
    chain: Chain

    @property
    def operands(self) -> dict[str, Operand]:
        return self.machine.operands(self.equation)

    def value(self, variable: Any) -> Any:
        return value(self.env, variable)

    def barrier(self, operand: Operand) -> Barrier:
        return self.machine.barrier(operand, self.env)

    def access(self, kind: str, role: str, token: int | None = None) -> None:
        """The operation reads or writes one of its operands."""
        operand = self.operands[role]
        memory = self.env.get(operand.ref) if is_variable(operand.ref) else None
        if isinstance(memory, Memory):
            part = region(operand, memory, self.value)
            hazards, name = self.machine.hazards, self.equation.primitive.name
            if kind == "read":
                hazards.read(self.thread, name, memory, part, self.chain, token, role)
            else:
                hazards.write(self.thread, name, memory, part, self.chain, token)


def value(env: Env, variable: Any) -> Any:
    """A number or memory; None for what is not known."""
    if isinstance(variable, int):
        return variable
    if hasattr(variable, "val"):
        number = variable.val
        return int(number) if getattr(number, "shape", ()) == () and _whole(number) else None
    return env.get(variable) if is_variable(variable) else None


def _whole(number: Any) -> bool:
    kind = getattr(getattr(number, "dtype", None), "kind", None)
    return kind in ("i", "u", "b") or isinstance(number, int)


def _follow(at: At) -> Steps:
    from .flow import follow

    yield from follow(at)


_HANDLERS: dict[str, Callable[[At], Steps]] = {}
"""How each operation with an effect on memory or barriers goes, by the name of its primitive."""


def handles(*names: str) -> Callable[[Callable[[At], Steps]], Callable[[At], Steps]]:
    def register(handler: Callable[[At], Steps]) -> Callable[[At], Steps]:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register
