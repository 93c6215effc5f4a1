"""Runs the worker's jax side in the user's Python, without the protocol around it."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HARNESS = """
import importlib, importlib.util, json, os, sys
folder, request = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "pallas_lsp_worker", folder + "/__init__.py", submodule_search_locations=[folder])
package = importlib.util.module_from_spec(spec)
sys.modules["pallas_lsp_worker"] = package
spec.loader.exec_module(package)
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
importlib.import_module("pallas_lsp_worker.compat").quiet_environment()
run = importlib.import_module("pallas_lsp_worker.run")
run.execute(json.loads(request), lambda kind, fields: print(json.dumps({"kind": kind, **fields}), file=out, flush=True))
"""

MODULE = {"id": "module", "kind": "module", "lines": []}
MAIN = {"id": "main", "kind": "main"}


@dataclass
class Events:
    """What one run told."""

    events: list[dict[str, Any]] = field(default_factory=list)
    log: str = ""

    @property
    def faults(self) -> list[dict[str, Any]]:
        return [event["fault"] for event in self.events if event["kind"] == "fault"]

    @property
    def captures(self) -> list[dict[str, Any]]:
        """Each capture as it was last told."""
        latest = {event["capture"]["id"]: event["capture"] for event in self.events if event["kind"] == "capture"}
        return list(latest.values())

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Each driver's last outcome."""
        return {event["outcome"]["driver"]: event["outcome"] for event in self.events if event["kind"] == "driver"}

    def lines(self, by: str | None = None) -> list[int]:
        """The line of each fault's best anchor, or of its first anchor of a kind."""
        found = []
        for fault in self.faults:
            anchors = [a for a in fault["anchors"] if by is None or a["by"] == by]
            found.append(anchors[0]["frames"][-1]["line"])
        return found


@pytest.fixture
def worker_run(tmp_path: Path, project_root: Path) -> Callable[..., Events]:
    """``worker_run(python, text, files=..., drivers=..., **params)``: the events of one run of ``kernels.py``."""

    def run(
        python: str,
        text: str,
        *,
        files: dict[str, str] | None = None,
        drivers: list[dict[str, Any]] | None = None,
        timeout: float = 120,
        **params: Any,
    ) -> Events:
        path = tmp_path / "kernels.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        for name, content in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(textwrap.dedent(content), encoding="utf-8")
        request = {"path": str(path), "drivers": drivers or [MODULE, MAIN], **params}
        folder = project_root / "pallas_lsp" / "worker"
        done = subprocess.run(
            [python, "-c", HARNESS, str(folder), json.dumps(request)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return Events([json.loads(line) for line in done.stdout.splitlines()], done.stderr)

    return run
