"""What a user may set about checks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pallas_lsp.confirm.settings import ConfirmSettings

TARGETS: Mapping[str, tuple[str, ...]] = {
    "mosaic_gpu": ("9.0", "10.0"),
    "triton": ("9.0",),
    "tpu": ("TPU v6e",),
}


@dataclass(frozen=True)
class Limits:
    """Seconds are of the wall clock and for one stage, but for ``total_seconds`` and ``cpu_seconds``: one run."""

    start_seconds: float = 60.0
    import_seconds: float = 60.0
    trace_seconds: float = 30.0
    lower_seconds: float = 60.0
    confirm_seconds: float = 60.0
    launch_seconds: float = 10.0
    total_seconds: float = 900.0
    cpu_seconds: int = 900
    memory_bytes: int = 8 << 30

    def seconds(self, stage: str) -> float:
        """The limit of a stage as the worker names it."""
        if stage == "import":
            return self.import_seconds
        if stage in ("confirm", "launch"):
            return self.confirm_seconds if stage == "confirm" else self.launch_seconds
        return self.lower_seconds if stage.startswith("lower") else self.trace_seconds


@dataclass(frozen=True)
class Start:
    """How a worker is started where it is not simply a program of this machine that stays on the CPU.

    ``platforms``: what JAX_PLATFORMS becomes.  ``nice``: how far it stands back behind other programs (0 to 19).
    ``warm``: start the device ahead of the run, in a worker that serves one.  ``command`` replaces the
    interpreter and its program (a worker on another machine), and ``preamble`` is written to it before anything else.
    """

    platforms: str | None = None
    nice: int = 0
    warm: bool = False
    command: tuple[str, ...] = ()
    preamble: bytes = b""


def _jobs() -> int:
    return min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Settings:
    """``python``: the interpreter (a file, a virtual environment's folder, or a command), None to look for it.

    ``targets``: what kernels are lowered for.  ``jobs``: how many checks run at once.  ``environment``: variables of
    the worker.  ``discovery``: look for drivers in other files of the workspace.  ``guess``:
    where there are none, guess argument types.  ``fork`` False uses up
    a process for each run, as systems without a safe fork do.  ``worker``: the worker program, if not our own.
    ``confirm``: how findings are taken to a GPU, None for not at all.
    ``longest``: how many characters a file may have that is read, None for any number (the parser stops all else).
    ``figures``: tell what a kernel's program needs (shared memory, ...) and its digest.  ``kept``: a folder where
    results are kept between sessions.
    """

    python: str | None = None
    limits: Limits = field(default_factory=Limits)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: TARGETS)
    jobs: int = field(default_factory=_jobs)
    environment: Mapping[str, str] = field(default_factory=dict)
    discovery: bool = True
    guess: bool = True
    interpreters: int = 3
    fork: bool = True
    worker: str | None = None
    figures: bool = False
    longest: int | None = None
    confirm: ConfirmSettings | None = None
    start: Start = field(default_factory=Start)
    kept: Path | None = None
