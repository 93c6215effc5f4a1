"""Which tests, and after them which scripts, are likely to reach the launches of a file; the likeliest first.

The order follows a survey of public kernels: tests that import the module and name the entry, then tests that name what
uses it in the modules between, then tests that import it through any chain of imports, then benchmarks and examples.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from pallas_lsp.discovery.index import Index
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.definitions import Definitions
from pallas_lsp.source.drivers import entries_towards, entry_names, find_drivers, test_nodes
from pallas_lsp.source.free_names import free_names
from pallas_lsp.source.syntax import parse
from pallas_lsp.source.workspace import read_text

MOST_TESTS_PER_FILE = 16
MOST_MODULES = 30
"""The modules between the checked file and its tests through which the names of entries are followed."""
_DIRECT = 2
"""What a name of the checked file weighs in a test, where a name of a module that uses it weighs 1."""


def find(
    index: Index, snapshot: Snapshot, path: str, lines: Collection[int] | None = None
) -> Iterator[tuple[Driver, ...]]:
    """The drivers elsewhere in batches of one file each: the likeliest tests of each file, then more of them, scripts.

    ``lines``: the 1-based lines of the launches to reach; None for all.
    """
    try:
        entries = entry_names(snapshot, path)
        if lines is not None:
            entries = entries_towards(snapshot, path, lines) or entries
    except (OSError, ValueError, SyntaxError):
        return
    stem = Path(path).stem.strip("_")
    importers = list(index.importers(os.path.realpath(path)))
    weights = _weights(index, snapshot, importers, entries)
    tests: list[tuple[tuple[int, ...], str, dict[str, int]]] = []
    scripts: list[tuple[tuple[int, ...], str]] = []
    for importer, distance in importers:
        entry = index.entries[importer]
        if not (entry.test or entry.script):
            continue
        mentions = _mentions(snapshot, importer, weights)
        named = max(mentions.values(), default=0)
        away = 0 if stem in Path(importer).name else 1
        rank = (0 if named >= _DIRECT else 1 if named else 2, distance, away, -named)
        if entry.test:
            tests.append((rank, importer, mentions))
        else:
            scripts.append((rank, importer))
    tests.sort(key=lambda each: each[:2])
    ordered = [(_tests_of(snapshot, file, mentions), mentions) for _, file, mentions in tests]
    for drivers, _ in ordered:
        if drivers:
            yield drivers[:MOST_TESTS_PER_FILE]
    for drivers, mentions in ordered:
        more = tuple(driver for driver in drivers[MOST_TESTS_PER_FILE:] if mentions.get(driver.name))
        if more:
            yield more[: 2 * MOST_TESTS_PER_FILE]
    for _, file in sorted(scripts):
        yield (Driver(f"script:{file}", "script", file),)


def _weights(
    index: Index, snapshot: Snapshot, importers: list[tuple[str, int]], entries: frozenset[str]
) -> dict[str, int]:
    """The names by which tests may reach the launches: the entries, and what uses them in the modules between."""
    weights = dict.fromkeys(entries, _DIRECT)
    between = [importer for importer, _ in importers if not index.entries[importer].test]
    for importer in between[:MOST_MODULES]:
        try:
            text = read_text(snapshot, importer)
            known = {name for name in weights if len(name) > 2 and name in text}
            if known:
                syntax = parse(text)
                for name in Definitions(syntax).closure(known | _users(syntax.tree, known)):
                    weights.setdefault(name, 1)
        except (OSError, ValueError, SyntaxError):
            continue
    return weights


def _users(tree: ast.Module, names: set[str]) -> set[str]:
    """The functions and classes of a module that use one of the names as an attribute (``kernels.op``)."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and any(isinstance(part, ast.Attribute) and part.attr in names for part in ast.walk(node))
    }


def _tests_of(snapshot: Snapshot, file: str, mentions: dict[str, int]) -> tuple[Driver, ...]:
    """The tests of a file that reach a launch, those that name an entry of the checked file first."""
    try:
        found = [driver for driver in find_drivers(snapshot, file) if driver.kind == "test"]
    except (OSError, ValueError, SyntaxError):
        return ()
    found.sort(key=lambda driver: -mentions.get(driver.name, 0))
    return tuple(Driver(f"pytest:{file}::{driver.name}", "pytest", file, driver.name) for driver in found)


def _mentions(snapshot: Snapshot, file: str, weights: dict[str, int]) -> dict[str, int]:
    """How much each test of a file names the entries, itself or in the helpers that it uses; the file under ``""``."""
    try:
        text = read_text(snapshot, file)
        if not any(entry in text for entry in weights):
            return {}
        syntax = parse(text)
    except (OSError, ValueError, SyntaxError):
        return {}

    def weight(node: ast.AST) -> int:
        return sum(weights.get(name, 0) for name in _names(node))

    helpers = {
        node.name: weight(node)
        for node in syntax.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test")
    }
    found = {"": weight(syntax.tree)}
    for name, nodes in test_nodes(syntax):
        found[name] = weight(nodes[0]) + sum(helpers.get(used, 0) for used in _names(nodes[0]))
    return found


def _names(node: ast.AST) -> set[str]:
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return free_names(node) | attributes
