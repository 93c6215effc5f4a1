"""Engines whose confirmer is the real worker program with a GPU that a script plays (``fake_gpu``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pallas_lsp.confirm.confirmation import Confirmation, Confirmations
from pallas_lsp.confirm.gpus import Gpu, Load
from pallas_lsp.engine import Engine
from pallas_lsp.model import Document, Report, Snapshot

FAKE = str(Path(__file__).resolve().parent / "fake_gpu")
GPU = Gpu(0, "GPU-fake-0", "NVIDIA Fake", "9.0", 80 << 30)
IDLE = Load(0, 70 << 30)

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def run(x):
    return plgpu.kernel(double, {out}=jax.ShapeDtypeStruct((128,), jnp.float32))(x)


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
"""


class Checked:
    """A checked file and the machinery that confirms it."""

    def __init__(self, engine: Engine, confirmations: Confirmations, folder: Path) -> None:
        self.engine = engine
        self.confirmations = confirmations
        self.path = str(folder / "kernels.py")
        self.log = folder / "compiled.log"

    async def check(self, text: str) -> tuple[Snapshot, Report]:
        snapshot = Snapshot({self.path: Document(self.path, text)}, (str(Path(self.path).parent),))
        return snapshot, await self.engine.check(snapshot, self.path)

    async def confirm(self, text: str) -> Confirmation:
        snapshot, report = await self.check(text)
        assert not report.problems, report.problems
        return await self.engine.confirm(snapshot, self.path, report)

    @property
    def compiled(self) -> int:
        """How many programs the fake GPU's compiler was given."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


Make = Callable[..., contextlib.AbstractAsyncContextManager[Checked]]


def kernel(**changes: str) -> str:
    """A kernel that lowers, with parts of its text replaced."""
    text = KERNEL.replace("{out}", "out_type")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def without_verdict(report: Report) -> Report:
    return replace(report, seconds=0.0)
