"""Faults made by hand, as the worker would tell them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Anchor, Body, Capture, Document, Fault, Frame, Link, Site, Snapshot, Stage, WorkerInfo
from pallas_lsp.rules.context import Context
from pallas_lsp.source.syntax import parse

PATH = "/project/kernels.py"
BACKEND_NONE: Any = "mosaic_gpu"


def frame(text: str, source: str, path: str = PATH, *, columns: bool = True, origin: str = "workspace") -> Frame:
    """The frame that was evaluating the last expression with this source."""
    syntax = parse(text)
    found = [n for n in ast.walk(syntax.tree) if isinstance(n, ast.expr) and syntax.source(n) == source]
    node = max(found, key=lambda n: (n.lineno, n.col_offset))
    if not columns:
        return Frame(path, node.lineno, origin=origin)
    return Frame(path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, "kernel", origin)


def fault(
    *frames: Frame,
    exception: str = "builtins.ValueError",
    message: str = "",
    site: tuple[str, str] = ("jax/_src/pallas/core.py", "check"),
    calls: Sequence[tuple[str, str]] = (),
    chain: Sequence[Link] = (),
    facts: Mapping[str, Any] | None = None,
    stage: Stage = Stage.TRACE,
    by: str = "traceback",
    capture: str | None = "c1",
    target: str | None = None,
    id: str = "f1",
) -> Fault:
    own = Site(*site)
    return Fault(
        id=id,
        stage=stage,
        exception=exception,
        message=message,
        driver="main",
        site=own,
        calls=(own, *(Site(*each) for each in calls)),
        frames=frames,
        chain=tuple(chain),
        anchors=(Anchor(by, frames),) if frames else (),
        capture=capture,
        target=target,
        facts=facts or {},
    )


def capture(id: str = "c1", arguments: str = "f32[64]", targets: tuple[str, ...] = (), **more: Any) -> Capture:
    body = Body(PATH, 1, more.pop("name", "kernel"))
    return Capture(id, "plgpu.kernel", BACKEND_NONE, "main", arguments, body=body, targets=targets, **more)


def context(texts: Mapping[str, str] | str, jax: str = "0.12.0.1", captures: Sequence[Capture] = ()) -> Context:
    if isinstance(texts, str):
        texts = {PATH: texts}
    snapshot = Snapshot({path: Document(path, text, 1) for path, text in texts.items()}, ("/project",))
    info = WorkerInfo(1, "3.12.0", "/usr/bin/python3", jax)
    return Context(snapshot, info, captures or [capture()])
