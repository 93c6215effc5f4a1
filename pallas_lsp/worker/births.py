"""Where the user's specs were made: BlockSpecs, refs, barriers, transforms, meshes, compiler parameters.

jax blames the line that launches for a fault in any of these; the object in the traceback leads back to its own line.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from typing import Any

from . import frames, internals

_NEAR = 4
_MOST = 20_000

_births: dict[int, tuple[Any, list[frames.Frame]]] = {}


def install() -> None:
    """Record the place of each construction from now on."""
    for name in internals.SPECS:
        cls: Any = internals.loaded(name)
        if "__init__" in getattr(cls, "__dict__", {}):
            with contextlib.suppress(TypeError):
                cls.__init__ = _recorded(cls.__init__)
                if callable(getattr(cls, "replace", None)):
                    cls.replace = _inherited(cls.replace)


def _recorded(original: Any) -> Any:
    @functools.wraps(original)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        caller = sys._getframe(1)
        if len(_births) < _MOST and id(self) not in _births and _user_near(caller):
            _births[id(self)] = (self, frames.of_stack(caller, 12))

    return initialise


def _inherited(original: Any) -> Any:
    @functools.wraps(original)
    def replace(self: Any, **changes: Any) -> Any:
        copy = original(self, **changes)
        places = of(self)
        if places:
            _births[id(copy)] = (copy, places)
        return copy

    return replace


def _user_near(frame: types.FrameType | None) -> bool:
    """Whether the user's code asked for the object itself; copies that jax makes stand deeper."""
    for _ in range(_NEAR):
        if frame is None:
            return False
        if frames.origin(frame.f_code.co_filename) is not None:
            return True
        frame = frame.f_back
    return False


def of(value: Any) -> list[frames.Frame]:
    """The user's frames at the construction of a value, outermost first; empty where it was not recorded."""
    known = _births.get(id(value))
    return known[1] if known is not None and known[0] is value else []
