"""The rules of docs/architecture.md that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pallas_lsp

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "pallas_lsp"
LONGEST = 350
TEST_TOOLS = {"pytest", "_pytest", "hypothesis"}

# What each part may import of the package (a confirmation is a check by the engine, on a GPU).  The worker runs in the
# user's Python and may import nothing of it.
MAY_IMPORT = {
    "model": set(),
    "origins": set(),
    "source": {"model", "source"},
    "discovery": {"model", "source", "discovery"},
    "recorder": {"model", "source", "discovery", "recorder"},
    "rules": {"model", "source", "rules"},
    "confirm": {"model", "rules", "engine", "confirm"},
    "engine": {"model", "origins", "source", "discovery", "recorder", "rules", "confirm", "engine"},
    "server": {"model", "origins", "source", "discovery", "rules", "confirm", "engine", "server"},
    "cli": {"model", "origins", "source", "discovery", "recorder", "rules", "confirm", "engine", "server", "cli"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Absolute names of every module that ``path`` imports, at any depth of the code."""
    package = path.relative_to(PROJECT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += node.module.split(".") if node.module else []
            # ``from pallas_lsp import model`` names a part in its list of names.
            yield from (".".join([*base, alias.name]) for alias in node.names)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [PROJECT / each for each in listed.stdout.split("\0") if each and (PROJECT / each).is_file()]


def test_every_part_has_its_place():
    assert {part(path) for path in modules()} == {*MAY_IMPORT, "worker", "__init__", "__main__"}


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_part_imports_only_what_lies_below_it(path: Path):
    own = part(path)
    found = {each.split(".")[1] for each in imports(path) if each.startswith("pallas_lsp.")}
    if own == "worker":
        assert found <= {"worker"}
    elif own in MAY_IMPORT:
        # "pallas_lsp.__version__" is no part.
        assert found - {"__version__"} <= MAY_IMPORT[own]


@pytest.mark.parametrize("path", [path for path in modules() if part(path) == "worker"], ids=name)
def test_the_worker_needs_only_the_standard_library_and_jax(path: Path):
    """And the test tools of the user, where there are some, to run the user's tests."""
    roots = {each.split(".")[0] for each in imports(path)}
    assert roots <= {*sys.stdlib_module_names, "pallas_lsp", "jax", "jaxlib", "numpy", *TEST_TOOLS}


def test_the_internals_of_jax_stand_in_one_file():
    worker = [path for path in modules() if part(path) == "worker"]
    naming = [path.name for path in worker if re.search(r"jax\._src", path.read_text(encoding="utf-8"))]
    assert naming == ["internals.py"]


@pytest.mark.parametrize("path", [path for path in modules() if part(path) != "worker"], ids=name)
def test_jax_is_imported_by_the_worker_only(path: Path):
    assert not {each for each in imports(path) if each.split(".")[0] in {"jax", "jaxlib"}}


def test_the_server_process_loads_neither_jax_nor_the_worker():
    ours = [
        name(path.with_suffix("")).replace("/", ".") for path in modules() if part(path) not in {"worker", "__main__"}
    ]
    program = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name.removesuffix(".__init__"))
forbidden = ("jax.", "jaxlib.", "pallas_lsp.worker.")
print([name for name in sys.modules if f"{name}.".startswith(forbidden)])
"""
    command = [sys.executable, "-c", program, *ours]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (answer.stdout.strip(), answer.stderr) == ("[]", "")


@pytest.mark.parametrize("path", modules(), ids=name)
def test_modules_stay_small(path: Path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_the_version_is_written_in_one_place():
    pattern = re.compile(rf"""version["']?\s*[:=]\s*["']{re.escape(pallas_lsp.__version__)}["']""")
    code = (path for path in tracked_files() if path.suffix in {".py", ".toml", ".cfg"})
    assert [name(path) for path in code if pattern.search(path.read_text(encoding="utf-8"))] == []
    assert re.search(r'__version__ = "[^"]+"', (PACKAGE / "__init__.py").read_text(encoding="utf-8"))


def test_no_tracked_file_names_a_registry_or_this_machine():
    # Written in parts, so that this file does not name them either.
    hosts = "|".join(("py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "deb." + "debian"))
    forbidden = re.compile(rf"{hosts}|/work/(?:main|shared|\.)|/root/|/opt/pypi".encode())
    found = [name(path) for path in tracked_files() if path != Path(__file__) and forbidden.search(path.read_bytes())]
    assert found == []
