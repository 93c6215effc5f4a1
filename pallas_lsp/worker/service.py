"""A worker's life: handshake, then runs, each in a process of its own.

On Linux this process is a zygote that forks a child for each run (``zygote``).  Elsewhere, with ``PALLAS_LSP_FORK=0``,
or where an import started a backend of jax (such a process must not be forked), it serves one run itself (``single``)
and the engine keeps another worker ready.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import compat, limits, stream

PROTOCOL = 1

Emit = Callable[[str, "dict[str, Any]"], None]


def serve(incoming: int, outgoing: int) -> None:
    """Shake hands, then serve until the input ends."""
    writer = stream.Writer(outgoing)
    lines = stream.Lines()
    pending: list[bytes] = []
    mode = None
    while mode is None:
        while not pending:
            data = os.read(incoming, stream.CHUNK)
            if not data:
                return
            pending += lines.feed(data)
        mode = _handshake(pending.pop(0), writer)
    if mode == "fork":
        from . import zygote

        zygote.Zygote(incoming, writer, lines, pending).serve()
    elif mode == "single":
        from . import single

        single.Single(incoming, writer, lines, pending).serve()


def _handshake(line: bytes, writer: stream.Writer) -> str | None:
    """Answer one line that came before ``initialize`` was answered; then the mode, "" to end, None to go on."""
    if not line.strip():
        return None
    try:
        request, method, params = stream.parse(line)
    except stream.BadMessage as bad:
        writer.fail(bad.request, bad.error)
        return None
    if method == "shutdown":
        writer.answer(request, {})
        return ""
    if method != "initialize":
        if request is not None:
            writer.fail(request, stream.error(stream.INVALID_REQUEST, "initialize comes first"))
        return None
    if params.get("protocol") != PROTOCOL:
        text = f"this worker speaks protocol {PROTOCOL}, not {params.get('protocol')!r}"
        writer.fail(request, stream.error(stream.INVALID_REQUEST, text, protocol=PROTOCOL))
        return None
    info = initialize(params)
    writer.answer(request, info)
    return str(info["mode"])


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    """Import jax and Pallas, and say what was found.

    ``platforms`` is what JAX_PLATFORMS becomes: the CPU, unless the engine wants a device.  ``preimport`` names more
    modules to import once rather than in each run.  ``nice``: how far to stand back behind other programs.  ``warm``:
    start the device and its compiler ahead of the run, in a process that serves one.
    """
    os.environ["JAX_PLATFORMS"] = str(params.get("platforms") or "cpu")
    if params.get("nice"):
        limits.stand_back(int(params["nice"]))
    compat.quiet_environment()
    before = {folder: _changed(folder) for folder in _package_folders()}
    compat.preimport()
    for name in params.get("preimport") or ():
        try:
            importlib.import_module(name)
        except BaseException as reason:  # a module of the user's may raise anything; its own run will say so
            print(f"pallas-lsp: {name} was not imported beforehand: {reason!r}", file=sys.stderr)
    # What a run needs of ours and all that jax imports when it first lowers: once, not in each child.
    importlib.import_module(".run", __package__)
    mode, why = _mode()
    if params.get("warm") and mode == "single":
        from . import compiling

        compiling.warm()
    return {**compat.worker_info(), "mode": mode, "mode_reason": why, "pid": os.getpid(), "watch": _watched(before)}


def _mode() -> tuple[str, str]:
    if os.environ.get("PALLAS_LSP_FORK") == "0":
        return "single", "PALLAS_LSP_FORK=0"
    if sys.platform != "linux":
        return "single", f"{sys.platform} has no safe fork"
    if compat.backends_initialized():
        return "single", "an import started a backend of jax, and such a process must not be forked"
    return "fork", ""


_OF_PALLAS = ("_src/pallas", "experimental/pallas", "experimental/mosaic")


def _package_folders() -> set[str]:
    return {folder for name in ("purelib", "platlib") if (folder := sysconfig.get_path(name))}


def _watched(before: dict[str, int]) -> dict[str, int]:
    """What changes when packages are installed or removed: this process then has the old ones.

    Of a jax that is no installed package, but somebody's checkout, the files of Pallas too.  ``before``: when the
    folders of packages had changed last before this process imported anything; an installation may go on meanwhile.
    """
    watched: set[str] = set()
    file = getattr(sys.modules.get("jax"), "__file__", None)
    if file:
        jax = Path(file).parent
        watched.add(str(jax.parent))
        if "site-packages" not in jax.parts and "dist-packages" not in jax.parts:
            watched.update(str(each) for part in _OF_PALLAS for each in (jax / part).rglob("*.py"))
    return {**{path: _changed(path) for path in sorted(watched)}, **before}


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def perform(params: dict[str, Any], emit: Emit) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Execute a run in this process: (result, None) or (None, error)."""
    sys.dont_write_bytecode = True
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            output.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    started = time.monotonic()
    try:
        from . import run

        run.execute(params, emit)
    except MemoryError:
        return None, stream.error(stream.OUT_OF_MEMORY, "out of memory")
    except SystemExit as reason:
        return None, stream.error(stream.EXITED, f"the run ended itself with {reason!r}", status=reason.code)
    except BaseException as reason:
        text = f"{type(reason).__name__}: {reason}"
        return None, stream.error(stream.INTERNAL_ERROR, text, traceback=traceback.format_exc())
    return {"seconds": round(time.monotonic() - started, 6)}, None
