"""Captured kernels on the attached GPU: lowered, compiled, and launched where that is allowed.

What became of each program stands in the capture's ``resources["programs"]``, by the program's digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from . import backends, compat, compiling, device_limits, equations
from .capture import UNIT
from .session import Capture, Session

_MARK = re.compile(rf"{UNIT}(c\d+)")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
LAUNCH_FAILED = 71
_PLACE = re.compile(r" at (?:/|[A-Za-z]:\\)[^\s\]]+:\d+")


class OtherGpuNeeded(Exception):  # noqa: N818 - it is what the user's program asks for
    """A kernel uses instructions that this GPU lacks, and nothing says that it is meant for another."""


def digest(jaxpr: Any) -> str:
    """What makes a program the same from run to run: its equations, without addresses, places and capture numbers."""
    text = "\n".join([str(jaxpr), *(_unshown(var.aval) for var in jaxpr.invars), *_scopes(jaxpr)])
    text = _PLACE.sub("", _ADDRESS.sub("", _MARK.sub("", text)))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _scopes(jaxpr: Any) -> Iterator[str]:
    """What the text of a program leaves out of the refs that it allocates."""
    for chain in equations.chains(jaxpr):
        if chain[-1].primitive.name == "run_scoped":
            for inner in compat.sub_jaxprs(chain[-1]):
                yield from (_unshown(var.aval) for var in inner.invars)


def _unshown(aval: Any) -> str:
    return f"{aval} {[str(getattr(aval, name, '')) for name in ('layout', 'collective', 'packed', 'transforms')]}"


def begin(session: Session) -> bool:
    """Say which GPU there is; False without one, and then nothing is run."""
    try:
        gpu = compiling.device()
    except compiling.NoDevice as reason:
        session.tell("device", {"gpu": None, "reason": str(reason)})
        return False
    session.gpu = gpu
    session.tell("device", {"gpu": gpu, "reason": ""})
    return True


def confirm(session: Session, capture: Capture, jaxpr: Any) -> None:
    """Take one program to the GPU's compiler, unless what comes of that is known."""
    options, gpu = session.params["confirm"], session.gpu
    assert gpu is not None
    programs = capture.resources.setdefault("programs", {})
    program = digest(jaxpr)
    entry: dict[str, Any] = {"state": "running"}
    programs[program] = entry
    if capture.backend == "tpu":
        entry["state"] = "other"
        entry["needs"] = "a TPU"
    elif program in set(options.get("known") or ()):
        entry["state"] = "known"
    elif not _fits(session, capture, jaxpr, gpu, entry):
        pass
    else:
        session.tell_capture(capture)  # so that the digest is known of what ends this process
        _compile(session, capture, jaxpr, gpu, entry, options)
    session.tell_capture(capture)


def _fits(session: Session, capture: Capture, jaxpr: Any, gpu: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Whether the kernel's instructions are those of this GPU."""
    capability = gpu["compute_capability"]
    if capture.backend != "mosaic_gpu":
        return True
    ((_, kind),) = backends.targets(capture.backend, jaxpr, {"mosaic_gpu": [capability]})
    needed = kind if kind.split(".")[0] != capability.split(".")[0] else "9.0" if float(capability) < 9 else None
    if needed is None:
        return True
    wanted = (session.params.get("targets") or {}).get("mosaic_gpu") or []
    if not wanted or any(each.split(".")[0] == needed.split(".")[0] for each in wanted):
        entry["state"] = "other"
        entry["needs"] = f"compute capability {needed}"
        return False
    instructions = device_limits.instructions(jaxpr)
    text = f"{instructions} need compute capability {needed}; {gpu['name']} has {capability}"
    _failed(session, capture, jaxpr, OtherGpuNeeded(text), "confirm", entry)
    return False


def _compile(
    session: Session,
    capture: Capture,
    jaxpr: Any,
    gpu: dict[str, Any],
    entry: dict[str, Any],
    options: dict[str, Any],
) -> None:
    job = compiling.Job(jaxpr, str(options.get("dumps") or "files"), backend=capture.backend)
    target = f"cuda:{gpu['compute_capability']}"
    session.stage("confirm", capture.id)
    stage = "lower"
    try:
        with job.on_device():
            job.lower()
            stage = "confirm"
            job.compile()
            entry["state"] = "compiled"
            if options.get("launch"):
                entry.update(job.figures, state="launching")
                session.tell_capture(capture)
                session.stage("launch", capture.id)
                job.launch()
                entry["state"] = "launched"
    except Exception as error:
        _failed(session, capture, jaxpr, error, stage, entry)
    else:
        capture.targets.append(target)
        if not capture.failed:
            capture.stage = "confirm"
    entry.update(job.figures)
    capture.seconds += sum(job.figures.get(step, 0.0) for step in ("lower_seconds", "compile_seconds"))
    if entry["state"] == "launch failed":
        session.tell_capture(capture)
        raise SystemExit(LAUNCH_FAILED)  # the GPU is of no more use to this process


_OUT_OF_MEMORY = (
    "CUDA_ERROR_OUT_OF_MEMORY",
    "RESOURCE_EXHAUSTED: Out of memory",
    "out of memory while trying to allocate",
)


def _failed(
    session: Session, capture: Capture, jaxpr: Any, error: Exception, stage: str, entry: dict[str, Any]
) -> None:
    """``stage`` is ``lower`` for what lowering says, ``confirm`` for what the compiler or the launch does."""
    if any(sign.lower() in str(error).lower() for sign in _OUT_OF_MEMORY):
        # The GPU is full, which says nothing of the kernel.
        entry["state"] = "no memory"
        entry["detail"] = str(error).split("\n")[0][:300]
        return
    entry["state"] = "launch failed" if entry["state"] == "launching" else "failed"
    capture.failed = True
    assert session.gpu is not None
    target = f"cuda:{session.gpu['compute_capability']}"
    launch = capture.call or capture.launch
    session.tell_fault(error, stage=stage, capture=capture, target=target, program=jaxpr, launch=launch)
