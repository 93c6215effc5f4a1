"""Edits of what a program does, as an author makes them; the text mostly still parses afterwards."""

from __future__ import annotations

import ast
import random
import re
import tokenize

import mutations
from python_text import (
    Edit,
    arguments_of,
    block_of,
    first_line,
    functions_of,
    nodes_of,
    place,
    replaced,
    statements_of,
    tokens_of,
    when_it_parses,
)

# -- meaning -----------------------------------------------------------------------------------------------------------


def number(text: str, source: random.Random) -> str:
    """Another constant: a shape, a block size, a factor, an axis."""
    found = [(a, b, t.string) for a, b, t in tokens_of(text) if t.type == tokenize.NUMBER]
    if not found:
        return text
    start, end, old = source.choice(found)
    if "." in old:
        return replaced(text, start, end, source.choice(["0.5", "1.0", "2.0"]))
    value = int(old, 0)
    return replaced(text, start, end, str(source.choice([value + 1, max(value - 1, 0), value * 2, value // 2, 0, 3])))


def constant(text: str, source: random.Random) -> str:
    """Another value for a number that is assigned at the top level."""
    found = [
        node.value
        for statement in statements_of(text)
        if isinstance(statement, ast.Assign)
        for node in [statement]
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float)
    ]
    if not found:
        return text
    start, end = place(text, source.choice(found))
    return replaced(text, start, end, source.choice(["32", "64", "128", "256", "100", "2", "1", "1.0"]))


_GROUPS = (
    ("jnp.float32", "jnp.float16", "jnp.bfloat16", "jnp.int32"),
    ("jnp.exp", "jnp.sin", "jnp.abs", "jnp.cumsum", "jnp.sqrt"),
    ("jnp.sum", "jnp.max", "jnp.min", "jnp.cumsum"),
    ("axis=0", "axis=1", "axis=1, keepdims=True", "axis=2"),
    (" + ", " * ", " - ", " / "),
    ("x.shape", "x.shape[:1]", "(x.shape[0], 1)"),
    ("[...]", "[:]", "[0]", ""),
    ("(i, 0)", "(0, i)", "(i,)", "(0, 0)", "(i, 0, 0)"),
    ("num_arrivals=1", "num_arrivals=2"),
    ("pl.program_id(0)", "pl.program_id(1)", "jax.lax.axis_index('x')"),
    ("x_ref", "y_ref", "o_ref", "acc_ref", "x_smem"),
    ("FACTORS", "[3.0]", "range(3)", "FACTORS[:1]"),
)


def word(text: str, source: random.Random) -> str:
    """One of some words that stand for each other."""
    found = [
        (match.start(), match.end(), new)
        for group in _GROUPS
        for old in group
        if old
        for match in re.finditer(re.escape(old), text)
        for new in group
        if new != old
    ]
    if not found:
        return text
    start, end, new = source.choice(found)
    return replaced(text, start, end, new)


def argument(text: str, source: random.Random) -> str:
    """An argument or an element of a list removed, doubled, or exchanged with its neighbour."""
    found: list[list[ast.expr | ast.stmt]] = []
    for node in nodes_of(text):
        elements = arguments_of(node) if isinstance(node, ast.Call) else list(getattr(node, "elts", ()))
        if elements and len({each.lineno for each in elements}) in (1, len(elements)):
            found.append(elements)
    if not found:
        return text
    elements = source.choice(found)
    places = [place(text, each) for each in elements]
    at = source.randrange(len(places))
    start, end = places[at]
    action = source.random()
    if action < 0.35:
        comma = re.match(r"\s*,[ ]?", text[end:])
        return replaced(text, start, end + (comma.end() if comma else 0), "")
    if action < 0.6 or len(places) == 1:
        return replaced(text, end, end, ", " + text[start:end])
    first, second = sorted([places[at], places[at - 1]])
    return (
        text[: first[0]] + text[slice(*second)] + text[first[1] : second[0]] + text[slice(*first)] + text[second[1] :]
    )


def statement_moved(text: str, source: random.Random) -> str:
    """A statement of a function or of the main block deleted, doubled, or put before the one above."""
    bodies = [
        node.body
        for node in nodes_of(text)
        if isinstance(node, ast.FunctionDef | ast.If | ast.For) and len(node.body) > 1
    ]
    if not bodies:
        return text
    body = source.choice(bodies)
    at = source.randrange(1, len(body))
    lines = text.splitlines(keepends=True)
    above, here = (first_line(body[at - 1]), first_line(body[at]))
    end = body[at].end_lineno
    action = source.random()
    if action < 0.4:
        del lines[here:end]
    elif action < 0.7:
        lines[here:here] = lines[here:end]
    else:
        lines[above:end] = [*lines[here:end], *lines[above:here]]
    return "".join(lines)


def function_moved(text: str, source: random.Random) -> str:
    """A function of the top level before or behind another."""
    functions = functions_of(text)
    if len(functions) < 2:
        return text
    moved, other = source.sample(functions, 2)
    lines = text.splitlines(keepends=True)
    block = block_of(text, moved)
    at = first_line(other)
    if at > first_line(moved):
        return "".join([*lines[: first_line(moved)], *lines[moved.end_lineno : at], *block, "\n", "\n", *lines[at:]])
    return "".join([*lines[:at], *block, "\n\n", *lines[at : first_line(moved)], *lines[moved.end_lineno :]])


def function_deleted(text: str, source: random.Random) -> str:
    functions = functions_of(text)
    if not functions:
        return text
    gone = source.choice(functions)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: first_line(gone)], *lines[gone.end_lineno :]])


def function_doubled(text: str, source: random.Random) -> str:
    """A copy of a function under another name, which the main block or a test may call."""
    functions = functions_of(text)
    if not functions:
        return text
    old = source.choice(functions)
    name = f"{old.name}_{source.randrange(10)}"
    block = re.sub(rf"\b{old.name}\b", name, "".join(block_of(text, old)))
    lines = text.splitlines(keepends=True)
    text = "".join([*lines[: old.end_lineno], "\n\n", block, *lines[old.end_lineno :]])
    calls = [match for match in re.finditer(rf"\b{old.name}\(", text) if text[: match.start()].rfind("def ") < 0 or
             not text[: match.start()].endswith("def ")]  # fmt: skip
    if calls and source.random() < 0.7:
        match = source.choice(calls)
        text = replaced(text, match.start(), match.end(), name + "(")
    return text


def function_renamed(text: str, source: random.Random) -> str:
    """Everywhere in the file, or, as while typing, in its definition alone."""
    functions = functions_of(text)
    if not functions:
        return text
    old = source.choice(functions).name
    count = 0 if source.random() < 0.7 else 1
    return re.sub(
        rf"\b{old}\b", f"{old}_new" if not old.endswith("_new") else old.removesuffix("_new"), text, count=count
    )


def pasted(text: str, source: random.Random) -> str:
    """A part of one function behind a statement of another."""
    functions = functions_of(text)
    if not functions:
        return text
    taken = source.choice(source.choice(functions).body)
    target = source.choice(source.choice(functions).body)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: target.end_lineno], *block_of(text, taken), *lines[target.end_lineno :]])


def state(text: str, source: random.Random) -> str:
    """Module state that changes while the file runs, in a function or between two calls."""
    functions = functions_of(text)
    names = re.findall(r"^([A-Z]+) = [\[{]", text, re.MULTILINE)
    if not functions:
        return text
    target = source.choice(source.choice(functions).body)
    line = " " * target.col_offset
    if names and source.random() < 0.6:
        name = source.choice(names)
        line += source.choice([f"{name}.clear()", f"{name} and len({name})", f"assert {name} is not None"])
    else:
        line += "globals().__setitem__('EXTRA', globals().get('EXTRA', 0) + 1)"
    lines = text.splitlines(keepends=True)
    at = first_line(target)
    return "".join([*lines[:at], line + "\n", *lines[at:]])


def decorated(text: str, source: random.Random) -> str:
    """A decorator on a function, or none."""
    functions = functions_of(text)
    if not functions:
        return text
    target = source.choice(functions)
    lines = text.splitlines(keepends=True)
    at = first_line(target)
    if target.decorator_list and source.random() < 0.6:
        del lines[at]
    else:
        lines.insert(at, source.choice(["@jax.jit\n", "@functools.cache\n", "@(lambda f: f)\n"]))
    return "".join(lines)


def bound(text: str, source: random.Random) -> str:
    """A kernel given as a partial, or through a lambda."""
    found = list(re.finditer(r"(?:kernel|pallas_call)\(\s*(\w+_kernel)\b", text))
    if not found:
        return text
    match = source.choice(found)
    name = match.group(1)
    new = source.choice([f"functools.partial({name})", f"lambda *refs: {name}(*refs)", f"({name})"])
    return replaced(text, match.start(1), match.end(1), new)


def looped(text: str, source: random.Random) -> str:
    """A loop over constants around a statement of a driver."""
    bodies = [
        statement
        for node in statements_of(text)
        if isinstance(node, ast.If) or (isinstance(node, ast.FunctionDef) and node.name.startswith("test"))
        for statement in node.body
    ]
    if not bodies:
        return text
    target = source.choice(bodies)
    lines = text.splitlines(keepends=True)
    at = first_line(target)
    indent = " " * target.col_offset
    block = [f"    {line}" for line in lines[at : target.end_lineno]]
    return "".join([*lines[:at], f"{indent}for _ in {source.choice(['range(2)', '(1, 2)'])}:\n", *block,
                    *lines[target.end_lineno :]])  # fmt: skip


def said(text: str, source: random.Random) -> str:
    """A comment that means something: a silenced line, or types for an entry."""
    functions = functions_of(text)
    lines = text.splitlines(keepends=True)
    if functions and source.random() < 0.3:
        target = source.choice(functions)
        arguments = ", ".join(["f32[64,128]"] * len(target.args.args))
        lines.insert(first_line(target), f"# pallas: {target.name}({arguments})\n")
        return "".join(lines)
    at = source.choice([n for n, line in enumerate(lines) if line.strip() and "#" not in line] or [0])
    if not lines:
        return text
    lines[at] = lines[at].rstrip("\n") + "  # pallas-lsp: ignore\n"
    return "".join(lines)


MEANING: tuple[Edit, ...] = tuple(
    map(
        when_it_parses,
        (number, number, constant, constant, word, word, word, argument, argument, statement_moved, function_moved,
         function_deleted, function_doubled, function_renamed, pasted, state, decorated, bound, looped, said,
         mutations.hoist, mutations.guard),
    )
)  # fmt: skip
