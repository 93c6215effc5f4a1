"""A launch that is lowered alone keeps what surrounded it: the device that answered, the memory spaces, the mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SPARSE = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu, tpu_sc as plsc

def op(x):
    core = pltpu.get_tpu_info().sparse_core
    lanes = core.num_lanes

    def body(x_ref, o_ref, scratch):
        scratch[pl.ds(0, lanes)] = jnp.arange(lanes, dtype=jnp.int32)

    mesh = plsc.VectorSubcoreMesh(
        num_cores=core.num_cores, num_subcores=core.num_subcores, core_axis_name="core", subcore_axis_name="subcore")
    return pl.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=mesh,
                     scratch_types=[pltpu.VMEM((4 * lanes,), jnp.int32)])(x)
"""

SCALARS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(offset_ref, x_ref, o_ref):
    pltpu.sync_copy(x_ref.at[pl.ds(offset_ref[0] * 8, 8)], o_ref)

@jax.jit
def op(offset, x):
    offset = pltpu.with_memory_space_constraint(offset, pltpu.SMEM)
    return pl.kernel(body, out_type=jax.ShapeDtypeStruct((8, 128), x.dtype),
                     mesh=pltpu.TensorCoreMesh(axis_name="core"))(offset, x)
"""

MAIN_OF_SCALARS = """
if __name__ == "__main__":
    traced = op.trace(jnp.zeros((1,), jnp.int32), jnp.ones((64, 128)))
"""

RING = """
import functools, jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh, PartitionSpec as P

def body(x_ref, o_ref, sent, received):
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=(0,))
    copy.start()
    copy.wait()

def local(x):
    return pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.SemaphoreType.DMA] * 2)(x)

if __name__ == "__main__":
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    shift = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    shift.trace(jnp.ones((8, 128)))
"""


def test_a_kernel_is_lowered_for_the_tpu_whose_facts_it_was_built_from(newest_jax_python: Any, worker_run: Any) -> None:
    main = "\nif __name__ == '__main__':\n    op(jnp.zeros((1024,), jnp.int32))\n"
    events = worker_run(newest_jax_python.python, SPARSE + main, targets={"tpu": ["TPU v6e"]})
    assert events.faults == []
    assert [capture["targets"] for capture in events.captures] == [["tpu:TPU7x"]]


def test_a_kernel_for_the_vectors_of_another_sparse_core_is_right(
    newest_jax_python: Any, worker_run: Any, tmp_path: Path
) -> None:
    text = SPARSE.replace("lanes = core.num_lanes", "lanes = 16")
    tests = """
import jax.numpy as jnp
from kernels import op

def test_op():
    op(jnp.zeros((1024,), jnp.int32))
"""
    driver = {"id": "pytest:t", "kind": "pytest", "name": "test_op", "target": "TPU v6e"}
    driver["path"] = str(tmp_path / "test_kernels.py")
    events = worker_run(
        newest_jax_python.python, text, files={"test_kernels.py": tests}, drivers=[driver], targets={"tpu": ["TPU v6e"]}
    )
    assert events.faults == []
    assert [capture["targets"] for capture in events.captures] == [["tpu:TPU7x"]]


@pytest.mark.parametrize("main", ["op.trace", "op"])
def test_an_argument_keeps_the_memory_space_that_it_was_put_into(
    newest_jax_python: Any, worker_run: Any, main: str
) -> None:
    text = SCALARS + MAIN_OF_SCALARS.replace("op.trace", main)
    events = worker_run(newest_jax_python.python, text)
    assert events.faults == []
    assert [capture["stage"] for capture in events.captures] == ["lower"]


def test_a_launch_inside_shard_map_is_not_lowered_without_its_mesh(jax_python: Any, worker_run: Any) -> None:
    events = worker_run(jax_python.python, RING)
    assert events.faults == []
    assert len(events.captures) == 1


TESTS = """
import unittest
import jax, jax.numpy as jnp, pytest
from kernels import op

class Case(unittest.TestCase):
    def test_refused(self):
        if jax.devices()[0].platform == "gpu":
            self.skipTest("int8 is not supported on B200.")
        op(jnp.ones((8, 128), jnp.int8))

    def test_wants_a_device(self):
        self.skipTest("not supported on CPU")

@pytest.mark.skip(reason="known bug in the compiler")
def test_marked():
    op(jnp.ones((16, 128)))

def test_skips():
    pytest.skip("bfloat16 does not work yet")
    op(jnp.ones((24, 128)))

def test_runs():
    pytest.skip("only on TPUs, not supported elsewhere")
    op(jnp.ones((32, 128)))
"""
KERNELS = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
def op(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def test_what_a_test_says_of_the_kernel_is_obeyed(newest_jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    names = ("Case.test_refused", "Case.test_wants_a_device", "test_marked", "test_skips", "test_runs")
    path = str(tmp_path / "test_kernels.py")
    wanted = [{"id": f"pytest:{name}", "kind": "pytest", "path": path, "name": name} for name in names]
    events = worker_run(newest_jax_python.python, KERNELS, files={"test_kernels.py": TESTS}, drivers=wanted)
    assert [capture["arguments"] for capture in events.captures] == ["f32[32,128]"]


LEAF = """
import importlib, sys
import parent.inner.leaf

del sys.modules["parent.inner"], sys.modules["parent"]
assert not sys.modules["pallas_lsp_worker"].preload._is_installed("parent.inner.leaf")
"""


def test_a_part_of_a_package_that_is_gone_ends_nothing(newest_jax_python: Any, worker_run: Any) -> None:
    """A namespace package asks its parent for its place, and an import that failed takes the parent away."""
    files = {"parent/inner/leaf/module.py": ""}
    events = worker_run(newest_jax_python.python, LEAF, files=files)
    assert events.outcomes["module"]["finished"], events.outcomes
