"""The arrays that a kernel body or an index map uses without having been given them: their types, names and uses."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

from . import compat, frames
from .know_values import kind

Stack = list[tuple[types.FrameType, dict[str, Any]]]

_DEEP = 6
_USES = 8
# (file, function) -> (local that holds the constants or the closed program, local that holds the function)
_HOLDERS = {
    ("jax/_src/pallas/pallas_call.py", "_trace_kernel_to_jaxpr"): ("closed_jaxpr", "jaxpr", "consts", "fun"),
    ("jax/_src/pallas/core.py", "to_block_mapping"): ("closed_jaxpr", "jaxpr", "consts", "index_map_func"),
    ("jax/_src/pallas/mpmd.py", "wrapper"): ("jaxpr", "jaxpr", "consts", "fn"),
}
_RAISERS = ("_trace_kernel_to_jaxpr", "to_block_mapping", "_error_if_non_ref_consts")


def collect(stack: Stack, facts: dict[str, Any]) -> None:
    """``facts["captured"]``."""
    own = [(frame, names) for frame, names in stack if frames.jax_file(frame.f_code.co_filename) is not None]
    if not own or own[0][0].f_code.co_name not in _RAISERS:
        return
    for frame, names in own[:3]:
        holder = _HOLDERS.get((frames.jax_file(frame.f_code.co_filename) or "", frame.f_code.co_name))
        if holder is None:
            continue
        closed, opened, constants, function = holder
        program = names.get(closed) or names.get(opened)
        values = getattr(program, "consts", None)
        values = names.get(constants) if values is None else values
        body = names.get(function)
        found = [
            entry
            for index, value in enumerate(values or ())
            if (entry := _describe(index, value, program, body)) is not None
        ]
        if found:
            facts["captured"] = found
        return


def _describe(index: int, value: Any, program: Any, body: Any) -> dict[str, Any] | None:
    described = kind(value)
    if described["kind"] == "ref":
        return None
    jaxpr = compat.open_jaxpr(program)
    uses: list[list[frames.Frame]] = []
    if jaxpr is not None and index < len(jaxpr.constvars):
        for equation in _users(jaxpr, jaxpr.constvars[index]):
            places = frames.of_codes(compat.equation_frames(equation))
            if places and places not in uses:
                uses.append(places)
    return {**described, "type": compat.notation(value), "uses": uses[:_USES], **_name(value, body)}


def _users(jaxpr: Any, var: Any) -> Iterator[Any]:
    """The equations that read a variable, those inside loops and branches in place of the loop."""
    for equation in jaxpr.eqns:
        for position, read in enumerate(equation.invars):
            if read is not var:
                continue
            inside: list[Any] = []
            for inner in compat.sub_jaxprs(equation):
                # run_scoped gives what its body closes over as the inner program's constants.
                given = inner.constvars if inner.constvars else inner.invars
                own = position + len(given) - len(equation.invars)
                if 0 <= own < len(given):
                    inside += _users(inner, given[own])
            yield from inside or [equation]


def _name(value: Any, body: Any) -> dict[str, Any]:
    """By which name a function reaches a value, and where that name is bound."""
    for name, found, scope in _reachable(body, 0, set()):
        if found is value:
            return {"name": name, "scope": scope}
        if isinstance(found, (list, tuple)) and any(item is value for item in found[:64]):
            return {"name": name, "scope": scope, "inside": True}
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    for name, found, scope in _reachable(body, 0, set()):
        # jax makes its own array of numpy's.
        if type(found).__module__ == "numpy" and getattr(found, "shape", None) == shape and found.dtype == dtype:
            return {"name": name, "scope": scope}
    return {}


def _reachable(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any, str]]:
    """(name, value, scope) of what a function can reach: partials, cells, globals, and helpers it calls."""
    if depth > _DEEP or id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, functools.partial):
        for position, value in enumerate(function.args):
            yield str(position), value, "partial"
        for name, value in function.keywords.items():
            yield name, value, "partial"
        yield from _reachable(function.func, depth + 1, seen)
        return
    if hasattr(function, "__wrapped__"):
        yield from _reachable(function.__wrapped__, depth + 1, seen)
    if inspect.ismethod(function):
        yield from ((name, value, "attribute") for name, value in vars(function.__self__).items())
        function = function.__func__
    code = getattr(function, "__code__", None)
    if code is None:
        inner = getattr(function, "index_map", None) or getattr(function, "f", None)
        if inner is not None:
            yield from _reachable(inner, depth + 1, seen)
        return
    nested: list[Any] = []
    user = frames.origin(code.co_filename) is not None
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if user:
            yield name, value, "closure"
        nested.append(value)
    if user:
        for name in _global_names(code):
            if name in function.__globals__:
                value = function.__globals__[name]
                yield name, value, "global"
                if inspect.isclass(value) and frames.origin(getattr(inspect.getmodule(value), "__file__", "") or ""):
                    yield from ((f"{name}.{key}", item, "attribute") for key, item in vars(value).items())
                nested.append(value)
    for value in nested:
        if callable(value) and (hasattr(value, "__code__") or isinstance(value, functools.partial)):
            yield from _reachable(value, depth + 1, seen)


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
