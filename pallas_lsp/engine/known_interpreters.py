"""What interpreters have, kept between sessions, so that kept results can be shown before a worker has started."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_lsp.discovery.index import write_atomically
from pallas_lsp.engine.codec import decode, encode
from pallas_lsp.model import WorkerInfo

Stamps = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Known:
    info: WorkerInfo
    stamps: Stamps
    """When the folders of installed packages changed last."""


class KnownInterpreters:
    """``folder``: where they are kept.  ``setting``: what else a worker's answer depends on."""

    def __init__(self, folder: Path, environment: Mapping[str, str], program: str) -> None:
        self._folder = folder
        self._setting = f"{sorted(environment.items())} {program}"

    def get(self, python: str) -> Known | None:
        """None where nothing is known, or where it is no longer true."""
        try:
            stored = json.loads(self._file(python).read_text(encoding="utf-8"))
            stamps = tuple((str(path), int(stamp)) for path, stamp in stored["stamps"])
            if stored["executable"] != stamp(python) or any(changed(path) != then for path, then in stamps):
                return None
            return Known(decode(stored["info"], WorkerInfo), stamps)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, python: str, info: WorkerInfo, stamps: Stamps) -> None:
        stored = {"info": encode(info), "stamps": stamps, "executable": stamp(python)}
        write_atomically(self._file(python), json.dumps(stored), mode=0o700)

    def _file(self, python: str) -> Path:
        return self._folder / f"python-{hashlib.sha256(f'{python} {self._setting}'.encode()).hexdigest()[:24]}.json"


def stamp(path: str) -> list[int]:
    """What tells whether a file is what it was; nothing where it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - many, at each check
    except OSError:
        return []
    return [status.st_mtime_ns, status.st_size]


def changed(path: str) -> int:
    """When a folder changed last, 0 where it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked before each run
    except OSError:
        return 0
