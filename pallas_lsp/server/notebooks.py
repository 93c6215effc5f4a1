"""Notebooks that are open: each is checked as one Python text, and what is said of it is said of its cells.

The rest of the server knows the notebook as a document of its own URI.  Here lines are moved between it and its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import attrs
from lsprotocol import types

from pallas_lsp.server.documents import Documents, OpenDocument
from pallas_lsp.source.notebooks import Cell, NotebookText, combine

SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook="jupyter-notebook", cells=[types.NotebookCellLanguage("python")]
        )
    ],
    save=True,
)


Send = Callable[[types.PublishDiagnosticsParams], None]
Change = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


@dataclass(frozen=True)
class _Cell:
    uri: str
    text: str
    python: bool


@dataclass(frozen=True)
class _Notebook:
    uri: str
    version: int
    cells: tuple[_Cell, ...]
    combined: NotebookText

    @staticmethod
    def of(uri: str, version: int, cells: Iterable[_Cell]) -> _Notebook:
        kept = tuple(cells)
        combined = combine((number, cell.text) for number, cell in enumerate(kept, 1) if cell.python)
        return _Notebook(uri, version, kept, combined)

    def place(self, uri: str) -> Cell | None:
        number = next((number for number, cell in enumerate(self.cells, 1) if cell.uri == uri), None)
        return next((cell for cell in self.combined.cells if cell.number == number), None)


class Notebooks:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._by_uri: dict[str, _Notebook] = {}

    # -- changes from the client --------------------------------------------------------------------------------------

    def open(self, params: types.DidOpenNotebookDocumentParams) -> OpenDocument | None:
        notebook = params.notebook_document
        texts = {item.uri: item for item in params.cell_text_documents}
        cells = [self._cell(cell, texts.get(cell.document)) for cell in notebook.cells]
        self._by_uri[notebook.uri] = _Notebook.of(notebook.uri, notebook.version, cells)
        return self._put(notebook.uri)

    def change(self, params: types.DidChangeNotebookDocumentParams) -> OpenDocument | None:
        old = self._by_uri.get(params.notebook_document.uri)
        if old is None:
            return None
        cells = list(old.cells)
        change = params.change.cells
        if change is not None and change.structure is not None:
            array = change.structure.array
            opened = {item.uri: item for item in change.structure.did_open or []}
            known = {cell.uri: cell for cell in cells}
            new = [known.get(c.document) or self._cell(c, opened.get(c.document)) for c in array.cells or []]
            cells[array.start : array.start + array.delete_count] = new
        for content in (change.text_content or []) if change is not None else []:
            cells = [
                replace(cell, text=self._documents.changed(cell.text, content.changes))
                if cell.uri == content.document.uri
                else cell
                for cell in cells
            ]
        self._by_uri[old.uri] = _Notebook.of(old.uri, params.notebook_document.version, cells)
        return self._put(old.uri)

    def close(self, uri: str) -> list[str]:
        """Forget a notebook; returns the URIs of its cells."""
        notebook = self._by_uri.pop(uri, None)
        return [cell.uri for cell in notebook.cells] if notebook is not None else []

    @staticmethod
    def _cell(cell: types.NotebookCell, item: types.TextDocumentItem | None) -> _Cell:
        python = cell.kind == types.NotebookCellKind.Code and item is not None and item.language_id == "python"
        return _Cell(cell.document, item.text if item is not None else "", python)

    def _put(self, uri: str) -> OpenDocument | None:
        notebook = self._by_uri[uri]
        item = types.TextDocumentItem(uri, "python", notebook.version, notebook.combined.text)
        return self._documents.open(item)

    # -- from cells to the notebook -----------------------------------------------------------------------------------

    def inward(self, uri: str) -> tuple[str, int]:
        """The document for a URI of the client's, and the line at which it begins in it."""
        for notebook in self._by_uri.values():
            place = notebook.place(uri)
            if place is not None:
                return notebook.uri, place.start
        return uri, 0

    def enter(self, params: types.CodeActionParams | types.HoverParams) -> int:
        """Make a request about a cell one about its notebook; returns by how many lines it was moved."""
        uri, offset = self.inward(params.text_document.uri)
        params.text_document = types.TextDocumentIdentifier(uri)
        if isinstance(params, types.HoverParams):
            params.position = _down(params.position, offset)
        else:
            params.range = _shifted(params.range, offset)
            for diagnostic in params.context.diagnostics:
                diagnostic.range = _shifted(diagnostic.range, offset)
        return offset

    # -- from the notebook to cells -----------------------------------------------------------------------------------

    def _outward(self, notebook: _Notebook, range_: types.Range) -> tuple[str, types.Range] | None:
        place = notebook.combined.cell_at(range_.start.line)
        if place is None:
            return None
        last = max(place.start, place.end - 1)

        def moved(position: types.Position) -> types.Position:
            if position.line > last:  # a range that goes on in the next cell ends with this one
                return types.Position(last - place.start, 1 << 20)
            return types.Position(max(position.line - place.start, 0), position.character)

        return notebook.cells[place.number - 1].uri, types.Range(moved(range_.start), moved(range_.end))

    def location(self, location: types.Location) -> types.Location:
        notebook = self._by_uri.get(location.uri)
        found = self._outward(notebook, location.range) if notebook is not None else None
        return types.Location(*found) if found is not None else location

    def send(self, params: types.PublishDiagnosticsParams, send: Send) -> None:
        """Publish, for a notebook cell by cell."""
        notebook = self._by_uri.get(params.uri)
        if notebook is None:
            shown = [self._moved(each, each.range) for each in params.diagnostics] if self._by_uri else None
            send(params if shown is None else types.PublishDiagnosticsParams(params.uri, shown, params.version))
            return
        by_cell: dict[str, list[types.Diagnostic]] = {cell.uri: [] for cell in notebook.cells}
        for diagnostic in params.diagnostics:
            if (found := self._outward(notebook, diagnostic.range)) is not None:
                by_cell[found[0]].append(self._moved(diagnostic, found[1]))
        for uri, diagnostics in by_cell.items():
            send(types.PublishDiagnosticsParams(uri, diagnostics))

    def _moved(self, diagnostic: types.Diagnostic, range_: types.Range) -> types.Diagnostic:
        related = diagnostic.related_information
        if related is not None:
            related = [types.DiagnosticRelatedInformation(self.location(r.location), r.message) for r in related]
        return attrs.evolve(diagnostic, range=range_, related_information=related)

    def leave_actions(self, actions: list[types.CodeAction] | None, offset: int) -> list[types.CodeAction] | None:
        for action in actions or []:
            self.edit(action.edit)
            action.diagnostics = [
                attrs.evolve(each, range=_shifted(each.range, -offset)) for each in action.diagnostics or []
            ]
        return actions

    @staticmethod
    def leave_hover(hover: types.Hover | None, offset: int) -> types.Hover | None:
        if hover is not None and hover.range is not None:
            hover.range = _shifted(hover.range, -offset)
        return hover

    def leave_lenses(self, lenses: list[types.CodeLens] | None, uri: str) -> list[types.CodeLens] | None:
        """Those of one cell; the commands of others' are not shown there."""
        found = [notebook for notebook in self._by_uri.values() if notebook.place(uri) is not None]
        if lenses is None or not found:
            return lenses
        kept = []
        for lens in lenses:
            place = self._outward(found[0], lens.range)
            if place is not None and place[0] == uri:
                lens.range = place[1]
                kept.append(lens)
        return kept

    def edit(self, edit: types.WorkspaceEdit | None) -> None:
        """Make an edit of notebooks one of their cells."""
        if edit is None or not self._by_uri:
            return
        if edit.document_changes is not None:
            edit.document_changes = [part for change in edit.document_changes for part in self._parts(change)]
        if edit.changes is not None:
            flat: dict[str, Sequence[types.TextEdit]] = {}
            for uri, edits in edit.changes.items():
                notebook = self._by_uri.get(uri)
                flat.update({uri: edits} if notebook is None else dict(self._edits(notebook, edits)))
            edit.changes = flat

    def _parts(self, change: Change) -> list[Change]:
        notebook = self._by_uri.get(change.text_document.uri) if isinstance(change, types.TextDocumentEdit) else None
        if notebook is None or not isinstance(change, types.TextDocumentEdit):
            return [change]
        return [
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, None), edits)
            for uri, edits in self._edits(notebook, change.edits).items()
        ]

    def _edits(self, notebook: _Notebook, edits: Iterable[object]) -> dict[str, list[types.TextEdit]]:
        found: dict[str, list[types.TextEdit]] = {}
        for each in edits:
            if isinstance(each, types.TextEdit) and (place := self._outward(notebook, each.range)) is not None:
                found.setdefault(place[0], []).append(types.TextEdit(place[1], each.new_text))
        return found


def _down(position: types.Position, lines: int) -> types.Position:
    return types.Position(max(position.line + lines, 0), position.character)


def _shifted(range_: types.Range, lines: int) -> types.Range:
    return types.Range(_down(range_.start, lines), _down(range_.end, lines))
