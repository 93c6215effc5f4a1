"""The benchmark runs against a real server and writes its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def test_latency_is_measured(newest_jax_python, tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROJECT / "benchmarks" / "latency.py"), "--python", newest_jax_python.python]
    command += ["--kernel", "tpu_matmul", "--edits", "2", "--warm-up", "0", "--bursts", "1", "--pause", "0.1"]
    run = subprocess.run([*command, "--json", str(figures)], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert "tpu_matmul" in run.stdout
    document = json.loads(figures.read_text(encoding="utf-8"))
    assert document["jax"] == newest_jax_python.version
    assert len(document["results"]) == 2, "called by its own file, and by another file's test"
    for result in document["results"]:
        assert result["edits"] == 2
        assert result["edit"]["median_ms"] > 0
        assert result["edit_to_bare"]["median"] > 0
