"""Code that is checked and misbehaves: it is refused, and the rest of the check goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import os, pathlib, socket, subprocess, sys, multiprocessing
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def op(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

if __name__ == "__main__":
    op(jnp.ones((128, 128)))
"""


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("socket.create_connection(('192.0.2.1', 80), timeout=1)", "PermissionError"),
        ("socket.getaddrinfo('example.invalid', 80)", "PermissionError"),
        ("subprocess.run([sys.executable, '-c', 'print(1)'])", "PermissionError"),
        ("os.system('true')", "PermissionError"),
        ("os.fork()", "PermissionError"),
        ("multiprocessing.get_context('spawn').Process(target=print).start()", "PermissionError"),
    ],
)
def test_refused(newest_jax_python: Any, worker_run: Any, statement: str, error: str) -> None:
    events = worker_run(newest_jax_python.python, HEAD + f"    {statement}\n")
    assert [capture["stage"] for capture in events.captures] == ["lower"]
    assert events.outcomes["main"]["error"].startswith(error)
    assert events.faults == []


def test_home_and_clusters(newest_jax_python: Any, worker_run: Any) -> None:
    """What is written to the user's home stays in the run's folder; joining a cluster does not wait for one."""
    mark = f"pallas-lsp-test-{os.getpid()}"
    code = f"    (pathlib.Path.home() / '{mark}').write_text('x')\n    jax.distributed.initialize()\n"
    events = worker_run(newest_jax_python.python, HEAD + code)
    assert events.outcomes["main"]["finished"], events.outcomes
    assert not (Path.home() / mark).exists()


def test_allowed(newest_jax_python: Any, worker_run: Any) -> None:
    code = "    subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
    events = worker_run(newest_jax_python.python, HEAD + code, allow={"programs": True})
    assert events.outcomes["main"]["finished"], events.outcomes
