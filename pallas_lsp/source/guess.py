"""Guessed argument types, where nothing in the workspace calls a kernel's wrapper and no comment says them.

From jaxtyping annotations, shapes in comments and docstrings, ``m, k = x.shape`` and the like in the wrapper, and
defaults.  A guess is several calls to try, one a line; what they lead to is labelled "assumed" everywhere and is never
more than a hint.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.drivers import entry_names
from pallas_lsp.source.free_names import free_names
from pallas_lsp.source.shape_comments import DTYPES, TYPE
from pallas_lsp.source.syntax import Syntax, parse
from pallas_lsp.source.workspace import read_text

MOST_ENTRIES = 8
MOST_TRIES = 12
_SIZES = (256, 512, 128, 1024)
_RANKS = (2, 1, 3, 4)
_SMALL = re.compile(r"^(b|bs|batch\w*|n_?batch\w*|groups?|g|num_groups|e|experts?|num_experts)$", re.IGNORECASE)
_HEADS = re.compile(r"^(h|hq|hkv|kvh|nh|heads?|n_?heads?|num_(kv_|q_)?heads?)$", re.IGNORECASE)
_HEAD_DIM = re.compile(r"^(dh|hd|d_?head|head_?dim|dim_?head|d_k|d_v)$", re.IGNORECASE)
_INTEGERS = re.compile(r"(idx|index|indices|_ids?$|ids$|lengths?|lens$|sizes$|positions?|offsets?|seqlens?|tables?)")
_ARRAY_USES = ("shape", "dtype", "ndim", "astype", "reshape", "T", "at", "size", "sum", "transpose", "swapaxes")
_JAXTYPING = {
    "Float": "",
    "Num": "",
    "Inexact": "",
    "Real": "",
    "Shaped": "",
    "BFloat16": "bfloat16",
    "Float16": "float16",
    "Float32": "float32",
    "Float64": "float64",
    "Int": "int32",
    "Int8": "int8",
    "Int16": "int16",
    "Int32": "int32",
    "UInt": "uint32",
    "UInt8": "uint8",
    "UInt32": "uint32",
    "Integer": "int32",
    "Bool": "bool",
}
_DIMENSIONS = re.compile(r"[\[(]\s*([A-Za-z_0-9][\w*+ ]*(?:,\s*[A-Za-z_0-9][\w*+ ]*)*),?\s*[\])]")


@dataclass
class _Parameter:
    """What is known of an argument.  ``dimensions``: names or numbers, None for an unknown rank."""

    name: str
    keyword: bool
    array: bool
    dtype: str = ""
    dimensions: list[str] | None = None
    value: str = ""


@dataclass
class _Facts:
    """What the wrapper's body says of its arguments."""

    unpacked: dict[str, list[str]] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    named: dict[tuple[str, int], str] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)


def guess_drivers(snapshot: Snapshot, path: str, lines: Collection[int] | None = None) -> tuple[Driver, ...]:
    """A driver for each function of a file through which its launches are reached; raises what ``read_text`` raises.

    ``lines``: the 1-based lines of the launches that matter; None for all.
    """
    syntax = parse(read_text(snapshot, path))
    entries = entry_names(snapshot, path)
    if lines is not None:
        entries &= _towards(syntax, lines)
    float_first = "bfloat16" if "mosaic_gpu" in syntax.text or "plgpu" in syntax.text else "float32"
    found = []
    for node in syntax.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in entries and not node.name.startswith("test"):
            tries = _calls(syntax, node, float_first)
            if tries:
                found.append(Driver(f"guess:{node.name}", "guess", path, "\n".join(tries), (node.lineno,)))
    return tuple(found[:MOST_ENTRIES])


def _towards(syntax: Syntax, lines: Collection[int]) -> set[str]:
    """The functions of the top level that hold one of the lines, or use a function that does."""
    functions = [node for node in syntax.tree.body if isinstance(node, ast.FunctionDef)]
    found = {node.name for node in functions if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)}
    uses = {node.name: free_names(node) for node in functions}
    while more := {name for name, names in uses.items() if name not in found and names & found}:
        found |= more
    return found


def _calls(syntax: Syntax, function: ast.FunctionDef, float_first: str) -> list[str]:
    facts = _facts(function)
    parameters = _parameters(syntax, function, facts)
    if not any(parameter.array for parameter in parameters):
        return []
    floats = [float_first, "float32" if float_first != "float32" else "bfloat16"]
    unknown = any(p.array and p.dimensions is None for p in parameters)
    calls = []
    for rank, size, dtype in itertools.product(_RANKS if unknown else (0,), _SIZES, floats):
        arguments = []
        for parameter in parameters:
            if parameter.array:
                dimensions = (
                    parameter.dimensions if parameter.dimensions is not None else [f"d{n}" for n in range(rank)]
                )
                shape = "".join(f"{_size(dimension, size)}, " for dimension in dimensions)
                text = f"{TYPE}({parameter.dtype or dtype!r}, ({shape}))"
            else:
                text = parameter.value
            arguments.append(f"{parameter.name}={text}" if parameter.keyword else text)
        calls.append(f"{function.name}({', '.join(arguments)})")
    # The sizes in turn for each rank, so that a few tries cover ranks as well as sizes.
    step = len(_SIZES) * len(floats)
    order = sorted(range(len(calls)), key=lambda number: (number % step, number // step))
    return list(dict.fromkeys(calls[number] for number in order))[:MOST_TRIES]


def _size(dimension: str, general: int) -> int:
    total = 1
    for factor in re.split(r"\s*\*\s*", dimension):
        if factor.isdigit():
            total *= int(factor)
        elif _SMALL.match(factor):
            total *= 2
        elif _HEADS.match(factor):
            total *= 4
        elif _HEAD_DIM.match(factor):
            total *= 128
        else:
            total *= general
    return total


# -- arguments --------------------------------------------------------------------------------------------------------


def _parameters(syntax: Syntax, function: ast.FunctionDef, facts: _Facts) -> list[_Parameter]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    found = [
        _parameter(syntax, function, arg, facts, keyword=False) for arg in positional[:without] if arg.arg != "self"
    ]
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is None:
            found.append(_parameter(syntax, function, arg, facts, keyword=True))
    return found


def _parameter(syntax: Syntax, function: ast.FunctionDef, arg: ast.arg, facts: _Facts, *, keyword: bool) -> _Parameter:
    annotation = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    scalar = re.fullmatch(r"(int|float|bool|str)", annotation)
    array = not scalar and (bool(re.search(r"Array|ndarray", annotation)) or arg.arg in facts.arrays or not annotation)
    parameter = _Parameter(arg.arg, keyword, array)
    if not array:
        parameter.value = _scalar(arg.arg, annotation)
        return parameter
    parameter.dtype = "int32" if _INTEGERS.search(arg.arg) else "bool" if "mask" in arg.arg else ""
    typed = _jaxtyping(arg.annotation)
    if typed is not None:
        parameter.dtype, parameter.dimensions = typed[0] or parameter.dtype, typed[1]
        return parameter
    parameter.dimensions = (
        facts.unpacked.get(arg.arg)
        or _commented(syntax, arg)
        or _documented(ast.get_docstring(function) or "", arg.arg)
        or _ranked(arg.arg, facts)
    )
    return parameter


def _scalar(name: str, annotation: str) -> str:
    if annotation == "bool":
        return "False"
    if annotation == "float":
        return "1e-6" if "eps" in name else "1.0"
    if annotation == "str":
        return "''"
    if re.match(r"(block|tile|b[mnkqst]$|chunk|group)", name):
        return "64"
    return "4" if re.match(r"(num|n)_", name) else "128"


def _jaxtyping(annotation: ast.expr | None) -> tuple[str, list[str]] | None:
    """Type and dimensions of ``Float[Array, "m k"]``."""
    if not (isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple)):
        return None
    owner = annotation.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    last = annotation.slice.elts[-1]
    if name not in _JAXTYPING or not (isinstance(last, ast.Constant) and isinstance(last.value, str)):
        return None
    dimensions = []
    for word in last.value.split():
        plain = word.lstrip("#?_*").split("=")[-1]
        if not word.startswith(("*", "...")):
            dimensions.append(plain or "d")
    return _JAXTYPING[name], dimensions


def _split(text: str) -> list[str] | None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    good = all(re.fullmatch(r"\w+(?:\s*\*\s*\w+)*", part) for part in parts)
    return parts if parts and good else None


def _commented(syntax: Syntax, arg: ast.arg) -> list[str] | None:
    comment = syntax.comments.get(arg.lineno - 1, "") if "#" in syntax.lines[arg.lineno - 1] else ""
    match = _DIMENSIONS.search(comment)
    return _split(match[1]) if match else None


def _documented(docstring: str, name: str) -> list[str] | None:
    for line in docstring.splitlines():
        if re.match(rf"\s*[`*]*{re.escape(name)}[`*]*\s*(\(|:|\[)", line):
            found = [parts for text in _DIMENSIONS.findall(line) if (parts := _split(text)) is not None]
            likely = [parts for parts in found if len(parts) > 1 or "shape" in line]
            kinds = {*DTYPES, *DTYPES.values(), "array", "jax", "optional"}
            likely = [parts for parts in likely if not any(part.lower() in kinds for part in parts)]
            if likely:
                return likely[0]
    return None


def _ranked(name: str, facts: _Facts) -> list[str] | None:
    named = {index: dimension for (owner, index), dimension in facts.named.items() if owner == name}
    rank = facts.ranks.get(name) or (max((i + 1 if i >= 0 else -i for i in named), default=0))
    if not rank:
        return None
    dimensions = [f"d{number}" for number in range(max(rank, 2 if named else rank))]
    for index, dimension in named.items():
        if -len(dimensions) <= index < len(dimensions):
            dimensions[index] = dimension
    return dimensions


# -- what the body says -----------------------------------------------------------------------------------------------


def _facts(function: ast.FunctionDef) -> _Facts:
    facts = _Facts()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _ARRAY_USES:
            facts.arrays.add(node.value.id)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _assigned(node.targets[0], node.value, facts)
        elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
            _compared(node.left, node.comparators[0], facts)
    return facts


def _assigned(target: ast.expr, value: ast.expr, facts: _Facts) -> None:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for left, right in zip(target.elts, value.elts, strict=True):
            _assigned(left, right, facts)
        return
    owner = _shape_of(value)
    if owner is not None and isinstance(target, ast.Tuple):
        names = [part.id if isinstance(part, ast.Name) else "d" for part in target.elts]
        facts.unpacked.setdefault(owner, [name if name != "_" else f"d{n}" for n, name in enumerate(names)])
    elif isinstance(value, ast.Subscript) and isinstance(target, ast.Name):
        owner, index = _shape_of(value.value), _number(value.slice)
        if owner is not None and index is not None:
            facts.named.setdefault((owner, index), target.id)


def _compared(left: ast.expr, right: ast.expr, facts: _Facts) -> None:
    if isinstance(left, ast.Attribute) and left.attr == "ndim" and isinstance(left.value, ast.Name):
        rank = _number(right)
        if rank is not None:
            facts.ranks.setdefault(left.value.id, rank)
    owner = _shape_of(left)
    if owner is not None and isinstance(right, ast.Tuple):
        facts.unpacked.setdefault(owner, [ast.unparse(part).replace(" ", "") for part in right.elts])


def _shape_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
        return node.value.id
    return None


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return -inner if inner is not None else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
