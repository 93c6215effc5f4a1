"""What a kernel became, as text to read: the program that it was traced to, and what that was lowered to.

jax prints the lowered module of a kernel itself, for launches with ``debug=True``; that is taken, for what it makes of
the module (bytecode in a custom call) cannot be read.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

from . import backends, compiling, core_maps, equations
from .session import Capture, Session

_MODULE = re.compile(r"^The .* module for .*:$", re.MULTILINE)


def tell(session: Session, capture: Capture, jaxpr: Any, lower_for: Callable[[Any, str, str], Any]) -> None:
    """Answer ``views`` of the ``run`` request for one launch (docs/protocol.md)."""
    wanted = session.params["views"]
    line = capture.launch[-1]["line"] if capture.launch else 0
    if not wanted["first"] <= line <= wanted["last"] or capture.launch[-1]["path"] != session.params["path"]:
        return
    if wanted["kind"] == "jaxpr":
        session.tell_view(capture, "", str(jaxpr))
        return
    if wanted["kind"] == "ptx":
        _tell_ptx(session, capture, jaxpr)
        return
    _debug(jaxpr)
    for platform, kind in backends.targets(capture.backend, jaxpr, session.params.get("targets") or {}, capture.tpu):
        lowered: Any = None
        reason = ""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                lowered = lower_for(jaxpr, platform, kind)
            except Exception as error:
                reason = f"// not lowered: {type(error).__name__}: {error}\n".replace("\n", "\n// ").removesuffix("// ")
        modules = _MODULE.split(printed.getvalue())[1:]
        text = "\n".join(module.strip("\n") for module in modules)
        if not text and lowered is not None:
            text = lowered.as_text()
        session.tell_view(capture, f"{platform} {kind}", reason + text)


def _debug(jaxpr: Any) -> None:
    """Set ``debug`` on the kernels of a program, which is used for nothing else afterwards."""
    for chain in equations.chains(jaxpr):
        for equation in chain:
            if "debug" in equation.params and equation.primitive.name in core_maps.KERNELS:
                equation.params["debug"] = True


def _tell_ptx(session: Session, capture: Capture, jaxpr: Any) -> None:
    try:
        gpu = compiling.device()
        job = compiling.Job(jaxpr)
        with job.on_device():
            job.lower()
            job.compile()
            text = job.ptx()
        target = f"{gpu['name']} ({gpu['compute_capability']})"
    except Exception as error:
        target, text = "", f"// not compiled: {type(error).__name__}: {error}".replace("\n", "\n// ")
    session.tell_view(capture, target, text or "// The compiler of this backend does not tell its PTX.")
