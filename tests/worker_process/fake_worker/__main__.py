"""The real worker program with another ``run`` and ``compat``: no jax, and what a run does is the document's text.

The text is executed with ``emit`` and ``params`` as names; of a text with lines that start with ``#: ``, only these.
``FAKE_INFO`` in the environment changes the handshake's
answer, ``FAKE_PREIMPORT`` is executed in place of the imports.
"""

import importlib.util
import json
import os
import sys
import tokenize
import types
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[3] / "pallas_lsp" / "worker" / "__main__.py"
spec = importlib.util.spec_from_file_location("worker_program", PROGRAM)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
program.load_package()


def execute(params, emit):
    path = params["path"]
    text = params["documents"].get(path)
    if text is None:
        with tokenize.open(path) as file:
            text = file.read()
    marked = [line[3:] for line in text.splitlines() if line.startswith("#: ")]
    exec("\n".join(marked) if marked else text, {"__name__": "checked", "emit": emit, "params": params})


def preimport():
    exec(os.environ.get("FAKE_PREIMPORT", ""), {})


def worker_info():
    info = {"protocol": 1, "python": sys.version.split()[0], "executable": sys.executable, "jax": "0.12.0"}
    return {**info, "backends": [], "missing": {}, **json.loads(os.environ.get("FAKE_INFO", "{}"))}


run = types.ModuleType("pallas_lsp_worker.run")
run.execute = execute
compat = types.ModuleType("pallas_lsp_worker.compat")
compat.quiet_environment = lambda: None
compat.preimport = preimport
compat.worker_info = worker_info
compat.backends_initialized = lambda: bool(os.environ.get("FAKE_STARTED"))
package = sys.modules["pallas_lsp_worker"]
for module in (run, compat):
    sys.modules[module.__name__] = module
    setattr(package, module.__name__.rpartition(".")[2], module)
program.main()
