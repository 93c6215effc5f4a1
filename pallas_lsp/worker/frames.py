"""Places in source: from code objects, tracebacks and MLIR locations to ``Frame`` and ``Site`` objects."""

from __future__ import annotations

import functools
import itertools
import os
import re
import site
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

Frame = dict[str, Any]

_HERE = os.path.dirname(os.path.realpath(__file__))


@functools.cache
def _jax_folders() -> tuple[str, ...]:
    folders = []
    for name in ("jax", "jaxlib"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "__file__", None):
            folders.append(os.path.dirname(os.path.realpath(str(module.__file__))) + os.sep)
    return tuple(folders)


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], *site.getsitepackages()}
    if site.ENABLE_USER_SITE:
        found.add(site.getusersitepackages())
    return tuple(os.path.realpath(path) + os.sep for path in found)


def is_installed(path: str) -> bool:
    """Whether a file is one of the standard library or of an installed package, and not the user's own."""
    real = os.path.realpath(path)
    return real not in _claimed and real.startswith(_library_folders())


_claimed: set[str] = set()


def claim(paths: Iterable[str]) -> None:
    """Files that are the user's wherever they lie: the checked one and the open documents."""
    _claimed.update(os.path.realpath(path) for path in paths)
    origin.cache_clear()


@functools.cache
def origin(path: str) -> str | None:
    """Whose code a file is: ``workspace`` (the user's), ``library`` (installed packages, jax's own kernels), or None.

    None is for what is never at fault: jax itself, the standard library, this worker, code without a file (MLIR parses
    attributes under names such as ``#tpu.dimension_semantics<...>``).
    """
    if path.startswith(("<", "#")) or not path:
        return None
    real = os.path.realpath(path)
    if real in _claimed:
        return "workspace"
    if real.startswith(_HERE + os.sep):
        return None
    for folder in _jax_folders():
        if real.startswith(folder):
            return "library" if f"{os.sep}pallas{os.sep}ops{os.sep}" in real[len(folder) - 1 :] else None
    if any(real.startswith(folder) for folder in _library_folders()):
        return "library" if re.search(r"[/\\](site|dist)-packages[/\\]", real) else None
    return "workspace"


@functools.cache
def jax_file(path: str) -> str | None:
    """The path below site-packages of a file of jax or jaxlib, with forward slashes."""
    real = os.path.realpath(path)
    for folder in _jax_folders():
        if real.startswith(folder):
            return os.path.relpath(real, os.path.dirname(folder.rstrip(os.sep))).replace(os.sep, "/")
    return None


def place(code: types.CodeType, lasti: int, line: int | None = None) -> Frame | None:
    """The expression that ``code`` was evaluating at instruction ``lasti``; None where no user code is concerned."""
    where = origin(code.co_filename)
    if where is None:
        return None
    frame: Frame = {
        "path": code.co_filename,
        "line": line or code.co_firstlineno,
        "function": getattr(code, "co_qualname", code.co_name),
        "origin": where,
    }
    if hasattr(code, "co_positions") and lasti >= 0:
        for start, end, column, end_column in itertools.islice(code.co_positions(), lasti // 2, lasti // 2 + 1):
            if start is not None:
                frame.update(line=start, end_line=end, column=column, end_column=end_column)
    return frame


def of_traceback(traceback: types.TracebackType | None) -> Iterator[Frame]:
    """The user's frames of a traceback, outermost first."""
    while traceback is not None:
        found = place(traceback.tb_frame.f_code, traceback.tb_lasti, traceback.tb_lineno)
        if found is not None:
            yield found
        traceback = traceback.tb_next


def of_codes(codes: Iterable[tuple[types.CodeType, int]]) -> list[Frame]:
    """The user's frames of an XLA traceback (innermost first), outermost first."""
    return [found for code, lasti in codes if (found := place(code, lasti)) is not None][::-1]


def of_stack(frame: types.FrameType | None, limit: int = 64) -> list[Frame]:
    """The user's frames of the running stack, outermost first."""
    found: list[Frame] = []
    while frame is not None and len(found) < limit:
        here = place(frame.f_code, frame.f_lasti, frame.f_lineno)
        if here is not None:
            found.append(here)
        frame = frame.f_back
    return found[::-1]


def jax_calls(traceback: types.TracebackType | None, limit: int = 40) -> list[dict[str, Any]]:
    """jax's own frames of a traceback, innermost first."""
    calls = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file = jax_file(code.co_filename)
        if file is not None:
            function = getattr(code, "co_qualname", code.co_name)
            calls.append({"file": file, "function": function, "line": traceback.tb_lineno})
        traceback = traceback.tb_next
    return calls[::-1][:limit]


_PRIMITIVE = re.compile(r'"([a-z][\w-]*)"(?:\)|\((?:callsite\()?")')
_LOCATION = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)(?: to (?:"[^"]*")?:?(?:(\d+):)?(\d+))?')


def of_location(location: Any) -> list[Frame]:
    """The user's frames that an MLIR location names, innermost first as MLIR prints them.

    MLIR's columns are jax's: 0-based, in UTF-8 bytes.
    """
    found = []
    for path, line, column, end_line, end_column in _LOCATION.findall(str(location)):
        where = origin(path)
        if where is None:
            continue
        frame: Frame = {"path": path, "line": int(line), "column": int(column), "function": "", "origin": where}
        if end_column:
            frame.update(end_line=int(end_line or line), end_column=int(end_column))
        found.append(frame)
    return found


def primitive_of_location(location: Any) -> str:
    """The primitive that an MLIR location names: ``loc("add:"("add"("kernel.py":13:13)))``, or without a place."""
    found = _PRIMITIVE.findall(str(location))
    return str(found[0]) if found else ""


def function_fact(code: types.CodeType) -> dict[str, Any]:
    """Where a function starts and what it takes, which tells it from others on its line."""
    return {
        "path": code.co_filename,
        "line": code.co_firstlineno,
        "function": code.co_name,
        "origin": origin(code.co_filename),
        "parameters": list(code.co_varnames[: code.co_argcount]),
    }
