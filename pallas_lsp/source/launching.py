"""Which files may launch kernels, themselves or through what they import, as far as their words tell.

Careful in one direction: a file that may launch counts as one that does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from pallas_lsp.model import Snapshot
from pallas_lsp.source.launches import may_launch
from pallas_lsp.source.workspace import resolve

_WORD = re.compile(r"[^\W\d]\w*")
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([^#\n]+))", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)\b", re.MULTILINE)
_KNOWN = frozenset(
    {"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "pytest", "absl", "hypothesis", "jaxtyping", "einops"}
)


def foreign(module: str, name: str | None) -> bool:
    """Whether an import that is none of the workspace's may launch kernels when it is used."""
    dotted = f"{module}.{name}" if name else module
    if dotted.startswith("jax.experimental.pallas.ops") or (dotted.startswith("jax") and "pallas.ops" in dotted):
        return True
    root = module.partition(".")[0]
    return bool(root) and root not in _KNOWN and root not in sys.stdlib_module_names


def launching(snapshot: Snapshot, texts: Mapping[str, str]) -> set[str]:
    """Those of some workspace files that may launch."""
    found = {path for path, text in texts.items() if _by_itself(snapshot, path, text)}
    left = set(texts) - found
    while found and left:
        names = {_module_of(path) for path in found}
        more = {path for path in left if not names.isdisjoint(_words(texts[path]))}
        if not more:
            break
        found |= more
        left -= more
    return found


def calls_back(snapshot: Snapshot, path: str, text: str, files: Collection[str]) -> bool:
    """Whether a file with code of its own imports one of ``files``: what it does with them cannot be seen here."""
    imported = {file for module in _imports(text) for file in resolve(snapshot, path, module)}
    return not imported.isdisjoint(files) and _DEFINITION.search(text) is not None


def _by_itself(snapshot: Snapshot, path: str, text: str) -> bool:
    if may_launch(text) or "pallas.ops" in text or "importlib" in text:
        return True
    return any(foreign(module, None) and not resolve(snapshot, path, module) for module in _imports(text))


@lru_cache(maxsize=256)
def _imports(text: str) -> tuple[str, ...]:
    found = []
    for source, several in _IMPORT.findall(text):
        found += [source] if source else [each.split()[0] for each in several.split(",") if each.split()]
    return tuple(found)


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def _module_of(path: str) -> str:
    """The last part of a module's dotted name."""
    file = Path(path)
    return file.parent.name if file.stem == "__init__" else file.stem
