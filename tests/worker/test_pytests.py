"""Tests of other files reach kernels through the user's own pytest, and through unittest without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

KERNELS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
def op(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
CONFTEST = """
import jax.numpy as jnp, pytest
@pytest.fixture
def rows():
    return jnp.ones((64, 128))
"""
TESTS = """
import unittest
import jax, jax.numpy as jnp, numpy as np, pytest
from kernels import op

@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU")
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_op(rows, copies, tmp_path):
    (tmp_path / "note").write_text("x")
    if np.asarray(rows * 1).sum() > 1:
        raise ValueError("zeros stand for values")
    np.testing.assert_allclose(op(jnp.concatenate([rows] * copies)), 2)

def test_skips_itself():
    if jax.devices()[0].platform != "gpu":
        pytest.skip("no GPU")
    op(jnp.ones((8, 128)))

class Case(unittest.TestCase):
    @unittest.skipIf(jax.default_backend() == "cpu", "no GPU")
    def test_method(self):
        self.assertEqual(op(jnp.ones((16, 128))).sum(), 0)

def test_broken():
    raise OSError("a file is missing")
"""


def drivers(path: Path, *names: str) -> list[dict[str, Any]]:
    return [{"id": name, "kind": "pytest", "path": str(path), "name": name} for name in names]


def test_fixtures_parameters_and_skips(jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    wanted = drivers(
        tmp_path / "test_kernels.py", "test_op", "test_skips_itself", "Case.test_method", "test_broken", "test_absent"
    )
    events = worker_run(
        jax_python.python,
        KERNELS,
        files={"conftest.py": CONFTEST, "test_kernels.py": TESTS},
        drivers=wanted,
        roots=[str(tmp_path)],
    )
    reached = [(capture["driver"], capture["arguments"], capture["stage"]) for capture in events.captures]
    assert reached == [
        ("test_op", "f32[64,128]", "lower"),
        ("test_op", "f32[128,128]", "lower"),
        ("test_skips_itself", "f32[8,128]", "lower"),
        ("Case.test_method", "f32[16,128]", "lower"),
    ]
    assert events.outcomes["test_op"]["finished"]
    assert events.outcomes["test_op"]["mode"] == "soft"
    assert events.outcomes["Case.test_method"]["mode"] == "abstract"
    assert events.outcomes["test_broken"]["error"] == "OSError: a file is missing"
    assert "no test test_absent" in events.outcomes["test_absent"]["error"]
    assert events.faults == []


def test_a_file_that_cannot_be_collected(jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    wanted = drivers(tmp_path / "test_kernels.py", "test_op")
    events = worker_run(
        jax_python.python, KERNELS, files={"test_kernels.py": "import no_such_module\n"}, drivers=wanted
    )
    assert "no_such_module" in events.outcomes["test_op"]["error"]


def test_without_pytest(newest_jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    wanted = drivers(tmp_path / "test_kernels.py", "Case.test_method")
    tests = "import sys\nassert 'pytest' not in sys.modules\n" + TESTS.split("@pytest")[0].replace(", pytest", "")
    tests += "class Case" + TESTS.split("class Case")[1].split("def test_broken")[0]
    events = worker_run(
        newest_jax_python.python,
        KERNELS,
        files={"test_kernels.py": tests, "pytest.py": "raise ImportError\n"},
        drivers=wanted,
    )
    assert [capture["arguments"] for capture in events.captures] == ["f32[16,128]"]
