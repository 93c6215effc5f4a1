"""Changes to modules of installed packages, made when user code imports them (or now, where they are imported)."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

Change = Callable[[Any], None]


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find a module, and has it changed once it was executed."""

    def __init__(self) -> None:
        self.changes: dict[str, list[Change]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.changes:
            return None
        spec = found_by_others(self, fullname, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            loader: Any = spec.loader
            original = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                original(module)
                for change in self.changes[fullname]:
                    with contextlib.suppress(Exception):
                        change(module)

            loader.exec_module = exec_module
        return spec


def found_by_others(
    finder: Any, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    """What the finders after ``finder`` find."""
    after = sys.meta_path[sys.meta_path.index(finder) + 1 :] if finder in sys.meta_path else sys.meta_path
    for other in after:
        find = getattr(other, "find_spec", None)
        spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


_finder = _Finder()


def on_import(name: str, change: Change) -> None:
    """Call ``change`` with the module ``name``: now if it is imported, else as soon as it is."""
    module = sys.modules.get(name)
    if module is not None:
        with contextlib.suppress(Exception):
            change(module)
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.changes.setdefault(name, []).append(change)
