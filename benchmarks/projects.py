"""Getting the projects that coverage is measured on: source distributions, an environment, and copies of jax's kernels.

Everything lands in one folder and is found there the next time; nothing of it belongs to this repository.
"""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    "jax-linear-attention",
    "deltanet-tpu",
    "gdn2-pallas",
    "fermix",
    "flywheel-tpu",
    "pallas-forge",
    "tokamax",
    "ejkernel",
)
JAX_KERNELS = "jax"
"""The name of the project made of the kernels that ship in jax."""
OWN_DRIVERS = Path(__file__).resolve().parent.parent / "tests" / "ops"
_PACKAGE = "jax.experimental.pallas.ops"
_COPY = "pallas_ops"
# What jax's tests share and its wheel leaves out: package and module.
_SHARED = (("jax._src", "hypothesis_test_util"), ("jax._src.pallas", "pallas_test_util"))
# Not installed: jax is the one under test, and torch brings CUDA with it.
_LEFT_OUT = frozenset({"jax", "jaxlib", "torch", "torchvision", "triton", "libtpu", "jax-cuda12-plugin"})


@dataclass(frozen=True)
class Project:
    name: str
    root: Path
    version: str


class Environment:
    """A virtual environment with the jax under test and what the projects need."""

    def __init__(self, base: str, folder: Path) -> None:
        """``base``: an interpreter that has the jax under test; its version is installed anew."""
        self._base = base
        self.jax = _ask(base, "import jax; print(jax.__version__)")
        self._jaxlib = _ask(base, "import jaxlib; print(jaxlib.__version__)")
        self.folder = folder / f"environment-{self.jax}"
        self.python = str(self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
        self._done = self.folder / "installed.txt"
        self.missing: dict[str, str] = {}

    def make(self) -> None:
        if not self._done.exists():
            subprocess.run([self._base, "-m", "venv", str(self.folder)], check=True)
            constraints = self.folder / "constraints.txt"
            constraints.write_text(f"jax=={self.jax}\njaxlib=={self._jaxlib}\n", encoding="utf-8")
            self._pip("jax", "jaxlib", "absl-py", "pytest", "numpy", "hypothesis")
            self._done.write_text("", encoding="utf-8")

    def install(self, project: Project) -> None:
        """Install what a project and its tests need, one by one, so that what cannot be had hinders nothing else."""
        done = set(self._done.read_text(encoding="utf-8").split("\n"))
        for requirement in requirements(project.root):
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            if requirement not in done and not self._pip(name):
                self.missing[name] = f"pip cannot install {name}"
            elif requirement not in done:
                with self._done.open("a", encoding="utf-8") as out:
                    out.write(requirement + "\n")

    def _pip(self, *wanted: str) -> bool:
        command = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command += ["-c", str(self.folder / "constraints.txt"), *wanted]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return run.returncode == 0


def requirements(root: Path) -> list[str]:
    """What a source distribution asks for, with the extras for tests; of a checkout the dependencies."""
    found = []
    for requirement in _required(root):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", requirement)
        if name not in _LEFT_OUT and (extra is None or extra[1] in ("test", "tests", "testing", "dev")):
            found.append(requirement)
    return found


def _required(root: Path) -> list[str]:
    if (root / "PKG-INFO").exists():
        metadata = email.message_from_string((root / "PKG-INFO").read_text(encoding="utf-8"))
        return [str(each) for each in metadata.get_all("Requires-Dist") or []]
    if (root / "pyproject.toml").exists():
        metadata = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return [str(each) for each in metadata.get("project", {}).get("dependencies", [])]
    return []


def checkout(root: Path) -> Project:
    """A project's folder as it is."""
    return Project(root.name, root.resolve(), "checkout")


def fetch(name: str, folder: Path, python: str, version: str = "") -> Project:
    """The source distribution of a project, unpacked."""
    place = folder / "projects" / name
    if not place.is_dir():
        archives = folder / "archives" / name
        archives.mkdir(parents=True, exist_ok=True)
        wanted = f"{name}=={version}" if version else name
        command = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name, "-d", str(archives), wanted]
        subprocess.run(command, check=True, stdout=sys.stderr)
        unpacked = folder / "unpacked" / name
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(next(archives.iterdir())) as archive:
            archive.extractall(unpacked, filter="data")
        place.parent.mkdir(parents=True, exist_ok=True)
        next(path for path in unpacked.iterdir() if path.is_dir()).rename(place)
    metadata = email.message_from_string((place / "PKG-INFO").read_text(encoding="utf-8"))
    return Project(name, place, str(metadata["Version"]))


def jax_kernels(environment: Environment, folder: Path, tests: Path | None) -> Project:
    """A copy of the kernels inside jax, under a package name of its own, with tests and scripts that call them.

    ``tests``: the folder ``tests/pallas`` of a checkout of jax; without one only the kernels' own main blocks and this
    repository's scripts call them.
    """
    place = folder / "projects" / f"{JAX_KERNELS}-{environment.jax}"
    if place.is_dir():
        return Project(JAX_KERNELS, place, environment.jax)
    installed = Path(_ask(environment.python, "import jax; print(jax.__path__[0])"))
    place.mkdir(parents=True)
    (place / "pyproject.toml").write_text("[project]\nname = 'pallas-ops'\nversion = '0'\n", encoding="utf-8")
    _copy(installed.joinpath("experimental", "pallas", "ops"), place / _COPY)
    (place / _COPY / "__init__.py").touch()
    _copy(OWN_DRIVERS, place / "scripts", "test_*")
    if tests is not None:
        _copy(tests, place / "tests")
        for package, module in _SHARED:
            shared = tests.resolve().parent.parent.joinpath(*package.split("."), f"{module}.py")
            if shared.exists():
                shutil.copy(shared, place / "tests")
    return Project(JAX_KERNELS, place, environment.jax)


def _copy(source: Path, target: Path, left_out: str = "__pycache__") -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(left_out, "__pycache__"))
    for file in target.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        text = text.replace(_PACKAGE, _COPY)
        for package, module in _SHARED:
            text = text.replace(f"from {package} import {module}", f"import {module}")
        if f" {_COPY}." in text.replace(f"import {_COPY}", "").replace(f"from {_COPY}", ""):
            text = text.replace("\nimport ", f"\nimport {_COPY}\nimport ", 1)  # a test that names it in full
        file.write_text(text, encoding="utf-8")


def _ask(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
