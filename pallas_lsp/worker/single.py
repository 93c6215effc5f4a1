"""A worker without fork: this process serves one run itself, and a reader thread watches the input meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from typing import Any, NoReturn

from . import limits, scratch, service, stream


class Single:
    """Serves one run in the main thread (as user code expects), then ends with everything that the run started."""

    def __init__(self, incoming: int, writer: stream.Writer, lines: stream.Lines, pending: list[bytes]) -> None:
        self._incoming = incoming
        self._writer = writer
        self._lines = lines
        self._pending = pending
        self._run: Any = None
        self._params: dict[str, Any] = {}
        self._folder: str | None = None
        self._answered = threading.Lock()

    def serve(self) -> NoReturn:
        while self._run is None:
            self._read()
        self._folder = tempfile.mkdtemp(prefix=scratch.PREFIX)
        threading.Thread(target=self._watch, name="pallas-lsp-reader", daemon=True).start()
        self._emit("started", {"pid": os.getpid(), "folder": self._folder})
        scratch.enter(self._folder)
        limits.apply(self._params.get("limits") or {})
        result, error = service.perform(self._params, self._emit)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        self._answer(result, error)
        self._end()

    def _emit(self, method: str, fields: dict[str, Any]) -> None:
        self._writer.notify(method, {**fields, "run": self._run})

    def _read(self) -> None:
        """Wait for lines and treat them."""
        if not self._pending:
            data = os.read(self._incoming, stream.CHUNK)
            if not data:
                self._end()
            self._pending += self._lines.feed(data)
        pending, self._pending = self._pending, []
        for line in pending:
            if line.strip():
                self._treat(line)

    def _treat(self, line: bytes) -> None:
        try:
            request, method, params = stream.parse(line)
        except stream.BadMessage as bad:
            self._writer.fail(bad.request, bad.error)
            return
        if method == "run" and self._run is None and request is not None:
            self._run, self._params = request, params
        elif method == "run":
            self._writer.fail(request, stream.error(stream.INVALID_REQUEST, "this worker serves one run"))
        elif method == "cancel":
            if self._run is not None and params.get("run") == self._run:
                self._answer(None, stream.error(stream.CANCELLED, "cancelled"))
                self._end()
        elif method == "shutdown":
            if self._run is not None:
                self._answer(None, stream.error(stream.CANCELLED, "cancelled"))
            self._writer.answer(request, {})
            self._end()
        elif request is not None:
            self._writer.fail(request, stream.error(stream.METHOD_NOT_FOUND, f"no method {method!r}"))

    def _watch(self) -> None:
        try:
            while True:
                self._read()
        except OSError:
            self._end()

    def _answer(self, result: dict[str, Any] | None, error: dict[str, Any] | None) -> None:
        """Answer the run, once."""
        if not self._answered.acquire(blocking=False):
            return
        with contextlib.suppress(OSError):
            if error is not None:
                self._writer.fail(self._run, error)
            else:
                self._writer.answer(self._run, result or {})

    def _end(self) -> NoReturn:
        """End this process and, where there are process groups, everything that the run started in its own."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(os.path.dirname(self._folder))
            shutil.rmtree(self._folder, ignore_errors=True)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)
