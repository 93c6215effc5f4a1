"""The table of Pallas's public names is what its script makes of the tested versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from jax_environments import PROJECT, JaxPython


def test_the_table_is_up_to_date(jax_pythons: list[JaxPython], tmp_path: Path) -> None:
    kept = json.loads((PROJECT / "pallas_lsp" / "data" / "api.json").read_text(encoding="utf-8"))
    output = tmp_path / "api.json"
    command = [sys.executable, str(PROJECT / "scripts" / "api_table.py"), "--output", str(output)]
    subprocess.run([*command, *(each.python for each in jax_pythons)], check=True, capture_output=True)
    made = json.loads(output.read_text(encoding="utf-8"))
    if made["versions"] == kept["versions"]:
        assert made == kept, "run: python3 scripts/api_table.py"
    else:
        assert set(made["versions"]) - set(kept["versions"]) == set(), "run: python3 scripts/api_table.py"
