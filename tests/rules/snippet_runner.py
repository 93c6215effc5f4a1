"""Runs the worker on many small files with one interpreter: a fork each, after jax was imported and before it traced.

``python snippet_runner.py WORKER FOLDER``: for each ``FOLDER/*.py`` one JSON line, ``{"name", "faults", "captures"}``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path


def load(worker: str):
    """The worker's package, by path."""
    spec = importlib.util.spec_from_file_location(
        "pallas_lsp_worker", f"{worker}/__init__.py", submodule_search_locations=[worker]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pallas_lsp_worker"] = module
    spec.loader.exec_module(module)


def main() -> None:
    worker, folder = sys.argv[1:]
    os.environ["JAX_PLATFORMS"] = "cpu"
    load(worker)
    from pallas_lsp_worker import compat, run

    compat.preimport()
    for path in sorted(Path(folder).glob("*.py")):
        sys.stdout.flush()
        if child := os.fork():
            os.waitpid(child, 0)
            continue
        found = {"name": path.stem, "faults": [], "captures": [], "drivers": []}
        kinds = {"fault": "faults", "capture": "captures", "driver": "drivers"}

        def emit(kind, fields, found=found, kinds=kinds):
            if kind in kinds:
                found[kinds[kind]].append(fields.get(kind) or fields.get("outcome"))

        drivers = [{"id": kind, "kind": kind, "lines": []} for kind in ("module", "main")]
        try:
            with Path(os.devnull).open("w") as silent, contextlib.redirect_stdout(silent):
                run.execute({"path": str(path), "drivers": drivers, "targets": {}}, emit)
        except BaseException:
            found["crash"] = traceback.format_exc()
        print(json.dumps(found, default=str), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main()
