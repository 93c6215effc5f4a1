"""Where the names of a file are bound: scopes and bindings, as Python's own scoping rules have them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pallas_lsp.source.children import children


@dataclass(frozen=True)
class Binding:
    """One place that binds a name.

    ``imported`` is the dotted name for an import; ``value`` the expression for a plain assignment; both are absent for
    parameters, loop targets, unpacked assignments and the like, which have no single value to follow.
    """

    name: str
    node: ast.AST
    statement: ast.stmt | None
    value: ast.expr | None = None
    imported: str | None = None


@dataclass(eq=False)
class Scope:
    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    """Names declared ``global`` or ``nonlocal``."""

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """The scope that binds a name, as seen from here, and its bindings there."""
        scope: Scope | None = self
        while scope is not None:
            # Names of a class body are not seen from the functions inside it.
            visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.bindings and name not in scope.outside:
                return scope, scope.bindings[name]
            scope = scope.parent
        return None


_LEAVES = (ast.Name, ast.Constant)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Builder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.current = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.current}
        self.statement: ast.stmt | None = None
        for statement in tree.body:
            self.visit(statement)

    def bind(self, name: str, node: ast.AST, value: ast.expr | None = None, imported: str | None = None) -> None:
        scope = self.current
        if isinstance(node, ast.NamedExpr):
            while isinstance(scope.node, _COMPREHENSIONS) and scope.parent is not None:
                scope = scope.parent
        if name in scope.outside:
            while scope.parent is not None and (name in scope.outside or name not in scope.bindings):
                scope = scope.parent
        scope.bindings.setdefault(name, []).append(Binding(name, node, self.statement, value, imported))

    def bind_target(self, target: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, target, value)
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, None)
        elif isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if (
                isinstance(value, ast.Tuple | ast.List)
                and len(value.elts) == len(target.elts)
                and not any(isinstance(e, ast.Starred) for e in (*value.elts, *target.elts))
            ):
                values = list(value.elts)
            for element, part in zip(target.elts, values, strict=True):
                self.bind_target(element, part)
        else:
            self.visit(target)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _LEAVES):
            return
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer = self.statement
        self.statement = node
        super().visit(node)
        self.statement = outer

    def inside(self, node: ast.AST) -> None:
        self.current = Scope(node, self.current)
        self.scopes[node] = self.current

    def leave(self) -> None:
        assert self.current.parent is not None
        self.current = self.current.parent

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.bind(alias.asname, alias, imported=alias.name)
            else:
                top = alias.name.partition(".")[0]
                bound = self.current.bindings.get(top, [])
                if not any(b.imported == top for b in bound):  # import jax; import jax.numpy: one name
                    self.bind(top, alias, imported=top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                separator = "" if module.endswith(".") else "."
                self.bind(alias.asname or alias.name, alias, imported=f"{module}{separator}{alias.name}")

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.bind_target(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.bind_target(node.target, node.value)
        elif not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.bind_target(node.target, None)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.bind(node.target.id, node, node.value)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.bind_target(node.target, None)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.visit_For(node)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self.bind_target(node.optional_vars, None)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bind(node.name, node)
        for statement in node.body:
            self.visit(statement)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.bind_target(target, None)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.current.outside.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.visit_Global(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name, node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bind(node.rest, node)
        self.generic_visit(node)

    def _arguments(self, arguments: ast.arguments) -> list[ast.expr]:
        """Bind the parameters in the current scope; the expressions that belong to the scope outside."""
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for parameter in every:
            self.bind(parameter.arg, parameter)
        outside = [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]
        return outside + [p.annotation for p in every if p.annotation is not None]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.bind(node.name, node)
        self.inside(node)
        outside = self._arguments(node.args)
        for statement in node.body:
            self.visit(statement)
        self.leave()
        for expression in (*outside, *([node.returns] if node.returns is not None else [])):
            self.visit(expression)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.inside(node)
        outside = self._arguments(node.args)
        self.visit(node.body)
        self.leave()
        for expression in outside:
            self.visit(expression)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for expression in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(expression)
        self.bind(node.name, node)
        self.inside(node)
        for statement in node.body:
            self.visit(statement)
        self.leave()

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _COMPREHENSIONS):
            for child in children(node):
                self.visit(child)
            return
        self.inside(node)
        for generator in node.generators:
            self.bind_target(generator.target, None)
            self.visit(generator.iter)
            for condition in generator.ifs:
                self.visit(condition)
        for result in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(result)
        self.leave()


def build_scopes(tree: ast.Module) -> dict[ast.AST, Scope]:
    """The scopes of a module, by the node that opens them."""
    return _Builder(tree).scopes
