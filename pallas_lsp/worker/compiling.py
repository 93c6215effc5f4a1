"""Compiling a kernel on the attached GPU, and what its compiler tells of it.

Source of the dumps: jax/experimental/mosaic/gpu/core.py, ``_mosaic_gpu_lowering_rule``, and the variables
``MOSAIC_GPU_DUMP_*`` that its compiler reads; for Triton XLA's option ``xla_dump_to``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from . import compat, ptxas


class NoDevice(Exception):  # noqa: N818 - the name says what the state is
    """jax does not come to a GPU here; the message says why."""


def device() -> dict[str, Any]:
    """The attached GPU: name, compute capability, index; raises NoDevice."""
    import jax

    try:
        found = jax.devices("cuda")[0]
    except RuntimeError as error:
        raise NoDevice(str(error).strip().split("\n")[0]) from error
    return {"name": found.device_kind, "compute_capability": str(found.compute_capability), "index": found.id}


def warm() -> None:
    """Start the GPU and compile a trifle, so that the first real kernel does not wait for it."""
    import jax

    with contextlib.suppress(Exception), jax.default_device(jax.devices("cuda")[0]):
        jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32")).compile()


class Job:
    """One program on its way through the GPU's compiler.  Each step raises what jax raises.

    ``figures`` grows with each step: seconds, and what the compiler's reports hold.
    """

    def __init__(self, jaxpr: Any, dumps: str = "files", *, backend: str = "mosaic_gpu") -> None:
        self.figures: dict[str, Any] = {}
        self._backend = backend
        self._jaxpr = jaxpr
        self._dumps = dumps
        self._folder = ""
        self._lowered: Any = None
        self._compiled: Any = None

    @contextlib.contextmanager
    def on_device(self) -> Iterator[None]:
        """Around all steps: computation is on the GPU, and the compiler's reports go to where they are read."""
        import jax

        with jax.default_device(jax.devices("cuda")[0]), _reports(self._dumps) as self._folder:
            yield

    def lower(self) -> None:
        import jax

        started = time.perf_counter()
        function = compat.jaxpr_function(compat.closed(self._jaxpr))
        arguments = compat.abstract_arguments(self._jaxpr)
        with _printed(self._folder, on=self._dumps == "prints"):
            self._lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",))
        self.figures["lower_seconds"] = round(time.perf_counter() - started, 4)

    def compile(self) -> None:
        started = time.perf_counter()
        with _printed(self._folder, on=self._dumps == "prints"):
            self._compiled = self._lowered.compile(compiler_options=self._options())
        self.figures["compile_seconds"] = round(time.perf_counter() - started, 4)
        with contextlib.suppress(Exception):
            analysis = self._compiled.memory_analysis()
            self.figures["temporary_bytes"] = int(analysis.temp_size_in_bytes)
        self.figures.update(ptxas.figures(self._folder))

    def _options(self) -> dict[str, Any] | None:
        """XLA compiles a Triton kernel itself, without Mosaic GPU's reports; it writes down how it will launch it."""
        if self._backend == "mosaic_gpu" or self._dumps == "none":
            return None
        return {"xla_dump_to": self._folder}

    def ptx(self) -> str:
        """What the compiler made of a Mosaic GPU kernel before assembling it; empty for other backends."""
        found = sorted(pathlib.Path(self._folder).rglob("*.ptx"))
        return "\n".join(file.read_text(errors="replace") for file in found)

    def launch(self) -> None:
        """Run it once, on generated inputs."""
        import jax

        started = time.perf_counter()
        jax.block_until_ready(self._compiled(*_inputs(self._jaxpr)))
        self.figures["launch_seconds"] = round(time.perf_counter() - started, 4)


_FILES = {"MOSAIC_GPU_DUMP_TO": "", "MOSAIC_GPU_DUMP_PTXAS": "1"}
_PRINTS = {"MOSAIC_GPU_DUMP_PTX": "1", "MOSAIC_GPU_DUMP_PTXAS": "1", "MOSAIC_GPU_DUMP_RESOURCES": "1"}


@contextlib.contextmanager
def _reports(dumps: str) -> Iterator[str]:
    """A folder for Mosaic GPU's reports, removed afterwards.

    ``dumps``: ``files`` has the compiler write all that it can, ``prints`` has it print what is needed, ``none``.
    """
    folder = tempfile.mkdtemp(prefix="pallas-lsp-")
    wanted = {"files": {**_FILES, "MOSAIC_GPU_DUMP_TO": folder}, "prints": _PRINTS}.get(dumps, {})
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield folder
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _printed(folder: str, *, on: bool) -> Iterator[None]:
    """Keep what is printed, by native code too, which goes past ``sys.stdout``, in a file of ``folder``."""
    if not on or not folder:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    target = os.open(os.path.join(folder, "printed.ptxas"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(target, 1)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(target)


def _inputs(jaxpr: Any) -> list[Any]:
    """Normally distributed numbers for floating-point arguments, zeros for others (they may be indices)."""
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
