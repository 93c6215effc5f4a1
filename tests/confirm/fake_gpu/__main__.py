"""The real worker program with a GPU that a script plays: kernels are traced and lowered by the real jax on the CPU.

``FAKE_GPU`` in the environment is a JSON object: ``name``, ``compute_capability``, ``none`` (the reason why there is no
GPU), ``compile`` (by a part of the kernel's program: what the compiler does: ``fail: MESSAGE``, ``hang``, ``crash``),
``launch`` (the same for a launch), and ``log`` (a file to which each compiled program adds a line).
"""

import importlib
import importlib.util
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("FAKE_GPU_PROGRAM") or HERE.parents[2] / "pallas_lsp" / "worker" / "__main__.py"
spec = importlib.util.spec_from_file_location("worker_program", PROGRAM)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
program.load_package()


def initialize(params):
    answer = real({**params, "platforms": "cpu"})  # there is no CUDA here to start
    names = {}
    exec(compile((HERE / "gpu.py").read_text(), "<fake gpu>", "exec"), names)
    names["install"]()
    return answer


service = importlib.import_module("pallas_lsp_worker.service")
real, service.initialize = service.initialize, initialize
program.main()
