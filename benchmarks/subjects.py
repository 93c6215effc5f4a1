"""What is edited in the keystrokes benchmark: files, where the typing goes, and the same work for a bare process.

Every subject is a small workspace.  Its places are texts that stand in their file once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

INPUTS = Path(__file__).resolve().parent / "inputs"
HOPPER = ("NVIDIA H100 80GB HBM3", 132, "gpu")
ATTENTION = "jax.experimental.pallas.ops.gpu.attention_mgpu"
MANY = 50
_NUMBER = "NUMBER"

Arguments = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Replacement:
    """In ``file``, ``old`` becomes ``new``; ``NUMBER`` in it becomes one that was not there before."""

    file: str
    old: str
    new: str

    def numbered(self, number: int) -> str:
        return self.new.replace(_NUMBER, str(number))


@dataclass(frozen=True)
class Subject:
    """``files`` by name, each after those that it imports; ``main`` is the one with the kernel."""

    name: str
    files: dict[str, str]
    main: str
    value: str
    """Behind this text of the kernel's file a factor can be typed, and correct code results."""
    trace_fault: Replacement
    lower_fault: Replacement
    helper: Replacement
    driver: Replacement
    entry: str
    """The function of the last file that a bare process calls, with ``arguments`` (type, shape)."""
    arguments: Arguments

    def request(self, texts: dict[str, str], folder: Path) -> dict[str, Any]:
        """What ``bare.py`` is asked for: the same files."""
        modules = [{"name": Path(n).stem, "path": str(folder / n), "text": texts[n]} for n in self.files]
        return {
            "modules": modules, "entry": self.entry, "arguments": self.arguments, "platform": "cuda", "device": HOPPER,
        }  # fmt: skip

    def concerned(self, file: str) -> str:
        """The file that is checked when ``file`` was edited: what imports it, or itself where it is a driver."""
        names = list(self.files)
        return file if names.index(file) > names.index(self.main) else self.main

    def check(self) -> None:
        """Raise ValueError where a place is not there once: the text that ships with another jax may differ."""
        edits = (self.trace_fault, self.lower_fault, self.helper, self.driver)
        for file, text in [(self.main, self.value), *((each.file, each.old) for each in edits)]:
            if self.files[file].count(text) != 1:
                raise ValueError(f"{file} of the subject {self.name} must hold {text!r} once")


def _input(name: str) -> str:
    return (INPUTS / name).read_text(encoding="utf-8")


def _product(name: str, entry: str, arguments: Arguments, _python: str) -> Subject:
    """A kernel of ``inputs/`` that multiplies with wgmma and takes its layout from another file."""
    file, number = f"{name}.py", _NUMBER
    return Subject(
        name,
        {"tiles.py": _input("tiles.py"), file: _input(file)},
        file,
        value="total.astype(o_smem.dtype)",
        trace_fault=Replacement(file, "wgmma(acc, a_smem, b_smem)", f"wgmma(acc, a_smem, b_smem.at[:{number}])"),
        lower_fault=Replacement(file, "return acc[...]", f"return jnp.cumsum(acc[...], axis=1) * {number}.0"),
        helper=Replacement("tiles.py", "SWIZZLE = 128", f"SWIZZLE = 128 + 0 * {number}"),
        driver=Replacement(file, "scale = 1.0", f"scale = {number}.0"),
        entry=entry,
        arguments=arguments,
    )


_ATTENTION_HEAD = """\
import dataclasses
import math
from collections.abc import Callable as PipelineCallback

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


"""
_ATTENTION_TEST = """\
import jax.numpy as jnp
from attention import TuningConfig, attention_with_pipeline_emitter


def run(q, k, v):
    config = TuningConfig(block_q=64, block_kv=128, max_concurrent_steps=2, use_schedule_barrier=True)
    return attention_with_pipeline_emitter(q, k, v, config)


def test_attention():
    scale = 1.0
    q = jnp.full((2, 4096, 8, 64), scale, jnp.float16)
    k = v = jnp.full((2, 2048, 2, 64), scale, jnp.float16)
    run(q, k, v)
"""


def _attention(python: str) -> Subject:
    """Attention as it ships with the jax of ``python``, driven by a test in another file."""
    program = f"import importlib.util; print(importlib.util.find_spec({ATTENTION!r}).origin)"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    shipped = Path(found.stdout.strip()).read_text(encoding="utf-8")
    file, test, number = "attention.py", "test_attention.py", _NUMBER
    alone = _alone(shipped, "attention_with_pipeline_emitter", "@dataclasses", "class TuningConfig")
    scores, barrier = "p = jnp.exp2(qk * log2e", "use_schedule_barrier=True"
    return Subject(
        "attention",
        {file: alone, test: _ATTENTION_TEST},
        file,
        value="p16 = p.astype(dtype)",
        trace_fault=Replacement(file, "wgmma(acc_ref, p16, v_smem)", f"wgmma(acc_ref, p16, v_smem.at[:{number}])"),
        lower_fault=Replacement(file, scores, f"p = jnp.exp2(jnp.cumsum(qk, axis=1) * {number}.0"),
        helper=Replacement(test, barrier, f"use_schedule_barrier=bool({number})"),
        driver=Replacement(test, "scale = 1.0", f"scale = {number}.0"),
        entry="run",
        arguments=(("float16", (2, 4096, 8, 64)), *2 * (("float16", (2, 2048, 2, 64)),)),
    )


def _alone(text: str, name: str, *heads: str) -> str:
    """A file with the definition ``name`` of a text and what it needs: lines that begin with one of ``heads``, and on.

    The text is cut, not parsed: it may be written for a newer Python than this one.
    """
    kept, keeping = [], False
    for line in text.splitlines(keepends=True):
        if line[:1].strip(" )\n#"):
            keeping = line.startswith((*heads, f"def {name}("))
        if keeping:
            kept.append(line)
    return _ATTENTION_HEAD + "".join(kept)


_HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from sizes import ROWS

"""
_KERNEL = """\

def kernel_{n}(x_gmem, o_gmem, x_smem, o_smem, barrier):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
    plgpu.barrier_wait(barrier)
    x_{n} = x_smem[...]
    o_smem[...] = jnp.exp(x_{n} * {n}.5) + x_{n}
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


def call_{n}(x):
    tile = plgpu.SMEM((ROWS, {columns}), x.dtype)
    return plgpu.kernel(
        kernel_{n},
        out_type=x,
        scratch_types=[tile, tile, plgpu.Barrier()],
    )(x)


def test_{n}():
    scale_{n} = 1.0
    assert call_{n}(jnp.full((ROWS, {columns}), scale_{n}, jnp.float32)).shape == (ROWS, {columns})

"""


def _many(name: str, count: int, _python: str) -> Subject:
    """A file with ``count`` kernels, each with a test; the one in the middle is edited, and is the bare one's task."""
    file, number, n = f"{name}.py", _NUMBER, MANY // 2
    chosen = range(MANY) if count == MANY else [n]
    text = _HEAD + "".join(_KERNEL.format(n=each, columns=64 * (1 + each % 4)) for each in chosen)
    value = f"jnp.exp(x_{n} * {n}.5)"
    columns = 64 * (1 + n % 4)
    stored = f"o_smem[...] = {value}"
    return Subject(
        name,
        {"sizes.py": "ROWS = 64\n", file: text},
        file,
        value=value,
        trace_fault=Replacement(file, stored, f"o_smem[...] = x_{n}[:{number}] + {value}"),
        lower_fault=Replacement(file, stored, f"o_smem[...] = jnp.cumsum(x_{n}, axis=1) * {number}.0 + {value}"),
        helper=Replacement("sizes.py", "ROWS = 64", f"ROWS = 64 + 0 * {number}"),
        driver=Replacement(file, f"scale_{n} = 1.0", f"scale_{n} = {number}.0"),
        entry=f"call_{n}",
        arguments=(("float32", (64, columns)),),
    )


FIFTY, ONE = "fifty_kernels", "one_kernel"
SUBJECTS: dict[str, Callable[[str], Subject]] = {
    "wgmma": partial(_product, "wgmma", "product", (("float16", (64, 64)), ("float16", (64, 128)))),
    "pipelined_matmul": partial(
        _product, "pipelined_matmul", "matmul", (("bfloat16", (1024, 512)), ("bfloat16", (512, 1024)))
    ),
    "attention": _attention,
    FIFTY: partial(_many, FIFTY, MANY),
    ONE: partial(_many, ONE, 1),
}
"""By name, what makes a subject for the jax of an interpreter."""
