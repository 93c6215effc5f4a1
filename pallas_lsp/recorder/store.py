"""The recordings, in the user's cache directory: for each file, the calls that reached its launches."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import platformdirs

from pallas_lsp.discovery.index import write_atomically
from pallas_lsp.model import Driver
from pallas_lsp.source.shape_comments import translate

MOST_CALLS = 24


class Recordings:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = (folder or Path(platformdirs.user_cache_dir("pallas-lsp"))) / "recordings"

    def add(self, lines: Iterable[str]) -> dict[str, int]:
        """Take over what a recorded program wrote; how many new calls there are for each file."""
        new: dict[str, list[str]] = {}
        for line in lines:
            try:
                noted = json.loads(line)
                path, call = str(noted["path"]), str(noted["call"])
                translate(call)
            except (ValueError, KeyError, TypeError):
                continue  # a line that a killed program did not finish
            new.setdefault(path, []).append(call)
        counts = {}
        for path, calls in new.items():
            known = self.calls(path)
            added = [call for call in dict.fromkeys(calls) if call not in known]
            counts[path] = len(added)
            kept = [*added, *known][:MOST_CALLS]
            write_atomically(self._file(path), json.dumps({"path": path, "calls": kept}))
        return counts

    def calls(self, path: str) -> list[str]:
        try:
            stored = json.loads(self._file(path).read_text(encoding="utf-8"))
            return [str(call) for call in stored["calls"]]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def drivers(self, path: str) -> tuple[Driver, ...]:
        """The recorded calls as drivers; one that the file cannot make any more reaches nothing."""
        found = []
        for number, call in enumerate(self.calls(path)):
            expression, _ = translate(call)
            found.append(Driver(f"record:{number}", "call", path, expression, (1,)))
        return tuple(found)

    def _file(self, path: str) -> Path:
        return self._folder / f"{sha256(path.encode()).hexdigest()[:24]}.json"
