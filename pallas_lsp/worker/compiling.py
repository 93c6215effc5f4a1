"""Compiling a lowered kernel on the attached GPU, and what its compiler tells of it.

Source of the dumps: jax/experimental/mosaic/gpu/core.py, ``_mosaic_gpu_lowering_rule``, and the variables
``MOSAIC_GPU_DUMP_TO`` and ``MOSAIC_GPU_DUMP_PTXAS`` of its compiler.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from . import compat


def device() -> dict[str, Any] | None:
    """The attached GPU: name, compute capability, index; None without one."""
    import jax

    try:
        found = jax.devices("cuda")[0]
    except RuntimeError:
        return None
    return {"name": found.device_kind, "compute_capability": str(found.compute_capability), "index": found.id}


def compile_for_device(jaxpr: Any, *, launch: bool = False) -> dict[str, Any]:
    """Lower and compile a program for the attached GPU; with ``launch`` also run it once, on generated inputs.

    Returns ``lower_seconds``, ``compile_seconds``, and what the compiler's reports hold (see ``figures``).  Raises what
    jax raises.
    """
    import jax

    with _dumps() as folder:
        started = time.perf_counter()
        gpu = jax.devices("cuda")[0]
        with jax.default_device(gpu):
            function = compat.jaxpr_function(compat.closed(jaxpr))
            lowered = jax.jit(function).trace(*compat.abstract_arguments(jaxpr)).lower(lowering_platforms=("cuda",))
            lowered_at = time.perf_counter()
            compiled = lowered.compile()
            compiled_at = time.perf_counter()
            result: dict[str, Any] = {
                "lower_seconds": round(lowered_at - started, 4),
                "compile_seconds": round(compiled_at - lowered_at, 4),
                **figures(folder),
            }
            if launch:
                begun = time.perf_counter()
                jax.block_until_ready(compiled(*_inputs(jaxpr)))
                result["launch_seconds"] = round(time.perf_counter() - begun, 4)
    return result


@contextlib.contextmanager
def _dumps() -> Iterator[str]:
    """A folder into which Mosaic GPU writes its compiler's reports, removed afterwards."""
    folder = tempfile.mkdtemp(prefix="pallas-lsp-")
    before = {name: os.environ.get(name) for name in ("MOSAIC_GPU_DUMP_TO", "MOSAIC_GPU_DUMP_PTXAS")}
    os.environ.update(MOSAIC_GPU_DUMP_TO=folder, MOSAIC_GPU_DUMP_PTXAS="1")
    try:
        yield folder
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


_PATTERNS = {
    "registers": r"Used (\d+) registers",
    "barriers": r"used (\d+) barriers",
    "static_smem_bytes": r"(\d+) bytes smem",
    "stack_bytes": r"(\d+) bytes stack frame",
    "spill_store_bytes": r"(\d+) bytes spill stores",
    "spill_load_bytes": r"(\d+) bytes spill loads",
}


def figures(folder: str) -> dict[str, Any]:
    """What ptxas and the resource report say: the largest of each figure over the kernels of the module."""
    found: dict[str, Any] = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not name.endswith((".ptxas", ".resources.txt", ".ptx")) or os.path.getsize(path) > 4 << 20:
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if name.endswith(".ptx"):
            found["ptx"] = text
            for figure, number in (("threads", _threads(text)),):
                if number:
                    found[figure] = max(number, found.get(figure, 0))
            continue
        for figure, pattern in _PATTERNS.items():
            numbers = [int(number) for number in re.findall(pattern, text)]
            if numbers:
                found[figure] = max(*numbers, found.get(figure, 0))
        if name.endswith(".resources.txt"):
            found["resources"] = text[:4000]
    return found


def _threads(ptx: str) -> int:
    """Threads of a block, from the directive ``.maxntid`` or ``.reqntid``."""
    total = 0
    for numbers in re.findall(r"\.(?:max|req)ntid\s+([\d, ]+)", ptx):
        product = 1
        for number in numbers.split(","):
            product *= int(number)
        total = max(total, product)
    return total


def _inputs(jaxpr: Any) -> list[Any]:
    import jax
    import numpy  # type: ignore[import-not-found,unused-ignore]

    random = numpy.random.default_rng(0)
    made = []
    for var in jaxpr.invars:
        shape, dtype = var.aval.shape, var.aval.dtype
        if jax.numpy.issubdtype(dtype, jax.numpy.floating):
            made.append(jax.numpy.asarray(random.standard_normal(shape), dtype))
        else:
            made.append(jax.numpy.zeros(shape, dtype))
    return made
