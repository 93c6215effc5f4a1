"""The code action that allows one launch: of kernels that a GPU has compiled, once, on generated inputs."""

from __future__ import annotations

from lsprotocol import types

from pallas_lsp.model import LaunchStatus, Range
from pallas_lsp.server.convert import overlaps
from pallas_lsp.server.documents import OpenDocument
from pallas_lsp.server.results import Result

CONFIRM = "pallas-lsp.confirm"


def launch_actions(document: OpenDocument, result: Result | None, range_: Range) -> list[types.CodeAction]:
    here = [
        status
        for status in (result.launches if result is not None else ())
        if status.launch.location.path == document.path and overlaps(status.launch.location.range, range_)
    ]
    gpus = sorted({str(device["gpu"]) for status in here for device in _compiled(status)})
    if not gpus:
        return []
    title = f"Launch this file's kernels once on {', '.join(gpus)}, with generated inputs"
    command = types.Command(title, CONFIRM, arguments=[document.uri, {"launch": True}])
    return [types.CodeAction(title, kind=types.CodeActionKind.QuickFix, command=command)]


def _compiled(status: LaunchStatus) -> list[dict[str, object]]:
    """What GPUs said of a launch's captures that they compiled and nobody launched."""
    devices = [device for capture in status.captures for device in capture.resources.get("devices", ())]
    return [device for device in devices if device.get("state") == "compiled"]
