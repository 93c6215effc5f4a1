"""``pallas/status``: what an editor shows in its status item (``docs/lsp.md`` has the fields).

For other clients the same goes to the log, and what keeps every kernel from being checked is shown once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types

from pallas_lsp.engine.errors import WORKER_KINDS
from pallas_lsp.model import Problem
from pallas_lsp.server.client import Client
from pallas_lsp.server.results import Result

logger = logging.getLogger(__name__)

METHOD = "pallas/status"


class StatusReporter:
    def __init__(
        self, notify: Callable[[str, dict[str, Any]], None], show: Callable[[types.ShowMessageParams], None]
    ) -> None:
        self.client = Client()
        self._notify = notify
        self._show = show
        self._sent: dict[str, dict[str, Any]] = {}
        self._shown: set[str] = set()
        self._logged: dict[str, str] = {}
        self._gpu = ""

    def busy(self, uri: str) -> None:
        """A check has begun."""
        last = self._sent.get(uri, {"health": "ok", "message": "", "kernels": None, "problems": []})
        self._send({**last, "uri": uri, "busy": True})

    def idle(self, uri: str) -> None:
        """A check ended without a result: it was cancelled."""
        last = self._sent.get(uri)
        if last is not None and last["busy"]:
            self._send({**last, "busy": False})

    def result(self, uri: str, result: Result, *, trusted: bool) -> None:
        found, reached = len(result.launches), result.reached
        problems = [_problem(problem) for problem in result.problems]
        if found and not trusted:
            problems.insert(0, _NOT_TRUSTED)
        message = summary(result, trusted=trusted)
        self._send(
            {
                "uri": uri,
                "busy": not result.final,
                "health": _health(result, trusted=trusted),
                "message": message,
                "stage": str(result.stage),
                "kernels": {"found": found, "reached": reached},
                "problems": problems,
            }
        )
        if result.final:
            self._log(result, message)
            if found and not self.client.status:
                self._show_once(result.problems)

    def gpu(self, gpus: tuple[str, ...], reason: str) -> None:
        """Which GPUs confirm, or why none does: in every status from now on, and once in the log."""
        text = ", ".join(gpus) or reason
        if not text or text == self._gpu:
            return
        self._gpu = text
        logger.info("%s", f"GPU verdicts: {text}")
        for status in list(self._sent.values()):
            self._send(status)

    def forget(self, uri: str) -> None:
        self._sent.pop(uri, None)

    def last(self) -> dict[str, dict[str, Any]]:
        """The newest status of each open document."""
        return dict(self._sent)

    def _send(self, status: dict[str, Any]) -> None:
        uri = status["uri"]
        if self._gpu:
            status = {**status, "gpu": self._gpu}
        if self._sent.get(uri) == status:
            return
        self._sent[uri] = status
        if self.client.status:
            self._notify(METHOD, status)

    def _log(self, result: Result, message: str) -> None:
        lines = [f"{Path(result.owner).name}: {message}"]
        for status in result.launches:
            line = f"  line {status.launch.location.range.start.line + 1}: {status.launch.api}"
            if not status.captures:
                lines.append(f"{line} was not reached: {status.reason or 'no driver'}")
            elif status.reason:
                lines.append(f"{line} was checked with assumed types: {status.reason}")
        lines += [f"  {problem.message}. {problem.remedy}".rstrip() for problem in result.problems]
        text = "\n".join(lines)
        if self._logged.get(result.owner) != text:  # typing would repeat it
            self._logged[result.owner] = text
            logger.info("%s", text)

    def _show_once(self, problems: tuple[Problem, ...]) -> None:
        for problem in problems:
            if problem.kind in WORKER_KINDS and problem.message not in self._shown:
                self._shown.add(problem.message)
                text = f"Pallas LSP: {problem.message}. {problem.remedy}".rstrip()
                self._show(types.ShowMessageParams(types.MessageType.Warning, text))


_NOT_TRUSTED = {
    "kind": "not-trusted",
    "message": "The folder is not trusted: its code is only read, not run",
    "remedy": "Trust the workspace, or run 'pallas-lsp trust FOLDER'.",
}


def summary(result: Result, *, trusted: bool) -> str:
    """One line on how far a document's kernels were checked."""
    if not result.parsed:
        return "The text does not parse; the results are those of the last text that did"
    if any(problem.kind == "too-long" for problem in result.problems):
        return "The file is too long to be checked"
    found, reached = len(result.launches), result.reached
    if not result.ran:
        return "The code stops before it reaches a kernel; the results are those of the last text that reached one"
    if not found:
        return "No kernel launch in this file"
    launches = "1 kernel launch" if found == 1 else f"{found} kernel launches"
    if not trusted:
        return f"{launches}, read only: the folder is not trusted"
    if not reached:
        return f"{launches}, not checked"
    how_far = "checked" if result.final else "checked so far"
    rest = "" if reached == found else f", {found - reached} not reached"
    return f"{launches}, {reached} {how_far}{rest}"


def _health(result: Result, *, trusted: bool) -> str:
    if any(problem.kind in WORKER_KINDS or problem.kind == "internal-error" for problem in result.problems):
        return "error"
    unreached = bool(result.launches) and result.final and result.reached < len(result.launches)
    if result.problems or unreached or (result.launches and not trusted):
        return "warning"
    return "ok"


def _problem(problem: Problem) -> dict[str, str]:
    return {"kind": problem.kind, "message": problem.message, "remedy": problem.remedy}
