"""Shape comments with each tested jax: those that a capture suggests, and several for one kernel."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Report, Snapshot
from pallas_lsp.source.shape_comments import comment_for

KERNELS = """
import dataclasses, enum, functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


class Mode(enum.Enum):
    TWICE = 2


@dataclasses.dataclass(frozen=True)
class Config:
    mode: Mode = Mode.TWICE
    dtype: object = jnp.float32


def kernel(x_ref, o_ref, *, config, activation):
    o_ref[...] = activation(x_ref[...] * config.mode.value).astype(config.dtype)


def negative(x):
    return -x


@functools.partial(jax.jit, static_argnames=("config", "activation"))
def op(pair, *, config, activation=None):
    x, _ = pair
    body = functools.partial(kernel, config=config, activation=activation or negative)
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, config.dtype))(x)


def rebinding(x, config):
    x = x.reshape(-1, 128)
    return op((x, None), config=config, activation=negative)
"""
MAIN = """
if __name__ == "__main__":
    op((jnp.ones((8, 128)), jnp.ones(3, jnp.int32)), config=Config())
    rebinding(jnp.ones((2, 8, 128), jnp.bfloat16), Config(dtype=jnp.bfloat16))
"""


@pytest.fixture
async def engine(jax_python):
    engine = Engine(Settings(python=jax_python.python, discovery=False, guess=False))
    yield engine
    await engine.aclose()


async def check(engine: Engine, text: str) -> Report:
    snapshot = Snapshot({"/w/file.py": Document("/w/file.py", textwrap.dedent(text), 1)}, ("/w",))
    return await engine.check(snapshot, "/w/file.py")


async def test_a_capture_tells_the_call_that_led_to_it(engine) -> None:
    report = await check(engine, KERNELS + MAIN)
    captures = [capture for status in report.launches for capture in status.captures]
    calls = [capture.entry.call for capture in captures]
    assert calls == [
        "op((f32[8,128], i32[3]), config=Config(mode=Mode.TWICE, dtype=jnp.float32), activation=None)",
        "op((bf16[16,128], None), config=Config(mode=Mode.TWICE, dtype=jnp.bfloat16), activation=negative)",
    ]
    lines = KERNELS.splitlines(keepends=True)
    assert {capture.entry.line for capture in captures} == {
        lines.index(next(x for x in lines if "@functools" in x)) + 1
    }
    at = KERNELS.index("@functools")
    comments = "".join(f"{comment_for(call)}\n" for call in calls)
    again = await check(engine, KERNELS[:at] + comments + KERNELS[at:])
    assert not again.findings
    found = [(c.driver.partition(":")[0], c.arguments, c.entry.call) for s in again.launches for c in s.captures]
    assert found == [("comment", c.arguments, call) for c, call in zip(captures, calls, strict=True)]


async def test_several_comments_are_all_checked_and_a_finding_says_which_it_is_about(engine) -> None:
    text = """
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as plgpu


    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, 128)]


    # pallas: launch(f32[128])
    # pallas: launch(f32[256])
    # pallas: launch(f32[128,2,3], 4)
    def launch(x):
        return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    """
    report = await check(engine, text)
    (status,) = report.launches
    assert [capture.arguments for capture in status.captures] == ["f32[128]", "f32[256]"]
    wrong, fault = sorted(report.findings, key=lambda finding: -finding.location.range.start.line)
    assert wrong.rule == "shape-comment-invalid"
    assert wrong.location.range.start.line == 12
    assert "too many positional arguments" in wrong.message
    assert fault.arguments == ("f32[256]",)
    assert fault.message.endswith("for f32[256] only; f32[128] is fine.")
