"""What a user may set about checks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    total_seconds: float = 900.0
    cpu_seconds: int = 900
    memory_bytes: int = 8 << 30

    def seconds(self, stage: str) -> float:
        """The limit of a stage as the worker names it."""
        if stage == "import":
            return self.import_seconds
        return self.lower_seconds if stage.startswith("lower") else self.trace_seconds


def _jobs() -> int:
    return min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Settings:
    """``python``: the interpreter (a file, a virtual environment's folder, or a command), None to look for it.

    ``targets``: what kernels are lowered for.  ``jobs``: how many checks run at once.  ``environment``: variables of
    the worker.  ``discovery``: look for drivers in other files of the workspace.  ``fork`` False uses up
    a process for each run, as systems without a safe fork do.  ``worker``: the worker program, if not our own.
    """

    python: str | None = None
    limits: Limits = field(default_factory=Limits)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: TARGETS)
    jobs: int = field(default_factory=_jobs)
    environment: Mapping[str, str] = field(default_factory=dict)
    discovery: bool = True
    interpreters: int = 3
    fork: bool = True
    worker: str | None = None
