"""The least that a check can cost: trace and lower in a process that has done it before.

Run with the interpreter that has jax.  Reads one JSON object a line, ``{"text", "path", "entry", "arguments",
"platform", "device"}``, and answers each with ``{"seconds", "stage", "error"}``: the time to execute the text as a
module, trace its entry and lower it for the device that is named; where ``device`` is null, to lower it for the
attached one and compile it.  ``jax`` is imported before the first answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from contextlib import nullcontext

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.experimental import pallas  # noqa: F401
from jax.experimental.pallas import mosaic_gpu, tpu, triton  # noqa: F401
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh


def measure(request: dict) -> dict:
    device = request["device"]
    mesh = use_abstract_mesh(AbstractMesh((), (), abstract_device=AbstractDevice(*device))) if device else nullcontext()
    arguments = [jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype)) for dtype, shape in request["arguments"]]
    stage, error = "import", None
    start = time.perf_counter()
    try:
        module = types.ModuleType("measured")
        exec(compile(request["text"], request["path"], "exec"), module.__dict__)
        with mesh:
            stage = "trace"
            traced = jax.jit(getattr(module, request["entry"])).trace(*arguments)
            stage = "lower"
            lowered = traced.lower(lowering_platforms=(request["platform"],))
            if not device:
                stage = "compile"
                lowered.compile()
    except Exception as fault:
        error = type(fault).__name__
    return {"seconds": time.perf_counter() - start, "stage": stage, "error": error}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"jax": jax.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
