"""Captured kernels on the attached GPU: lowered, compiled, and launched where that is allowed.

What became of each program stands in the capture's ``resources["programs"]``, by the program's digest.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from . import backends, compiling, device_limits
from .capture import UNIT
from .session import Capture, Session

_MARK = re.compile(rf"{UNIT}(c\d+)")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_PLACE = re.compile(r" at (?:/|[A-Za-z]:\\)[^\s\]]+:\d+")


class OtherGpuNeeded(Exception):  # noqa: N818 - it is what the user's program asks for
    """A kernel uses instructions that this GPU lacks, and nothing says that it is meant for another."""


def digest(jaxpr: Any) -> str:
    """What makes a program the same from run to run: its equations, without addresses, places and capture numbers."""
    text = _PLACE.sub("", _ADDRESS.sub("", _MARK.sub("", str(jaxpr))))
    types = ",".join(str(var.aval) for var in jaxpr.invars)
    return hashlib.sha256(f"{text}\n{types}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


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
    job = compiling.Job(jaxpr, str(options.get("dumps") or "files"))
    target = f"cuda:{gpu['compute_capability']}"
    session.stage("confirm", capture.id)
    stage = "lower"
    try:
        with job.on_device():
            job.lower()
            stage = "confirm"
            job.compile()
            device_limits.check(jaxpr, gpu["compute_capability"])
            entry["state"] = "compiled"
            if options.get("launch"):
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


def _failed(
    session: Session, capture: Capture, jaxpr: Any, error: Exception, stage: str, entry: dict[str, Any]
) -> None:
    """``stage`` is ``lower`` for what lowering says, ``confirm`` for what the compiler or the launch does."""
    entry["state"] = "failed" if entry["state"] != "compiled" else "launch failed"
    capture.failed = True
    assert session.gpu is not None
    target = f"cuda:{session.gpu['compute_capability']}"
    launch = capture.call or capture.launch
    session.tell_fault(error, stage=stage, capture=capture, target=target, program=jaxpr, launch=launch)
