"""Findings as diagnostics, pushed with the version of the text that they are for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from lsprotocol import types

from pallas_lsp.confirm.wording import spoken_verdicts
from pallas_lsp.model import Related, Severity
from pallas_lsp.server.client import Client
from pallas_lsp.server.convert import from_range
from pallas_lsp.server.documents import Documents
from pallas_lsp.server.pages import page_uri
from pallas_lsp.server.results import Known, Results
from pallas_lsp.source.positions import Lines

logger = logging.getLogger(__name__)

SOURCE = "pallas"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}
_TAGS = {"unnecessary": types.DiagnosticTag.Unnecessary, "deprecated": types.DiagnosticTag.Deprecated}

Send = Callable[[types.PublishDiagnosticsParams], None]


def _data(known: Known) -> dict[str, Any]:
    data: dict[str, Any] = {"finding": known.id, "stage": str(known.finding.stage)}
    if verdicts := known.finding.data.get("verdicts"):
        data["verdicts"] = list(verdicts)
    return data


class Publisher:
    def __init__(self, documents: Documents, results: Results, send: Send) -> None:
        self.client = Client()
        self._documents = documents
        self._results = results
        self._send = send
        self._sent: dict[str, types.PublishDiagnosticsParams] = {}

    def publish(self, paths: Iterable[str]) -> None:
        """Send the present findings of files, where they or the text's version differ from what the client has."""
        for path in sorted(set(paths)):
            params = self.diagnostics(path)
            last = self._sent.get(params.uri)
            if params == last or (last is None and not params.diagnostics and params.version is None):
                continue
            self._send(params)
            if params.diagnostics or params.version is not None:
                self._sent[params.uri] = params
            else:
                self._sent.pop(params.uri, None)

    def closed(self, uri: str, path: str) -> None:
        """The client drops or keeps diagnostics of a closed document as it likes; say what holds from now on."""
        last = self._sent.pop(uri, None)
        params = self.diagnostics(path)
        if params.diagnostics or (last is not None and last.diagnostics):
            self._send(params)
            if params.diagnostics:
                self._sent[params.uri] = params

    def diagnostics(self, path: str) -> types.PublishDiagnosticsParams:
        document = self._documents.at(path)
        found = self._results.at(path)
        lines = self._documents.lines(path) if found else None
        return types.PublishDiagnosticsParams(
            uri=self._documents.uri_of(path),
            version=document.version if document is not None else None,
            diagnostics=[self.diagnostic(known, lines or Lines("")) for known in found],
        )

    def diagnostic(self, known: Known, lines: Lines) -> types.Diagnostic:
        finding, client = known.finding, self.client
        message = "\n".join([finding.message, *spoken_verdicts(finding)])
        related = None
        if finding.related and client.related_information:
            related = [self._related(each) for each in finding.related]
        elif finding.related:
            message = "\n".join([message, *(self._as_text(each) for each in finding.related)])
        page = page_uri(finding.rule) if client.code_description else None
        tags = [_TAGS[tag] for tag in finding.data.get("tags", ()) if tag in _TAGS] if client.tags else []
        return types.Diagnostic(
            range=from_range(finding.location.range, lines, self._documents.encoding),
            message=message,
            severity=_SEVERITIES[finding.severity],
            code=finding.rule,
            code_description=types.CodeDescription(page) if page else None,
            source=SOURCE,
            tags=tags or None,
            related_information=related,
            data=_data(known) if client.diagnostic_data else None,
        )

    def _related(self, related: Related) -> types.DiagnosticRelatedInformation:
        path = related.location.path
        range_ = from_range(related.location.range, self._documents.lines(path) or Lines(""), self._documents.encoding)
        return types.DiagnosticRelatedInformation(types.Location(self._documents.uri_of(path), range_), related.message)

    @staticmethod
    def _as_text(related: Related) -> str:
        location = related.location
        return f"{location.path}:{location.range.start.line + 1}: {related.message}"
