"""With what the functions around a launch were called, as a shape comment says it.

Standard library only, any Python from 3.10, and nothing of the worker's: ``pallas_lsp/recorder/recording.py`` loads
this file into the user's program, too.  Values are read where the launch is made, so that only functions count that
give their arguments no other value.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import math
import os
import re
import sys
import sysconfig
import types
from typing import Any

_OWN = os.path.dirname(os.path.realpath(__file__)) + os.sep
_SHORT = {"float": "f", "bfloat": "bf", "uint": "u", "int": "i", "complex": "c"}
_DEEPEST = 4


def innermost(frame: types.FrameType | None) -> tuple[types.CodeType, str] | None:
    """The innermost function of the launching file whose call can be written down, and that call."""
    file = None
    while frame is not None:
        code = frame.f_code
        if _is_users(code.co_filename):
            file = file or code.co_filename
            if code.co_filename == file and _keeps_its_arguments(frame):
                call = _call(frame)
                if call is not None:
                    return code, call
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096)
def _is_users(path: str) -> bool:
    if path.startswith("<"):
        return False
    paths = sysconfig.get_paths()
    real = os.path.realpath(path)
    libraries = {paths["stdlib"], paths["purelib"], paths["platlib"]}
    return not real.startswith((_OWN, *(os.path.realpath(library) + os.sep for library in libraries)))


def _keeps_its_arguments(frame: types.FrameType) -> bool:
    """Whether it is a function of its module's top level that gives its arguments no other value."""
    code = frame.f_code
    name = code.co_name
    if getattr(code, "co_qualname", name) != name or name not in frame.f_globals:
        return False
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return bool(names) and not code.co_flags & 0x0C and not _rebinds(code, names)


@functools.lru_cache(maxsize=1024)
def _rebinds(code: types.CodeType, names: tuple[str, ...]) -> bool:
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


def _call(frame: types.FrameType) -> str | None:
    code = frame.f_code
    parts = []
    for number, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        text = _text(frame.f_locals[name], frame.f_globals)
        if text is None:
            return None
        parts.append(f"{name}={text}" if number >= code.co_argcount else text)
    return f"{code.co_name}({', '.join(parts)})"


def _text(value: Any, names: dict[str, Any], depth: int = 0) -> str | None:
    """A value as the text of a shape comment, with the names of a module; None where it cannot be written."""
    if isinstance(value, (type, getattr(sys.modules.get("numpy"), "dtype", type))):
        return _named(value, names) or _dtype(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        name = str(getattr(dtype, "name", dtype))
        match = re.fullmatch(r"(bfloat|float|uint|int|complex)(\d\w*)", name)
        short = f"{_SHORT[match[1]]}{match[2]}" if match else name
        return f"{short}[{','.join(map(str, shape))}]" if match or name == "bool" else None
    if isinstance(value, enum.Enum):
        owner = _named(type(value), names)
        return f"{owner}.{value.name}" if owner is not None else None
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if depth > _DEEPEST:
        return None
    return _named(value, names) or _container(value, names, depth + 1)


def _container(value: Any, names: dict[str, Any], depth: int) -> str | None:
    if type(value) in (tuple, list):
        parts = [_text(part, names, depth) for part in value]
        if any(part is None for part in parts):
            return None
        inside = ", ".join(str(part) for part in parts)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if type(value) is dict:
        items = [(repr(key), _text(part, names, depth)) for key, part in value.items() if isinstance(key, str)]
        if len(items) != len(value) or any(text is None for _, text in items):
            return None
        return "{" + ", ".join(f"{key}: {text}" for key, text in items) + "}"
    if dataclasses.is_dataclass(value):
        fields = [each.name for each in dataclasses.fields(value) if each.init]
    else:
        fields = list(getattr(type(value), "_fields", ()))
    owner = _named(type(value), names)
    shown = [(name, _text(getattr(value, name), names, depth)) for name in fields]
    if owner is None or not shown or any(text is None for _, text in shown):
        return None
    return f"{owner}({', '.join(f'{name}={text}' for name, text in shown)})"


def _dtype(value: Any) -> str | None:
    """An element type, by its name: every function of jax takes that."""
    name = str(getattr(getattr(value, "dtype", value), "name", ""))
    return repr(name) if re.fullmatch(r"(bfloat|float|uint|int|complex)\d\w*|bool", name) else None


def _named(value: Any, names: dict[str, Any]) -> str | None:
    """How a module's code names a value: one of its own names, or a name of a module that it has imported."""
    for name, known in names.items():
        if known is value and not name.startswith("__"):
            return name
    own = getattr(value, "__name__", None)
    if isinstance(own, str) and own.isidentifier():
        for name, known in names.items():
            if isinstance(known, types.ModuleType) and getattr(known, own, None) is value:
                return f"{name}.{own}"
    return None
