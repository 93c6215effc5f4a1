"""Runs in the user's program: notes with which arguments the functions around a launch were called.

Standard library only, any Python from 3.10.  A launch costs one look-up when its arguments were seen before; nothing is
computed, no array is kept, and a failure of ours is never one of the program's.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Sequence
from typing import Any

_LAUNCHES = {
    "jax.experimental.pallas": ("pallas_call", "kernel"),
    "jax.experimental.pallas.mosaic_gpu": ("kernel",),
    "jax.experimental.pallas.tpu": ("kernel",),
}
_MOST_PER_FUNCTION = 8
_SHORT = {"float": "f", "bfloat": "bf", "uint": "u", "int": "i", "complex": "c"}

_file = ""
_seen: set[tuple[Any, ...]] = set()
_counts: dict[Any, int] = {}


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
    while frame is not None:
        code = frame.f_code
        if _is_users(code.co_filename):
            entry = _entry(frame)
            if entry is not None:
                _record(frame, entry)
                return
        frame = frame.f_back


@functools.lru_cache(maxsize=4096)
def _is_users(path: str) -> bool:
    if path.startswith("<"):
        return False
    paths = sysconfig.get_paths()
    real = os.path.realpath(path)
    libraries = {paths["stdlib"], paths["purelib"], paths["platlib"]}
    return not any(real.startswith(os.path.realpath(library) + os.sep) for library in libraries)


def _entry(frame: types.FrameType) -> str | None:
    """The name of a frame's function in its module, if it is one of the top level that keeps its arguments."""
    code = frame.f_code
    name = code.co_name
    if getattr(code, "co_qualname", name) != name or name not in frame.f_globals:
        return None
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    if not names or code.co_flags & 0x0C or _rebinds(code, names):
        return None
    return name


@functools.lru_cache(maxsize=1024)
def _rebinds(code: types.CodeType, names: tuple[str, ...]) -> bool:
    """Whether a function gives one of its arguments another value: then what it was called with is not known."""
    return any(
        instruction.opname.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST"))
        and any(str(part) in names for part in _stored(instruction))
        for instruction in dis.get_instructions(code)
    )


def _stored(instruction: dis.Instruction) -> tuple[Any, ...]:
    """The names that an instruction stores; Python 3.13 has instructions for two."""
    if isinstance(instruction.argval, tuple):
        return instruction.argval if "STORE_FAST_STORE_FAST" in instruction.opname else instruction.argval[:1]
    return (instruction.argval,)


def _record(frame: types.FrameType, entry: str) -> None:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    parts = []
    for number, name in enumerate(names):
        text = _text(frame.f_locals[name])
        if text is None:
            return
        parts.append(f"{name}={text}" if number >= code.co_argcount else text)
    call = f"{entry}({', '.join(parts)})"
    key = (code, call)
    if key in _seen or _counts.get(code, 0) >= _MOST_PER_FUNCTION:
        return
    _seen.add(key)
    _counts[code] = _counts.get(code, 0) + 1
    line = json.dumps({"path": os.path.realpath(code.co_filename), "line": code.co_firstlineno, "call": call})
    with open(_file, "a", encoding="utf-8") as out:
        out.write(line + "\n")


def _text(value: Any, depth: int = 0) -> str | None:
    """A value as the text of a shape comment; None where it cannot be written."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        name = str(getattr(dtype, "name", dtype))
        match = re.fullmatch(r"(bfloat|float|uint|int|complex)(\d\w*)", name)
        short = f"{_SHORT[match[1]]}{match[2]}" if match else name
        return f"{short}[{','.join(map(str, shape))}]" if match or name == "bool" else None
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if depth > 4:
        return None
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        parts = [_text(part, depth + 1) for part in value]
        if any(part is None for part in parts):
            return None
        inside = ", ".join(str(part) for part in parts)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if isinstance(value, dict):
        items = [(repr(key), _text(part, depth + 1)) for key, part in value.items() if isinstance(key, str)]
        if len(items) != len(value) or any(text is None for _, text in items):
            return None
        return "{" + ", ".join(f"{key}: {text}" for key, text in items) + "}"
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        shown = [(name, _text(getattr(value, name), depth + 1)) for name, each in fields.items() if each.init]
        if all(text is not None for _, text in shown):
            return f"{type(value).__name__}({', '.join(f'{name}={text}' for name, text in shown)})"
    return None
