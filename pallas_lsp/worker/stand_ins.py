"""Stand-ins for packages that are not installed: a last resort, to reach the kernels beside their use.

A stand-in can be imported, subclassed, called, entered and compared, and means nothing; it is never a number, so that
no shape comes from it.  What is found with one is labelled by the ids of its drivers and is never more than a hint.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

_OWN = "_pallas_lsp_stand_in"


def install(names: Sequence[str]) -> None:
    """Let the top-level packages of these names, and all that is in them, be found where nothing else is."""
    if names:
        sys.meta_path.append(_Finder(frozenset(names)))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to execute."""


class _Module(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _stand_in(name)
        setattr(self, name, found)
        return found


class _StandIn(type):
    """The type of classes that take part in anything: a class, so that they serve as bases and in annotations."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _stand_in(name)
        setattr(cls, name, found)
        return found

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _OWN not in vars(cls):
            return super().__call__(*args, **kwargs)  # a class of the user's, made from a stand-in
        decorates = len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type)
        return args[0] if decorates and not isinstance(args[0], _StandIn) else cls

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *raised: object) -> None:
        """Nothing was entered."""

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __bool__(cls) -> bool:
        return True


def _same(cls: Any, *others: Any) -> Any:
    del others
    return cls


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow"):
    for _name in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(_StandIn, _name, _same)
for _name in ("__neg__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(_StandIn, _name, _same)


def _stand_in(name: str) -> Any:
    return _StandIn(name, (), {_OWN: True, "__init__": _accept})


def _accept(self: Any, *args: Any, **kwargs: Any) -> None:
    """Stands for the initialisation of a base class."""
