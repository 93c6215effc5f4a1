"""Indices of refs that are plain numbers outside of their dimension: jax passes them on as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import know_operands
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """Numbers that are too large or below zero, in code that is always run."""
    for equation, chain in kernel.equations():
        if any(outer.primitive.name == "cond" for outer in chain):
            continue  # a branch that is never taken may hold anything
        for name, _, transforms in know_operands.views(equation):
            for indexer in transforms:
                if type(indexer).__name__ != "NDIndexer":
                    continue
                for dimension, (index, size) in enumerate(zip(indexer.indices, indexer.shape, strict=True)):
                    number = _number(getattr(index, "start", index))
                    if number is not None and isinstance(size, int) and not 0 <= number < max(size, 1):
                        facts = {"operand": name, "index": number, "size": size, "dimension": dimension}
                        yield Found("constant-index", places(chain), facts)


def _number(index: Any) -> int | None:
    value = getattr(index, "val", index)
    if getattr(value, "shape", ()) != () or isinstance(value, bool):
        return None
    try:
        return int(value) if isinstance(value, int) or hasattr(value, "dtype") else None
    except (TypeError, ValueError):
        return None
