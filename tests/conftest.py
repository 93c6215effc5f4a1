"""What all tests share: the project's root and the Python environments with a tested jax.

``jax_python`` runs a test once for each environment; without any the test is skipped, visibly, with the command that
makes them.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jax_environments import HINT, PROJECT, JaxPython, find_jax_pythons

# A busy machine must fail no test that is right.
settings.register_profile("pallas-lsp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pallas-lsp")


def pytest_report_header() -> str:
    found = find_jax_pythons()
    return "jax: " + (", ".join(f"{each.version} ({each.python})" for each in found) or HINT)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file stay in one process, and so do those that share what is dear to make (with ``-n``).

    Groups by pytest-xdist's own marks are lost with pytest 9.2, which no longer reads the ids that they are written to.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid.partition("::")[0])

    return Groups(config, log)


@functools.cache
def _group(file: str) -> str:
    """What a file of tests shares with others: the editors, or the one run of all small kernels (gpu_check.py)."""
    path = PROJECT / file
    if path.parent.name == "editors":
        return "editors"
    text = path.read_text(encoding="utf-8")
    return "kernels" if re.search(r"^from gpu_check import [^\n]*\bcheck\b", text, re.MULTILINE) else file


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "jax_python" not in metafunc.fixturenames:
        return
    cases = [pytest.param(each, id=each.version) for each in find_jax_pythons()]
    metafunc.parametrize(
        "jax_python",
        cases or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=HINT))],
        scope="session",
    )


@pytest.fixture(scope="session")
def project_root() -> Path:
    return PROJECT


@pytest.fixture(scope="session")
def jax_pythons() -> list[JaxPython]:
    """All environments with a tested jax, oldest first; skips when there is none."""
    found = find_jax_pythons()
    if not found:
        pytest.skip(HINT)
    return list(found)


@pytest.fixture(scope="session")
def newest_jax_python(jax_pythons: list[JaxPython]) -> JaxPython:
    """The newest tested jax: for tests that no version changes."""
    return jax_pythons[-1]


@pytest.fixture(scope="session")
def server_python() -> str:
    """The interpreter that the server and the command line run in."""
    return sys.executable


@pytest.fixture(scope="session")
def check_json() -> Callable[..., dict[str, Any]]:
    """``check_json(python, *paths)``: what ``pallas-lsp check --format json`` says, run as a user runs it."""

    def check(python: str, *paths: str | Path, options: tuple[str, ...] = ()) -> dict[str, Any]:
        command = [sys.executable, "-m", "pallas_lsp", "check", "--format", "json", "--python", python, *options]
        command += [str(path) for path in paths]
        run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
        assert run.stdout, f"exit status {run.returncode}: {run.stderr}"
        report: dict[str, Any] = json.loads(run.stdout)
        assert report["summary"]["exitCode"] == run.returncode
        return report

    return check
