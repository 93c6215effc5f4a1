"""What a child does before its run is asked for leaves nothing that the run could see."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "pallas_lsp" / "worker"

PROGRAM = """
import importlib, json, os, runpy, sys, threading
program = runpy.run_path(sys.argv[1] + "/__main__.py", run_name="worker_program")
program["load_package"]()
service = importlib.import_module("pallas_lsp_worker.service")
service.initialize({"protocol": service.PROTOCOL})
compat = importlib.import_module("pallas_lsp_worker.compat")
warming = importlib.import_module("pallas_lsp_worker.warming")
import jax
from jax._src import xla_bridge

names = [(jax, "devices"), (jax, "local_devices"), (xla_bridge, "backends"), (xla_bridge, "get_device_backend")]
before = [getattr(owner, name) for owner, name in names]
warmed = warming.warm()
same = [getattr(owner, name) for owner, name in names] == before
started = compat.backends_initialized()
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"  # as user code does it
print(json.dumps({"warmed": warmed, "same": same, "started": started, "devices": len(jax.devices())}))
"""


def test_no_backend_is_started_so_that_user_code_still_says_how_many_devices_there_are(jax_python):
    run = subprocess.run(
        [jax_python.python, "-c", PROGRAM, str(WORKER)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {"warmed": True, "same": True, "started": False, "devices": 3}
