"""Hover on a launch: which kernel was reached, with which shapes, by whom, and how far it was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lsprotocol import types

from pallas_lsp.confirm.wording import figures
from pallas_lsp.model import Backend, Capture, LaunchStatus, Stage
from pallas_lsp.origins import UNREACHED, Shown, shown_path, with_types
from pallas_lsp.server.client import Client
from pallas_lsp.server.convert import from_range, to_position
from pallas_lsp.server.documents import Documents
from pallas_lsp.server.results import Results

_MOST_CAPTURES = 5
_BACKENDS = {
    Backend.MOSAIC_GPU: "Mosaic GPU",
    Backend.TRITON: "Triton",
    Backend.TPU: "TPU",
    Backend.ANY: "any backend",
}
_HOW_FAR = {
    Stage.READ: "only read",
    Stage.BUILD: "built, not traced",
    Stage.TRACE: "traced, not lowered",
    Stage.LOWER: "traced and lowered",
    Stage.CONFIRM: "confirmed on a device",
}


class Hovers:
    def __init__(self, documents: Documents, results: Results) -> None:
        self.client = Client()
        self._documents = documents
        self._results = results

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        document = self._documents.get(params.text_document.uri)
        result = self._results.get(document.path) if document is not None else None
        if document is None or result is None:
            return None
        place = to_position(params.position, document.lines, self._documents.encoding)
        around = [
            status
            for status in result.launches
            if status.launch.location.path == document.path
            and status.launch.location.range.start <= place <= status.launch.location.range.end
        ]
        if not around:
            return None
        innermost = max(around, key=lambda status: status.launch.location.range.start)
        shown = partial(shown_path, folder=self._documents.root_of(document.path))
        text = "\n".join(describe(innermost, shown, markdown=self.client.markdown_hover))
        kind = types.MarkupKind.Markdown if self.client.markdown_hover else types.MarkupKind.PlainText
        range_ = from_range(innermost.launch.location.range, document.lines, self._documents.encoding)
        return types.Hover(types.MarkupContent(kind, text), range_)


def describe(status: LaunchStatus, shown: Shown, *, markdown: bool) -> Iterable[str]:
    code = "`{}`".format if markdown else "{}".format
    launch = status.launch
    kernel = f" of {code(launch.body)}" if launch.body else ""
    yield f"Kernel launch {code(launch.api)}{kernel} ({_BACKENDS[launch.backend]})"
    yield ""
    if not status.captures:
        yield f"Not checked: {status.reason or UNREACHED}"
        if status.remedy:
            yield ""
            yield status.remedy if markdown else status.remedy.replace("`", "")
        return
    for capture in status.captures[:_MOST_CAPTURES]:
        yield _capture(capture, shown, code)
        for line in figures(capture):
            yield f"  - {line}"
    more = len(status.captures) - _MOST_CAPTURES
    if more > 0:
        yield f"- and with {more} more argument types"
    if status.reason:
        yield ""
        yield f"The types are assumed: {status.reason}"


def _capture(capture: Capture, shown: Shown, code: Callable[[str], str]) -> str:
    targets = f" for {', '.join(capture.targets)}" if capture.targets and capture.stage is Stage.LOWER else ""
    return f"- {_HOW_FAR[capture.stage]}{targets} with {with_types(capture.arguments, capture.driver, shown, code)}"
