"""Virtual environments for the scripts beside this file: finding Pythons, making environments, pinning them.

Only the standard library, so that it runs on a fresh machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PINS = PROJECT / "tests" / "environments"
MINIMUM = (3, 11)
NEWEST = (3, 15)

Minor = tuple[int, int]


class SetupError(Exception):
    """Something of the machine stands in the way; the text says what and what to do."""


@dataclass(frozen=True)
class TestedJax:
    """A jax version that the tests run with, the Python it is tested on, and the oldest one it installs on."""

    version: str
    python: Minor
    oldest: Minor
    extras: tuple[str, ...] = ()

    @property
    def pins(self) -> Path:
        return PINS / f"jax-{self.version}.txt"

    @property
    def environment(self) -> Path:
        return PROJECT / ".venvs" / f"jax-{self.version}"

    def requirements(self) -> list[str]:
        return [f"jax=={self.version}", *self.extras, "pytest"]


# Mosaic GPU (0.10.2) and the kernels that ship inside jax (all versions) need absl-py, which jax does not declare.
TESTED = (
    TestedJax("0.10.2", python=(3, 11), oldest=(3, 11), extras=("absl-py",)),
    TestedJax("0.11.2", python=(3, 12), oldest=(3, 12), extras=("absl-py",)),
    TestedJax("0.12.0.1", python=(3, 13), oldest=(3, 12), extras=("absl-py",)),
)
DEV_PINS = PINS / "dev.txt"


def dotted(minor: Minor) -> str:
    return f"{minor[0]}.{minor[1]}"


def interpreter(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def script(environment: Path, name: str) -> Path:
    return environment / (f"Scripts/{name}.exe" if os.name == "nt" else f"bin/{name}")


# -- finding Pythons -------------------------------------------------------------------------------------------------

_ASK = "import sys, json; print(json.dumps([sys.version_info[:2], sys.executable]))"


def ask(command: Sequence[str]) -> tuple[Minor, str] | None:
    """The version and path of the Python that ``command`` starts, or None (a version manager's shim may start none)."""
    try:
        answer = subprocess.run([*command, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
        version, path = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return (version[0], version[1]), path


def _candidates() -> Iterator[list[str]]:
    yield [sys.executable]
    minors = [(3, minor) for minor in range(MINIMUM[1], NEWEST[1] + 1)]
    for minor in minors:
        if found := shutil.which(f"python{dotted(minor)}"):
            yield [found]
    if shutil.which("py"):
        yield from (["py", f"-{dotted(minor)}"] for minor in minors)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    pythons = "python.exe" if os.name == "nt" else "bin/python3"
    for folder in (pyenv / "versions", pyenv / "pyenv-win" / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from ([str(path)] for path in sorted(folder.glob(f"*/{pythons}"), reverse=True))


def find_pythons() -> dict[Minor, str]:
    """One interpreter for each supported Python version on this machine."""
    found: dict[Minor, str] = {}
    for command in _candidates():
        answer = ask(command)
        if answer and MINIMUM <= answer[0] <= NEWEST:
            found.setdefault(*answer)
    return dict(sorted(found.items()))


def python_for(jax: TestedJax, pythons: dict[Minor, str]) -> str | None:
    """The Python that this jax is tested on, else the oldest other one that it installs on."""
    if jax.python in pythons:
        return pythons[jax.python]
    return next((path for minor, path in pythons.items() if minor >= jax.oldest), None)


# -- making environments ---------------------------------------------------------------------------------------------


def call(command: Sequence[str | Path], failure: str, **environment: str) -> None:
    """Run a command with its output shown; ``failure`` becomes the error when it does not end well."""
    try:
        subprocess.run([str(part) for part in command], check=True, cwd=PROJECT, env={**os.environ, **environment})
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"exit status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else error
        raise SetupError(f"{failure} ({command[0]}: {why})") from None


def make_environment(path: Path, python: str) -> bool:
    """Make the virtual environment ``path``, unless it is there and of ``python``'s version; True when it was made."""
    wanted, there = ask([python]), ask([str(interpreter(path))])
    if wanted and there and wanted[0] == there[0]:
        return False
    if path.exists() and not (path / "pyvenv.cfg").exists():
        raise SetupError(f"{path} exists and is no virtual environment. Move it away and run this again.")
    if subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode != 0:
        raise SetupError(
            f"{python} cannot make virtual environments: its modules venv and ensurepip are missing. On Debian and "
            "Ubuntu 'apt install python3-venv' brings them; else install Python from python.org, pyenv or conda."
        )
    call([python, "-m", "venv", "--clear", path], f"The virtual environment {path} could not be made.")
    return True


def pip_install(environment: Path, *arguments: str | Path) -> None:
    call(
        [interpreter(environment), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *arguments],
        "pip could not install what is needed; its own message stands above. Without a connection to a package index "
        "(or behind a proxy, or with a full disk) it cannot work: check the connection and run this again.",
    )


def read_pins(file: Path) -> dict[str, str]:
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return dict(line.split("==", 1) for line in lines if line and not line.startswith("#"))


def installed(environment: Path) -> dict[str, str]:
    code = (
        "import json, importlib.metadata as m;"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    answer = subprocess.run([interpreter(environment), "-I", "-c", code], capture_output=True, text=True, check=True)
    return {_normal(name): version for name, version in json.loads(answer.stdout).items()}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def ensure_pinned(environment: Path, python: str, pins: Path) -> None:
    """Make ``environment`` hold exactly the versions of ``pins``; what fits already is left alone."""
    make_environment(environment, python)
    there = installed(environment)
    if all(there.get(_normal(name)) == version for name, version in read_pins(pins).items()):
        return
    print(f"   installing {pins.relative_to(PROJECT)} into {environment.relative_to(PROJECT)}", flush=True)
    pip_install(environment, "-r", pins)


def ensure_project(environment: Path) -> None:
    """Install this project into ``environment`` (editable), unless nothing of its packaging changed."""
    stamp = environment / "pallas-lsp.sha256"
    digest = hashlib.sha256((PROJECT / "pyproject.toml").read_bytes() + bytes(PROJECT)).hexdigest()
    if script(environment, "pallas-lsp").exists() and stamp.exists() and stamp.read_text() == digest:
        return
    pip_install(environment, "--no-deps", "--no-build-isolation", "--editable", ".")
    stamp.write_text(digest)


# -- pinning ---------------------------------------------------------------------------------------------------------


def dev_requirements() -> list[str]:
    """What the tests need on the server's side: the project's own dependencies and its group ``dev``."""
    table = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*table["project"]["dependencies"], *table["dependency-groups"]["dev"], *table["build-system"]["requires"]]


def refresh(pins: Path, python: str, requirements: Iterable[str]) -> None:
    """Resolve ``requirements`` anew in an empty environment and write down the exact versions."""
    answer = ask([python])
    version = dotted(answer[0]) if answer else "?"
    print(f"   resolving {pins.relative_to(PROJECT)} with Python {version}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        make_environment(environment, python)
        pip_install(environment, *requirements)
        freeze = [interpreter(environment), "-m", "pip", "freeze", "--exclude", "pip", "--exclude", "setuptools"]
        frozen = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    head = f"# Made by 'python3 scripts/run_tests.py --refresh' with Python {version}.\n"
    pins.parent.mkdir(parents=True, exist_ok=True)
    pins.write_text(head + frozen, encoding="utf-8", newline="\n")
