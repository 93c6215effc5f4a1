"""The extension's package: strict types, lint, a pure bundle that runs in every Python, settings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from editor_kit import EXTENSION, PROJECT

from pallas_lsp import __version__
from pallas_lsp.server.commands import COMMANDS
from pallas_lsp.server.settings import read

MANIFEST = json.loads((EXTENSION / "package.json").read_text())
SETTINGS = MANIFEST["contributes"]["configuration"]["properties"]


def test_types_and_lint(npm_tool) -> None:
    npm_tool("node_modules/typescript/bin/tsc", "--noEmit")
    npm_tool("node_modules/eslint/bin/eslint.js", ".", "--max-warnings", "0")


def test_lock_file_names_no_host() -> None:
    assert not re.search(r"https?://", (EXTENSION / "package-lock.json").read_text())
    assert "omit-lockfile-registry-resolved=true" in (EXTENSION / ".npmrc").read_text()


def test_package_holds_what_it_needs_and_no_more(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as package:
        names = set(package.namelist())
    modules = ("pallas_lsp", "pygls", "lsprotocol", "jedi", "parso", "cattrs", "attrs", "platformdirs", "rich")
    for module in modules:
        assert f"extension/bundled/libs/{module}/__init__.py" in names, module
    for needed in (
        "dist/extension.js",
        "bundled/launch.py",
        "bundled/libs/pallas_lsp/worker/__main__.py",
        "images/icon.png",
    ):
        assert f"extension/{needed}" in names
    assert not [
        name for name in names if re.search(r"\.(so|pyd|dylib|dll|exe|map|ts|pyc)$|__pycache__|node_modules", name)
    ]
    assert vsix.stat().st_size < 8_000_000


def test_bundled_server_runs_in_every_python(bundled_server: Path, vsix: Path, jax_pythons) -> None:
    for python in (sys.executable, *(each.python for each in jax_pythons)):
        command = [python, "-I", str(bundled_server / "launch.py"), "useBundled", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.strip().endswith(__version__), (python, done.stderr)


def test_server_of_the_environment_is_used_where_there_is_one(bundled_server: Path, vsix: Path) -> None:
    command = [sys.executable, str(bundled_server / "launch.py"), "fromEnvironment", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(PROJECT)})
    assert "is used" in done.stderr
    assert __version__ in done.stdout


def test_version_and_licence() -> None:
    assert MANIFEST["version"] == __version__
    assert MANIFEST["license"] == "Apache-2.0"
    assert MANIFEST["extensionKind"] == ["workspace"]


def test_server_knows_every_setting() -> None:
    complaints: list[str] = []
    values: dict[str, object] = {}
    for name, schema in SETTINGS.items():
        first, _, second = name.removeprefix("pallas-lsp.").partition(".")
        if second:
            values[first] = {**values.get(first, {}), second: schema["default"]}  # type: ignore[dict-item]
        else:
            values[first] = schema["default"]
    read(values, complaints.append)
    assert complaints == []
    for schema in SETTINGS.values():
        assert schema["markdownDescription"]
        assert schema["scope"] in ("machine", "window", "resource")


def test_what_starts_programs_cannot_be_set_by_a_workspace() -> None:
    restricted = set(MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    machine = {name for name, schema in SETTINGS.items() if schema["scope"] == "machine"}
    assert machine == restricted
    assert {f"pallas-lsp.{name}" for name in ("interpreter", "path", "importStrategy", "environment")} <= machine


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_server_is_in_the_palette_or_asked_by_it(name: str) -> None:
    titles = {each["command"] for each in MANIFEST["contributes"]["commands"]}
    source = (EXTENSION / "src" / "commands.ts").read_text()
    assert name in titles or f"'{name.removeprefix('pallas-lsp.')}'" in source


def test_documented_settings_and_commands() -> None:
    page = (PROJECT / "docs" / "lsp.md").read_text()
    for name in COMMANDS:
        assert f"`{name}`" in page, name
