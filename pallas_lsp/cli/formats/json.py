"""``--format json``: everything that is known, for programs.  ``docs/output.md`` describes it."""

from __future__ import annotations

import json
from typing import Any

from pallas_lsp import __version__
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import Outcome, count_by_severity
from pallas_lsp.model import Capture, Edit, Finding, Fix, Frame, LaunchStatus, Location, Problem, Range, WorkerInfo

SCHEMA = 1
"""Raised when a field changes its meaning or goes; new fields do not raise it."""

NOT_TRIED = "it was not tried"


def render(outcome: Outcome, view: View) -> None:
    json.dump(_Writer(outcome).document(), view.out, indent=2, ensure_ascii=view.ascii_only, default=str)
    view.out.write("\n")


class _Writer:
    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def document(self) -> dict[str, Any]:
        outcome = self._outcome
        counts = count_by_severity(outcome.findings)
        document = {
            "schema": SCHEMA,
            "version": __version__,
            "jax": outcome.jax,
            "environments": [self._worker(worker) for worker in outcome.workers],
            "files": [outcome.shown_path(path) for path in outcome.files],
            "diagnostics": [self._finding(finding) for finding in outcome.findings],
            "problems": [self._problem(problem) for problem in outcome.problems],
            "launches": [self._launch(status) for status in outcome.launches],
            "fixed": [
                {
                    **self._place(applied.finding.location),
                    "code": applied.finding.rule,
                    "title": applied.fix.title,
                }
                for applied in outcome.applied
            ],
            "summary": {
                **{severity.value: count for severity, count in counts.items()},
                "unchecked": len(outcome.problems),
                "skippedFiles": outcome.skipped,
                "seconds": round(outcome.seconds, 3),
                "exitCode": outcome.exit_code,
            },
        }
        if outcome.gpus or outcome.unconfirmed:
            document["confirmation"] = {"gpus": list(outcome.gpus), "unconfirmed": list(outcome.unconfirmed)}
        if outcome.diff is not None:
            document["diff"] = outcome.diff
        return document

    def _worker(self, worker: WorkerInfo) -> dict[str, Any]:
        return {
            "executable": worker.executable,
            "python": worker.python,
            "jax": worker.jax,
            "backends": list(worker.backends),
            "missing": dict(worker.missing),
        }

    def _finding(self, finding: Finding) -> dict[str, Any]:
        return {
            **self._place(finding.location),
            "severity": finding.severity.value,
            "code": finding.rule,
            "source": "pallas-lsp",
            "message": finding.message,
            "stage": finding.stage.value,
            "kernel": finding.kernel,
            "arguments": list(finding.arguments),
            "related": [{**self._place(each.location), "message": each.message} for each in finding.related],
            "fixes": [self._fix(fix) for fix in finding.fixes],
            "data": {name: value for name, value in finding.data.items() if name != "verdicts"},
            "verdicts": list(finding.data.get("verdicts", ())),
        }

    def _fix(self, fix: Fix) -> dict[str, Any]:
        return {
            "title": fix.title,
            "safety": fix.safety.value,
            "verified": fix.verified is True,
            "reason": fix.reason or (NOT_TRIED if fix.verified is None else ""),
            "edits": [self._edit(edit) for edit in fix.edits],
        }

    def _edit(self, edit: Edit) -> dict[str, Any]:
        return {**self._place(Location(edit.path, edit.range)), "newText": edit.new_text}

    def _problem(self, problem: Problem) -> dict[str, Any]:
        place = self._place(problem.location) if problem.location is not None else {"path": None, "range": None}
        return {**place, "kind": problem.kind, "message": problem.message, "remedy": problem.remedy}

    def _launch(self, status: LaunchStatus) -> dict[str, Any]:
        return {
            **self._place(status.launch.location),
            "api": status.launch.api,
            "backend": status.launch.backend.value,
            "body": status.launch.body,
            "reason": status.reason,
            "remedy": status.remedy,
            "captures": [self._capture(capture) for capture in status.captures],
        }

    def _capture(self, capture: Capture) -> dict[str, Any]:
        return {
            "arguments": capture.arguments,
            "backend": capture.backend.value,
            "driver": capture.driver,
            "call": self._frame(capture.call),
            "kernel": capture.body.name if capture.body is not None else None,
            "targets": list(capture.targets),
            "stage": capture.stage.value,
            "seconds": round(capture.seconds, 4),
            "resources": dict(capture.resources),
        }

    def _frame(self, frame: Frame | None) -> dict[str, Any] | None:
        if frame is None:
            return None
        return {"path": self._outcome.shown_path(frame.path), "line": frame.line - 1}

    def _place(self, location: Location) -> dict[str, Any]:
        return {"path": self._outcome.shown_path(location.path), "range": self._range(location)}

    def _range(self, location: Location) -> dict[str, Any]:
        return lsp_range(self._outcome, location.path, location.range)


def lsp_range(outcome: Outcome, path: str, range_: Range) -> dict[str, dict[str, int]]:
    """A range as LSP writes it: 0-based lines, columns in UTF-16 code units."""
    lines = outcome.sources.lines(path)
    points = []
    for position in (range_.start, range_.end):
        line, character = (position.line, position.character) if lines is None else lines.to_utf16(position)
        points.append({"line": line, "character": character})
    return {"start": points[0], "end": points[1]}
