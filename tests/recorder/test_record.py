"""``pallas-lsp record``: a program runs as it would, and its kernels are checked with the types that it used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pallas_lsp.origins import source
from pallas_lsp.recorder.store import Recordings

PROJECT = Path(__file__).resolve().parents[2]
KERNELS = """
import dataclasses, functools
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

@dataclasses.dataclass(frozen=True)
class Config:
    rows: int

def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def scale(x, *, config):
    one = pl.BlockSpec((config.rows, 128), lambda i: (i, 0))
    return pl.pallas_call(double, out_shape=x, grid=(x.shape[0] // config.rows,), in_specs=[one], out_specs=one,
                          interpret=True)(x)

def rebound(x):
    x = x.reshape(-1, 128)
    return scale(x, config=Config(8))
"""
PROGRAM = """
import sys
import jax, jax.numpy as jnp
from kernels import scale, rebound, Config
scale(jnp.ones((32, 128)), config=Config(16))
jax.jit(lambda x: scale(x, config=Config(8)))(jnp.ones((64, 128), jnp.bfloat16))
rebound(jnp.ones((2, 8, 128)))
print("result", sys.argv[1:])
sys.exit(7)
"""


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT), "XDG_CACHE_HOME": str(home / "cache"), "JAX_PLATFORMS": "cpu"}


def test_record_and_check(jax_python: Any, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text("print('the user has one too')\n", encoding="utf-8")
    known = environment(tmp_path)
    known["PYTHONPATH"] += os.pathsep + str(tmp_path)
    ours = [sys.executable, "-m", "pallas_lsp"]
    done = subprocess.run(
        [*ours, "record", "--", jax_python.python, "train.py", "--fast"],
        cwd=tmp_path,
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert "result ['--fast']" in done.stdout
    assert "the user has one too" in done.stdout
    assert "3 new calls recorded for kernels.py" in done.stderr
    done = subprocess.run(
        [*ours, "check", "--format", "json", "--python", jax_python.python, "kernels.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    (status,) = json.loads(done.stdout)["launches"]
    assert {each["arguments"] for each in status["captures"]} == {"f32[32,128]", "bf16[64,128]", "f32[16,128]"}
    assert {source(each["driver"]) for each in status["captures"]} == {"recorded"}


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pallas_lsp", "record", "--", "no-such-command"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no-such-command" in done.stderr


def test_the_store_keeps_the_latest(tmp_path: Path) -> None:
    store = Recordings(tmp_path)
    lines = [json.dumps({"path": "/a.py", "line": 1, "call": f"f(f32[{n}])"}) for n in range(30)]
    assert store.add([*lines, lines[0], '{"path": "/a', '{"path": "/b.py", "call": "not a call"}']) == {"/a.py": 30}
    assert len(store.calls("/a.py")) == 24
    assert store.add(lines[:1]) == {"/a.py": 0}
    assert store.drivers("/a.py")[0].name.startswith("f(__pallas_type__('float32'")
    assert store.drivers("/b.py") == ()
