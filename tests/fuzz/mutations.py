"""Changes of a file's text that leave what it does as it is: names, formatting, comments, aliases, nesting.

Each takes a text and a source of randomness and returns another text, or the same where it has nothing to change.
"""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Callable

Mutation = Callable[[str, random.Random], str]
_OPEN, _CLOSE = "([{", ")]}"
_MODULES = {"jnp": "np_", "pl": "pallas", "plgpu": "mg", "pltpu": "t"}


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _offsets(text: str) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _renamed(text: str, names: dict[str, str]) -> str:
    starts = _offsets(text)
    edits = []
    for token in _tokens(text):
        if token.type == tokenize.NAME and token.string in names:
            start = starts[token.start[0] - 1] + token.start[1]
            edits.append((start, start + len(token.string), names[token.string]))
    return _edited(text, edits)


def rename(text: str, random_: random.Random) -> str:
    """Other names for functions, parameters and variables that are nothing else, anywhere."""
    own: set[str] = set()
    taken: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Attribute):
            taken.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            taken.add(node.arg)
        elif isinstance(node, ast.alias):
            taken.update((*node.name.split("."), str(node.asname)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            taken.add(node.value)
    free = sorted(name for name in own - taken if not name.startswith("__") and name != "_")
    chosen = [name for name in free if random_.random() < 0.6]
    return _renamed(text, {name: f"{name}_{random_.choice(['new', 'ref2', 'val', 'x'])}" for name in chosen})


def module_aliases(text: str, random_: random.Random) -> str:
    """Other names for the modules, and another way to import them."""
    names = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.asname in _MODULES and random_.random() < 0.7:
                    names[alias.asname] = _MODULES[alias.asname]
    text = _renamed(text, names)
    if random_.random() < 0.4:
        for module in ("mosaic_gpu", "tpu", "triton"):
            old = f"from jax.experimental.pallas import {module} as"
            text = text.replace(old, f"import jax.experimental.pallas.{module} as")
    return text


def hoist(text: str, random_: random.Random) -> str:
    """A name for an argument of a call, assigned in the statement before."""
    choices = []
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.Assign | ast.Expr | ast.Return) and statement.col_offset:
            for call in _calls(statement):
                for argument in [*call.args, *(k.value for k in call.keywords)]:
                    plain = isinstance(argument, ast.Call | ast.Tuple | ast.List | ast.BinOp | ast.Attribute)
                    if plain and argument.lineno == argument.end_lineno and not _has_own_names(argument):
                        choices.append((statement, argument))
    if not choices:
        return text
    statement, argument = random_.choice(choices)
    starts = _offsets(text)
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    begin, end = offset(argument.lineno, argument.col_offset), offset(argument.end_lineno, argument.end_col_offset)
    at = offset(statement.lineno, statement.col_offset)
    if text[starts[statement.lineno - 1] : at].strip():
        return text
    name = f"hoisted_{random_.randrange(100)}"
    new = f"{name} = {text[begin:end]}\n{' ' * statement.col_offset}"
    return _edited(text, [(begin, end, name), (at, at, new)])


def _calls(node: ast.AST) -> list[ast.Call]:
    """The calls of a statement that no lambda or comprehension is around."""
    found: list[ast.Call] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp):
            continue
        if isinstance(current, ast.Call):
            found.append(current)
        pending += ast.iter_child_nodes(current)
    return found


def _has_own_names(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr | ast.Starred) for each in ast.walk(node))


def guard(text: str, random_: random.Random) -> str:
    """``if True:`` around a statement of a function."""
    lines = text.split("\n")
    inside = _inside_strings(text)
    whole = [
        statement
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
        and not lines[statement.lineno - 1][: statement.col_offset].strip()
        and ";" not in lines[statement.end_lineno - 1]
        and not inside & set(range(statement.lineno, statement.end_lineno + 1))
    ]
    if not whole:
        return text
    chosen = random_.choice(whole)
    first, last = chosen.lineno - 1, chosen.end_lineno
    block = [" " * chosen.col_offset + "if True:", *(f"    {line}" for line in lines[first:last])]
    return "\n".join([*lines[:first], *block, *lines[last:]])


def nest(text: str, random_: random.Random) -> str:
    """All definitions inside a function that returns those that the main block uses."""
    del random_
    body = ast.parse(text).body
    first = max((n for n, s in enumerate(body) if isinstance(s, ast.Import | ast.ImportFrom)), default=-1) + 1
    main = next((n for n, s in enumerate(body) if isinstance(s, ast.If)), None)
    if main is None or first >= main:
        return text
    start = min([body[first].lineno, *(d.lineno for d in getattr(body[first], "decorator_list", []))]) - 1
    stop = body[main].lineno - 1
    if _inside_strings(text) & set(range(start, stop + 1)):
        return text
    used = {n.id for n in ast.walk(body[main]) if isinstance(n, ast.Name)}
    names = [s.name for s in body[first:main] if isinstance(s, ast.FunctionDef) and s.name in used]
    for statement in body[first:main]:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            names += [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id in used]
    if not names:
        return text
    lines = text.split("\n")
    inner = [f"    {line}" if line.strip() else line for line in lines[start:stop]]
    while inner and not inner[-1].strip():
        inner.pop()
    made = ", ".join(names)
    block = ["def make_all():", *inner, "", f"    return {made}", "", "", f"{made} = make_all()", "", ""]
    return "\n".join([*lines[:start], *block, *lines[stop:]])


def spacing(text: str, random_: random.Random) -> str:
    """Line breaks and blanks inside brackets, blank lines between statements."""
    starts = _offsets(text)
    depth = 0
    edits = []
    for token in _tokens(text):
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.OP:
            depth += (token.string in _OPEN) - (token.string in _CLOSE)
            if depth > 0 and token.string in "([{,":
                chance = random_.random()
                if chance < 0.12:
                    edits.append((end, end, "\n" + " " * random_.choice([1, 6, 12])))
                elif chance < 0.25:
                    edits.append((end, end, " " * random_.choice([1, 2])))
        elif token.type == tokenize.NEWLINE and token.string and random_.random() < 0.1:
            edits.append((end, end, "\n" * random_.choice([1, 2])))
    return _edited(text, edits)


def comments(text: str, random_: random.Random) -> str:
    """Comments at the ends of lines and on lines of their own."""
    tokens = _tokens(text)
    ends = {t.start[0] for t in tokens if t.type in (tokenize.NEWLINE, tokenize.NL)}
    has = {t.start[0] for t in tokens if t.type == tokenize.COMMENT}
    inside = _inside_strings(text)
    result = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and random_.random() < 0.12 and number not in inside:
            indent = line[: len(line) - len(line.lstrip())]
            result.append(indent + random_.choice(["# (note, here)", "#", "# x = [1, 2"]))
        if number in ends and number not in has and line.strip() and random_.random() < 0.25:
            result.append(line + random_.choice(["  # see above", " # TMA, 128 B", "  #: (", "  # 'it' is"]))
        else:
            result.append(line)
    return "\n".join(result)


def _inside_strings(text: str) -> set[int]:
    """The lines on which a string goes on that started before."""
    found: set[int] = set()
    for token in _tokens(text):
        if token.type == tokenize.STRING:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
    return found


def line_ends(text: str, random_: random.Random) -> str:
    """Windows line ends, or a last line without an end."""
    return text.replace("\n", "\r\n") if random_.random() < 0.5 else text.rstrip("\n")


MUTATIONS: tuple[Mutation, ...] = (rename, module_aliases, hoist, guard, nest, spacing, comments, line_ends)
"""In the order in which they are applied: what comes last spares those before it odd line ends."""


def mutate(text: str, chosen: int, seed: int) -> str:
    """A text after the mutations whose bit is set in ``chosen``."""
    random_ = random.Random(seed)
    for number, mutation in enumerate(MUTATIONS):
        if chosen >> number & 1:
            text = mutation(text, random_)
            ast.parse(text)
    return text
