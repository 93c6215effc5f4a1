"""Python files as text: read with the encoding that they declare, written back without changing anything else."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import stat
import tempfile
import tokenize
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pallas_lsp.source.notebooks import SUFFIX, Cell, NotebookText, NotNotebookError, read_notebook, write_notebook
from pallas_lsp.source.positions import Lines

_BEFORE = ".old.tmp"
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=]")


class UnreadableError(Exception):
    """A file that cannot be read as Python text: what happened, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UnwritableError(Exception):
    """A fix that cannot be written, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class SourceFile:
    """A file's text without its byte order mark, line endings as they are, and the bytes that it was read from."""

    path: str
    text: str
    encoding: str
    bom: bool
    data: bytes
    notebook: NotebookText | None = None
    """For a notebook, whose text is that of its cells: where they are."""

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def with_text(self, text: str) -> SourceFile:
        return replace(self, text=text)

    def encode(self) -> bytes:
        text = self.text
        if self.notebook is not None:
            text = write_notebook(self.data.decode(self.encoding), self.notebook.sources(text))
        try:
            encoded = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            missing = error.object[error.start : error.end]
            raise UnwritableError(
                f"the fix needs {missing!r}, which the file's encoding {self.encoding} lacks",
                "Save the file as UTF-8 and run the command again.",
            ) from error
        return (codecs.BOM_UTF8 if self.bom else b"") + encoded


def read_source(path: str) -> SourceFile:
    """Read a Python file as Python does: byte order mark, coding comment, else UTF-8."""
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("it is not a regular file", "Name a Python file or a folder.")
        data = Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "Check that the file exists and that you may read it."
        raise UnreadableError(f"it cannot be read ({reason})", remedy) from error
    return decode_source(path, data)


def decode_source(path: str, data: bytes) -> SourceFile:
    if path.endswith(SUFFIX):
        return _decode_notebook(path, data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if not any(_COOKIE.match(line) for line in data.splitlines()[:2]):
            raise _undecodable("utf-8", data) from error
        message = f"its coding comment cannot be used ({error})"
        raise UnreadableError(message, "Correct the comment or save the file as UTF-8.") from error
    bom = data.startswith(codecs.BOM_UTF8)
    try:
        text = data[len(codecs.BOM_UTF8) * bom :].decode("utf-8" if bom else encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(encoding, data) from error
    except LookupError as error:
        raise UnreadableError(f"Python has no codec named {encoding!r}", "Correct the coding comment.") from error
    return SourceFile(path, text, "utf-8" if bom else encoding, bom, data)


def _decode_notebook(path: str, data: bytes) -> SourceFile:
    try:
        notebook = read_notebook(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _undecodable("utf-8", data) from error
    except NotNotebookError as error:
        raise UnreadableError(f"it is no notebook: {error}", "Save it again from Jupyter or the editor.") from error
    return SourceFile(path, notebook.text, "utf-8", bom=False, data=data, notebook=notebook)


def _undecodable(encoding: str, data: bytes) -> UnreadableError:
    where = ""
    with contextlib.suppress(LookupError):
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            where = f": byte 0x{data[error.start]:02x} on line {line}"
    name = encoding.upper() if encoding.startswith("utf") else encoding
    return UnreadableError(
        f"it is not {name}{where}",
        "Save the file as UTF-8, or name its encoding on the first line: '# -*- coding: latin-1 -*-'.",
    )


class Sources:
    """The files that a check meets, each read once; a changed text stands over the one on disk until it is written."""

    def __init__(self) -> None:
        self._files: dict[str, SourceFile] = {}
        self._changed: dict[str, SourceFile] = {}

    def read(self, path: str) -> SourceFile:
        """The file as it is now, changes included; raises UnreadableError."""
        if (changed := self._changed.get(path)) is not None:
            return changed
        return self.original(path)

    def original(self, path: str) -> SourceFile:
        if path not in self._files:
            self._files[path] = read_source(path)
        return self._files[path]

    def lines(self, path: str) -> Lines | None:
        """The lines to show an excerpt from, or None where the file cannot be read."""
        try:
            return self.read(path).lines
        except UnreadableError:
            return None

    def cell(self, path: str, line: int) -> Cell | None:
        """For a notebook, the cell of a 0-based line of its text."""
        try:
            notebook = self.read(path).notebook
        except UnreadableError:
            return None
        return notebook.cell_at(line) if notebook is not None else None

    def change(self, path: str, text: str) -> None:
        self._changed[path] = self.read(path).with_text(text)

    @property
    def changed(self) -> dict[str, SourceFile]:
        return {path: file for path, file in self._changed.items() if file.text != self._files[path].text}

    def forget(self) -> None:
        """Drop the changes: excerpts come from the disk's text again."""
        self._changed.clear()

    def write(self) -> None:
        """Write all changed files, or none where one cannot be written; raises UnwritableError."""
        prepared: list[tuple[str, str]] = []
        try:
            prepared.extend((_prepare(file), os.path.realpath(file.path)) for file in self.changed.values())
            _replace(prepared)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnwritableError(
                f"the fixed text could not be written ({reason.lower()})",
                "Make the file and its folder writable, or use --diff and apply the diff yourself.",
            ) from error
        finally:
            for temporary, _ in prepared:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink(missing_ok=True)


def _replace(prepared: list[tuple[str, str]]) -> None:
    """Rename each new file onto its target; where one fails, those before it get their old content back."""
    before: dict[str, str] = {}
    try:
        for temporary, target in prepared if len(prepared) > 1 else ():
            with contextlib.suppress(OSError):  # a file system without links
                os.link(target, f"{temporary}{_BEFORE}")
                before[target] = f"{temporary}{_BEFORE}"
        for number, (temporary, target) in enumerate(prepared):
            try:
                os.replace(temporary, target)  # noqa: PTH105
            except OSError:
                for _, changed in prepared[:number]:
                    if changed in before:
                        os.replace(before[changed], changed)  # noqa: PTH105
                raise
    finally:
        for old in before.values():
            with contextlib.suppress(OSError):
                Path(old).unlink(missing_ok=True)


def _prepare(file: SourceFile) -> str:
    """The new content in a file beside the target, with the target's mode and owner, ready to be renamed onto it."""
    target = Path(os.path.realpath(file.path))
    encoded = file.encode()
    if target.read_bytes() != file.data:
        raise UnwritableError("it was changed on disk while it was checked", "Run the command again.")
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "permission denied", str(target))
    status = target.stat()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encoded)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(stat.S_IMODE(status.st_mode))
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return name
