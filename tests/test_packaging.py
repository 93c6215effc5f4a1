"""What a fresh machine gets: the wheel, the pinned environments, and the README's two scripts."""

from __future__ import annotations

import ast
import email
import importlib.metadata
import importlib.util
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import pallas_lsp

PROJECT = Path(__file__).resolve().parent.parent
SCRIPTS = PROJECT / "scripts"


def load(name: str) -> ModuleType:
    """A module of ``scripts``, which is no package."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


environments = load("environments")
run_tests = load("run_tests")
try_it = load("try_it")


# -- the wheel -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(build, cwd=PROJECT, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_every_module_and_the_licence(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "pallas_lsp").rglob("*.py")}
    assert modules <= names
    assert "pallas_lsp/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if not name.startswith(("pallas_lsp/", "pallas_lsp-"))]


def test_the_wheel_says_what_it_is(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    info = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(info))
    assert metadata["Version"] == pallas_lsp.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    entry_points = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "pallas-lsp = pallas_lsp.cli.main:main" in entry_points
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert not [line for line in needed if line.startswith("jax")], "the server must install without jax"


def test_the_wheel_runs(wheel: Path, tmp_path: Path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-m", "pallas_lsp", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert pallas_lsp.__version__ in answer.stdout


def test_the_installed_version_is_the_source_s():
    assert importlib.metadata.version("pallas-lsp") == pallas_lsp.__version__


# -- pinned environments ---------------------------------------------------------------------------------------------

PINNED = sorted(environments.PINS.glob("*.txt"))


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.name)
def test_pins_are_exact_versions_and_name_no_host(file: Path):
    for line in file.read_text(encoding="utf-8").splitlines():
        assert line.startswith("# Made by") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+", line), line


def test_each_tested_jax_is_pinned():
    assert {file.name for file in PINNED} == {"dev.txt", *(jax.pins.name for jax in environments.TESTED)}
    for jax in environments.TESTED:
        assert environments.read_pins(jax.pins)["jax"] == jax.version
        assert environments.read_pins(jax.pins)["jaxlib"] == jax.version


def test_the_pins_cover_what_pyproject_asks_for():
    pinned = {environments._normal(name) for name in environments.read_pins(environments.DEV_PINS)}
    asked = {re.split(r"[<>=!~ ;\[]", each)[0] for each in environments.dev_requirements()}
    assert {environments._normal(name) for name in asked} <= pinned


# -- choosing Pythons ------------------------------------------------------------------------------------------------


def chosen(pythons: dict[tuple[int, int], str], every: bool = False) -> tuple[dict[str, str], list[str]]:
    found, missing = run_tests.choose(pythons, every)
    return {jax.version: python for jax, python in found}, missing


def test_each_jax_is_tested_on_its_own_python_where_there_is_one():
    assert chosen({(3, 11): "a", (3, 12): "b", (3, 13): "c"}) == ({"0.10.2": "a", "0.11.2": "b", "0.12.0.1": "c"}, [])


def test_one_newer_python_tests_every_jax_that_it_can_have():
    assert chosen({(3, 14): "d"}) == ({"0.10.2": "d", "0.11.2": "d", "0.12.0.1": "d"}, [])


def test_what_cannot_be_tested_is_said():
    found, missing = chosen({(3, 11): "a"})
    assert found == {"0.10.2": "a"}
    assert missing == [
        "jax 0.11.2: not tested, it needs Python 3.12 or later, which was not found",
        "jax 0.12.0.1: not tested, it needs Python 3.12 or later, which was not found",
    ]


def test_on_ci_another_python_will_not_do():
    _, missing = chosen({(3, 12): "b", (3, 13): "c"}, every=True)
    assert missing == ["jax 0.10.2: not tested, it needs Python 3.11, which was not found"]


# -- the scripts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["try_it", "run_tests"])
def test_an_old_python_gets_a_sentence(script: str):
    """The file must parse on it, and nothing newer may be imported before the version is looked at."""
    source = (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")
    assert "environments" not in source.split("import argparse")[1].split("sys.version_info")[0]
    assert "from __future__" not in source
    ast.parse(source, feature_version=(3, 6))


def test_the_readme_names_both_commands():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert "python3 scripts/try_it.py" in readme
    assert "python3 scripts/run_tests.py" in readme


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(environments.SetupError, match="no virtual environment"):
        environments.make_environment(tmp_path, sys.executable)
    assert (tmp_path / "mine.txt").exists()


@pytest.mark.skipif(os.name == "nt", reason="the stand-in interpreter is a shell script")
def test_a_python_that_cannot_make_environments_is_named(tmp_path: Path):
    python = tmp_path / "python3"
    answer = '[[3, 11], \\"/usr/bin/python3\\"]'
    python.write_text(f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\necho "{answer}"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(environments.SetupError, match="python3-venv"):
        environments.make_environment(tmp_path / "environment", str(python))


FAULTY = [path.name for path in (PROJECT / "examples").glob("faulty_*.py")]
CORRECT = [path.name for path in (PROJECT / "examples").glob("*.py") if path.name not in FAULTY]


def judged(faulty: list[str], status: int = 1, severity: str = "error", lowered: list[str] = CORRECT) -> list[str]:
    diagnostics = [{"path": f"examples/{name}", "severity": "error"} for name in FAULTY if name in faulty]
    diagnostics += [{"path": f"examples/{name}", "severity": severity} for name in faulty if name not in FAULTY]
    launches = [{"path": f"examples/{name}", "captures": [{"stage": "lower"}]} for name in lowered]
    return try_it.judge({"diagnostics": diagnostics, "launches": launches}, status)


def test_the_examples_are_judged():
    assert judged(FAULTY) == []
    assert judged(FAULTY[1:]) == [f"{FAULTY[0]}: its fault was not found"]
    assert judged([*FAULTY, "tpu_matmul.py"]) == ["tpu_matmul.py: is correct, but got a finding"]
    assert judged([*FAULTY, "tpu_matmul.py"], severity="information") == []
    assert judged(FAULTY, lowered=CORRECT[1:]) == [f"{CORRECT[0]}: its kernel was not lowered"]
    assert len(judged([], status=3)) == len(FAULTY) + 1
