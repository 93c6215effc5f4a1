"""Runs in the user's program: notes with which arguments the functions around a launch were called.

Standard library only, any Python from 3.10.  A launch costs one look-up when its arguments were seen before; nothing is
computed, no array is kept, and a failure of ours is never one of the program's.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

_LAUNCHES = {
    "jax.experimental.pallas": ("pallas_call", "kernel"),
    "jax.experimental.pallas.mosaic_gpu": ("kernel",),
    "jax.experimental.pallas.tpu": ("kernel",),
}
_MOST_PER_FUNCTION = 8

_file = ""
_seen: set[tuple[Any, ...]] = set()
_counts: dict[Any, int] = {}


def _beside(*parts: str) -> Any:
    """A module of ours by its path: the user's program cannot import our package."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *parts)
    spec = importlib.util.spec_from_file_location("pallas_lsp_entry_calls", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_calls = _beside("worker", "entry_calls.py")


def start(file: str) -> None:
    """Record into ``file``, one JSON object a line, from when Pallas is imported."""
    global _file
    _file = file
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Wraps the launch functions when the modules that hold them have been imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _LAUNCHES:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
                _wrap_loader(spec.loader, fullname)
                return spec
        return None


def _wrap_loader(loader: Any, name: str) -> None:
    original = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        original(module)
        for attribute in _LAUNCHES[name]:
            if hasattr(module, attribute):
                setattr(module, attribute, _recorded(getattr(module, attribute)))

    loader.exec_module = exec_module


def _recorded(launch: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(launch, "__pallas_lsp_recorded__"):
        return launch

    @functools.wraps(launch)
    def called(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            _note(sys._getframe(1))
        return launch(*args, **kwargs)

    called.__pallas_lsp_recorded__ = True  # type: ignore[attr-defined]
    return called


def _note(frame: types.FrameType | None) -> None:
    found = _calls.innermost(frame)
    if found is None:
        return
    code, call = found
    if found in _seen or _counts.get(code, 0) >= _MOST_PER_FUNCTION:
        return
    _seen.add(found)
    _counts[code] = _counts.get(code, 0) + 1
    line = json.dumps({"path": os.path.realpath(code.co_filename), "line": code.co_firstlineno, "call": call})
    with open(_file, "a", encoding="utf-8") as out:
        out.write(line + "\n")
