"""The least that a check can cost: execute, trace and lower in a process that has done it before.

Run with the interpreter that has jax.  Reads one JSON object a line, ``{"modules", "entry", "arguments", "platform",
"device"}``, and answers each with ``{"seconds", "traced", "stage", "error"}``: the time to execute the texts of
``modules`` (``{"name", "path", "text"}``, each after those that it imports), to trace the entry of the last and to
lower it for the device that is named; where ``device`` is null, to lower it for the attached one and compile it.
``traced`` is the time until it was traced, or failed before.  ``jax`` is imported before the first answer.
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
    stage, error, traced_seconds = "import", None, None
    start = time.perf_counter()
    try:
        for each in request["modules"]:
            module = sys.modules[each["name"]] = types.ModuleType(each["name"])
            exec(compile(each["text"], each["path"], "exec"), module.__dict__)
        with mesh:
            stage = "trace"
            traced = jax.jit(getattr(module, request["entry"])).trace(*arguments)
            traced_seconds = time.perf_counter() - start
            stage = "lower"
            lowered = traced.lower(lowering_platforms=(request["platform"],))
            if not device:
                stage = "compile"
                lowered.compile()
    except Exception as fault:
        error = type(fault).__name__
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "traced": traced_seconds or seconds, "stage": stage, "error": error}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"jax": jax.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
