"""Another size for one dimension of a block: in its BlockSpec, in those that share the grid axis, and in the grid."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault, Fix, Frame, Safety
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.functions import result
from pallas_lsp.rules.shared.launches import BLOCK_SPEC, launch_of
from pallas_lsp.rules.shared.operand_refs import spec_of
from pallas_lsp.rules.shared.places import Spot, expression_at, follow, frame_from
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Syntax, parameters


@dataclass(frozen=True)
class Block:
    """A BlockSpec in the source, with the frames that led to it."""

    spot: Spot
    frames: tuple[Frame, ...]

    @property
    def call(self) -> ast.Call:
        assert isinstance(self.spot.node, ast.Call)
        return self.spot.node

    def argument(self, name: str) -> Spot | None:
        found = self.spot.syntax.argument(self.call, BLOCK_SPEC.index(name), name)
        return self.spot.at(found) if found is not None else None

    def sizes(self) -> tuple[Spot, list[ast.expr]] | None:
        """The expressions of the dimensions, where the block shape is written as a tuple."""
        given = self.argument("block_shape")
        if given is None:
            return None
        value = given.syntax.value(given.node)
        return (given.at(value), value.elts) if isinstance(value, ast.Tuple | ast.List) else None

    def axes(self) -> list[int | None]:
        """For each dimension the grid axis that its block index is, None where it is something else."""
        given = self.argument("index_map")
        function = given.syntax.callee(given.node) if given is not None else None
        returned = result(self.spot.syntax, function) if function is not None else None
        if function is None or returned is None:
            return []
        names = [p.arg for p in parameters(function)]
        elements = returned.elts if isinstance(returned, ast.Tuple | ast.List) else [returned]
        return [names.index(e.id) if isinstance(e, ast.Name) and e.id in names else None for e in elements]


def block_of(fault: Fault, context: Context, role: str, index: int) -> Block | None:
    """The BlockSpec of an operand in the user's own files."""
    frames = tuple(frame_from(f) for f in spec_of(fault, role, index).get("frames") or ())
    own = tuple(f for f in frames if f.origin == "workspace")
    spot = expression_at(context, own[-1], len(own) - 1) if own else None
    return Block(spot, own) if spot is not None and isinstance(spot.node, ast.Call) else None


def _blocks(fault: Fault, context: Context) -> Iterator[Block]:
    given: Mapping[str, Any] = fault.facts.get("given") or {}
    seen: set[ast.AST] = set()
    for role in ("inputs", "outputs"):
        for index in range(len(given.get(role) or ())):
            block = block_of(fault, context, role, index)
            if block is not None and block.call not in seen:
                seen.add(block.call)
                yield block


def resized(fault: Fault, context: Context, role: str, index: int, dimension: int, old: int, new: int) -> Fix | None:
    """The fix that gives one dimension of an operand's block the size ``new`` instead of ``old``."""
    block = block_of(fault, context, role, index)
    sizes = block.sizes() if block is not None else None
    if block is None or sizes is None or not -len(sizes[1]) <= dimension < len(sizes[1]):
        return None
    shape, elements = sizes
    defined = _definition(context, block.frames, shape.at(elements[dimension]), old)
    if defined is None:
        return None
    editor = Editor(defined.path, defined.syntax)
    if defined.node is elements[dimension]:
        if not _literals(editor, fault, context, block, dimension, old, new):
            return None
    else:
        editor.replace(defined.node, str(new))
    return Fix(f"Use blocks of {new} instead of {old}", editor.edits(), Safety.SUGGESTED)


def _definition(context: Context, frames: tuple[Frame, ...], size: Spot, old: int) -> Spot | None:
    """The literal that a size comes from: through names, the caller's arguments, and defaults of parameters."""
    spot, _ = follow(context, frames, size, ())
    node = spot.syntax.value(spot.node)
    if isinstance(node, ast.Name) and (default := _default(spot.syntax, node)) is not None:
        node = spot.syntax.value(default)
    if isinstance(node, ast.Constant) and node.value == old:
        return spot.at(node)
    return None


def _default(syntax: Syntax, name: ast.Name) -> ast.expr | None:
    binding = syntax.binding(name)
    if binding is None or not isinstance(binding.node, ast.arg):
        return None
    function = next((each for each in syntax.ancestors(binding.node) if isinstance(each, FUNCTIONS)), None)
    if function is None:
        return None
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if binding.node in positional:
        offset = len(positional) - len(arguments.defaults)
        index = positional.index(binding.node) - offset
        return arguments.defaults[index] if index >= 0 else None
    if binding.node in arguments.kwonlyargs:
        return arguments.kw_defaults[arguments.kwonlyargs.index(binding.node)]
    return None


def _literals(editor: Editor, fault: Fault, context: Context, block: Block, dimension: int, old: int, new: int) -> bool:
    """Change a literal size in all specs of the launch that share its grid axis, and in the grid."""
    axes = block.axes()
    axis = axes[dimension] if axes and -len(axes) <= dimension < len(axes) else None
    changed: set[ast.AST] = set()
    for other in (block, *(b for b in _blocks(fault, context) if b.call is not block.call)):
        sizes, own = other.sizes(), other.axes()
        if sizes is None or other.spot.path != editor.path:
            continue
        for number, element in enumerate(sizes[1]):
            is_it = other is block and number == dimension % len(sizes[1])
            shares = axis is not None and number < len(own) and own[number] == axis
            is_old = isinstance(element, ast.Constant) and element.value == old
            if is_old and (is_it or shares) and element not in changed:
                changed.add(element)
                editor.replace(element, str(new))
    return axis is None or _grid(editor, fault, context, block, axis, old, new)


def _nearby_grid(block: Block) -> Spot | None:
    """``grid=`` of a call around a spec: of a function that launches with what it is given."""
    for around in block.spot.syntax.ancestors(block.call):
        if isinstance(around, ast.Call):
            for keyword in around.keywords:
                if keyword.arg == "grid":
                    return block.spot.at(keyword.value)
    return None


def _grid(editor: Editor, fault: Fault, context: Context, block: Block, axis: int, old: int, new: int) -> bool:
    launch = launch_of(fault, context)
    grid = (launch.argument("grid") if launch is not None else None) or _nearby_grid(block)
    value = grid.syntax.value(grid.node) if grid is not None and grid.path == editor.path else None
    if grid is None or not isinstance(value, ast.expr):
        return False
    elements = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    if axis >= len(elements):
        return False
    size = grid.syntax.value(elements[axis])
    if isinstance(size, ast.Constant) and isinstance(size.value, int):
        if size.value * old % new:
            return False
        editor.replace(size, str(size.value * old // new))
        return True
    divisor: ast.expr | None = None
    if isinstance(size, ast.BinOp) and isinstance(size.op, ast.FloorDiv):
        divisor = size.right
    elif isinstance(size, ast.Call) and (grid.syntax.dotted(size.func) or "").endswith("cdiv") and len(size.args) == 2:
        divisor = size.args[1]
    if isinstance(divisor, ast.Constant) and divisor.value == old:
        editor.replace(divisor, str(new))
        return True
    return False


def described(shape: list[Any]) -> str:
    """A block shape as the user writes it: ``(64, None)``."""
    return shape_text([None if size is None or str(size).startswith("Squeezed") else size for size in shape])
