"""The checked file as a module whose parts can be executed one by one, from the text on the screen."""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib.util
import os
import sys
import types
from collections.abc import Collection
from dataclasses import dataclass, field

IGNORED = "__pallas_lsp_ignored__"


@dataclass
class Part:
    """Consecutive top-level statements; ``abstract``: executed inside a trace, so that no array is computed."""

    code: types.CodeType
    abstract: bool


@dataclass
class CheckedModule:
    path: str
    text: str
    roots: list[str]
    module: types.ModuleType
    parts: list[Part]
    main: list[tuple[int, types.CodeType]] | None
    """The main block's statements with their first lines."""
    expected_failures: list[tuple[str, int, int]] = field(default_factory=list)


def load(path: str, text: str, abstract_lines: Collection[int], roots: list[str]) -> CheckedModule:
    """Parse the file and split it: its top level, and its main block.

    Asserts of the main block and of tests are evaluated but never fail: a kernel's values are not computed here.
    Raises SyntaxError where the text does not parse.
    """
    tree = ast.parse(text, path)
    flags = _future_flags(tree)
    guards = [node for node in tree.body if isinstance(node, ast.If) and _is_main_guard(node)]
    rest = [node for node in tree.body if node not in guards]
    failures = expected_failures(tree, path) if any(name in text for name in _RAISES) else []
    softened = [_SoftTests().visit(node) for node in rest]
    main = None
    if guards:
        body = [node for guard in guards for node in guard.body]
        main = [(node.lineno, _compile([SoftAsserts().visit(node)], path, flags)) for node in body]
    parts: list[Part] = []
    group: list[ast.stmt] = []
    abstract = False
    for node in softened:
        here = node.lineno in abstract_lines
        if group and here != abstract:
            parts.append(Part(_compile(group, path, flags), abstract))
            group = []
        abstract = here
        group.append(node)
    if group:
        parts.append(Part(_compile(group, path, flags), abstract))
    return CheckedModule(path, text, roots, _new_module(path), parts, main, failures)


def ignore_in_asserts(errors: tuple[type[BaseException], ...]) -> None:
    setattr(builtins, IGNORED, errors)


def _compile(body: list[ast.stmt], path: str, flags: int) -> types.CodeType:
    code: types.CodeType = compile(ast.Module(body, []), path, "exec", flags=flags, dont_inherit=True)
    return code


def _future_flags(tree: ast.Module) -> int:
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(__future__, alias.name).compiler_flag
    return flags


def _is_main_guard(node: ast.If) -> bool:
    """Whether a statement is ``if __name__ == "__main__":`` in any spelling (as ``source/toplevel.py`` reads it)."""
    parts = list(ast.walk(node.test))
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in parts) and any(
        isinstance(part, ast.Constant) and part.value == "__main__" for part in parts
    )


class SoftAsserts(ast.NodeTransformer):
    """``assert x`` evaluates ``x`` and goes on."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        handler = ast.ExceptHandler(type=ast.Name(IGNORED, ast.Load()), name=None, body=[ast.Pass()])
        attempt = ast.Try(body=[ast.Expr(node.test)], handlers=[handler], orelse=[], finalbody=[])
        return ast.fix_missing_locations(ast.copy_location(attempt, node))


class _SoftTests(ast.NodeTransformer):
    """The same inside test functions alone."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return SoftAsserts().visit(node) if node.name.startswith("test") else node


_RAISES = ("raises", "assertRaises", "assertRaisesRegex", "assertRaisesWithLiteralMatch", "suppress")


def expected_failures(tree: ast.Module, path: str) -> list[tuple[str, int, int]]:
    """Lines inside ``with pytest.raises(...)``, ``with self.assertRaises(...)`` and calls of the latter."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                name = call.func if isinstance(call, ast.Call) else None
                tail = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
                if tail in _RAISES:
                    found.append((path, node.body[0].lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Call):
            name = node.func
            tail = name.attr if isinstance(name, ast.Attribute) else ""
            if tail in _RAISES and len(node.args) > 1:
                found.append((path, node.lineno, node.end_lineno or node.lineno))
    return found


def module_name(path: str) -> tuple[str, str]:
    """Dotted name of a file and the folder that must be on ``sys.path`` for it."""
    folder, file = os.path.split(os.path.abspath(path))
    # A dot in a file's name would make it a module of a package; nobody imports such a file by its name.
    names = [] if file == "__init__.py" else [os.path.splitext(file)[0].replace(".", "_")]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return ".".join(names), folder


def folders(path: str, roots: list[str]) -> list[str]:
    """Where a file's workspace has modules that come before what is installed."""
    wanted = [module_name(path)[1], *roots, *(os.path.join(root, "src") for root in roots)]
    return [entry for entry in dict.fromkeys(wanted) if os.path.isdir(entry)]


def extend_path(path: str, roots: list[str]) -> None:
    """Make a file and the workspace around it importable, before what is installed.

    The folder of a module inside a package comes last: its neighbours may have names of installed packages.
    """
    own = os.path.dirname(os.path.abspath(path))
    if own not in (module_name(path)[1], *sys.path):
        sys.path.append(own)
    for entry in reversed(folders(path, roots)):
        if entry not in sys.path:
            sys.path.insert(0, entry)


def _new_module(path: str) -> types.ModuleType:
    name, _ = module_name(path)
    module = types.ModuleType(name)
    module.__file__ = path
    module.__package__ = name if path.endswith("__init__.py") else name.rpartition(".")[0]
    module.__spec__ = importlib.util.spec_from_file_location(name, path)
    return module


def register(checked: CheckedModule) -> None:
    """Let imports of the checked file find the module that is about to be executed."""
    extend_path(checked.path, checked.roots)
    name = checked.module.__name__
    parent, _, tail = name.rpartition(".")
    if parent:
        importlib.import_module(parent)
        setattr(sys.modules[parent], tail, checked.module)
    sys.modules[name] = checked.module


def unregister(checked: CheckedModule) -> None:
    """Its execution failed: an import must try again, and fail with the reason."""
    sys.modules.pop(checked.module.__name__, None)
