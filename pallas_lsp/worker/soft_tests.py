"""Test modules whose asserts are evaluated and never fail, and whose expected failures are known."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import os
import re
import sys
import types
from collections.abc import Callable, Sequence

from . import late, module

_TEST_NAME = re.compile(r"^(test_.*|.*_tests?|tests?|conftest|.*test_?(util|case|base|helper)s?.*|utils?_?tests?)$")
_TEST_FOLDERS = frozenset(("test", "tests", "testing"))

Expected = Callable[[list[tuple[str, int, int]]], None]


def install(roots: Sequence[str], expected: Expected) -> None:
    """``expected`` gets the lines of each test module between which failures are what the test wants."""
    sys.meta_path.insert(0, _Finder(roots, expected))


def is_test(path: str, roots: Sequence[str]) -> bool:
    """Whether a file is a test, or helps tests: by its name, and by the folders below the workspace."""
    stem = os.path.splitext(os.path.basename(path))[0]
    if _TEST_NAME.match(stem):
        return True
    for root in roots:
        if path.startswith(root.rstrip(os.sep) + os.sep):
            return not _TEST_FOLDERS.isdisjoint(os.path.relpath(path, root).split(os.sep)[:-1])
    return os.path.basename(os.path.dirname(path)) in _TEST_FOLDERS


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, roots: Sequence[str], expected: Expected) -> None:
        self._roots = roots
        self._expected = expected

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = late.found_by_others(self, fullname, path, target)
        loader = spec.loader if spec is not None else None
        if spec is None or not isinstance(loader, importlib.machinery.SourceFileLoader) or spec.origin is None:
            return spec
        if f"{os.sep}site-packages{os.sep}" in spec.origin or not is_test(spec.origin, self._roots):
            return spec
        spec.loader = _Loader(loader, self._expected)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, original: importlib.machinery.SourceFileLoader, expected: Expected) -> None:
        super().__init__(original.name, original.path)
        self._original = original
        self._expected = expected

    def get_source(self, fullname: str) -> str | None:
        return self._original.get_source(fullname)

    def get_code(self, fullname: str) -> types.CodeType:
        text = self._original.get_source(fullname) or ""
        tree = ast.parse(text, self.path)
        self._expected(module.expected_failures(tree, self.path))
        soft = ast.fix_missing_locations(module.SoftAsserts().visit(tree))
        code: types.CodeType = compile(soft, self.path, "exec", dont_inherit=True)
        return code
