"""Code actions that write shape comments: the known calls that lead to a launch, for the user to choose from."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from pallas_lsp.model import Edit, Entry, LaunchStatus, Position, Range
from pallas_lsp.origins import shown_path, words
from pallas_lsp.rules.messages import short
from pallas_lsp.server.client import Client
from pallas_lsp.server.convert import overlaps
from pallas_lsp.server.documents import Documents, OpenDocument
from pallas_lsp.server.results import Result
from pallas_lsp.server.workspace_edits import workspace_edit
from pallas_lsp.source.shape_comments import comment_for, find_comments, translate
from pallas_lsp.source.syntax import parse

KIND = types.CodeActionKind.RefactorRewrite
_MOST = 5
_CALL_SHOWN = 80


def comment_actions(
    document: OpenDocument, result: Result | None, range_: Range, documents: Documents, client: Client
) -> list[types.CodeAction]:
    """For the launches in a range, or functions that lead to one: an action for each known call, and one for all."""
    checked = result.snapshot.documents.get(document.path) if result is not None and result.snapshot else None
    if result is None or checked is None or checked.text != document.text:
        return []
    here = [status for status in result.launches if status.launch.location.path == document.path]
    calls: dict[str, tuple[Entry, str]] = {}
    for entry, driver in (each for status in here for each in _calls(status, range_)):
        calls.setdefault(entry.call, (entry, driver))
    written = {comment.call for comment in find_comments(parse(document.text))}
    new = [(entry, driver) for call, (entry, driver) in calls.items() if _is_new(call, written)]
    shown = []
    for entry, driver in new[:_MOST]:
        origin = words(driver, lambda path: shown_path(path, documents.root_of(document.path)))
        shown.append((f"Write as a shape comment: {short(entry.call, _CALL_SHOWN)} (from {origin})", [entry]))
    if len(new) > 1:
        shown.append((f"Write all {len(new)} known calls as shape comments", [entry for entry, _ in new]))
    actions = []
    for title, entries in shown:
        edit = workspace_edit(_edits(entries, document.lines.newline), documents, client)
        if edit is not None:
            actions.append(types.CodeAction(title, kind=KIND, edit=edit))
    return actions


def _calls(status: LaunchStatus, range_: Range) -> Iterator[tuple[Entry, str]]:
    """The calls that lead to a launch, if the launch or the head of the function called is in a range."""
    for capture in status.captures:
        entry = capture.entry
        if entry is None or entry.path != status.launch.location.path:
            continue
        head = Range(Position(entry.line - 1, 0), Position(entry.line, 0))
        if overlaps(status.launch.location.range, range_) or overlaps(head, range_):
            yield entry, capture.driver


def _is_new(call: str, written: set[str]) -> bool:
    try:
        return translate(call)[0] not in written
    except ValueError:
        return False  # a value whose text is no expression


def _edits(entries: list[Entry], newline: str) -> list[Edit]:
    """One edit for each function, so that several comments above one keep their order."""
    lines: dict[tuple[str, int], str] = {}
    for entry in entries:
        place = (entry.path, entry.line - 1)
        lines[place] = lines.get(place, "") + comment_for(entry.call) + newline
    return [Edit(path, Range(Position(n, 0), Position(n, 0)), text) for (path, n), text in lines.items()]
