"""CodeLens on launches: for which argument types a kernel was checked, and what it became."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lsprotocol import types

from pallas_lsp.confirm.wording import figures
from pallas_lsp.model import LaunchStatus
from pallas_lsp.origins import UNREACHED, Shown, shown_path, with_types
from pallas_lsp.server.client import Client
from pallas_lsp.server.configuration import Configuration
from pallas_lsp.server.convert import from_range
from pallas_lsp.server.documents import Documents, OpenDocument
from pallas_lsp.server.results import Results

CHECK, JAXPR, MLIR = "pallas-lsp.checkFile", "pallas-lsp.showJaxpr", "pallas-lsp.showMlir"
CONFIRM = "pallas-lsp.confirm"


class Lenses:
    """For clients that have the commands themselves (they say ``commands: false``): views are opened by the client."""

    def __init__(self, documents: Documents, results: Results, configuration: Configuration) -> None:
        self.client = Client()
        self._documents = documents
        self._results = results
        self._configuration = configuration

    def lenses(self, uri: str) -> list[types.CodeLens] | None:
        document = self._documents.get(uri)
        result = self._results.get(document.path) if document is not None else None
        if document is None or result is None or not self._configuration.of(document.path).code_lens:
            return None
        here = [status for status in result.launches if status.launch.location.path == document.path]
        return [lens for status in here for lens in self._of(document, status)]

    def _of(self, document: OpenDocument, status: LaunchStatus) -> Iterator[types.CodeLens]:
        range_ = from_range(status.launch.location.range, document.lines, self._documents.encoding)
        shown = partial(shown_path, folder=self._documents.root_of(document.path))
        yield types.CodeLens(range_, types.Command(summary(status, shown), CHECK if self.client.own_commands else ""))
        if status.captures:
            for line in figures(status.captures[0]):
                yield types.CodeLens(range_, types.Command(line, CONFIRM if self.client.own_commands else ""))
        if status.captures and self.client.own_commands:
            for title, command in (("jaxpr", JAXPR), ("MLIR", MLIR)):
                yield types.CodeLens(range_, types.Command(title, command, arguments=[document.uri, range_.start.line]))


def summary(status: LaunchStatus, shown: Shown) -> str:
    """One line on what a launch was checked with."""
    if not status.captures:
        return f"not checked: {status.reason or UNREACHED}"
    first = status.captures[0]
    more = len({capture.arguments for capture in status.captures}) - 1
    rest = f", and {more} more" if more > 0 else ""
    return f"checked with {with_types(first.arguments, first.driver, shown)}{rest}"
