"""Starts the recorder in a Python program that ``pallas-lsp record`` runs, then the sitecustomize that it hides.

Python imports this module at start-up, because ``PYTHONPATH`` begins with its folder.
"""

import contextlib
import importlib
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start() -> None:
    try:
        path = os.path.join(os.path.dirname(_HERE), "recording.py")
        spec = importlib.util.spec_from_file_location("pallas_lsp_recording", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["pallas_lsp_recording"] = module
        spec.loader.exec_module(module)
        module.start(os.environ["PALLAS_LSP_RECORD"])
    except Exception as error:  # the user's program runs whatever happens here
        sys.stderr.write(f"pallas-lsp record: nothing is recorded in this process: {error!r}\n")


if os.environ.get("PALLAS_LSP_RECORD"):
    _start()

sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
sys.modules.pop("sitecustomize", None)
with contextlib.suppress(ImportError):
    importlib.import_module("sitecustomize")
