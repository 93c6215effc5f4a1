"""Which tests, and after them which scripts, are likely to reach the launches of a file; the likeliest first.

The order follows a survey of public kernels: tests that import the module and name the entry, then tests that name what
uses it in the modules between, then tests that import it through any chain of imports, then benchmarks and examples.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pallas_lsp.discovery.index import Index
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.definitions import Definitions
from pallas_lsp.source.drivers import entries_towards, entry_names, find_drivers, test_nodes
from pallas_lsp.source.free_names import free_names
from pallas_lsp.source.syntax import Syntax, parse
from pallas_lsp.source.workspace import read_text, resolve

MOST_TESTS_PER_FILE = 16
MOST_FILES = 32
"""The files with tests that are parsed, the likeliest ones."""
MOST_MODULES = 30
"""The modules between the checked file and its tests through which the names of entries are followed."""
_WORD = re.compile(r"[^\W\d]\w*")
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
    tests: list[_Found] = []
    scripts: list[_Found] = []
    for importer, distance in importers:
        entry = index.entries[importer]
        if entry.test or entry.script:
            named = _named(snapshot, importer, weights)
            away = 0 if stem in Path(importer).name else 1
            rank = (_DIRECT - max(named, default=0), distance, away, -sum(named))
            (tests if entry.test else scripts).append(_Found(rank, importer))
    tests.sort(key=lambda each: (each.rank, each.file))
    yield from _tests(snapshot, tests[:MOST_FILES], weights, stem)
    for each in sorted(scripts, key=lambda each: (each.rank, each.file)):
        yield (Driver(f"script:{each.file}", "script", each.file),)


@dataclass
class _Found:
    """A file that imports the checked one: its rank is how little it names, the length of the imports, its name."""

    rank: tuple[int, int, int, int]
    file: str
    mentions: dict[str, int] = field(default_factory=dict)
    drivers: tuple[Driver, ...] = ()


def _tests(snapshot: Snapshot, files: list[_Found], weights: dict[str, int], stem: str) -> Iterator[tuple[Driver, ...]]:
    """The tests of files: the likeliest of each, then more of them."""
    for each in files:
        each.mentions = _mentions(snapshot, each.file, weights)
        each.drivers = _tests_of(snapshot, each.file, each.mentions)
        if each.drivers:
            yield each.drivers[:MOST_TESTS_PER_FILE]
    for each in files:
        more = tuple(driver for driver in each.drivers[MOST_TESTS_PER_FILE:] if each.mentions.get(driver.name))
        if more:
            yield more[: 2 * MOST_TESTS_PER_FILE]
    for each in files:
        # What a module registers when it is imported is used without its name.
        unnamed = _others(each, stem) if each.rank[1] == 1 else ()
        if unnamed:
            yield unnamed


def _named(snapshot: Snapshot, file: str, weights: dict[str, int]) -> list[int]:
    """The weights of the names that are words of a file."""
    try:
        words = set(_WORD.findall(read_text(snapshot, file)))
    except (OSError, ValueError, SyntaxError):
        return []
    return [weight for name, weight in weights.items() if name in words]


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
        found = [driver.name for driver in find_drivers(snapshot, file) if driver.kind == "test"]
    except (OSError, ValueError, SyntaxError):
        return ()
    found += [name for name in mentions if name.endswith(".")]
    found.sort(key=lambda name: -mentions.get(name, 0))
    return tuple(Driver(f"pytest:{file}::{name}", "pytest", file, name) for name in found)


def _others(found: _Found, stem: str) -> tuple[Driver, ...]:
    """Tests of a file that seem to reach no launch, those with a name like the module's first."""
    names = [name for name in found.mentions if name and name not in {driver.name for driver in found.drivers}]
    names.sort(key=lambda name: stem.lower() not in name.lower())
    file = found.file
    return tuple(Driver(f"pytest:{file}::{name}", "pytest", file, name) for name in names[:MOST_TESTS_PER_FILE])


def _mentions(snapshot: Snapshot, file: str, weights: dict[str, int]) -> dict[str, int]:
    """How much each test of a file names the entries, itself or in the helpers that it uses; the file under ``""``."""
    try:
        syntax = parse(read_text(snapshot, file))
    except (OSError, ValueError, SyntaxError):
        return {}
    helpers: dict[str, set[str]] = {}
    for node in syntax.nodes:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test"):
            helpers.setdefault(node.name, set()).update(_names(node))

    def weight(node: ast.AST) -> int:
        return sum(weights.get(name, 0) for name in _closure(_names(node), helpers))

    found = {"": weight(syntax.tree), **{name: weight(nodes[0]) for name, nodes in test_nodes(syntax)}}
    for node in syntax.tree.body:
        if isinstance(node, ast.ClassDef) and _inherits(snapshot, file, syntax, node):
            found[f"{node.name}."] = weight(node)
    return found


def _inherits(snapshot: Snapshot, file: str, syntax: Syntax, node: ast.ClassDef) -> bool:
    """Whether a class may have tests of a class in another file of the workspace; all of them go by ``Class.``."""
    names = [syntax.dotted(base) or "" for base in node.bases]
    return any(resolve(snapshot, file, name.rpartition(".")[0]) for name in names if "." in name)


def _closure(names: set[str], helpers: dict[str, set[str]]) -> set[str]:
    """The names with those that the helpers among them use."""
    found = set(names)
    pending = list(names)
    while pending:
        new = helpers.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _names(node: ast.AST) -> set[str]:
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return free_names(node) | attributes
