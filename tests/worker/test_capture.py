"""Launches are captured with their types, in every way in which they are reached, and nothing large is computed."""

from __future__ import annotations

from typing import Any

import pytest

HEAD = """
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu

def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def add(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1

def f(x):
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def g(x):
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        add, out_shape=x, grid=(x.shape[0] // 8, x.shape[1] // 128), in_specs=[block], out_specs=block,
        compiler_params=pltpu.CompilerParams())(x)
"""


def arguments(events: Any) -> list[str]:
    return [capture["arguments"] for capture in events.captures]


def test_main_block_is_evaluated_abstractly(jax_python: Any, worker_run: Any) -> None:
    """Arrays of a terabyte cost nothing, prints go to the log, and comparisons of values never fail."""
    events = worker_run(
        jax_python.python,
        HEAD
        + """
if __name__ == "__main__":
    big = jnp.ones((1 << 20, 1 << 18), jnp.bfloat16)
    print("sum", g(big))
    np.testing.assert_allclose(g(big[:128, :128]), 0)
    assert f(jnp.zeros((128, 128))).sum() == 3
    f(jnp.zeros((256, 128))).block_until_ready()
""",
    )
    assert arguments(events) == ["bf16[1048576,262144]", "bf16[128,128]", "f32[128,128]", "f32[256,128]"]
    assert all(capture["stage"] == "lower" for capture in events.captures)
    assert events.faults == []
    assert events.outcomes["main"]["finished"]
    assert "sum" in events.log


def test_top_level_statements_are_evaluated_abstractly(jax_python: Any, worker_run: Any) -> None:
    text = HEAD + "\nSCALE = jnp.float32(3)\nx = jnp.ones((1 << 20, 1 << 18))\ny = g(x)\nprint(y.shape, float(SCALE))\n"
    first = text.count("\n", 0, text.index("x = jnp.ones((1 <<")) + 1
    driver = {"id": "module", "kind": "module", "lines": [first, first + 1, first + 2]}
    events = worker_run(jax_python.python, text, drivers=[driver])
    assert arguments(events) == ["f32[1048576,262144]"]
    assert events.captures[0]["stage"] == "lower"
    assert events.outcomes["module"]["finished"]
    assert "(1048576, 262144) 3.0" in events.log


def test_a_needed_value_leads_to_a_concrete_run(jax_python: Any, worker_run: Any) -> None:
    events = worker_run(
        jax_python.python,
        HEAD
        + """
if __name__ == "__main__":
    rows = int(jnp.asarray([64, 128]).max())
    out = f(jnp.ones((rows, 128)))
    print(f"{float(out[0, 0]):.3f}")
    jax.jit(g)(jnp.ones((rows, 64)))
""",
    )
    assert arguments(events) == ["f32[128,128]", "f32[128,64]"]
    assert [capture["stage"] for capture in events.captures] == ["lower", "lower"]
    assert events.outcomes["main"] == {**events.outcomes["main"], "finished": True, "mode": "concrete"}


def test_no_concrete_run_when_all_launches_were_reached(jax_python: Any, worker_run: Any) -> None:
    text = HEAD + "\nif __name__ == '__main__':\n    f(jnp.ones((128, 128)))\n    float(jnp.ones(()))\n"
    launch = text.count("\n", 0, text.index("plgpu.kernel(")) + 1
    events = worker_run(jax_python.python, text, launches=[launch])
    assert events.outcomes["main"]["mode"] == "abstract"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("jax.vmap(g)(jnp.ones((4, 8, 128)))", "f32[8,128]"),
        ("jax.jit(g)(jnp.ones((8, 128)))", "f32[8,128]"),
        ("jax.lax.map(g, jnp.ones((4, 8, 128)))", "f32[8,128]"),
        ("jax.vjp(wrapped, jnp.ones((8, 128)))[1](jnp.ones((8, 128)))", "f32[8,128]"),
        ("g(np.ones((8, 128), np.float32))", "f32[8,128]"),
    ],
)
def test_launches_under_transformations(jax_python: Any, worker_run: Any, call: str, expected: str) -> None:
    events = worker_run(
        jax_python.python,
        HEAD
        + f"""
@jax.custom_vjp
def wrapped(x):
    return g(x)
wrapped.defvjp(lambda x: (g(x), None), lambda _, ct: (g(ct),))

if __name__ == "__main__":
    {call}
""",
    )
    assert set(arguments(events)) == {expected}
    assert events.faults == []
    assert all(capture["stage"] == "lower" for capture in events.captures)


def test_decorators_partials_and_loops(jax_python: Any, worker_run: Any) -> None:
    """One launch line with several bodies is several kernels; a loop that changes nothing is one."""
    events = worker_run(
        jax_python.python,
        HEAD
        + """
def scaled(by, x_ref, o_ref):
    o_ref[...] = x_ref[...] * by

def run(body, x):
    return pl.pallas_call(body, out_shape=x)(x)

@functools.partial(plgpu.kernel, out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32))
def decorated(x_ref, o_ref):
    o_ref[...] = x_ref[...]

if __name__ == "__main__":
    x = jnp.ones((128, 128))
    for by in (2, 3):
        run(functools.partial(scaled, by), x)
    for _ in range(50):
        run(double, x)
    decorated(x)
""",
    )
    assert [capture["body"]["name"] for capture in events.captures] == ["scaled", "scaled", "double", "decorated"]
    assert all(capture["stage"] == "lower" for capture in events.captures)


def test_collective_kernels_are_lowered_in_their_mesh(jax_python: Any, worker_run: Any) -> None:
    events = worker_run(
        jax_python.python,
        HEAD
        + """
from jax.sharding import PartitionSpec as P

if __name__ == "__main__":
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    def local(x):
        return g(x) + jax.lax.axis_index("x")
    jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(jnp.ones((8, 128)))
""",
    )
    assert events.faults == []
    assert [capture["stage"] for capture in events.captures] == ["lower"]


def test_types_that_name_a_mesh(jax_python: Any, worker_run: Any) -> None:
    """Under ``set_mesh`` with explicit axes the arrays' types say how they are split."""
    events = worker_run(
        jax_python.python,
        HEAD
        + """
from jax.sharding import AxisType, PartitionSpec as P

if __name__ == "__main__":
    with jax.set_mesh(jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))):
        x = jax.sharding.reshard(jnp.ones((32, 128)), P("x", None))
        jax.jit(jax.shard_map(g, out_specs=P("x", None), check_vma=False))(x)
""",
    )
    assert events.faults == []
    assert [(capture["stage"], capture["arguments"]) for capture in events.captures] == [("lower", "f32[8,128]")]


@pytest.mark.parametrize(
    ("imports", "spec", "backend"),
    [
        ("from jax.experimental.pallas import tpu as q", "compiler_params=q.CompilerParams()", "tpu"),
        ("from jax.experimental.pallas import triton as plgpu", "compiler_params=plgpu.CompilerParams()", "triton"),
        (
            "from jax.experimental.pallas import tpu as pltpu",
            "scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)]",
            "tpu",
        ),
        ("", "grid=(1,)", "any"),
    ],
)
def test_backends(jax_python: Any, worker_run: Any, imports: str, spec: str, backend: str) -> None:
    events = worker_run(
        jax_python.python,
        f"""
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
{imports}

def kernel(x_ref, o_ref, *scratch):
    o_ref[...] = x_ref[...]

if __name__ == "__main__":
    x = jnp.ones((8, 128))
    pl.pallas_call(kernel, out_shape=x, {spec}, interpret=True)(x)
""",
    )
    assert [(c["backend"], c["stage"]) for c in events.captures] == [(backend, "lower")], events.faults


def test_core_map_is_lowered_with_its_refs(jax_python: Any, worker_run: Any) -> None:
    events = worker_run(
        jax_python.python,
        """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def run(x, body):
    def stateful(refs):
        pl.core_map(plgpu.Mesh(grid=(2,), grid_names=("i",)))(lambda: body(*refs))
    return pl.run_state(stateful)((x, jnp.zeros_like(x)))[1]

def rows():
    return pl.ds(jax.lax.axis_index("i") * 64, 64)

def doubles(x_ref, y_ref):
    y_ref[rows()] = x_ref[rows()] * 2

def sums(x_ref, y_ref):
    y_ref[rows()] = jnp.cumsum(x_ref[rows()], axis=0)

if __name__ == "__main__":
    run(jnp.ones((128, 128)), doubles)
    jax.jit(run, static_argnums=1)(jnp.ones((128, 128)), sums)
""",
    )
    assert [(c["api"], c["backend"], c["stage"]) for c in events.captures] == [
        ("pl.core_map", "mosaic_gpu", "lower"),
        ("pl.core_map", "mosaic_gpu", "trace"),
    ]
    assert [fault["equation"]["primitive"] for fault in events.faults] == ["cumsum"]
