"""What runs import from outside the workspace (pytest, say) is imported by the zygote too, for the runs that follow.

A run tells which modules it imported.  While nobody waits, a trial child imports them with what a run may do; what
passes is then imported here.  No code of the user's is run for it: only the standard library and installed packages
count, and of those only what a run imported before anybody changed the environment, and packages that use nothing of
jax (a run changes functions of jax before user code can import them from there).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import os
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import frames

_JAX = {"jax", "jaxlib"}

loaded: set[str] = set()
"""The packages that were imported here, by their first name."""
settled: set[str] = set()
"""The modules that were tried, or will be."""


# -- in a run ---------------------------------------------------------------------------------------------------------


class _Witness(importlib.abc.MetaPathFinder):
    """Notes which modules are imported while the environment is what it was."""

    def __init__(self) -> None:
        self.before = set(sys.modules)
        self.seen: set[str] = set()
        self._environment = _environment()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the import system's signature
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> None:
        if _environment() == self._environment:
            self.seen.add(fullname)


_witness: _Witness | None = None


def watch() -> None:
    """Note what this process imports from now on."""
    global _witness
    _witness = _Witness()
    sys.meta_path.insert(0, _witness)


def noted() -> list[str]:
    """What the zygote may import, in the order of the run; nothing where all is decided."""
    if _witness is None:
        return []
    new = [name for name in sys.modules if name not in _witness.before and name not in settled]
    found = [name for name in new if name in _witness.seen and _is_installed(name)]
    tainted = _users_of(_JAX) if found else set()
    return [name for name in found if package(name) not in tainted]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def give_way(folders: Iterable[str]) -> None:
    """Forget what was imported beforehand where a folder of the user's has a module of the same name."""
    hidden = set()
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError):
            hidden |= loaded & {entry.removesuffix(".py") for entry in os.listdir(folder)}
    for name in list(sys.modules) if hidden else ():
        if package(name) in hidden:
            del sys.modules[name]


def package(name: str) -> str:
    return name.partition(".")[0]


def _is_installed(name: str) -> bool:
    """Whether a module that was imported is one of the standard library or of an installed package."""
    spec = getattr(sys.modules[name], "__spec__", None)
    if spec is None or spec.name != name or name.startswith("__"):
        return False
    if package(name) in sys.stdlib_module_names:
        return True
    try:
        places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
    except KeyError:  # a part of a package whose own import failed: its place is asked of what is not there
        return False
    return bool(places) and all(place and frames.is_installed(place) for place in places)


def _users_of(wanted: set[str]) -> set[str]:
    """The packages that use one of ``wanted``, by themselves or through others, as their modules' names show."""
    uses: dict[str, set[str]] = {}
    for name, module in list(sys.modules.items()):
        if package(name) not in sys.stdlib_module_names:
            uses.setdefault(package(name), set()).update(_used_by(module))
    found = set(wanted)
    while more := {package for package, used in uses.items() if package not in found and used & found}:
        found |= more
    return found


def _used_by(module: Any) -> Iterator[str]:
    for value in list(getattr(module, "__dict__", {}).values()):
        if isinstance(value, types.ModuleType):
            yield package(value.__name__)
        elif isinstance(value, (type, types.FunctionType)):
            yield package(str(value.__module__))


# -- in the zygote ----------------------------------------------------------------------------------------------------


def load(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)


def modules_of_jax() -> int:
    return sum(package(name) in _JAX for name in list(sys.modules))
