"""A real VS Code (code-server) with the shipped .vsix, and scripts that act in it as a user or an extension would."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from editor_kit import editor_tools

HERE = Path(__file__).resolve().parent

# What keeps the window quiet: no welcome page, no telemetry, no tips.
QUIET = {
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "workbench.enableExperiments": False,
    "chat.disableAIFeatures": True,
    "files.autoSave": "off",
    "editor.accessibilitySupport": "off",
    "workbench.tips.enabled": False,
    "git.enabled": False,
    "editor.minimap.enabled": False,
    "files.hotExit": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class CodeServer:
    """One VS Code window's server side, in a home of its own.  ``path`` is all of the PATH that it sees."""

    def __init__(
        self,
        work: Path,
        folder: Path,
        vsix: Sequence[Path | str],
        *,
        path: Sequence[str] = ("/usr/bin", "/bin"),
        extensions: Sequence[Path] = (),
        hosts_tests: bool = False,
        trust: bool | None = True,
        settings: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] | None = None,
    ) -> None:
        """``extensions``: folders of other extensions.  ``hosts_tests``: tests will run in the extension host, which
        keeps the window from showing notifications.  ``trust``: True switches Workspace Trust off, as users do who
        trust all; else each folder is asked about."""
        self.tools = editor_tools.vscode()
        self.browser = editor_tools.browser()
        self.work = work
        self.folder = folder
        self.trust = trust
        self._vsix = vsix
        self._hosts_tests = hosts_tests
        self._folders = extensions
        self._settings = {**QUIET, **(settings or {})}
        self._machine = machine or {}
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        home = work / "home"
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_STATE_HOME": str(home / "state"),
            "EXTENSIONS_GALLERY": '{"serviceUrl": ""}',
        }
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
            self._environment.pop(name, None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> CodeServer:
        shutil.rmtree(self.work, ignore_errors=True)
        for name, settings in (("User", self._settings), ("Machine", self._machine)):
            file = self.work / "data" / name / "settings.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(settings))
        home = self.work / "home"
        home.mkdir()
        for profile in (".profile", ".bash_profile", ".zprofile"):  # VS Code takes the PATH of the user's login shell
            (home / profile).write_text(f"export PATH='{self._environment['PATH']}'\n")
        (self.work / "config.yaml").write_text(f"bind-addr: 127.0.0.1:{self._port}\nauth: none\ncert: false\n")
        base = [str(self.tools.node), str(self.tools.entry), "--config", str(self.work / "config.yaml")]
        base += ["--user-data-dir", str(self.work / "data"), "--extensions-dir", str(self.work / "extensions")]
        base += ["--disable-telemetry", "--disable-update-check", "--reconnection-grace-time", "1"]
        if self._hosts_tests:
            base += ["--vscode-option", "enable-smoke-test-driver"]
        for vsix in [*self._vsix, *map(self._packed, self._folders)]:
            done = subprocess.run(
                [*base, "--install-extension", str(vsix)],
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{self._port}", "--disable-getting-started-override"]
        if self.trust:
            options.append("--disable-workspace-trust")
        log = (self.work / "server.log").open("wb")
        self._process = subprocess.Popen(
            [*base, *options, str(self.folder)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._wait()
        return self

    def _packed(self, folder: Path) -> Path:
        """An extension's folder as a .vsix."""
        file = self.work / f"{folder.name}.vsix"
        vsce = editor_tools.extension_modules() / "@vscode" / "vsce" / "vsce"
        command = [self.tools.node, vsce, "package", "--no-dependencies", "--allow-missing-repository"]
        command += ["--skip-license", "--out", file]
        subprocess.run([str(each) for each in command], cwd=folder, check=True, capture_output=True)
        return file

    def _wait(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=2).close()
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
            else:
                return
        raise AssertionError((self.work / "server.log").read_text())

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    # -- acting in it -------------------------------------------------------------------------------------------------

    def run(self, script: str, *arguments: str | Path, timeout: float = 240, **variables: str) -> str:
        """Run one of the scripts beside this file; its output is that of the test."""
        environment = {
            **os.environ,
            "NODE_PATH": str(self.tools.modules),
            "CHROMIUM": self.browser,
            "EXTENSION_LIMIT_MS": str(int(timeout * 1000) - 15_000),
            **variables,
        }
        done = subprocess.run(
            [str(self.tools.node), str(HERE / script), self.url, str(self.folder), *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, f"{output}\n-- the extension's log --\n{self.extension_log()}"
        return output

    def extension_log(self) -> str:
        """What the extension wrote into its output channel."""
        logs = (self.work / "data" / "logs").rglob("*Pallas LSP*.log")
        return "\n".join(log.read_text(errors="replace")[-8000:] for log in logs)
