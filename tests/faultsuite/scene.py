"""What one fault is tried on: an editor, a folder of its own, and a document that the user types into."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from editor import Editor, descendants, working_folder
from kernels import RULE, fault_place, faulty, good, renew

_GRAVE = (1, 2)
"""Severities of an error and a warning: a correct kernel gets neither."""


class Scene:
    """``folder`` lies in the workspace; ``text`` is what the document holds now."""

    def __init__(self, editor: Editor, folder: Path, jax_python: str) -> None:
        self.editor = editor
        self.folder = folder
        self.jax_python = jax_python
        renew()
        self.text = ""
        self.next_text = faulty()
        """What the document, or the file on disk that it imports, becomes in the end: the same with the known fault."""
        self.version: int | None = 0
        self.uri = ""
        self._open: list[str] = []
        self._clean_up: list[Callable[[], object]] = []
        folder.mkdir(parents=True, exist_ok=True)

    # -- what the user does --

    def open(self, text: str, path: str | Path = "kernels.py", *, uri: str | None = None) -> None:
        """Open a document, which later typing goes to."""
        self.uri = uri or (self.folder / path).as_uri()
        self.text, self.version = text, 1
        self._open.append(self.uri)
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self.editor.send(method="textDocument/didOpen", params={"textDocument": item})

    def save(self, text: str, path: str | Path = "kernels.py", encoding: str = "utf-8") -> Path:
        """Write a file that is in the editor or about to be."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode(encoding))
        return file

    def change_on_disk(self, path: str, text: str, encoding: str = "utf-8", kind: int = 2) -> None:
        """Another program writes a file that the document imports; from now on it is the one that is looked at."""
        file = self.save(text, path, encoding)
        self.uri, self.text, self.next_text, self.version = file.as_uri(), text, text, None
        self.editor.changed_on_disk(file, kind=kind)

    def type(self, text: str) -> None:
        """Replace the document's text."""
        assert self.version is not None
        self.text = text
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        changes = [{"text": text}]
        self.editor.send(method="textDocument/didChange", params={"textDocument": document, "contentChanges": changes})

    def configure(self, **settings: Any) -> None:
        """The user changes settings for as long as the fault lasts; returns when they are in force and were tried."""
        first = len(self.editor.history)
        self.later(self.editor.set)
        self.editor.set(**settings)

        def tried() -> bool:
            since = [message for _, message in self.editor.history[first:] if "method" in message]
            asked = next((n for n, each in enumerate(since) if each["method"] == "workspace/configuration"), len(since))
            mine = [each["params"] for each in since[asked:] if each["method"] == "pallas/status"]
            busy = [status["busy"] for status in mine if status["uri"] == self.uri]
            return True in busy and not busy[-1]

        self.editor.until(tried)

    def close(self, uri: str | None = None) -> None:
        uri = uri or self.uri
        self._open.remove(uri)
        self.editor.send(method="textDocument/didClose", params={"textDocument": {"uri": uri}})

    def later(self, work: Callable[[], object]) -> None:
        """Something to undo when the fault is over, whatever came of it."""
        self._clean_up.append(work)

    def end(self) -> None:
        for work in reversed(self._clean_up):
            work()
        for uri in list(self._open):
            self.close(uri)

    # -- what the user sees --

    def is_clean(self) -> bool:
        """Whether the newest text was checked, all its kernels were reached, and it has no error and no warning."""
        shown, status = self._shown(), self.editor.status(self.uri)
        if shown is None or status is None or shown.get("version") != self.version or _grave(shown):
            return False
        return not status["busy"] and status["kernels"]["found"] == status["kernels"]["reached"]

    def shows_the_fault(self, since: float) -> bool:
        """Whether the known fault is shown on its line, for the newest text, in a publication since a time."""
        shown = self._shown(since)
        if shown is None or shown.get("version") != self.version:
            return False
        grave = _grave(shown)
        assert all(each["code"] == RULE for each in grave), f"a finding that is none: {grave}"
        return [each["range"]["start"] for each in grave] == [fault_place(self.text)]

    def _shown(self, since: float = 0.0) -> dict[str, Any] | None:
        published = [(when, params) for when, params in self.editor.published(self.uri) if when >= since]
        return published[-1][1] if published else None

    def wait_for_the_check(self) -> None:
        """Wait until the newest text has been checked, whatever was found."""

        def checked() -> bool:
            shown, status = self._shown(), self.editor.status(self.uri)
            current = shown is not None and shown.get("version") == self.version
            return current and status is not None and not status["busy"]

        self.editor.until(checked)

    def see_it_clean(self, timeout: float = 60.0) -> None:
        self.editor.until(self.is_clean, timeout)

    def reaches_the_fault(self) -> None:
        """The user makes the known mistake in the document, which is then shown."""
        if self.text != self.next_text:
            self.type(self.next_text)

    def start_clean(self) -> None:
        self.open(good())
        self.see_it_clean()

    # -- what is left of it --

    def leftovers(self, seconds: float) -> list[int]:
        """Processes of runs, and what these started, that are still there after a while.

        They work in the folder of their run; a worker and a process that waits for a run do not.
        """
        end = time.monotonic() + seconds
        while True:
            below = [pid for worker in self.editor.workers for pid in descendants(worker)]
            left = [pid for pid in below if "/pallas-lsp-" in working_folder(pid)]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)


def _grave(published: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in published["diagnostics"] if each.get("severity", 1) in _GRAVE]
