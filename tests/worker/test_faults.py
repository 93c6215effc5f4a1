"""Faults stand on the expression at fault; the driver's own exceptions are none."""

from __future__ import annotations

from typing import Any

import pytest

HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
"""


def line_of(text: str, mark: str) -> int:
    return text.count("\n", 0, text.index(mark)) + 1


def test_several_kernels_several_faults(jax_python: Any, worker_run: Any) -> None:
    """A fault of lowering, one of tracing and one of building, in three kernels; a fourth is right."""
    text = (
        HEAD
        + """
def sums(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=0)

def stores(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(jnp.int32)

def right(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def launch(body, x, **options):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), **options)(x)

if __name__ == "__main__":
    x = jnp.ones((128, 128))
    launch(sums, x)
    launch(stores, x)
    launch(right, x, grid=(2, 2), grid_names=("i",))
    launch(right, x)
"""
    )
    events = worker_run(jax_python.python, text)
    places = {
        (fault["stage"], fault["anchors"][0]["frames"][-1]["line"], fault["anchors"][0]["frames"][-1]["column"])
        for fault in events.faults
    }
    assert ("lower", line_of(text, "jnp.cumsum"), 17) in places
    assert ("trace", line_of(text, "o_ref[...] = x_ref[...].astype"), 4) in places
    assert {fault["stage"] for fault in events.faults} == {"build", "trace", "lower"}
    assert [capture["stage"] for capture in events.captures].count("lower") == 1


@pytest.mark.parametrize(
    ("handler", "caught"),
    [
        ("except NotImplementedError:", True),
        ("except (KeyError, Exception) as error:", True),
        ("except:", True),
        ("except KeyError:", False),
        ("finally:", False),
    ],
)
def test_what_the_caller_catches(newest_jax_python: Any, worker_run: Any, handler: str, caught: bool) -> None:
    text = (
        HEAD
        + f"""
def sums(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=0)

if __name__ == "__main__":
    for rows in (64, 128):
        try:
            plgpu.kernel(sums, out_type=jax.ShapeDtypeStruct((rows, 128), "float32"))(jnp.ones((rows, 128)))
        {handler}
            pass
"""
    )
    events = worker_run(newest_jax_python.python, text)
    assert events.faults
    assert [fault["facts"].get("caught", False) for fault in events.faults] == [caught] * len(events.faults)


def test_the_condition_that_jax_asserts_without_a_word(jax_python: Any, worker_run: Any) -> None:
    text = (
        HEAD
        + """
from jax.experimental.pallas import triton as pltriton

def kernel(x_ref, o_ref):
    o_ref[...] = pl.multiple_of(x_ref[...], (8,))

if __name__ == "__main__":
    x = jnp.ones((8, 128))
    pl.pallas_call(kernel, out_shape=x, compiler_params=pltriton.CompilerParams())(x)
"""
    )
    (fault,) = worker_run(jax_python.python, text).faults
    assert (fault["exception"], fault["message"]) == ("builtins.AssertionError", "")
    asserted = fault["facts"]["asserted"]
    assert "len(values)" in asserted["condition"]
    assert asserted["values"]["values"] == "(8,)"


def test_a_fault_in_a_helper_of_an_open_document(jax_python: Any, worker_run: Any, tmp_path: Any) -> None:
    """The text on the screen counts, not the file on disk; columns are UTF-8 bytes."""
    helper = "import jax.numpy as jnp\ndef body(x_ref, o_ref):\n    'ä'; o_ref[...] = jnp.sort(x_ref[...])\n"
    text = (
        HEAD
        + """
from helper import body
def f(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
if __name__ == "__main__":
    f(jnp.ones((128, 128)))
"""
    )
    path = str(tmp_path / "helper.py")
    events = worker_run(jax_python.python, text, files={"helper.py": "raise SystemExit\n"}, documents={path: helper})
    (fault,) = events.faults
    place = fault["anchors"][0]["frames"][-1]
    assert (place["path"], place["line"], place["column"]) == (path, 3, 23)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("pl.NoSuchThing", "NoSuchThing"),
        ("from jax.experimental.pallas import no_such_thing", "no_such_thing"),
        ("plgpu.Barrier(arrivals=3)", "arrivals"),
        ("pl.BlockSpec((1,), lambda i: i, spaces=1)", "spaces"),
        ("pl.program_id(0)", ""),
        ("pl.pallas_call(print, out_shape=jax.ShapeDtypeStruct((8,), 'f4'), grid=(2.5,))", "Grid"),
    ],
)
def test_faults_before_any_launch(jax_python: Any, worker_run: Any, statement: str, message: str) -> None:
    text = HEAD + f"\ndef use():\n    {statement}\n\nif __name__ == '__main__':\n    use()\n"
    events = worker_run(jax_python.python, text)
    (fault,) = events.faults
    assert fault["stage"] == "build"
    assert message in fault["message"]
    assert fault["anchors"][0]["frames"][-1]["line"] == line_of(text, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "open('/no/such/file')",
        "assert False, 'a condition of the driver'",
        "raise ValueError('no GPU here')",
        "{}['missing']",
        "jnp.ones((2, 3)) @ jnp.ones((2, 3))",
        "int('x')",
        "import no_such_module_anywhere",
    ],
)
def test_exceptions_of_the_driver_are_no_faults(jax_python: Any, worker_run: Any, statement: str) -> None:
    text = HEAD + f"\ndef use():\n    {statement}\n\nif __name__ == '__main__':\n    use()\n"
    events = worker_run(jax_python.python, text)
    assert events.faults == []
    outcome = events.outcomes["main"]
    assert not outcome["finished"]
    assert outcome["error"]
    assert outcome["frame"]["line"] == line_of(text, statement)


def test_expected_failures_are_no_faults(jax_python: Any, worker_run: Any) -> None:
    """A test that wants a kernel to fail is right when it fails."""
    events = worker_run(
        jax_python.python,
        HEAD
        + """
import unittest

class Case(unittest.TestCase):
    def test_bad(self):
        with self.assertRaises(ValueError):
            plgpu.kernel(print, out_type=(), grid=(2, 2), grid_names=("i",))()
    def test_good(self):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...]
        x = jnp.ones((128,))
        self.assertTrue((plgpu.kernel(body, out_type=x)(x) == x).all())
""",
        drivers=[
            {"id": "module", "kind": "module", "lines": []},
            {"id": "bad", "kind": "test", "name": "Case.test_bad"},
            {"id": "good", "kind": "test", "name": "Case.test_good"},
        ],
    )
    assert events.faults == []
    assert events.outcomes["bad"]["finished"]
    assert [capture["stage"] for capture in events.captures if capture["driver"] == "good"] == ["lower"]


def test_specs_lead_back_to_their_own_line(jax_python: Any, worker_run: Any) -> None:
    text = (
        HEAD
        + """
def specs(n):
    return [pl.BlockSpec((128, 128),
                         lambda i: (i, 0)) for _ in range(n)]
def body(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...]
if __name__ == "__main__":
    x = jnp.ones((256, 128))
    pl.pallas_call(body, out_shape=x, grid=(2, 1), in_specs=specs(2), out_specs=specs(1)[0])(x, x)
"""
    )
    events = worker_run(jax_python.python, text)
    (fault,) = events.faults
    spec = fault["facts"]["specs"][0]
    assert (spec["kind"], spec["frames"][-1]["line"]) == ("BlockSpec", line_of(text, "pl.BlockSpec"))
    assert fault["facts"]["index_map"]["line"] == line_of(text, "lambda i")


def test_a_layout_conflict_names_who_disagrees(jax_python: Any, worker_run: Any) -> None:
    if jax_python.version.startswith("0.10."):
        pytest.skip("lane semantics, the default of 0.10, has no layout inference")
    text = (
        HEAD
        + """
T = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
def body(a, b, c, o, a_s, b_s, bar):
    plgpu.copy_gmem_to_smem(a, a_s, bar)
    plgpu.copy_gmem_to_smem(b, b_s, bar)
    plgpu.barrier_wait(bar)
    def scope(acc):
        plgpu.wgmma(acc, a_s, b_s)
        return acc[...]
    acc = pl.run_scoped(scope, plgpu.ACC((64, 64), jnp.float32))
    other = plgpu.layout_cast(c[...], plgpu.Layout.WG_STRIDED((64, 64), vec_size=2))
    o[...] = acc + other
if __name__ == "__main__":
    h = jnp.ones((64, 64), jnp.float16)
    plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32), scratch_types=[
        plgpu.SMEM((64, 64), jnp.float16, transforms=T), plgpu.SMEM((64, 64), jnp.float16, transforms=T),
        plgpu.Barrier(num_arrivals=2)])(h, h, jnp.ones((64, 64)))
"""
    )
    events = worker_run(jax_python.python, text)
    (fault,) = events.faults
    assert fault["anchors"][0]["by"] == "layout"
    assert fault["anchors"][0]["frames"][-1]["line"] == line_of(text, "acc + other")
    lines = {entry["frames"][-1]["line"]: entry["layout"] for entry in fault["facts"]["conflict"]}
    assert "WG_STRIDED" in lines[line_of(text, "plgpu.layout_cast")]
    assert "WGMMA" in lines[line_of(text, "plgpu.wgmma(")]


def test_internals_exist(jax_python: Any, project_root: Any) -> None:
    """Says by name what a new jax release took away of what the worker touches."""
    import subprocess

    code = (
        "import sys; sys.path.insert(0, 'pallas_lsp'); import worker.compat as c, worker.internals as i; c.preimport();"
        "print('\\n'.join(i.missing()))"
    )
    done = subprocess.run(
        [jax_python.python, "-c", code],
        cwd=project_root,
        capture_output=True,
        text=True,
        check=True,
        env={"JAX_PLATFORMS": "cpu"},
    )
    assert done.stdout.split() == []


def test_what_interrupts_a_launch_is_no_fault_of_it(newest_jax_python: Any, worker_run: Any) -> None:
    """As the clock of a slow test does."""
    text = (
        HEAD
        + """
class Stop(BaseException):
    pass

def body(x_ref, o_ref):
    raise Stop("enough")

if __name__ == "__main__":
    plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((64, 128), "float32"))(jnp.ones((64, 128)))
"""
    )
    events = worker_run(newest_jax_python.python, text)
    assert events.faults == []
    assert "Stop: enough" in events.outcomes["main"]["error"]
