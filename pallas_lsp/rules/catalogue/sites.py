"""Every ``raise`` and ``assert`` in jax's Pallas, state and Mosaic GPU sources, known by more than a line number.

A site is known by its file, the qualified name of its function as a traceback names it, what it raises, and the text of
its message with ``{}`` for values; where there is no message, by the condition under which it raises.  Line numbers are
kept beside, for reading.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

FOLDERS = (
    "jax/_src/pallas",
    "jax/_src/state",
    "jax/experimental/mosaic/gpu",
    "jax/experimental/pallas",
)
_LONGEST = 200
HOLE = "{}"


@dataclass(frozen=True, order=True)
class Site:
    file: str
    function: str
    exception: str
    """The name of the exception; ``assert`` for an assertion, ``re-raise`` where another error is passed on."""
    text: str
    """The message, or ``if <condition>``."""
    number: int = 1
    """Counts the sites that are alike otherwise."""

    @property
    def silent(self) -> bool:
        """Whether the error has no message of its own."""
        return self.text.startswith("if ") or not self.text


@dataclass(frozen=True)
class Found:
    """A site in one version, with what its source tells besides."""

    site: Site
    line: int
    test: ast.expr | None = None
    """The condition of an assertion."""
    only: bool = False
    """Whether the function does nothing else."""


def read(modules: Mapping[str, ast.Module]) -> dict[Site, Found]:
    """The sites of parsed sources."""
    found: dict[Site, Found] = {}
    for file, tree in modules.items():
        for each in _Reader(file).read(tree):
            site = each.site
            while site in found:
                site = replace(site, number=site.number + 1)
            found[site] = replace(each, site=site)
    return found


def trees(packages: Path) -> Mapping[str, ast.Module]:
    """The parsed sources by path below the packages."""
    files = (path for folder in FOLDERS for path in sorted((packages / folder).rglob("*.py")))
    return parse(packages, [path.relative_to(packages).as_posix() for path in files])


def parse(packages: Path, files: Iterable[str]) -> Mapping[str, ast.Module]:
    """Some files below the packages, those that this version does not have left out."""
    paths = {file: packages / file for file in files}
    return {file: ast.parse(path.read_text(encoding="utf-8")) for file, path in paths.items() if path.is_file()}


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file

    def read(self, tree: ast.Module) -> Iterator[Found]:
        yield from self._statements(tree.body, "", _Scope())

    def _statements(self, body: list[ast.stmt], prefix: str, scope: _Scope) -> Iterator[Found]:
        for statement in body:
            yield from self._statement(statement, prefix, scope)

    def _statement(self, node: ast.AST, prefix: str, scope: _Scope) -> Iterator[Found]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = _Scope(function=prefix + node.name, node=node)
                yield from self._statements(node.body, f"{prefix}{node.name}.<locals>.", inner)
            case ast.ClassDef():
                yield from self._statements(node.body, f"{prefix}{node.name}.", replace(scope, function=prefix[:-1]))
            case ast.If():
                test = ast.unparse(node.test)
                yield from self._statements(node.body, prefix, scope.when(test))
                yield from self._statements(node.orelse, prefix, scope.when(f"not ({test})"))
            case ast.match_case():
                yield from self._statements(node.body, prefix, scope.when(f"case {ast.unparse(node.pattern)}"))
            case ast.ExceptHandler():
                caught = replace(scope.when(f"except {ast.unparse(node.type) if node.type else ''}"), caught=node.name)
                yield from self._statements(node.body, prefix, caught)
            case ast.Raise() | ast.Assert():
                yield self._site(node, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.stmt | ast.match_case | ast.ExceptHandler):
                        yield from self._statement(child, prefix, scope)

    def _site(self, node: ast.Raise | ast.Assert, scope: _Scope) -> Found:
        if isinstance(node, ast.Assert):
            exception, given, test = "assert", node.msg, node.test
            condition = f"not ({ast.unparse(node.test)})"
        else:
            raised = node.exc
            call = raised if isinstance(raised, ast.Call) else None
            name = call.func if call is not None else raised
            given = (call.args[0] if call.args else None) if call is not None else None
            exception = ast.unparse(name).rpartition(".")[2] if name is not None else "re-raise"
            if isinstance(raised, ast.Name) and raised.id == scope.caught:
                exception = "re-raise"
            test, condition = None, scope.condition
        text = template(given, scope.strings) if given is not None else ""
        if not re.search(r"\w{3}", text.replace(HOLE, "")):
            text = f"if {condition}" if condition else ""
        text = " ".join(text.split())[:_LONGEST]
        return Found(Site(self.file, scope.function, exception, text), node.lineno, test, scope.only(node))


@dataclass(frozen=True)
class _Scope:
    """What stands around a statement."""

    function: str = ""
    node: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    condition: str = ""
    caught: str | None = None

    def when(self, condition: str) -> _Scope:
        return replace(self, condition=condition)

    @property
    def strings(self) -> Mapping[str, ast.expr]:
        """What the function's names are assigned, for messages that are put together first."""
        nodes = ast.walk(self.node) if self.node is not None else ()
        return {
            node.targets[0].id: node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }

    def only(self, node: ast.stmt) -> bool:
        body = self.node.body if self.node is not None else []
        return [each for each in body if not _is_text(each)] == [node]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def template(node: ast.expr, strings: Mapping[str, ast.expr], depth: int = 3) -> str:
    """A message as it is written, with ``{}`` for what is only known when it is raised."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr():
            return "".join(template(part, {}) for part in node.values)
        case ast.BinOp(op=ast.Add()):
            return template(node.left, strings, depth) + template(node.right, strings, depth)
        case ast.BinOp(op=ast.Mod()):
            return re.sub(r"%[-+ 0-9.]*[a-z]", HOLE, template(node.left, strings, depth))
        case ast.Call(func=ast.Attribute(attr="format", value=value)):
            return re.sub(r"\{[^{}]*\}", HOLE, template(value, strings, depth))
        case ast.Call(func=ast.Attribute(attr="dedent" | "strip" | "lstrip"), args=[value, *_]):
            return template(value, strings, depth)
        case ast.Call(func=ast.Attribute(attr="strip" | "lstrip" | "rstrip", value=value)):
            return template(value, strings, depth)
        case ast.Name() if node.id in strings and depth:
            return template(strings[node.id], strings, depth - 1)
    return HOLE
