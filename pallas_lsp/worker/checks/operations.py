"""What each operation of Mosaic GPU does to memory and barriers, for the machine that follows a kernel."""

from __future__ import annotations

from typing import Any

from .hazards import Thread
from .kernel import is_variable
from .machine import At, LostError, Steps, handles


@handles("get", "load", "async_load")
def _read(at: At) -> Steps:
    at.access("read", "ref")
    yield from ()


@handles("swap", "store", "addupdate")
def _store(at: At) -> Steps:
    if at.equation.primitive.name == "addupdate":
        at.access("read", "ref")
    at.access("write", "ref")
    yield from ()


@handles("async_store_tmem")
def _store_tmem(at: At) -> Steps:
    at.access("write", "ref")
    yield from ()


@handles("async_copy_smem_to_tmem")
def _copy_to_tmem(at: At) -> Steps:
    if at.equation.params.get("collective_axis"):
        raise LostError
    token = at.machine.hazards.token()
    at.thread.mmas.append(token)
    at.access("read", "source", token)
    at.access("write", "target", token)
    yield from ()


@handles("copy_gmem_to_smem")
def _copy_in(at: At) -> Steps:
    params = at.equation.params
    found = at.operands
    if any(params.get(key) for key in ("collective_axes", "leader_tracked", "has_user_predicate")):
        raise LostError
    if "barrier" not in found:
        at.machine.hazards.blur(at.env[found["target"].ref])
        yield from ()
        return
    barrier = at.barrier(found["barrier"])
    token = at.machine.hazards.token()
    at.access("write", "target", token)
    barrier.arrive(at.thread, at.chain, frozenset({token}))
    yield from ()


@handles("copy_smem_to_gmem")
def _copy_out(at: At) -> Steps:
    params = at.equation.params
    happens: Any = at.value(at.equation.invars[-1]) if params.get("has_user_predicate") else 1
    token = at.machine.hazards.token()
    if not at.thread.copies:
        at.thread.copies.append([])
    at.thread.copies[-1].append(token)
    if happens:
        at.access("read", "source", token)
    if params.get("commit_group", True):
        at.thread.copies.append([])
    yield from ()


@handles("commit_group")
def _commit_group(at: At) -> Steps:
    at.thread.copies.append([])
    yield from ()


@handles("wait_smem_to_gmem")
def _wait_out(at: At) -> Steps:
    allowed = _number(at)
    committed = at.thread.copies[:-1]
    for group in committed[: max(len(committed) - allowed, 0)]:
        at.thread.known.update(group)
    at.thread.copies = [*committed[max(len(committed) - allowed, 0) :], *at.thread.copies[-1:]]
    yield from ()


def _number(at: At) -> int:
    number = at.equation.params.get("n")
    if number is None and at.equation.invars:
        number = at.value(at.equation.invars[0])
    if not isinstance(number, int):
        raise LostError
    return number


@handles("barrier_wait")
def _wait(at: At) -> Steps:
    yield from at.machine.wait(at.thread, at.barrier(at.operands["barrier"]), at.chain)


@handles("barrier_arrive", "barrier_arrive_and_wait")
def _arrive(at: At) -> Steps:
    if at.equation.params.get("has_user_predicate"):
        happens = at.value(at.equation.invars[-1])
        if happens is None:
            raise LostError
        if not happens:
            return
    barrier = at.barrier(at.operands["barrier"])
    barrier.arrive(at.thread, at.chain)
    if at.equation.primitive.name == "barrier_arrive_and_wait":
        yield from at.machine.wait(at.thread, barrier, at.chain)


@handles("commit_smem")
def _commit(at: At) -> Steps:
    at.machine.hazards.commit("smem")
    yield from ()


@handles("commit_tmem")
def _commit_tmem(at: At) -> Steps:
    at.machine.hazards.commit("tmem")
    yield from ()


@handles("wait_load_tmem", "wait_gmem_to_smem", "wgmma_accumulator_store", "wgmma_accumulator_store_p")
def _nothing(at: At) -> Steps:
    del at
    yield from ()


@handles("wgmma_ref")
def _wgmma(at: At) -> Steps:
    at.thread.known.update(at.thread.wgmmas)  # it waits for all but itself
    token = at.machine.hazards.token()
    at.thread.wgmmas = [token]
    for role in ("a", "b"):
        at.access("read", role, token)
    yield from ()


@handles("wgmma_wait")
def _wgmma_wait(at: At) -> Steps:
    _finish(at.thread, _number(at))
    yield from ()


@handles("wgmma_accumulator_deref", "wgmma_accumulator_deref_p")
def _dereference(at: At) -> Steps:
    allowed = at.equation.params.get("wait_n")
    if isinstance(allowed, int):
        _finish(at.thread, allowed)
    yield from ()


def _finish(thread: Thread, allowed: int) -> None:
    done = thread.wgmmas[: max(len(thread.wgmmas) - allowed, 0)]
    thread.known.update(done)
    thread.wgmmas = thread.wgmmas[len(done) :]


@handles("tcgen05_mma")
def _mma(at: At) -> Steps:
    if at.equation.params.get("collective_axis"):
        raise LostError
    token = at.machine.hazards.token()
    at.thread.mmas.append(token)
    found = at.operands
    adds = at.value(found["accumulate"].ref)
    for role in ("a", "b"):
        at.access("read", role, token)
    if adds:
        at.access("read", "acc", token)
    at.access("write", "acc", token)
    if "barrier" in found:
        _arrive_when_done(at)
    yield from ()


@handles("tcgen05_commit_arrive")
def _commit_arrive(at: At) -> Steps:
    if at.equation.params.get("collective_axis") or at.equation.params.get("has_user_predicate"):
        raise LostError
    _arrive_when_done(at)
    yield from ()


def _arrive_when_done(at: At) -> None:
    operand = at.operands["barrier"]
    if not is_variable(operand.ref):
        return
    at.barrier(operand).arrive(at.thread, at.chain, frozenset(at.thread.mmas))
