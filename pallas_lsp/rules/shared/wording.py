"""Words of messages: shapes, types, counts, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shape_text(shape: object) -> str:
    """``(128, 1)``, ``(128,)``; ``?`` for what is not known."""
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        return "?"
    return "(" + ", ".join(str(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"


def type_text(fact: object) -> str:
    """``float32[128, 256]``"""
    if not isinstance(fact, Mapping):
        return "?"
    shape = fact.get("shape")
    inside = ", ".join(str(d) for d in shape) if isinstance(shape, Sequence) else "?"
    return f"{fact.get('dtype') or '?'}[{inside}]"


def count_text(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def ordinal(index: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    return names[index] if index < len(names) else f"{index + 1}th"


def and_list(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" and {items[-1]}"
