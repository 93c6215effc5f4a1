"""The Python environments with a tested jax, for the fixtures in conftest.py and for tests that name the type.

``PALLAS_LSP_TEST_PYTHONS`` names interpreters to use instead of those under ``.venvs``.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parent.parent
VARIABLE = "PALLAS_LSP_TEST_PYTHONS"
HINT = f"no Python with jax: run 'python3 scripts/run_tests.py', or set {VARIABLE}"


class JaxPython(NamedTuple):
    """A user-side interpreter and the version of the jax in it."""

    version: str
    python: str


def _interpreters() -> list[str]:
    if named := os.environ.get(VARIABLE):
        return [path for path in named.split(os.pathsep) if path]
    executable = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    return [str(path) for path in sorted(PROJECT.glob(f".venvs/jax-*/{executable}"))]


@functools.cache
def find_jax_pythons() -> tuple[JaxPython, ...]:
    """Every interpreter for the tests, oldest jax first; one that has no jax is an error in the set-up."""
    found = []
    for python in _interpreters():
        ask = [python, "-I", "-c", "from importlib.metadata import version; print(version('jax'))"]
        answer = subprocess.run(ask, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise pytest.UsageError(f"{python} has no jax ({answer.stderr.strip().splitlines()[-1:]}): {HINT}")
        found.append(JaxPython(answer.stdout.strip(), python))
    return tuple(sorted(found, key=lambda each: [int(part) for part in each.version.split(".") if part.isdigit()]))
