"""One run: the drivers of one file, then the lowering of what they reached."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import (
    abstract_devices,
    backends,
    births,
    capture,
    compat,
    confirming,
    core_maps,
    devices,
    drivers,
    frames,
    isolation,
    know_operands,
    lower,
    module,
    overlay,
    preload,
    pytests,
    reads,
    stand_ins,
)
from .session import Emit, Session


def execute(params: dict[str, Any], emit: Emit) -> None:
    """Carry out a ``run`` request (docs/protocol.md); what is found is emitted, nothing is returned."""
    path = params["path"]
    # An editor may leave the byte order mark in a text, which is no part of the program.
    documents = {path: text.removeprefix("\ufeff") for path, text in (params.get("documents") or {}).items()}
    if path not in documents:
        import tokenize

        with tokenize.open(path) as file:
            documents[path] = file.read()
    roots = list(params.get("roots") or [])
    frames.claim([path, *documents])
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True
    sys.argv = [path]
    overlay.Overlay(documents).install()
    stand_ins.install(params.get("stand_ins") or ())
    compat.preimport()
    # The compilers of a GPU may be programs of their own.
    isolation.enter({"programs": params.get("confirm") is not None, **(params.get("allow") or {})})
    isolation.no_clusters()
    session = Session(emit, params)
    if params.get("confirm") is None:
        devices.pretend(*_ambient(documents[path], params))
    else:
        session.stage("device")
        if not confirming.begin(session):
            return
        compat.compute_on_cpu()
    births.install()
    know_operands.install()
    capture.install(session)
    core_maps.install(session)
    pytests.prepare(session, roots)
    compat.fake_kernels_on_cpu()
    wanted = list(params.get("drivers") or [])
    preload.give_way(
        folder
        for file in {path, *(each.get("path", path) for each in wanted)}
        for folder in module.folders(file, roots)
    )
    preload.watch()
    opened = reads.Reads(documents)
    try:
        _execute(session, documents[path], wanted, roots)
    finally:
        session.tell("read", {"paths": opened.paths()})


def _execute(session: Session, text: str, wanted: list[dict[str, Any]], roots: list[str]) -> None:
    params = session.params
    path = params["path"]
    lines = {line for driver in wanted if driver["kind"] == "module" for line in driver.get("lines") or ()}
    session.stage("import")
    lowering = "lower" in (params.get("stages") or ["trace", "lower"])
    device = abstract_devices.abstract_device(*_ambient(text, params))
    with device:
        try:
            checked = module.load(path, text, lines, roots)
        except BaseException as error:
            for driver in wanted:
                drivers.tell_stopped(session, driver["id"], error)
            return
        session.expected_failures += checked.expected_failures
        runner = drivers.Runner(session, checked, wanted)
        programs = runner.abstract()
    if lowering:
        lower.lower_all(session, programs)
    if _unreached(session, params.get("launches"), set(params.get("reached") or ())):
        # Concrete runs can be slow, so they come when all that was found without them is told.
        with abstract_devices.abstract_device(*_ambient(text, params)):
            programs = runner.concrete()
        if lowering:
            lower.lower_all(session, programs)


def _unreached(session: Session, launches: list[int] | None, reached: set[int]) -> bool:
    """Whether a launch of the file (``launches``: first lines, where the engine gave them) was not reached yet.

    ``reached``: those of them that drivers reach which need not run again.
    """
    if not launches:
        return True  # those of other files are not known
    reached = reached | {frame["line"] for capture in session.captures.values() for frame in capture.launch[-1:]}
    return not set(launches) <= reached


def _ambient(text: str, params: dict[str, Any]) -> tuple[str, str]:
    """The device under which drivers run: a TPU for a file that speaks of nothing else."""
    targets = params.get("targets") or {}
    tpu_only = "pallas.tpu" in text or "import tpu" in text or "pltpu" in text
    gpu = any(word in text for word in ("mosaic_gpu", "plgpu", "triton"))
    if tpu_only and not gpu:
        return "tpu", backends.tpu_kind(text, targets)
    wanted = list(targets.get("mosaic_gpu") or ["9.0"])
    return "cuda", str(wanted[-1] if "tcgen05" in text and len(wanted) > 1 else wanted[0])
