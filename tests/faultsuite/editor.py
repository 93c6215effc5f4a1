"""An editor for the suite: a client of ``pallas-lsp serve`` that keeps all that the user would see, with its time."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jax_environments import PROJECT
from raw_client import PATIENCE, RawClient

SERVE = [sys.executable, "-m", "pallas_lsp", "serve"]
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME")


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a server whose cache and state lie in a folder of the test."""
    kept = {name: value for name, value in os.environ.items() if name not in _ACTIVE}
    own = {"PYTHONPATH": str(PROJECT), "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache")}
    return {**kept, **own, **(more or {})}


@dataclass(frozen=True)
class Seen:
    """Something that the user could read: where, and what."""

    time: float
    channel: str
    text: str


class Editor(RawClient):
    """Answers the server's questions as VS Code does: settings, progress, file watchers, ``pallas/status``."""

    def __init__(
        self, folder: Path, settings: dict[str, Any], *, home: Path | None = None, read: bool = True, **how: Any
    ) -> None:
        self.settings = settings
        self.folder_settings: dict[str, Any] = {}
        self.settings_of: dict[str, dict[str, Any]] = {}
        self.roots: tuple[Path, ...] = (folder,)
        self.history: list[tuple[float, dict[str, Any]]] = []
        self.ended = False
        self.reads = threading.Event()
        """Cleared while the editor reads nothing of what the server sends."""
        self.reads.set()
        self.reads = threading.Event()
        """Cleared while the editor reads nothing of what the server sends."""
        self.reads.set()
        self._news = threading.Condition()
        self._sending = threading.RLock()
        self._statuses: dict[str, set[str]] = {}
        self.seen: list[Seen] = []
        variables = environment(home or folder.parent, how.pop("variables", None))
        self.header = b"Content-Length: %d\r\n\r\n"
        super().__init__(folder, how.pop("command", SERVE), variables, read=read, cwd=folder, **how)

    # -- the stream --

    def raw(self, data: bytes) -> None:
        with self._sending:  # the heartbeat sends from a thread of its own
            super().raw(data)

    def body(self, body: bytes, header: bytes | None = None) -> None:
        super().body(body, header or self.header)

    def received(self, message: dict[str, Any]) -> None:
        self.reads.wait()
        self.reads.wait()
        with self._news:
            now = time.monotonic()
            self.history.append((now, message))
            self._note(now, message)
            self._news.notify_all()
        if "method" in message and "id" in message:
            self._answer(message)

    def closed(self) -> None:
        with self._news:
            self.ended = True
            self._news.notify_all()

    def _answer(self, message: dict[str, Any]) -> None:
        result: Any = None
        if message["method"] == "workspace/configuration":
            result = [self._settings(item.get("scopeUri")) for item in message["params"]["items"]]
        self.send(id=message["id"], result=result)

    def _settings(self, root: str | None) -> dict[str, Any]:
        if root is None:
            return self.settings
        return {**self.settings, **self.folder_settings, **self.settings_of.get(root, {})}

    def _note(self, now: float, message: dict[str, Any]) -> None:
        """Keep what a message shows to the user.  A status repeats its problems: only new ones count."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "window/logMessage":
            self.seen.append(Seen(now, "log", params["message"]))
        elif method in ("window/showMessage", "window/showMessageRequest"):
            self.seen.append(Seen(now, "message", params["message"]))
        elif method == "pallas/status":
            problems = {f"{each['message']}. {each['remedy']}" for each in params["problems"]}
            for text in sorted(problems - self._statuses.get(params["uri"], set())):
                self.seen.append(Seen(now, "status", text))
            self._statuses[params["uri"]] = problems

    def wait(self, wanted: Callable[[dict[str, Any]], Any], timeout: float = PATIENCE) -> dict[str, Any]:
        return self.until(lambda: next((m for _, m in self.history if wanted(m)), None), timeout)

    def until(self, found: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """What ``found`` returns once it is true; it is asked again whenever a message came."""
        end = time.monotonic() + timeout
        with self._news:
            while not (value := found()):
                left = end - time.monotonic()
                if left <= 0 or self.ended:
                    others = [m for _, m in self.history if not str(m.get("id", "")).startswith("beat")]
                    raise AssertionError(f"it did not come; last: {others[-8:]}; standard error: {self.stderr!r}")
                self._news.wait(min(left, 1.0))
        return value

    # -- a session --

    def start(self, *roots: Path, process_id: int | None = None) -> None:
        self.roots = roots or self.roots
        folders = [{"uri": root.as_uri(), "name": root.name} for root in self.roots]
        capabilities = {
            "workspace": {
                "configuration": True,
                "didChangeConfiguration": {"dynamicRegistration": True},
                "didChangeWatchedFiles": {"dynamicRegistration": True},
                "workspaceFolders": True,
            },
            "textDocument": {"publishDiagnostics": {"relatedInformation": True}},
            "window": {"workDoneProgress": True},
        }
        params = {
            "processId": process_id,
            "rootUri": folders[0]["uri"],
            "workspaceFolders": folders,
            "capabilities": capabilities,
            "initializationOptions": {"trusted": True, "status": True},
        }
        assert "result" in self.request("initialize", params)
        self.send(method="initialized", params={})

    def set_for(self, root: str, **settings: Any) -> None:
        """The user changes settings of one workspace folder."""
        self.settings_of = {root: settings}
        self.send(method="workspace/didChangeConfiguration", params={"settings": None})

    def set(self, **settings: Any) -> None:
        """The user changes settings of the workspace folders; those of the session stay."""
        self.folder_settings, self.settings_of = settings, {}
        self.send(method="workspace/didChangeConfiguration", params={"settings": None})

    def changed_on_disk(self, *paths: Path, kind: int = 2) -> None:
        """What an editor's file watcher reports: 1 created, 2 changed, 3 deleted."""
        changes = [{"uri": path.as_uri(), "type": kind} for path in paths]
        self.send(method="workspace/didChangeWatchedFiles", params={"changes": changes})

    def published(self, uri: str, since: int = 0) -> list[tuple[float, dict[str, Any]]]:
        return [
            (when, message["params"])
            for when, message in self.history[since:]
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
        ]

    def status(self, uri: str) -> dict[str, Any] | None:
        """The newest ``pallas/status`` of a document."""
        ours = (m["params"] for _, m in reversed(self.history) if m.get("method") == "pallas/status")
        return next((params for params in ours if params["uri"] == uri), None)

    def said(self, pattern: str, since: float = 0.0) -> list[Seen]:
        """All that the user could read of something since a time."""
        return [each for each in self.seen if each.time >= since and re.search(pattern, each.text)]

    # -- its processes --

    @property
    def workers(self) -> list[int]:
        """The process ids of the server's workers."""
        return children(self.process.pid)


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    own = children(pid)
    return own + [each for child in own for each in descendants(child)]


def working_folder(pid: int) -> str:
    """Where a process works; empty where it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - the folder may be gone, which Path would hide
    except OSError:
        return ""


def kill_hard(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
