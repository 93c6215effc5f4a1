"""Arguments that ``jax.jit`` traces although they are sizes: where that happens, and how to declare them static."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Syntax, parameters

_JIT = "jax.jit"


@dataclass(frozen=True)
class TracedArgument:
    """A parameter of a function whose ``decorator`` is ``jax.jit`` without naming it as static."""

    name: str
    path: str
    syntax: Syntax
    decorator: ast.expr

    @property
    def advice(self) -> str:
        return f'`jax.jit` traces `{self.name}`: declare it static, `static_argnames=("{self.name}",)`.'

    def fix(self) -> Fix | None:
        """The decorator with the argument among the static ones."""
        editor = Editor(self.path, self.syntax)
        call = self.decorator if isinstance(self.decorator, ast.Call) else None
        if call is None:
            partial = editor.spell("functools.partial", self.decorator)
            if partial is None:
                return None
            editor.replace(self.decorator, f"{partial}({self.syntax.source(self.decorator)}, {self._names()})")
        else:
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            names = given.get("static_argnames")
            if names is None and "static_argnums" in given:
                return None
            if names is None:
                editor.insert_argument(call, self._names())
            elif isinstance(names, ast.Tuple | ast.List) and names.elts:
                editor.insert(self.syntax.span(names.elts[-1])[1], f', "{self.name}"')
            else:
                text = self.syntax.source(names)
                editor.replace(names, f'({text}, "{self.name}")')
        return safe(f"Declare `{self.name}` static", editor)

    def _names(self) -> str:
        return f'static_argnames=("{self.name}",)'


def traced_argument(spot: Spot) -> TracedArgument | None:
    """The argument of a jitted function that an expression is made of; None where there is none, or several are."""
    found: dict[str, TracedArgument] = {}
    for name in (node for node in ast.walk(spot.node) if isinstance(node, ast.Name)):
        binding = spot.syntax.binding(name)
        function = spot.syntax.parent(binding.node) if binding is not None else None
        while isinstance(function, ast.arguments):
            function = spot.syntax.parent(function)
        if not isinstance(function, ast.FunctionDef) or name.id not in {p.arg for p in parameters(function)}:
            continue
        for decorator in function.decorator_list:
            if _jits(spot.syntax, decorator) and not _is_static(decorator, name.id):
                found[name.id] = TracedArgument(name.id, spot.path, spot.syntax, decorator)
    return next(iter(found.values())) if len(found) == 1 else None


def _jits(syntax: Syntax, decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        if syntax.dotted(decorator.func) in PARTIAL and decorator.args:
            return syntax.dotted(decorator.args[0]) == _JIT
        return syntax.dotted(decorator.func) == _JIT
    return syntax.dotted(decorator) == _JIT


def _is_static(decorator: ast.expr, name: str) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    named = [keyword.value for keyword in decorator.keywords if keyword.arg == "static_argnames"]
    return any(isinstance(node, ast.Constant) and node.value == name for value in named for node in ast.walk(value))
