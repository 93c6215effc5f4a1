"""What a GPU says of findings and kernels, and the store that keeps it on disk.

An entry is found by its key alone, which holds everything that it depends on, so that none is ever out of date.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import platformdirs

VERSION = 1
_MOST_ENTRIES = 20_000


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    """The GPU shows the same fault."""
    NOT_REPRODUCED = "not reproduced"
    """The kernel lowers and compiles on the GPU."""
    DEVICE_ONLY = "device only"
    """Only the GPU's compiler or launch shows this fault."""
    TIMED_OUT = "timed out"
    NO_GPU = "no GPU"
    """There is no GPU, or none of the kind that the kernel is for."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A verdict of one kind of GPU, in the form that a finding's data has it."""

    verdict: Verdict
    gpu: str
    compute_capability: str
    detail: str = ""

    def as_data(self) -> dict[str, str]:
        return {
            "verdict": self.verdict.value,
            "gpu": self.gpu,
            "computeCapability": self.compute_capability,
            "detail": self.detail,
        }


def key(*parts: object) -> str:
    """A key of the store: the digest of what an entry depends on."""
    return hashlib.sha256(repr((VERSION, *parts)).encode("utf-8", "backslashreplace")).hexdigest()[:40]


class Store:
    """One small file an entry; several processes may use it at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(platformdirs.user_cache_dir("pallas-lsp")) / "verdicts"
        self._memory: dict[str, dict[str, Any]] = {}
        self._pruned = False

    def get(self, key: str) -> dict[str, Any] | None:
        if key not in self._memory:
            try:
                entry = json.loads(self._path(key).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return None
            if not isinstance(entry, dict):
                return None
            self._memory[key] = entry
        return self._memory[key]

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry; where the disk takes none, for this session alone."""
        self._memory[key] = dict(entry)
        path = self._path(key)
        with contextlib.suppress(OSError, ValueError, TypeError):
            path.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(number, "w", encoding="utf-8") as file:
                    json.dump(entry, file)
                os.replace(name, path)  # noqa: PTH105 - whole or not at all
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)  # noqa: PTH108
                raise
        if not self._pruned:
            self._pruned = True
            self._prune()

    def known(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {each: entry for each in keys if (entry := self.get(each)) is not None}

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _prune(self) -> None:
        """Drop the oldest entries where there are too many, once a session."""
        with contextlib.suppress(OSError):
            files = list(self._folder.glob("*/*.json"))
            if len(files) > _MOST_ENTRIES:
                for path in sorted(files, key=lambda each: each.stat().st_mtime)[: len(files) - _MOST_ENTRIES // 2]:
                    path.unlink(missing_ok=True)
