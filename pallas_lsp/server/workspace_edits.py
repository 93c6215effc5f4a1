"""Our edits as a client's workspace edit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

from lsprotocol import types

from pallas_lsp.model import Edit, Position, Range
from pallas_lsp.server.client import Client
from pallas_lsp.server.convert import from_range
from pallas_lsp.server.documents import Documents
from pallas_lsp.source.positions import Lines

_LINE = re.compile(r".*?(?:\r\n|\r|\n)|.+\Z", re.DOTALL)
_MOST_LINES = 5000


def workspace_edit(edits: Iterable[Edit], documents: Documents, client: Client) -> types.WorkspaceEdit | None:
    """Edits of the present texts, with the versions that they are for; None where a file cannot be read."""
    by_path: dict[str, list[types.TextEdit]] = {}
    # Where an insertion and a replacement start at one place, clients want the insertion first.
    for edit in sorted(edits, key=lambda each: (each.path, each.range)):
        lines = documents.lines(edit.path)
        if lines is None:
            return None
        text_edit = types.TextEdit(from_range(edit.range, lines, documents.encoding), edit.new_text)
        by_path.setdefault(edit.path, []).append(text_edit)
    if not client.document_changes:
        return types.WorkspaceEdit(changes={documents.uri_of(path): each for path, each in by_path.items()})
    changes = []
    for path, text_edits in by_path.items():
        document = documents.at(path)
        version = document.version if document is not None else None
        identifier = types.OptionalVersionedTextDocumentIdentifier(documents.uri_of(path), version)
        changes.append(types.TextDocumentEdit(identifier, text_edits))
    return types.WorkspaceEdit(document_changes=changes)


def difference(path: str, before: str, after: str) -> list[Edit]:
    """The edits, in whole lines, that turn one text into another."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    if len(old) > _MOST_LINES or len(new) > _MOST_LINES:
        return [Edit(path, Range(Position(0, 0), Lines(before).end), after)]
    lines = Lines(before)
    edits = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start, end = sum(map(len, old[:i1])), sum(map(len, old[:i2]))
            edits.append(Edit(path, lines.range(start, end), "".join(new[j1:j2])))
    return edits


def applies_to(edits: Iterable[Edit], checked: Mapping[str, str], documents: Documents) -> bool:
    """Whether the files of edits, open or on the disk, still have the texts that were checked."""
    for path in {edit.path for edit in edits}:
        lines = documents.lines(path)
        if lines is None or lines.text != checked.get(path):
            return False
    return True
