"""Which tests, and after them which scripts, are likely to reach the launches of a file; the likeliest first.

The order follows a survey of public kernels: tests that import the module and name the entry, then tests that import it
through the package or through any chain of imports, then benchmarks and examples.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from pallas_lsp.discovery.index import Index
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.drivers import entry_names, find_drivers, test_nodes
from pallas_lsp.source.free_names import free_names
from pallas_lsp.source.syntax import parse
from pallas_lsp.source.workspace import read_text

MOST_TESTS_PER_FILE = 12


def find(index: Index, snapshot: Snapshot, path: str) -> Iterator[tuple[Driver, ...]]:
    """The drivers elsewhere, one batch a file."""
    real = os.path.realpath(path)
    try:
        entries = entry_names(snapshot, path)
    except (OSError, ValueError, SyntaxError):
        return
    stem = Path(path).stem.strip("_")
    tests: list[tuple[tuple[int, ...], str, dict[str, int]]] = []
    scripts: list[tuple[tuple[int, ...], str]] = []
    for importer, distance in index.importers(real):
        entry = index.entries[importer]
        if not (entry.test or entry.script):
            continue
        mentions = _mentions(snapshot, importer, entries)
        named = max(mentions.values(), default=0)
        away = 0 if stem in Path(importer).name else 1
        if entry.test:
            tests.append(((0 if named else 1, distance, away, -named), importer, mentions))
        elif entry.script:
            scripts.append(((0 if named else 1, distance, away), importer))
    for _, file, mentions in sorted(tests, key=lambda each: each[:2]):
        batch = _tests_of(snapshot, file, mentions)
        if batch:
            yield batch
    for _, file in sorted(scripts):
        yield (Driver(f"script:{file}", "script", file),)


def _tests_of(snapshot: Snapshot, file: str, mentions: dict[str, int]) -> tuple[Driver, ...]:
    """The tests of a file that reach a launch, those that name an entry of the checked file first."""
    try:
        found = [driver for driver in find_drivers(snapshot, file) if driver.kind == "test"]
    except (OSError, ValueError, SyntaxError):
        return ()
    found.sort(key=lambda driver: -mentions.get(driver.name, 0))
    return tuple(
        Driver(f"pytest:{file}::{driver.name}", "pytest", file, driver.name) for driver in found[:MOST_TESTS_PER_FILE]
    )


def _mentions(snapshot: Snapshot, file: str, entries: frozenset[str]) -> dict[str, int]:
    """How many of the entries each test of a file names; the whole file under an empty name."""
    try:
        text = read_text(snapshot, file)
        if not any(entry in text for entry in entries):
            return {}
        syntax = parse(text)
    except (OSError, ValueError, SyntaxError):
        return {}
    found = {"": len(entries & _names(syntax.tree))}
    for name, nodes in test_nodes(syntax):
        found[name] = sum(len(entries & _names(node)) for node in nodes[:1])
    return found


def _names(node: ast.AST) -> set[str]:
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return free_names(node) | attributes
