"""The files of the workspace that a file imports, as they are on the screen or on the disk."""

# Paths are joined as text here: this runs for each import of each file, and pathlib costs several times as much.
# ruff: noqa: PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import io
import os
import re
import time
import tokenize
from functools import lru_cache
from pathlib import Path
from typing import Any

from pallas_lsp.model import Snapshot

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>\.*[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]*)"
    r"|import[ \t]+(?P<plain>[^\n#;]+))",
    re.MULTILINE,
)
_LIMIT = 400
"""Files that are followed from one file at most."""
_STILL = 2.0
"""Seconds for which what was found on the disk is taken to be true."""


def memo(snapshot: Snapshot) -> dict[object, Any]:
    """Where to keep what follows from a snapshot and from the files on the disk: one reading asks the same often."""
    now = time.monotonic()
    if now - snapshot.memo.get("since", -_STILL) >= _STILL:
        snapshot.memo.clear()
        snapshot.memo["since"] = now
    return snapshot.memo


def read_text(snapshot: Snapshot, path: str) -> str:
    """A file's text; raises OSError, UnicodeDecodeError, or SyntaxError for a coding comment that cannot be used."""
    if path in snapshot.documents:
        return snapshot.documents[path].text
    status = os.stat(path)
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=512)
def _read(path: str, _changed: int, _size: int) -> str:
    data = Path(path).read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def imported_files(snapshot: Snapshot, path: str, text: str) -> dict[str, str]:
    """The workspace files that a file imports, directly or through others, with their texts; without itself."""
    known = memo(snapshot)
    key = ("imported", path, text)
    before: dict[str, str] | None = known.get(key)
    if before is not None:
        return dict(before)
    found: dict[str, str] = {}
    pending = [(path, text)]
    while pending and len(found) < _LIMIT:
        importer, source = pending.pop()
        for module in imported_modules(source):
            for target in resolve(snapshot, importer, module):
                if target == path or target in found:
                    continue
                try:
                    found[target] = read_text(snapshot, target)
                except (OSError, ValueError, SyntaxError):
                    continue
                pending.append((target, found[target]))
    known[key] = found
    return dict(found)


@lru_cache(maxsize=512)
def imported_modules(text: str) -> tuple[str, ...]:
    """The dotted names that a text imports, with leading dots: for ``from a import b`` both ``a`` and ``a.b``."""
    found: dict[str, None] = {}
    for match in _IMPORT.finditer(text):
        if match["plain"] is not None:
            for part in match["plain"].split(","):
                found[part.split(" as ")[0].strip()] = None
            continue
        module = match["module"]
        if module.strip("."):
            found[module] = None
        for part in match["names"].strip("()").replace("\\", " ").split(","):
            name = part.split("#")[0].split(" as ")[0].strip()
            if name.isidentifier():
                found[f"{module}{'' if not module.strip('.') else '.'}{name}"] = None
    return tuple(found)


def resolve(snapshot: Snapshot, importer: str, module: str) -> tuple[str, ...]:
    """The workspace file of a dotted name, if there is one; for a relative name as seen from the importer."""
    known = memo(snapshot)
    key = ("resolved", os.path.dirname(importer), module)
    found: tuple[str, ...] | None = known.get(key)
    if found is None:
        found = known[key] = _resolve(snapshot, importer, module)
    return found


def _resolve(snapshot: Snapshot, importer: str, module: str) -> tuple[str, ...]:
    level = len(module) - len(module.lstrip("."))
    parts = [part for part in module[level:].split(".") if part]
    if level:
        base = os.path.dirname(importer)
        for _ in range(level - 1):
            base = os.path.dirname(base)
        bases = [base]
        if not parts:
            parts = ["__init__"]
    else:
        bases = _bases(importer, snapshot.roots)
    if not parts or not all(part.isidentifier() for part in parts):
        return ()
    for base in bases:
        stem = os.path.join(base, *parts)
        for candidate in (f"{stem}.py", os.path.join(stem, "__init__.py")):
            if candidate in snapshot.documents or os.path.isfile(candidate):
                return (candidate,)
    return ()


def _bases(importer: str, roots: tuple[str, ...]) -> list[str]:
    """Where absolute imports are looked up: the package's top, the file's folder, the roots and their ``src``."""
    own = os.path.dirname(importer)
    top = own
    while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    inside = [root for root in roots if importer.startswith(root.rstrip(os.sep) + os.sep)]
    return list(dict.fromkeys([top, own, *inside, *(os.path.join(root, "src") for root in inside)]))
