"""With what the functions around a launch were called, as a shape comment says it."""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from typing import Any, NamedTuple

import pytest

from pallas_lsp.source.shape_comments import translate
from pallas_lsp.worker import entry_calls


class Typed:
    """Something with a shape and a type, as jax's arrays and tracers are."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, dtype


@dataclasses.dataclass(frozen=True)
class Config:
    rows: int
    made: int = dataclasses.field(default=0, init=False)


class Pair(NamedTuple):
    left: Any
    right: Any


class Mode(enum.Enum):
    FAST = 1


def activation() -> None:
    pass


NAMES = {"Config": Config, "Pair": Pair, "Mode": Mode, "relu": activation, "math": math, "types": types}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Typed((2, 3), "float32"), "f32[2,3]"),
        (Typed((), "bfloat16"), "bf16[]"),
        (Typed((4,), "bool"), "bool[4]"),
        (Typed((1,), "key<fry>"), None),
        ((1, [None, "a"]), "(1, [None, 'a'])"),
        ((Typed((1,), "int8"),), "(i8[1],)"),
        ({"a": 1.5}, "{'a': 1.5}"),
        ({1: 2}, None),
        (object(), None),
        (float("-inf"), "float('-inf')"),
        (Config(8), "Config(rows=8)"),
        (Pair(Typed((8,), "float32"), None), "Pair(left=f32[8], right=None)"),
        (Mode.FAST, "Mode.FAST"),
        (activation, "relu"),
        (math.sin, "math.sin"),
        (lambda: None, None),
        (Config, "Config"),
        (dict, None),
    ],
)
def test_values(value: Any, text: str | None) -> None:
    assert entry_calls._text(value, NAMES) == text
    if text is not None:
        translate(f"entry({text})")


def test_a_type_that_the_module_does_not_name_cannot_be_written() -> None:
    assert entry_calls._text(Config(8), {}) is None


def test_rebound_arguments() -> None:
    def keeps(x: int) -> int:
        return x + 1

    def rebinds(x: int) -> int:
        x, y = 1, 2
        return x + y

    assert not entry_calls._rebinds(keeps.__code__, ("x",))
    assert entry_calls._rebinds(rebinds.__code__, ("x",))
