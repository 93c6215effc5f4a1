"""What in a file reaches a launch with real argument types: its top level, its main block, its tests.

Names are followed through the file's own functions, classes and assignments without regard to scopes, so that a doubt
is always decided for running: a driver that turns out not to reach a launch costs time, one that is left out hides
faults.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_lsp.model import Driver, Range, Snapshot
from pallas_lsp.source import toplevel
from pallas_lsp.source.definitions import Definitions, bound_names
from pallas_lsp.source.free_names import free_names, parameter_names
from pallas_lsp.source.launches import launch_nodes, may_launch
from pallas_lsp.source.shape_comments import find_comments
from pallas_lsp.source.syntax import FUNCTIONS, Syntax, parse
from pallas_lsp.source.workspace import imported_files, memo, read_text, resolve

LIBRARIES = ("jax.experimental.pallas.ops",)
"""Packages outside the workspace whose functions launch kernels."""

MODULE = "module"
MAIN = "main"


def find_drivers(snapshot: Snapshot, path: str) -> tuple[Driver, ...]:
    """The drivers of a file, in the order in which they run; empty where nothing reaches a launch.

    Raises what ``read_text`` and ``parse`` raise.  Only drivers of the same file are found here.
    """
    text = read_text(snapshot, path)
    imported = imported_files(snapshot, path, text)
    if not any(map(_may_reach, (text, *imported.values()))):
        return ()
    syntax = parse(text)
    launches = set(launch_nodes(text))
    outside = _launching_imports(snapshot, path, syntax, imported)
    if not launches and not outside:
        return ()
    holders = _holders(syntax, launches)
    main, definitions = _definitions(syntax)
    reaching = _reaching(syntax, definitions, main, holders, outside)
    drivers = []
    lines = toplevel.abstract_lines(syntax, launches, definitions, reaching)
    if lines or any(_at_top(syntax, launch) for launch in launches):
        drivers.append(Driver(MODULE, "module", path, lines=tuple(sorted(lines))))
    if main:
        drivers.append(Driver(MAIN, "main", path))
    for name, nodes in test_nodes(syntax):
        reads = set().union(*(free_names(node) for node in nodes))
        if isinstance(nodes[0], ast.FunctionDef | ast.AsyncFunctionDef):
            reads |= parameter_names(nodes[0])  # fixtures of the file
        if not holders.isdisjoint(nodes) or not reaching.isdisjoint(reads):
            drivers.append(Driver(f"test:{name}", "test", path, name))
    for comment in find_comments(syntax):
        if not comment.error:
            line = comment.range.start.line + 1
            drivers.append(Driver(f"comment:{line}", "call", path, comment.call, (line,)))
    return tuple(drivers)


def entry_names(snapshot: Snapshot, path: str) -> frozenset[str]:
    """The names of a file's top level through which its launches are reached; raises what ``find_drivers`` does."""
    text = read_text(snapshot, path)
    syntax = parse(text)
    launches = set(launch_nodes(text))
    outside = _launching_imports(snapshot, path, syntax, imported_files(snapshot, path, text))
    main, definitions = _definitions(syntax)
    return frozenset(_reaching(syntax, definitions, main, _holders(syntax, launches), outside) - outside)


def entries_towards(snapshot: Snapshot, path: str, lines: Collection[int]) -> frozenset[str]:
    """The entries that hold one of the lines (1-based), or that reach a definition which does."""
    text = read_text(snapshot, path)
    syntax = parse(text)
    holding = {
        name
        for statement in syntax.tree.body
        if any(statement.lineno <= line <= (statement.end_lineno or 0) for line in lines)
        for name in bound_names(statement)
    }
    _, definitions = _definitions(syntax)
    return frozenset(definitions.closure(holding))


def _definitions(syntax: Syntax) -> tuple[list[ast.stmt], Definitions]:
    main = [statement for statement in syntax.tree.body if toplevel.is_main_block(statement)]
    return main, Definitions(syntax, main)


def _holders(syntax: Syntax, launches: set[ast.Call]) -> set[ast.AST]:
    """The launches and everything around one."""
    return {node for launch in launches for node in (launch, *syntax.ancestors(launch))}


def _reaching(
    syntax: Syntax, definitions: Definitions, main: list[ast.stmt], holders: set[ast.AST], outside: set[str]
) -> set[str]:
    """The names of the top level that reach a launch: in what they stand for, or through other names."""
    seeds = {name for s in syntax.tree.body if s in holders and s not in main for name in bound_names(s)}
    return definitions.closure(seeds | outside)


def driver_range(text: str, driver: Driver) -> Range | None:
    """Where a driver stands: the line of its main block's or test's head; None for the top level."""
    try:
        syntax = parse(text)
    except (SyntaxError, ValueError):
        return None
    node: ast.AST | None = None
    if driver.kind == "main":
        node = next((s for s in syntax.tree.body if toplevel.is_main_block(s)), None)
    elif driver.kind == "test":
        node = next((nodes[0] for name, nodes in test_nodes(syntax) if name == driver.name), None)
    if not isinstance(node, ast.stmt):
        return None
    return syntax.lines.line_range(node.lineno - 1)


def _launching_imports(snapshot: Snapshot, path: str, syntax: Syntax, imported: dict[str, str]) -> set[str]:
    """Names of the file that come from workspace modules which launch, themselves or through their imports."""
    found = set()
    for scope in syntax.scopes.values():
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if binding.imported and _launches(snapshot, path, binding, imported):
                    found.add(name)
    for node in syntax.nodes:  # ``from kernels import *`` binds names that cannot be seen here
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            module = "." * node.level + (node.module or "")
            for file in resolve(snapshot, path, module):
                found |= _public_names(imported.get(file, ""))
    return found


def _may_reach(text: str) -> bool:
    """A quick look: False when the text neither launches nor imports what launches from outside the workspace."""
    return may_launch(text) or any(library in text for library in LIBRARIES)


def _launches(snapshot: Snapshot, path: str, binding: object, imported: dict[str, str]) -> bool:
    name = str(getattr(binding, "imported", ""))
    alias = getattr(binding, "node", None)
    spelled = [name, name.rpartition(".")[0]]
    if isinstance(alias, ast.alias) and "." in alias.name:
        spelled.append(alias.name)  # ``import a.b`` binds ``a`` but loads ``a.b``
    if any(module == library or module.startswith(f"{library}.") for module in spelled for library in LIBRARIES):
        return True
    for module in spelled:
        for file in resolve(snapshot, path, module) if module.strip(".") else ():
            text = imported.get(file)
            if text is not None and _reaches(snapshot, file, text):
                return True
    return False


def _reaches(snapshot: Snapshot, file: str, text: str) -> bool:
    """Whether a file launches, itself or through its imports."""
    known = memo(snapshot)
    key = ("reaches", file, text)
    reaches: bool | None = known.get(key)
    if reaches is None:
        reaches = known[key] = any(map(_may_reach, (text, *imported_files(snapshot, file, text).values())))
    return reaches


def _public_names(text: str) -> set[str]:
    try:
        scopes = parse(text)
    except (SyntaxError, ValueError):
        return set()
    return {name for name in scopes.scopes[scopes.tree].bindings if not name.startswith("_")}


def _at_top(syntax: Syntax, node: ast.AST) -> bool:
    """Whether a node is evaluated when the file is imported (a decorator belongs to what is around its function)."""
    child = node
    for parent in syntax.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            decorators = [] if isinstance(parent, ast.Lambda) else parent.decorator_list
            if child not in decorators:
                return False
        elif isinstance(parent, ast.If) and toplevel.is_main_block(parent):
            return False
        child = parent
    return True


# -- tests ------------------------------------------------------------------------------------------------------------


def test_nodes(syntax: Syntax) -> Iterator[tuple[str, list[ast.AST]]]:
    """Test functions and methods (``Class.name``), each with the nodes whose code it may run."""
    classes = {node.name: node for node in _top_definitions(syntax.tree.body) if isinstance(node, ast.ClassDef)}
    for node in _top_definitions(syntax.tree.body):
        if isinstance(node, ast.ClassDef):
            yield from _test_methods(syntax, node, classes)
        elif node.name.startswith("test"):
            yield node.name, [node]


def _top_definitions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        elif isinstance(node, ast.If | ast.With | ast.Try) and not toplevel.is_main_block(node):
            yield from _top_definitions(node.body)
            yield from _top_definitions(getattr(node, "orelse", []))


def _test_methods(
    syntax: Syntax, node: ast.ClassDef, classes: dict[str, ast.ClassDef]
) -> Iterator[tuple[str, list[ast.AST]]]:
    lineage = _lineage(node, classes)
    unit = any(_is_test_case(syntax, base) for each in lineage for base in each.bases)
    methods: dict[str, ast.AST] = {}
    others: list[ast.AST] = []
    for each in lineage:
        for statement in each.body:
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                others.append(statement)
            elif statement.name.startswith("test"):
                methods.setdefault(statement.name, statement)
            else:
                others.append(statement)
                if statement.name == "__init__" and not unit:
                    return  # pytest collects no class with a constructor
    if not unit and not node.name.startswith("Test"):
        return
    for name, method in methods.items():
        yield f"{node.name}.{name}", [method, *others]


def _lineage(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    found = [node]
    for each in found:
        for base in each.bases:
            known = classes.get(base.id) if isinstance(base, ast.Name) else None
            if known is not None and known not in found:
                found.append(known)
    return found


def _is_test_case(syntax: Syntax, base: ast.expr) -> bool:
    name = syntax.dotted(base) or (base.attr if isinstance(base, ast.Attribute) else "")
    return any(word in name.rpartition(".")[2] for word in ("TestCase", "TestBase", "BaseTest"))
