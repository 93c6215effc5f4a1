"""What depends on a change: marks ``«...»`` are the changed text, ``‹...›`` the place that is asked about."""

from __future__ import annotations

import pytest

from pallas_lsp.source.influence import Influence
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import parse

HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
"""
LAUNCH = """
def kernel(x, o, a, b, bar):
    y = {use}

def run(v):
    return plgpu.kernel(kernel, out_type={out}, scratch_types=[{first}, {second}, plgpu.Barrier()]{more})(v)
"""


def launch(use="‹a›[...]", out="jax.ShapeDtypeStruct(v.shape, v.dtype)", first="A", second="B", more=""):
    return LAUNCH.format(use=use, out=out, first=first, second=second, more=more)


def reached(marked: str) -> bool:
    text, ranges = "", {"«": [], "‹": []}
    starts: list[tuple[str, int]] = []
    for char in HEAD + marked:
        if char in "«‹":
            starts.append((char, len(text)))
        elif char in "»›":
            kind, start = starts.pop()
            ranges[kind].append((start, len(text)))
        else:
            text += char
    lines = Lines(text)
    influence = Influence(parse(text), [lines.range(*span) for span in ranges["«"]])
    return any(influence.reaches(lines.range(*span)) for span in ranges["‹"])


DEPENDS = {
    "same_place": "y = «f(‹x›)»\n",
    "by_name": "y = «f(x)»\nz = ‹y› + 1\n",
    "by_two_names": "y = «f(x)»\nz = y + 1\nw = g(‹z›)\n",
    "beside_it": "y = load(x, «1», mask=‹m›)\n",
    "in_the_same_statement": "y = «f(x)»\nw = g(y, ‹h(1)›)\n",
    "through_a_function": "def f(x):\n    return «x + 1»\n\ny = f(1)\nz = ‹y›\n",
    "through_a_local_in_a_function": "def f(x):\n    t = «x + 1»\n    return t\n\nz = ‹f(1)›\n",
    "into_a_function": "def f(x):\n    return ‹x› + 1\n\ny = f(«2»)\n",
    "into_a_function_by_keyword": "def f(x, *, size):\n    return x[‹size›]\n\ny = f(2, size=«3»)\n",
    "into_a_partial": "def f(x, size):\n    return x[‹size›]\n\ny = functools.partial(f, size=«3»)\n",
    "into_a_callback": "def step(i, carry):\n    return ‹carry› + i\n\ny = jax.lax.fori_loop(0, 3, step, «x»)\n",
    "out_of_a_callback": (
        "def step(i, carry):\n    return «carry + i»\n\ny = jax.lax.fori_loop(0, 3, step, 1)\nz = ‹y›\n"
    ),
    "a_scope": "def scope(acc):\n    use(‹acc›)\n\npl.run_scoped(scope, «plgpu.ACC((64, 64), jnp.float32)»)\n",
    "a_loop": "for i in «range(3)»:\n    use(‹i›)\n",
    "unpacked": "y, z = «f(x)»\nw = ‹z›\n",
    "scratch": launch(first="«plgpu.SMEM((8, 8), jnp.float32)»"),
    "output": launch(use="‹o›[...]", out="«jax.ShapeDtypeStruct((8,), jnp.float32)»"),
    "operand": launch().replace("‹a›", "‹x›").replace("(v)\n", "(«v.T»)\n"),
    "result_of_a_launch": launch(use="1", out="«other»") + "\nz = ‹run(1)›\n",
    "a_new_definition": "«def _():\n    pass\n»\nuse(‹_›)\n",
    "a_parameter": "def f(«x, y»):\n    return ‹y›\n",
    "a_new_import": "from m import «f»\n\ny = ‹f›(1)\n",
}
INDEPENDENT = {
    "another_name": "y = «f(x)»\nz = ‹g(x)›\n",
    "before_it": "z = ‹g(x)›\ny = «f(x)»\n",
    "a_statement_without_a_name": "«plgpu.commit_smem()»\nz = ‹g(x)›\n",
    "a_store": "o[...] = «f(x)»\nz = ‹o›[0]\n",
    "another_scope": "def f():\n    y = «1»\n\ndef g():\n    y = 2\n    return ‹y›\n",
    "other_scratch": launch(second="«plgpu.SMEM((8, 8), jnp.float32)»"),
    "last_scratch": launch(second="«plgpu.SMEM((8, 8), jnp.float32)»", use="‹bar›"),
    "compiler_params": launch(more=", compiler_params=«plgpu.CompilerParams()»"),
    "the_launch_itself": launch(first="«A»", use="1") + "\nz = ‹run(1)›\n",
    "another_argument_of_the_launch": launch(use="1", first="«A»", out="‹jax.ShapeDtypeStruct(v.shape, v.dtype)›"),
    "another_argument": "def f(x, y):\n    return ‹y›\n\nz = f(«1», 2)\n",
    "another_result": "y, z = f(x)\nw = «y»\nv = ‹z›\n",
}


@pytest.mark.parametrize("name", DEPENDS)
def test_it_depends(name: str) -> None:
    assert reached(DEPENDS[name])


@pytest.mark.parametrize("name", INDEPENDENT)
def test_it_does_not_depend(name: str) -> None:
    assert not reached(INDEPENDENT[name])
