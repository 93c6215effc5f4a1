"""Tests of other files reach kernels through the user's own pytest, and through unittest without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
        ("test_op", "f32[192,128]", "lower"),
        ("test_skips_itself", "f32[8,128]", "lower"),
        ("Case.test_method", "f32[16,128]", "lower"),
    ]
    assert events.outcomes["test_op"]["finished"]
    assert events.outcomes["test_op"]["mode"] == "soft"
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


VALUES = """
import jax, jax.numpy as jnp, numpy as np, pytest
from kernels import op
import helpers

def test_values():
    result = op(jnp.ones((64, 128)))
    error = float(jnp.abs(result - 2).max()) / float(jnp.abs(result).max())
    helpers.check(result)
    assert error < 1e-3, error
    assert (result - 1).max().item() < 2
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(result, 0)
    op(jnp.ones((128, 128)))

def test_compiled():
    compiled = jax.jit(lambda x: op(x)).lower(jnp.ones((192, 128))).compile()
    assert "pallas" in compiled.as_text()

def test_number_needed():
    rows = int(jnp.asarray([8, 64]).max())
    op(jnp.ones((rows, 128)))

def test_refused():
    with pytest.raises(Exception):
        op(object())
"""
HELPERS = """
import numpy as np
def check(result):
    assert np.asarray(result).min() > 0
"""


def test_values_that_tests_look_at(jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    """Comparisons never fail, also in helpers; what is compiled counts; a number that shapes need is computed."""
    file = tmp_path / "tests" / "test_kernels.py"
    names = ("test_values", "test_compiled", "test_number_needed", "test_refused")
    events = worker_run(
        jax_python.python,
        KERNELS,
        files={"tests/test_kernels.py": VALUES, "tests/helpers.py": HELPERS},
        drivers=drivers(file, *names),
        roots=[str(tmp_path)],
    )
    reached = {(capture["driver"], capture["arguments"]): capture["stage"] for capture in events.captures}
    for expected in (
        ("test_values", "f32[64,128]"),
        ("test_values", "f32[128,128]"),
        ("test_compiled", "f32[192,128]"),
    ):
        assert reached.get(expected) == "lower", (
            expected,
            reached,
            [e for e in events.events if e["kind"] == "driver"],
        )
    assert events.outcomes["test_number_needed"] == {
        **events.outcomes["test_number_needed"],
        "finished": True,
        "mode": "concrete",
    }
    assert events.faults == []


SEARCHED = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
def op(x, wide=False):
    if wide:
        return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
SEARCHING = """
import jax.numpy as jnp, pytest
import kernels
@pytest.mark.parametrize("wide", [False, False, True, False])
@pytest.mark.parametrize("rows", [64, 128])
def test_op(wide, rows):
    kernels.op(jnp.ones((rows, 128)), wide)
""" + "".join(f"def test_more_{n}():\n    kernels.op(jnp.ones((8, 128)))\n" for n in range(4))


def test_search(newest_jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    """Parameter sets in the middle are tried while launches are not reached; then no more tests are run."""
    wanted = drivers(tmp_path / "test_kernels.py", "test_op", *(f"test_more_{n}" for n in range(4)))
    lines = [number for number, line in enumerate(SEARCHED.splitlines(), 1) if "plgpu.kernel(" in line]

    def run(*drivers: dict[str, Any]) -> Any:
        return worker_run(
            newest_jax_python.python,
            SEARCHED,
            files={"test_kernels.py": SEARCHING},
            drivers=list(drivers),
            enough=True,
            launches=lines,
            focus=str(tmp_path / "kernels.py"),
        )

    events = run(*wanted)
    variant = next(capture for capture in events.captures if capture["launch"]["line"] == lines[0])
    assert "::test_op[" in variant["driver"]
    again = run({**wanted[0], "id": variant["driver"], "name": variant["driver"].rpartition("::")[2]})
    assert [capture["driver"] for capture in again.captures] == [variant["driver"]]
    first = run(wanted[1], wanted[2], wanted[3], wanted[4])
    assert all(outcome["finished"] for outcome in first.outcomes.values())


def test_enough(newest_jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    """When every launch was reached, a few tests more are run for their types, and others are left out."""
    wanted = drivers(tmp_path / "test_kernels.py", *(f"test_more_{n}" for n in range(4)))
    events = worker_run(
        newest_jax_python.python,
        KERNELS,
        files={"test_kernels.py": SEARCHING},
        drivers=wanted,
        enough=True,
        launches=[KERNELS[: KERNELS.index("plgpu.kernel(")].count("\n") + 1],
        focus=str(tmp_path / "kernels.py"),
    )
    assert [outcome["mode"] for outcome in events.outcomes.values()].count("not needed") == 1


INHERITED = """
import unittest
import jax.numpy as jnp
import kernels
class Base(unittest.TestCase):
    rows = 8
    def test_op(self):
        kernels.op(jnp.ones((self.rows, 128)))
    def test_fails_before(self):
        self.fail("no GPU of this kind")
"""
INHERITING = """
import base
class WideTest(base.Base):
    rows = 64
    def setUp(self):
        if self._testMethodName == "test_fails_before":
            raise OSError("no file")
"""


def test_tests_that_a_class_inherits(newest_jax_python: Any, worker_run: Any, tmp_path: Path) -> None:
    file = tmp_path / "test_kernels.py"
    events = worker_run(
        newest_jax_python.python,
        KERNELS,
        files={"test_kernels.py": INHERITING, "base.py": INHERITED},
        drivers=drivers(file, "WideTest."),
        roots=[str(tmp_path)],
    )
    reached = [(capture["driver"].rpartition("::")[2], capture["arguments"]) for capture in events.captures]
    assert reached == [("WideTest.test_op", "f32[64,128]")]
    assert "OSError: no file" in "".join(outcome["error"] for outcome in events.outcomes.values())


REFS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
def op(x):
    call = plgpu.kernel(body, out_type=())
    def stateful(refs):
        call(*refs)
    return pl.run_state(stateful)((x, jnp.zeros_like(x)))[1]
if __name__ == "__main__":
    op(jnp.ones((64, 128)))
"""


def test_a_launch_that_is_given_refs(jax_python: Any, worker_run: Any) -> None:
    if jax_python.version.startswith("0.10."):
        pytest.skip("jax 0.10 itself cannot stage a plgpu.kernel over refs")
    events = worker_run(jax_python.python, REFS)
    assert [(capture["api"], capture["stage"]) for capture in events.captures] == [("plgpu.kernel", "lower")], (
        events.captures,
        events.faults,
    )
