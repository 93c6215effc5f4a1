"""Arguments that small functions of Pallas do not take, and devices that the mesh does not have."""

from __future__ import annotations

import made
import pytest
from jax_environments import JaxPython
from launch_snippets import Snippet, check

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Stage

RULE = "helper-argument-invalid"


def _kernel(body: str, mark: str = "", options: str = "") -> str:
    line = f"    {body}"
    marked = f"{' ' * (line.index(mark) - 1)}#{'^' * len(mark)}\n" if mark else ""
    launch = f"call(kernel, jnp.ones((16, 16)){options})"
    return f'\n\ndef kernel(x_ref, o_ref):\n{line}\n{marked}\n\nif __name__ == "__main__":\n    {launch}\n'


TRITON = ", compiler_params=pltriton.CompilerParams()"
SNIPPETS = {
    "one_ref": Snippet(
        _kernel("o_ref[...] = pl.select_ref(0, x_ref)[...]", "pl.select_ref(0, x_ref)"), says=("at least two",)
    ),
    "no_type": Snippet(_kernel("pl.empty_ref_like(3)", "3"), says=("jax.ShapeDtypeStruct", "`int`")),
    "below_zero": Snippet("\n\nN = pl.next_power_of_2(-1)\n", says=("none below 1",)),
    "dot_of_a_row": Snippet(
        _kernel("o_ref[...] = pl.dot(x_ref[0], x_ref[...])", "pl.dot(x_ref[0], x_ref[...])", TRITON),
        says=("two matrices",),
        before=(0, 11),
    ),
    "two_precisions": Snippet(
        _kernel('o_ref[...] = pl.dot(x_ref[...], x_ref[...], allow_tf32=True, precision="float32")', "True", TRITON),
        says=("give either it or `precision`",),
        before=(0, 11),
    ),
    "cast_twice": Snippet(
        _kernel('o_ref[...] = x_ref.memory_space_cast("a").memory_space_cast("b")[...]'),
        says=("for the second time",),
        since=(0, 12),
    ),
    "right": Snippet(_kernel("o_ref[...] = x_ref[...] + pl.next_power_of_2(3)"), rule=""),
}


def test_helper_argument_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)


PRIMITIVES = "jax/_src/pallas/primitives.py"
TEXT = """
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, 1, device_id={"x": 0}, device_id_type=pl.DeviceIdType.LOGICAL)
"""
CALL = 'pl.semaphore_signal(sem, 1, device_id={"x": 0}, device_id_type=pl.DeviceIdType.LOGICAL)'


@pytest.mark.parametrize(
    ("site", "message", "marked", "says"),
    [
        (
            (PRIMITIVES, "device_id_to_logical"),
            "`device_id_type` must be MESH if `device_id` is a dict, got: device_id_type = LOGICAL.",
            "pl.DeviceIdType.LOGICAL",
            "a place in the mesh",
        ),
        (
            (PRIMITIVES, "device_id_to_logical"),
            "Number of device ids must match the number of mesh axes, but got 2 ids for a 1D mesh.",
            '{"x": 0}',
            "which has 1 axis: 2 are given",
        ),
        (
            ("jax/_src/pallas/mosaic/lowering.py", "_device_id_to_logical.<locals>.jax_fn"),
            "Unrecognized axes in device_id: {'y': 0}",
            '{"x": 0}',
            "{'y': 0}",
        ),
        (
            (PRIMITIVES, "_device_id_dict_to_mesh"),
            "('x', 'core') mixes JAX mesh and Pallas mesh grid axes",
            '{"x": 0}',
            "('x', 'core') puts axes",
        ),
    ],
)
def test_device_id_invalid(site: tuple[str, str], message: str, marked: str, says: str) -> None:
    fault = made.fault(made.frame(TEXT, CALL), site=site, message=message, stage=Stage.LOWER)
    context = made.context(TEXT)
    (finding,) = judge((fault,), context)
    assert finding.rule == "device-id-invalid"
    assert context.source(finding.location) == marked
    assert says in finding.message
    if "must be MESH" in message:
        (fix,) = finding.fixes
        assert "MESH" in fix.edits[0].new_text


@pytest.mark.parametrize(
    ("function", "message", "says"),
    [
        ("core_map_lowering_rule", "Attempted to lower core_map without discharging.", "has no effect"),
        ("core_map.<locals>.wrapped", "The kernel function in core_map f should return None.", "returns a value"),
        ("CoreMemorySpace.__post_init__", "Memory space smem is not supported by mesh m", "have no smem"),
    ],
)
def test_core_map_invalid(function: str, message: str, says: str) -> None:
    fault = made.fault(made.frame(TEXT, CALL), site=("jax/_src/pallas/core.py", function), message=message)
    (finding,) = judge((fault,), made.context(TEXT))
    assert finding.rule == "core-map-invalid"
    assert says in finding.message
