"""Finding the equation of a traced program that a fault of lowering belongs to."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

from . import compat, frames

Chain = tuple[Any, ...]


def chains(jaxpr: Any, outer: Chain = ()) -> Iterator[Chain]:
    """Each equation of a program with the equations around it, outermost first."""
    for equation in jaxpr.eqns:
        chain = (*outer, equation)
        yield chain
        for inner in compat.sub_jaxprs(equation):
            yield from chains(inner, chain)


def in_traceback(traceback: types.TracebackType | None) -> Chain:
    """The equations that jax's lowering loops were at, outermost first.

    Each backend's loop keeps the equation in a local named ``eqn`` (``lower_jaxpr_to_mosaic_gpu``, ``jaxpr_subcomp``,
    ``lower_jaxpr_to_triton_ir``).
    """
    found: list[Any] = []
    while traceback is not None:
        equation = dict(traceback.tb_frame.f_locals).get("eqn")
        if equation is not None and compat.is_equation(equation) and (not found or found[-1] is not equation):
            found.append(equation)
        traceback = traceback.tb_next
    return tuple(found)


def own(chain: Chain) -> Chain:
    """The part of a chain whose source places can be trusted.

    The program inside a jitted library function (``jnp.sort``) is traced once and cached: its equations may name the
    place of another call.  So the chain ends at the call itself.
    """
    for index, equation in enumerate(chain):
        if _library_call(equation):
            return chain[: index + 1]
    return chain


def _library_call(equation: Any) -> bool:
    if equation.primitive.name not in ("pjit", "jit", "custom_jvp_call", "custom_vjp_call"):
        return False
    files = [frames.jax_file(compat.program_source(inner)) for inner in compat.sub_jaxprs(equation)]
    return any(file is not None and "pallas" not in file for file in files)


def innermost_frames(chain: Chain) -> list[frames.Frame]:
    """The user's frames of the innermost equation that has any."""
    for equation in reversed(own(chain)):
        found = frames.of_codes(compat.equation_frames(equation))
        if found:
            return found
    return []


_NAMED = (
    re.compile(r"(?:primitive|Unimplemented primitive)[^:\n]*:\s*([A-Za-z_][\w\-]*)"),
    re.compile(r"lowering rule for [`'\"]?([A-Za-z_]\w*)"),
    re.compile(r"^([a-z_]\w*) (?:is )?not (?:implemented|supported)"),
)


_OPERATION = re.compile(r"'(\w+\.\w+)' op ")
# What an operation that a verifier refuses was lowered from.
_LOWERED_FROM = {
    "tpu.enqueue_dma": "dma_start",
    "tpu.wait_dma": "dma_wait",
    "tpu.wait_dma2": "dma_wait",
    "tpu.matmul": "dot_general",
    "tpu.sem_signal": "semaphore_signal",
    "tpu.sem_wait": "semaphore_wait",
    "tpu.transpose": "transpose",
    "tpu.concatenate": "concatenate",
    "vector.extract_strided_slice": "slice",
    "vector.shape_cast": "reshape",
    "vector.transpose": "transpose",
}


def named_in(message: str, jaxpr: Any) -> Chain:
    """The chain of the first equation whose primitive a message names, or an empty one."""
    names = [match[1] for pattern in _NAMED if (match := pattern.search(message))]
    names += [_LOWERED_FROM[name] for name in _OPERATION.findall(message) if name in _LOWERED_FROM]
    for chain in chains(jaxpr):
        if chain[-1].primitive.name in names:
            return chain
    return ()


def at(frame: frames.Frame, jaxpr: Any, primitive: str = "") -> Chain:
    """The chain of the equation whose innermost user frame is where ``frame`` is.

    MLIR keeps the start of a place, and its end where it is on the same line: ``x_ref[...] @ y`` starts where
    ``x_ref[...]`` does.  ``primitive``: the one that is meant, where MLIR names it.
    """
    starting: Chain = ()
    for chain in chains(jaxpr):
        found = innermost_frames(chain)
        if found and all(found[-1].get(key) == frame.get(key) for key in ("path", "line", "column")):
            meant = not primitive or chain[-1].primitive.name == primitive
            if meant and (primitive or frame.get("end_column") in (None, found[-1].get("end_column"))):
                return chain
            starting = starting or chain
    return starting


def of_primitive(name: str, jaxpr: Any) -> Chain:
    """The chain of the first equation of a primitive."""
    return next((chain for chain in chains(jaxpr) if name and chain[-1].primitive.name == name), ())


def on_line(frame: frames.Frame, jaxpr: Any) -> Chain:
    """The chain of the first equation whose innermost user frame starts on the line of ``frame``."""
    for chain in chains(jaxpr):
        found = innermost_frames(chain)
        if found and all(found[-1].get(key) == frame.get(key) for key in ("path", "line")):
            return chain
    return ()


def describe(chain: Chain) -> dict[str, Any] | None:
    """The innermost equation as the protocol's ``Equation``."""
    if not chain:
        return None
    equation = chain[-1]
    params = {}
    for key, value in equation.params.items():
        if compat.open_jaxpr(value) is None and not callable(value):
            text = str(value)
            params[str(key)] = text if len(text) <= 200 else text[:197] + "..."
    return {
        "primitive": equation.primitive.name,
        "inputs": [compat.notation(v) for v in equation.invars],
        "outputs": [compat.notation(v) for v in equation.outvars],
        "params": params,
        "frames": innermost_frames(chain),
    }
