"""Which functions of jax a user's code leads to, by the names that functions mention.

It starts at what the public modules of Pallas export, at what is registered with jax (lowering rules, abstract
evaluation), and at the methods that jax's core calls on the types of refs; from there it follows names.  A method is
taken to be reached when its name is mentioned at all, so this errs on the side of reachable.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Function = tuple[str, str]
"""File and qualified name."""

PUBLIC = "jax/experimental/pallas/"
LIBRARY = "jax/experimental/pallas/ops/"

# Decorators that do not hand the function to anyone.
_NEUTRAL = frozenset(
    {
        *("abstractmethod", "abc.abstractmethod", "staticmethod", "classmethod", "staticproperty", "property"),
        *("cache", "cached_property", "functools.cache", "functools.cached_property", "functools.lru_cache"),
        *("util.cache", "utils.cache", "weakref_lru_cache", "functools.wraps", "overload", "typing.overload"),
        *("contextmanager", "contextlib.contextmanager", "dataclass", "dataclasses.dataclass", "enum.unique"),
        *("jit", "jax.jit", "jax.named_scope", "custom_jvp", "custom_vjp", "jax.custom_vjp"),
        *("tree_util.register_dataclass", "tree_util.register_pytree_node_class"),
    }
)


@dataclass
class _Node:
    """A function or class and what it mentions."""

    function: Function
    names: set[str] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    """(what stands before the dot where that is a name, the attribute)"""
    inside: list[Function] = field(default_factory=list)
    """What is defined in it and lives with it: nested functions, the special methods of a class."""


class Graph:
    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._nodes: dict[Function, _Node] = {}
        self._methods: dict[str, list[Function]] = defaultdict(list)
        self._imports: dict[str, dict[str, set[str]]] = {file: _imports(file, tree) for file, tree in trees.items()}
        self._roots: dict[Function, str] = {}
        modules = [_Node((file, "")) for file in trees]
        for module, (file, tree) in zip(modules, trees.items(), strict=True):
            self._read(file, tree.body, "", module, in_class=False)
        for module in modules:
            # What a module's own statements mention is handed to someone: a table, a registration.
            for other in self._of(module.function[0], module):
                self._roots.setdefault(other, f"registered in {module.function[0].rpartition('/')[2]}")
        for file in trees:
            self._public(file)

    @property
    def functions(self) -> list[Function]:
        return list(self._nodes)

    def reached(self) -> dict[Function, str]:
        """The functions that are reached, with where from, in words."""
        found = dict(self._roots)
        waiting = deque(found)
        while waiting:
            function = waiting.popleft()
            for other in self._mentioned(function):
                if other not in found:
                    found[other] = found[function]
                    waiting.append(other)
        return found

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, file: str, body: Iterable[ast.AST], prefix: str, owner: _Node, *, in_class: bool) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    made = self._add((file, prefix + node.name))
                    self._read(file, node.body, f"{prefix}{node.name}.<locals>.", made, in_class=False)
                    self._read(file, [node.args], "", made, in_class=False)
                    if in_class:
                        self._methods[node.name].append(made.function)
                    if owner.function[1] and (not in_class or _lives_with_its_class(file, node.name)):
                        owner.inside.append(made.function)
                    self._decorated(made.function, node)
                    self._read(file, node.decorator_list, prefix, owner, in_class=False)
                case ast.ClassDef():
                    made = self._add((file, prefix + node.name))
                    self._read(file, [*node.bases, *node.decorator_list], prefix, made, in_class=False)
                    self._read(file, node.body, f"{prefix}{node.name}.", made, in_class=True)
                    if owner.function[1]:
                        owner.inside.append(made.function)
                case ast.Name():
                    owner.names.add(node.id)
                case ast.Attribute():
                    before = node.value.id if isinstance(node.value, ast.Name) else ""
                    owner.attributes.add((before, node.attr))
                    self._read(file, [node.value], prefix, owner, in_class=False)
                case ast.Import() | ast.ImportFrom():
                    pass
                case _:
                    self._read(file, ast.iter_child_nodes(node), prefix, owner, in_class=in_class)

    def _add(self, function: Function) -> _Node:
        return self._nodes.setdefault(function, _Node(function))

    def _decorated(self, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(decorator, ast.Call) and ast.unparse(called).endswith("partial"):
                called = decorator.args[0]
            name = ast.unparse(called)
            if name not in _NEUTRAL and not name.endswith((".setter", ".defvjp")):
                self._roots.setdefault(function, f"registered by @{name}")
        owner, _, name = function[1].rpartition(".")
        if "AbstractRef" in owner or owner.endswith("AbstractAccumulatorRef"):
            self._roots.setdefault(function, "called by jax on the type of a ref")

    def _public(self, file: str) -> None:
        if file.startswith(LIBRARY):
            for function in list(self._nodes):
                if function[0] == file and "." not in function[1] and not function[1].startswith("_"):
                    self._roots.setdefault(function, f"the library kernel {function[1]}")
        elif file.startswith(PUBLIC):
            module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name, targets in self._imports[file].items():
                for other in self._targets(targets):
                    self._roots[other] = f"{module}.{name}"

    # -- following ----------------------------------------------------------------------------------------------------

    def _mentioned(self, function: Function) -> Iterator[Function]:
        node = self._nodes.get(function)
        if node is not None:
            yield from node.inside
            yield from self._of(function[0], node)

    def _of(self, file: str, node: _Node) -> Iterator[Function]:
        imports = self._imports[file]
        for name in node.names:
            if (file, name) in self._nodes:
                yield (file, name)
            elif name in imports:
                yield from self._targets(imports[name])
        for before, attribute in node.attributes:
            found = list(self._targets(f"{module}.{attribute}" for module in imports.get(before, set())))
            yield from found or self._methods.get(attribute, [])

    def _targets(self, dotted: Iterable[str]) -> Iterator[Function]:
        for each in dotted:
            yield from self._target(each)

    def _target(self, dotted: str) -> Iterator[Function]:
        module, _, name = dotted.rpartition(".")
        base = module.replace(".", "/")
        for file in (f"{base}.py", f"{base}/__init__.py"):
            if (file, name) in self._nodes:
                yield (file, name)
            else:
                yield from self._targets(self._imports.get(file, {}).get(name, set()) - {dotted})


def _imports(file: str, tree: ast.Module) -> dict[str, set[str]]:
    """The names that a file imports, anywhere in it, with their dotted targets."""
    package = file.split("/")[:-1]
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name].add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name].add(f"{base}.{alias.name}")
    return found


def _lives_with_its_class(file: str, method: str) -> bool:
    """Special methods, and those that a user who holds an object of Pallas may call."""
    if method.startswith("__") and method.endswith("__"):
        return True
    return not method.startswith("_") and not file.startswith("jax/experimental/mosaic/")
