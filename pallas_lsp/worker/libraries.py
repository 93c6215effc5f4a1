"""Kernels that others wrote: whether an exception is a library's refusal of the user's call, and what it refused.

A library is a kernel library where one of its modules on the way to the exception has imported Pallas.
"""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
import textwrap
import types
from typing import Any

from . import compat, frames

_REFUSALS = (ValueError, TypeError, NotImplementedError, AssertionError)
_ENVIRONMENT = re.compile(
    r"\b(?:cuda\w*|rocm|gpus?|tpus?|devices?|platforms?|backends?|compute.capability|libtpu|ptxas|interpret)\b",
    re.IGNORECASE,
)
_GROUPED = (
    ("jax/_src/lax/lax.py", "ragged_dot"),
    ("jax/_src/lax/lax.py", "ragged_dot_general"),
)
_MOST = 40


def _entries(error: BaseException) -> list[tuple[types.FrameType, int, int]]:
    """The frames below the user's innermost one, outermost first: (frame, instruction, line)."""
    below: list[tuple[types.FrameType, int, int]] = []
    entry = error.__traceback__
    while entry is not None:
        if frames.origin(entry.tb_frame.f_code.co_filename) == "workspace":
            below = []
        else:
            below.append((entry.tb_frame, entry.tb_lasti, entry.tb_lineno))
        entry = entry.tb_next
    return below


def is_raised_in_one(error: BaseException) -> bool:
    """Whether an exception was raised in an installed package, below the user's own code."""
    below = _entries(error)
    return bool(below) and (
        frames.origin(below[-1][0].f_code.co_filename) == "library" or any(_is_grouped(frame) for frame, _, _ in below)
    )


def is_refusal(error: BaseException) -> bool:
    """Whether a kernel library raised an exception over the arguments of the user's call.

    A library's complaint about the machine is not the user's fault, for no kernel runs here.
    """
    below = _entries(error)
    if not below or not isinstance(error, _REFUSALS):
        return False
    if any(_is_grouped(frame) for frame, _, _ in below):
        return True
    frame, instruction, line = below[-1]
    if frames.origin(frame.f_code.co_filename) != "library" or not _raises(frame, instruction):
        return False
    if not any(_uses_pallas(frame) for frame, _, _ in below):
        return False
    return not _ENVIRONMENT.search(f"{error} {_condition(frame, line)}")


def _is_grouped(frame: types.FrameType) -> bool:
    return (frames.jax_file(frame.f_code.co_filename), frame.f_code.co_name) in _GROUPED


def _raises(frame: types.FrameType, instruction: int) -> bool:
    """Whether a frame was raising the exception itself, not calling something that did."""
    found = next((i for i in dis.get_instructions(frame.f_code) if i.offset == instruction), None)
    return found is not None and found.opname == "RAISE_VARARGS"


def _uses_pallas(frame: types.FrameType) -> bool:
    return any(
        isinstance(value, types.ModuleType) and ".pallas" in value.__name__ and value.__name__.startswith("jax.")
        for value in frame.f_globals.values()
    )


def _condition(frame: types.FrameType, line: int) -> str:
    """What an ``assert`` on a line of a frame asks for."""
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, ValueError):
        return linecache.getline(frame.f_code.co_filename, line).strip()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and first + node.lineno - 1 <= line <= first + (node.end_lineno or 0) - 1:
            return ast.unparse(node.test)
    return ""


# -- facts -----------------------------------------------------------------------------------------------------------


def facts(error: BaseException) -> dict[str, Any] | None:
    """What was called in a library and with what, and the condition that does not hold there; None elsewhere."""
    below = _entries(error)
    if not below:
        return None
    called = next((f for f, _, _ in below if _in_library(f)), None)
    if called is None:
        return None
    frame, _, line = below[-1]
    found: dict[str, Any] = {
        "function": called.f_code.co_name,
        "module": str(called.f_globals.get("__name__", "")),
        "parameters": _parameters(called),
    }
    if _in_library(frame) or _is_grouped(frame):
        found["raised_in"] = frame.f_code.co_name
        found |= _broken(frame, line)
    return found


def asserted(error: BaseException) -> dict[str, Any] | None:
    """The condition that jax itself asserted without a word, with its values; None where it was another error."""
    below = _entries(error)
    if not isinstance(error, AssertionError) or str(error) or not below:
        return None
    frame, _, line = below[-1]
    return _broken(frame, line) or None if frames.jax_file(frame.f_code.co_filename) is not None else None


def _broken(frame: types.FrameType, line: int) -> dict[str, Any]:
    """The condition of an ``assert`` and the values in it; empty where there is none."""
    condition = _condition(frame, line)
    return {"condition": condition, "values": _values(condition, frame)} if condition else {}


def _in_library(frame: types.FrameType) -> bool:
    return frames.origin(frame.f_code.co_filename) == "library" or _is_grouped(frame)


def _parameters(frame: types.FrameType) -> dict[str, str]:
    """The parameters of a call as text: types of arrays, plain values."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = {name: frame.f_locals[name] for name in names if name in frame.f_locals and name != "self"}
    return {name: _text(value) for name, value in list(known.items())[:_MOST]}


def _values(condition: str, frame: types.FrameType) -> dict[str, str]:
    """The names and attributes in a condition with their values."""
    scope = {**frame.f_globals, **frame.f_locals}
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(condition, mode="eval")):
        if isinstance(node, ast.Name) and node.id in frame.f_locals:
            found[node.id] = _text(scope[node.id])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _ATTRIBUTES:
            value = getattr(scope.get(node.value.id), node.attr, None)
            if value is not None:
                found[f"{node.value.id}.{node.attr}"] = _text(value)
    return found


_ATTRIBUTES = ("shape", "dtype", "ndim", "size")


def _text(value: Any) -> str:
    if callable(value) and not hasattr(value, "shape"):
        return f"{getattr(value, '__name__', type(value).__name__)}"
    text = compat.notation(value)
    return text if len(text) <= 80 else f"{type(value).__name__}(...)"
