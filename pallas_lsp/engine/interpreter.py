"""Which Python runs the user's code: the setting, the active or a nearby virtual environment, else our own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pallas_lsp.engine.errors import WorkerUnavailable

FOLDERS = (".venv", "venv", "env")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PROJECT = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")


def find_interpreter(
    path: str, roots: Sequence[str] = (), setting: str | None = None, environ: Mapping[str, str] = os.environ
) -> str:
    """The interpreter for a file, as an absolute path; raises WorkerUnavailable where the one asked for is missing.

    The path is not resolved: a virtual environment is known by the place of its link.
    """
    if setting:
        return _explicit(setting, path, roots)
    for variable in _ACTIVE:
        folder = environ.get(variable)
        if folder and (found := _in_environment(Path(folder))) is not None:
            return found
    for folder_ in _upwards(Path(path).parent, roots):
        for name in FOLDERS:
            if (found := _in_environment(folder_ / name)) is not None:
                return found
    if not sys.executable:
        raise WorkerUnavailable(
            "interpreter-missing",
            "no Python was found for this file",
            "Name one with the setting 'python' (or --python).",
        )
    return sys.executable


def _explicit(setting: str, path: str, roots: Sequence[str]) -> str:
    expanded = Path(os.path.expandvars(setting)).expanduser()
    if expanded.is_absolute():
        candidates = [expanded]
    elif expanded.parent == Path() and (command := shutil.which(setting)) is not None:
        candidates = [Path(command)]
    else:
        bases = [root for root in map(Path, roots) if root in Path(path).parents] or [*map(Path, roots)] or [Path.cwd()]
        candidates = [base / expanded for base in bases]
    for candidate in candidates:
        if candidate.is_file():
            if not os.access(candidate, os.X_OK):
                raise WorkerUnavailable(
                    "interpreter-missing",
                    f"{candidate} is not executable",
                    "Name a Python interpreter in the setting 'python' (or --python).",
                )
            return os.path.abspath(candidate)  # noqa: PTH100 - resolve() would leave the virtual environment
        if (found := _in_environment(candidate)) is not None:
            return found
    raise WorkerUnavailable(
        "interpreter-missing",
        f"there is no Python at {candidates[0]}" if candidates else f"there is no Python named {setting}",
        "Correct the setting 'python' (or --python); it names an interpreter or a virtual environment's folder.",
    )


def _in_environment(folder: Path) -> str | None:
    """The interpreter of a virtual environment or conda environment."""
    names = ("Scripts/python.exe", "python.exe") if sys.platform == "win32" else ("bin/python", "bin/python3")
    for name in names:
        if (folder / name).is_file():
            return os.path.abspath(folder / name)  # noqa: PTH100
    return None


def _upwards(folder: Path, roots: Sequence[str]) -> Iterator[Path]:
    """The folder and its parents up to the workspace folder; without one, up to the project's own top."""
    inside = {Path(root) for root in roots} & {folder, *folder.parents}
    for each in (folder, *folder.parents):
        yield each
        if each in inside or (not inside and any((each / name).exists() for name in _PROJECT)):
            return
        if each == Path.home():
            return
