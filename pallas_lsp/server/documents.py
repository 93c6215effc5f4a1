"""The open documents, by URI and by path, and frozen snapshots of them.

Synchronisation is Full: each change carries the whole text, so no client and no line separator can make our copy drift
from the screen.  A change with a range, from a client that ignores this, is applied all the same.
"""

from __future__ import annotations

import io
import ntpath
import os
import tempfile
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from lsprotocol import types
from pygls import uris

from pallas_lsp.model import Document, Snapshot
from pallas_lsp.server.convert import to_range
from pallas_lsp.source.positions import Lines

_SUFFIXES = (".py", ".pyw", ".pyi")


@dataclass(frozen=True)
class OpenDocument:
    uri: str
    path: str
    version: int
    text: str
    language: str

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    @property
    def is_python(self) -> bool:
        return self.language == "python" or (not self.language and self.path.endswith(_SUFFIXES))


class Documents:
    """``encoding`` is the unit of columns that the client and the server agreed on."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        self.folders: tuple[str, ...] = ()
        self.roots: tuple[str, ...] = ()
        self._by_uri: dict[str, OpenDocument] = {}
        self._by_path: dict[str, OpenDocument] = {}
        self._uris: dict[str, str] = {}  # as the client spells them, kept after a document was closed
        self._snapshot: Snapshot | None = None

    # -- changes from the client --------------------------------------------------------------------------------------

    def open(self, item: types.TextDocumentItem) -> OpenDocument | None:
        """None for a document that is no file and no unsaved buffer (an output panel, an older revision)."""
        path = self.path_of(item.uri)
        if path is None:
            return None
        return self._put(OpenDocument(item.uri, path, item.version, item.text, item.language_id))

    def change(self, params: types.DidChangeTextDocumentParams) -> OpenDocument | None:
        document = self._by_uri.get(params.text_document.uri)
        if document is None:
            return None
        text = self.changed(document.text, params.content_changes)
        return self._put(replace(document, version=params.text_document.version, text=text))

    def changed(self, text: str, changes: Iterable[types.TextDocumentContentChangeEvent]) -> str:
        """A text after changes, with or without ranges."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                lines = Lines(text)
                range_ = to_range(change.range, lines, self.encoding)
                text = text[: lines.offset(range_.start)] + change.text + text[lines.offset(range_.end) :]
            else:
                text = change.text
        return text

    def close(self, uri: str) -> OpenDocument | None:
        document = self._by_uri.pop(uri, None)
        if document is not None:
            self._by_path.pop(document.path, None)
            self._snapshot = None
        return document

    def set_folders(self, folder_uris: Iterable[str]) -> None:
        """The workspace folders; those that are no local folders are left out."""
        self.folders = tuple(dict.fromkeys(folder_uris))
        paths = [(uri, path) for uri in self.folders if (path := self.path_of(uri)) is not None]
        self._uris.update((path, uri) for uri, path in paths)
        self.roots = tuple(dict.fromkeys(path for _, path in paths))
        self._snapshot = None

    def files_came_or_went(self) -> None:
        """What was found on the disk for the present texts holds no more."""
        self._snapshot = None

    def _put(self, document: OpenDocument) -> OpenDocument:
        self._by_uri[document.uri] = document
        self._by_path[document.path] = document
        self._uris[document.path] = document.uri
        self._snapshot = None
        return document

    # -- looking up ---------------------------------------------------------------------------------------------------

    def get(self, uri: str) -> OpenDocument | None:
        return self._by_uri.get(uri)

    def at(self, path: str) -> OpenDocument | None:
        return self._by_path.get(path)

    def all(self) -> list[OpenDocument]:
        return list(self._by_uri.values())

    def snapshot(self) -> Snapshot:
        """The documents as they are now; later edits do not reach it."""
        if self._snapshot is None:
            documents = {
                path: Document(path, document.text, document.version) for path, document in self._by_path.items()
            }
            self._snapshot = Snapshot(MappingProxyType(documents), self.roots)
        return self._snapshot

    def root_of(self, path: str) -> str:
        """The innermost workspace folder around a path, else the path's own folder."""
        around = [root for root in self.roots if is_inside(path, root)]
        return max(around, key=len) if around else os.path.dirname(path)  # noqa: PTH120

    def lines(self, path: str) -> Lines | None:
        """The lines of an open document, or of the file on disk; None where it cannot be read."""
        document = self._by_path.get(path)
        return document.lines if document is not None else lines_on_disk(path)

    def uri_of(self, path: str) -> str:
        return self._uris.get(path) or str(uris.from_fs_path(path))

    def path_of(self, uri: str) -> str | None:
        """The absolute path for a URI.  A buffer that was never saved gets one in the first workspace folder, where
        its imports and its interpreter are looked for as they will be once it is saved."""
        path = uris.to_fs_path(uri)
        if path is not None:
            return os.path.normpath(path)
        scheme, _, name = uri.partition(":")
        if scheme != "untitled":
            return None
        name = ntpath.basename(name.rstrip("/")) or "Untitled"
        folder = self.roots[0] if self.roots else tempfile.gettempdir()
        stem = quote(name.removesuffix(".py"), safe="")
        return str(Path(folder, f"{stem}.untitled.py"))


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def lines_on_disk(path: str) -> Lines | None:
    try:
        data = Path(path).read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return Lines(data.decode(encoding, "replace"))
    except (OSError, SyntaxError, LookupError):
        return None
