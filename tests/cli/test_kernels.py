"""``pallas-lsp kernels``: one object a launch and kernel, with the source of its argument types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

KERNELS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def halve(x_ref, o_ref):
    o_ref[...] = x_ref[...] / 2

def launch(body, x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

# pallas: said(f32[64,64])
def said(x):
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def tested(x):
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def assumed(x):
    m, n = x.shape
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def never(flag):
    if flag == "this":
        return plgpu.kernel(double, out_type=())()

if __name__ == "__main__":
    launch(double, jnp.ones((128, 128)))
    launch(halve, jnp.ones((128, 128)))
"""
TEST = "import jax.numpy as jnp\nfrom kernels import tested\ndef test_it():\n    tested(jnp.ones((32, 128)))\n"


def test_kernels(jax_python: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (tmp_path / "test_kernels.py").write_text(TEST, encoding="utf-8")
    command = [sys.executable, "-m", "pallas_lsp", "kernels", "--format", "json", "--python", jax_python.python]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [*command, "kernels.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 3, done.stderr
    found = {
        (row["kernel"]["name"] if row["kernel"] else None, row["source"], row["arguments"], row["stage"])
        for row in json.loads(done.stdout)
    }
    assert found == {
        ("double", "main block", "f32[128,128]", "lower"),
        ("halve", "main block", "f32[128,128]", "lower"),
        ("double", "comment", "f32[64,64]", "lower"),
        ("double", "test_kernels.py::test_it", "f32[32,128]", "lower"),
        ("double", "assumed", "bf16[256,256]", "lower"),
        (None, None, None, "read"),
    }
    (unreached,) = [row for row in json.loads(done.stdout) if not row["reached"]]
    assert unreached["reason"]
    keys = ["path", "line", "api", "kernel", "reached", "arguments", "source", "stage", "reason", "seconds"]
    assert all(list(row) == keys for row in json.loads(done.stdout)), "what scripts rely on"
    done = subprocess.run(
        [*command[:4], *command[6:], "kernels.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 3, done.stderr
    for words in (
        "source      the main block\n",
        "source      a shape comment\n",
        "source      test_kernels.py::test_it\n",
        "source      types assumed for assumed\n",
        "not reached: ",
        "or say its argument types in a comment above it, for example `# pallas: never(",
    ):
        assert words in done.stdout, done.stdout
