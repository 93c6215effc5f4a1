"""What the README's first command shows: the faults of the examples on their lines, and nothing on the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# The text at fault; it stands on one line only.
FAULTY = {
    "faulty_run_state_without_value.py": "plgpu.ACC((M, N), jnp.float32)",
    "faulty_start_value_in_run_scoped.py": "plgpu.ACC.init(c)",
    "faulty_two_kernels_one_cumsum.py": "jnp.cumsum(x, axis=1)",
}
CORRECT = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in FAULTY)
KERNELS = {
    "blackwell_matmul.py": ("mosaic_gpu", {"matmul_kernel"}),
    "hopper_matmul.py": ("mosaic_gpu", {"matmul_kernel"}),
    "triton_softmax.py": ("triton", {"softmax_kernel"}),
    "tpu_matmul.py": ("tpu", {"matmul_kernel"}),
}


@pytest.fixture(scope="module")
def report(jax_python, check_json: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return check_json(jax_python.python, EXAMPLES)


def of(entries: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in entries if Path(each["path"]).name == name]


def test_all_examples_are_known():
    assert set(CORRECT) == set(KERNELS)


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_example_is_clean_and_was_lowered(report: dict[str, Any], name: str):
    assert of(report["diagnostics"], name) == []
    backend, kernels = KERNELS[name]
    captures = [capture for launch in of(report["launches"], name) for capture in launch["captures"]]
    assert {(capture["backend"], capture["kernel"], capture["stage"]) for capture in captures} == {
        (backend, kernel, "lower") for kernel in kernels
    }


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_example_has_its_fault_on_the_expression(report: dict[str, Any], name: str):
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    wanted = FAULTY[name]
    row = next(n for n, line in enumerate(lines) if wanted in line and '"""' not in line)
    column = lines[row].index(wanted)
    (diagnostic,) = of(report["diagnostics"], name)
    assert diagnostic["severity"] == "error"
    assert diagnostic["range"] == {
        "start": {"line": row, "character": column},
        "end": {"line": row, "character": column + len(wanted)},
    }
    assert diagnostic["message"]


def test_everything_was_checked(report: dict[str, Any]):
    assert report["problems"] == []
    assert report["summary"]["exitCode"] == 1
