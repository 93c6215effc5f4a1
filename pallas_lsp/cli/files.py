"""Which files a command line names: files as they are, folders with the Python files and notebooks that use Pallas."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pallas_lsp.cli.sources import UnreadableError, decode_source
from pallas_lsp.source.notebooks import SUFFIX

SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", "site-packages", ".tox", ".nox"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"}
)
_REPOSITORY = (".git", ".hg")
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_IMPORT = re.compile(r"^\s*(?:from|import)\b[^#\n]*pallas", re.MULTILINE)


@dataclass
class Selection:
    """The files to check, in order, and what the folders held besides."""

    files: list[str] = field(default_factory=list)
    without_pallas: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    empty_folders: list[str] = field(default_factory=list)


def select(arguments: Iterable[str]) -> Selection:
    """Find the files: those named always, those in folders where they import Pallas; each once."""
    selection = Selection()
    arguments = list(arguments)
    paths = [os.path.abspath(argument) for argument in arguments]  # noqa: PTH100 - keeps links as the user names them
    seen: set[str] = set()

    def is_new(path: str) -> bool:
        real = os.path.realpath(path)
        new = real not in seen
        seen.add(real)
        return new

    for argument, path in zip(arguments, paths, strict=True):
        if os.path.isdir(path):  # noqa: PTH112
            continue
        if not os.path.lexists(path):
            selection.missing.append(argument)
        elif is_new(path):
            selection.files.append(path)
    for argument, path in zip(arguments, paths, strict=True):
        if not os.path.isdir(path):  # noqa: PTH112
            continue
        files = list(_python_files(path))
        kept = [file for file in files if mentions_pallas(file)]
        selection.files += [file for file in kept if is_new(file)]
        selection.without_pallas += [file for file in files if file not in set(kept) and is_new(file)]
        if not kept:
            selection.empty_folders.append(argument)
    return selection


def _python_files(folder: str) -> Iterator[str]:
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(current, name))
        for name in sorted(files):
            if name.endswith((".py", SUFFIX)):
                yield os.path.join(current, name)  # noqa: PTH118


def _is_skipped(parent: str, name: str) -> bool:
    return name in SKIPPED_FOLDERS or Path(parent, name, "pyvenv.cfg").is_file()


def mentions_pallas(path: str) -> bool:
    """Whether a file imports something of Pallas; one that cannot be read is kept, so that it is named as such."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return True
    if b"pallas" not in data:
        return False
    try:
        text = decode_source(path, data).text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except UnreadableError:
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _IMPORT.search(text) is not None or "jax.experimental.pallas" in text
    return any("pallas" in name for node in ast.walk(tree) for name in _imported(node))


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(alias.name for alias in node.names)]
    if isinstance(node, ast.Call):  # importlib.import_module("jax.experimental.pallas")
        values = [item.value for item in node.args if isinstance(item, ast.Constant)]
        return [value for value in values if isinstance(value, str) and value.startswith("jax.")]
    return []


def project_folder(path: str, cwd: str) -> str:
    """The folder of the project that a file belongs to: its repository, else its package's top, else where we are."""
    folders = Path(path).parents
    for names in (_REPOSITORY, _PROJECT):
        for folder in folders:
            if any((folder / name).exists() for name in names):
                return str(folder)
    return cwd if Path(cwd) in folders else str(Path(path).parent)
