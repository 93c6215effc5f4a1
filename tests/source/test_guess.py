"""Guessed argument types: what of a wrapper says them."""

from __future__ import annotations

import pytest

from pallas_lsp.model import Document, Snapshot
from pallas_lsp.source.guess import guess_drivers

HEAD = """
import jax
from jaxtyping import Array, Float, Int
from jax.experimental import pallas as pl
def body(*refs):
    refs[-1][...] = refs[0][...]
def launch(*args):
    return pl.pallas_call(body, out_shape=args[0])(*args)
"""


def first(text: str, name: str = "f") -> str:
    path = "/w/kernels.py"
    drivers = guess_drivers(Snapshot({path: Document(path, HEAD + text)}, ("/w",)), path)
    (driver,) = [d for d in drivers if d.id == f"guess:{name}"]
    assert driver.kind == "guess"
    return driver.name.splitlines()[0].replace("__pallas_type__", "T").replace("float32", "f32")


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ('def f(x: Float[Array, "m k"], n: Int[Array, "m"]):\n    return launch(x, n)',
         "f(T('f32', (256, 256, )), T('int32', (256, )))"),
        ("def f(q, k, scale=1.0):\n    b, heads, t, head_dim = q.shape\n    return launch(q, k)",
         "f(T('f32', (2, 4, 256, 128, )), T('f32', (256, 256, )))"),
        ("def f(\n    x,  # [batch, 512]\n    *,\n    block_m: int,\n):\n    return launch(x)",
         "f(T('f32', (2, 512, )), block_m=64)"),
        ('def f(x):\n    """Does.\n\n    Args:\n      x: rows of shape (n, 3 * d)\n    """\n    return launch(x.T)',
         "f(T('f32', (256, 768, )))"),
        ("def f(x, lengths):\n    assert x.ndim == 3\n    n = x.shape[-1]\n    return launch(x, lengths.astype(int))",
         "f(T('f32', (256, 256, 256, )), T('int32', (256, 256, )))"),
    ],
)  # fmt: skip
def test_facts(function: str, call: str) -> None:
    assert first(function + "\n") == call


def test_functions_that_launch_nothing_are_left_out() -> None:
    path = "/w/kernels.py"
    text = HEAD + "def g(x):\n    return x.shape\ndef test_f(x):\n    launch(x)\n"
    drivers = guess_drivers(Snapshot({path: Document(path, text)}, ("/w",)), path)
    assert not {d.id for d in drivers} & {"guess:g", "guess:test_f"}
