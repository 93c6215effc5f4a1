"""``pallas/views``: what the kernel launched at a line became, as text (docs/lsp.md)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from pallas_lsp.confirm.gpus import find
from pallas_lsp.engine.views import KINDS, Wanted
from pallas_lsp.model import LaunchStatus, Stage

if TYPE_CHECKING:
    from pallas_lsp.server.app import PallasServer

VIEWS = "pallas/views"


async def views(server: PallasServer, params: Any) -> dict[str, Any]:
    """The views of one launch; ``reason`` says why there are none.  ``line`` of the answer is where it begins."""
    try:
        uri, line, kind = params["textDocument"]["uri"], params["line"], params["kind"]
    except (TypeError, KeyError):
        uri = line = kind = None
    if not isinstance(uri, str) or not isinstance(line, int) or kind not in KINDS:
        raise JsonRpcInvalidParams(f"{VIEWS} takes textDocument, line and kind, one of {', '.join(KINDS)}")
    uri, offset = server.notebooks.inward(uri)
    answer = await _views(server, uri, line + offset, kind)
    return {**answer, "line": answer["line"] - offset}


async def _views(server: PallasServer, uri: str, line: int, kind: str) -> dict[str, Any]:
    document = server.documents.get(uri)
    if document is None:
        return _nothing(line, "the file is not open.")
    await server.scheduler.settled(document.path, 60.0)
    result = server.results.get(document.path)
    here = [s for s in result.launches if s.launch.location.path == document.path] if result is not None else []
    status = launch_at(here, line)
    if status is None:
        return _nothing(line, "this file launches no kernel.")
    range_ = status.launch.location.range
    name = status.launch.body or "kernel"
    if not server.consent.allows(server.documents.root_of(document.path)):
        return _nothing(range_.start.line, "the folder is not trusted, so that its code is not run.", name)
    settings = server.configuration.of(document.path)
    if settings.stage is Stage.READ:
        return _nothing(range_.start.line, "the setting 'stages' is 'read', so that no code is run.", name)
    if kind == "ptx" and not (found := await asyncio.to_thread(find)).gpus:
        return _nothing(range_.start.line, f"PTX is made on a GPU, and there is none: {found.reason}.", name)
    wanted = Wanted(kind, range_.start.line + 1, range_.end.line + 1)
    shown, reason = await server.engines.get(settings).views(server.documents.snapshot(), document.path, wanted)
    titles = [
        {"title": " ".join(filter(None, [name, f"({view.capture.arguments})", view.target])), "text": view.text}
        for view in shown
    ]
    return {"kernel": name, "line": range_.start.line, "views": titles, "reason": reason}


def launch_at(launches: list[LaunchStatus], line: int) -> LaunchStatus | None:
    """The launch at a line, else the next one below it (bodies stand above their launches), else the last."""
    around = [s for s in launches if s.launch.location.range.start.line <= line <= s.launch.location.range.end.line]
    after = [s for s in launches if s.launch.location.range.start.line >= line]
    if around:
        return max(around, key=lambda s: s.launch.location.range.start)
    return next(iter(after or launches[-1:]), None)


def _nothing(line: int, reason: str, name: str = "") -> dict[str, Any]:
    return {"kernel": name, "line": line, "views": [], "reason": reason}
