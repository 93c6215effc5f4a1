"""Makes a failing list of steps shorter: the fewest steps that still fail, as far as the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrunken(steps: Sequence[T], fails: Callable[[list[T]], bool], seconds: float) -> list[T]:
    """Take out ever smaller parts for as long as what is left fails (delta debugging)."""
    best = list(steps)
    until = time.monotonic() + seconds
    size = max(1, len(best) // 2)
    while True:
        start, before = 0, len(best)
        while start < len(best):
            if time.monotonic() > until:
                return best
            shorter = best[:start] + best[start + size :]
            if shorter and fails(shorter):
                best = shorter
            else:
                start += size
        if size == 1 and len(best) == before:
            return best
        size = max(1, size // 2)
