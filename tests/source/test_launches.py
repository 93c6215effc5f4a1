"""Launches found by reading, in every way in which they are written."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lsp.model import Backend
from pallas_lsp.source.launches import find_launches

HEAD = """
import functools
from functools import partial
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
"""


def launches(text: str, head: str = HEAD) -> list[tuple[str, str, str | None, str]]:
    source = head + textwrap.dedent(text)
    lines = source.split("\n")
    found = []
    for launch in find_launches("/f.py", source):
        range_ = launch.location.range
        first = lines[range_.start.line][range_.start.character :]
        one_line = range_.start.line == range_.end.line
        spelled = lines[range_.start.line][range_.start.character : range_.end.character] if one_line else first
        found.append((launch.api, launch.backend.value, launch.body, spelled))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plgpu.kernel(body, out_type=t)(x)", ("plgpu.kernel", "mosaic_gpu", "body", "plgpu.kernel(body, out_type=t)")),
        ("pl.pallas_call(body, t)", ("pl.pallas_call", "mosaic_gpu", "body", "pl.pallas_call(body, t)")),
        ("pl.kernel(out_shape=t, body=b)", ("pl.kernel", "mosaic_gpu", "b", "pl.kernel(out_shape=t, body=b)")),
        ("pl.core_map(m)(body)", ("pl.core_map", "mosaic_gpu", "body", "pl.core_map(m)")),
        ("call = pl.pallas_call\ncall(b, t)", ("pl.pallas_call", "mosaic_gpu", "b", "call(b, t)")),
        ("call = again = pl.pallas_call\nagain(b, t)", ("pl.pallas_call", "mosaic_gpu", "b", "again(b, t)")),
        ("call: object = pl.pallas_call\ncall(b, t)", ("pl.pallas_call", "mosaic_gpu", "b", "call(b, t)")),
        ("mod = plgpu\nmod.kernel(b, t)", ("plgpu.kernel", "mosaic_gpu", "b", "mod.kernel(b, t)")),
        ("c = partial(pl.pallas_call, grid=1)\nc(b, t)", ("pl.pallas_call", "mosaic_gpu", "b", "c(b, t)")),
        (
            "c = functools.partial(pl.pallas_call, b)\nc(t)",
            ("pl.pallas_call", "mosaic_gpu", "b", "c(t)"),
        ),
        (
            "partial(plgpu.kernel, out_type=t)(b)",
            ("plgpu.kernel", "mosaic_gpu", "b", "partial(plgpu.kernel, out_type=t)(b)"),
        ),
        ("(k := plgpu.kernel)(b, t)", ("plgpu.kernel", "mosaic_gpu", "b", "(k := plgpu.kernel)(b, t)")),
        ("jax.jit(plgpu.kernel(b, t))(x)", ("plgpu.kernel", "mosaic_gpu", "b", "plgpu.kernel(b, t)")),
        ("plgpu.kernel(partial(b, n=1), t)", ("plgpu.kernel", "mosaic_gpu", "b", "plgpu.kernel(partial(b, n=1), t)")),
        ("k = partial(b, n=1)\nplgpu.kernel(k, t)", ("plgpu.kernel", "mosaic_gpu", "b", "plgpu.kernel(k, t)")),
        (
            "plgpu.kernel(lambda r: None, t)",
            ("plgpu.kernel", "mosaic_gpu", "<lambda>", "plgpu.kernel(lambda r: None, t)"),
        ),
        ("plgpu.kernel(make(), t)", ("plgpu.kernel", "mosaic_gpu", None, "plgpu.kernel(make(), t)")),
        ("plgpu.kernel(self.body, t)", ("plgpu.kernel", "mosaic_gpu", "body", "plgpu.kernel(self.body, t)")),
        ("plgpu.kernel(*given)", ("plgpu.kernel", "mosaic_gpu", None, "plgpu.kernel(*given)")),
        ("@plgpu.kernel(out_type=t)\ndef f(r): ...", ("plgpu.kernel", "mosaic_gpu", "f", "plgpu.kernel(out_type=t)")),
        ("@pl.core_map(m)\ndef _(): ...", ("pl.core_map", "mosaic_gpu", "_", "pl.core_map(m)")),
        (
            "@partial(pl.kernel, out_type=t)\ndef f(r): ...",
            ("pl.kernel", "mosaic_gpu", "f", "partial(pl.kernel, out_type=t)"),
        ),
        (
            "def g():\n  @functools.partial(plgpu.kernel, out_type=t)\n  def f(r): ...",
            ("plgpu.kernel", "mosaic_gpu", "f", "functools.partial(plgpu.kernel, out_type=t)"),
        ),
        ("x = 'é', plgpu.kernel(b, t)", ("plgpu.kernel", "mosaic_gpu", "b", "plgpu.kernel(b, t)")),
    ],
)
def test_spellings(text, expected):
    assert launches(text) == [expected]


@pytest.mark.parametrize(
    ("imports", "call", "api"),
    [
        ("import jax.experimental.pallas as pl", "pl.pallas_call(b, t)", "pl.pallas_call"),
        ("import jax.experimental.pallas", "jax.experimental.pallas.pallas_call(b, t)", "pl.pallas_call"),
        ("from jax.experimental import pallas", "pallas.pallas_call(b, t)", "pl.pallas_call"),
        ("from jax.experimental.pallas import pallas_call", "pallas_call(b, t)", "pl.pallas_call"),
        ("from jax.experimental.pallas import pallas_call as go", "go(b, t)", "pl.pallas_call"),
        ("import jax.experimental.pallas.mosaic_gpu as mgpu", "mgpu.kernel(b, t)", "plgpu.kernel"),
        ("from jax.experimental.pallas.mosaic_gpu import kernel", "kernel(b, t)", "plgpu.kernel"),
        ("from jax._src.pallas.pallas_call import pallas_call", "pallas_call(b, t)", "pl.pallas_call"),
        ("def f():\n  from jax.experimental import pallas as p", "  p.pallas_call(b, t)", "pl.pallas_call"),
        ("try:\n  import x\nexcept ImportError:\n  from jax.experimental import pallas as p", "p.pallas_call(b, t)",
         "pl.pallas_call"),
    ],
)  # fmt: skip
def test_imports(imports, call, api):
    assert [found[0] for found in launches(f"{imports}\n{call}\n", "")] == [api]


@pytest.mark.parametrize(
    "text",
    [
        "other.kernel(b, t)",
        "kernel(b, t)",
        "def kernel(a): ...\nkernel(1)",
        "pl.pallas_call",
        "c = partial(pl.pallas_call, b)",
        "pl.run_state(b)(plgpu.ACC((64, 64)))",
        "pl.BlockSpec(lambda i: i)",
        '@pl.core_map(plgpu.WarpMesh(axis_name="warp"))\ndef _(): ...',
        "w = plgpu.WarpMesh(axis_name='warp')\npl.core_map(w)(body)",
        "# plgpu.kernel(b, t)",
        "'plgpu.kernel(b, t)'",
    ],
)
def test_what_is_no_launch(text):
    assert launches(text) == []


def test_plgpu_is_resolved_and_not_taken_by_its_name():
    head = "from jax.experimental import pallas as pl\nfrom jax.experimental.pallas import triton as plgpu\n"
    (found,) = launches("pl.pallas_call(b, t, compiler_params=plgpu.CompilerParams(num_warps=4))", head)
    assert found[1] == Backend.TRITON
    head = "from mine import plgpu\n"
    assert launches("plgpu.kernel(b, t)", head) == []


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("pl.pallas_call(b, t)", "any"),
        ("pl.pallas_call(b, t, compiler_params=pltpu.CompilerParams())", "tpu"),
        ("pl.pallas_call(b, t, compiler_params=plgpu.CompilerParams())", "mosaic_gpu"),
        ("p = pltpu.CompilerParams()\npl.pallas_call(b, t, compiler_params=p)", "tpu"),
        ("pl.pallas_call(b, t, scratch_shapes=[pltpu.VMEM((8, 128), f)])", "tpu"),
        ("def body(r):\n  plgpu.wgmma(r)\npl.pallas_call(body, t)", "mosaic_gpu"),
        ("def body(r):\n  pltpu.roll(r)\nk = partial(body)\npl.pallas_call(k, t)", "tpu"),
        ("m = plgpu.Mesh(grid=(1,))\n@pl.kernel(out_type=t, mesh=m)\ndef f(r): ...", "mosaic_gpu"),
    ],
)
def test_backends(text, backend):
    head = HEAD + "from jax.experimental.pallas import tpu as pltpu\n"
    assert [found[1] for found in launches(text, head)] == [backend]


def test_several_on_one_line_and_nested_are_in_order():
    text = "f(plgpu.kernel(a, t), plgpu.kernel(b, plgpu.kernel(c, t)))"
    assert [found[2] for found in launches(text)] == ["a", "b", "c"]


def test_aliases_in_a_circle_end():
    assert launches("a = b\nb = a\na(pl)\nkernel = kernel\nkernel()\n") == []


def test_a_byte_order_mark_and_other_line_endings():
    text = "\ufefffrom jax.experimental import pallas as pl\r\npl.pallas_call(b, t)\r\n"
    (launch,) = find_launches("/f.py", text)
    assert (launch.location.range.start.line, launch.location.range.end.character) == (1, 20)


def test_text_that_does_not_parse_raises():
    with pytest.raises(SyntaxError):
        find_launches("/f.py", "pallas kernel (")
