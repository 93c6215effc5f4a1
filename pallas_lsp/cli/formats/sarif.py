"""``--format sarif``: SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pallas_lsp import __version__
from pallas_lsp.cli.formats.json import lsp_range
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.cli.rulebook import plain_page, rule_page, rule_summary
from pallas_lsp.confirm.wording import with_verdicts
from pallas_lsp.model import Edit, Finding, Fix, Location, Problem, Severity
from pallas_lsp.server.pages import page_uri

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}


def render(outcome: Outcome, view: View) -> None:
    json.dump(_Writer(outcome).log(), view.out, indent=2, ensure_ascii=view.ascii_only, default=str)
    view.out.write("\n")


class _Writer:
    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._rules = sorted({finding.rule for finding in outcome.findings})
        self._seen: Counter[str] = Counter()

    def log(self) -> dict[str, Any]:
        outcome = self._outcome
        root = Path(os.path.realpath(outcome.cwd)).as_uri()
        run = {
            "tool": {
                "driver": {
                    "name": "Pallas LSP",
                    "version": __version__,
                    "semanticVersion": __version__,
                    "rules": [self._rule(name) for name in self._rules],
                }
            },
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": {_ROOT: {"uri": root if root.endswith("/") else f"{root}/"}},
            "artifacts": [{"location": self._artifact(path)} for path in outcome.files],
            "results": [self._result(finding) for finding in outcome.findings],
            "invocations": [
                {
                    "executionSuccessful": not outcome.problems,
                    "exitCode": outcome.exit_code,
                    "toolExecutionNotifications": [self._notification(problem) for problem in outcome.problems],
                    "properties": {
                        "environments": [
                            {"executable": worker.executable, "python": worker.python, "jax": worker.jax}
                            for worker in outcome.workers
                        ]
                    },
                }
            ],
        }
        return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}

    def _rule(self, name: str) -> dict[str, Any]:
        rule: dict[str, Any] = {
            "id": name,
            "shortDescription": {"text": rule_summary(name)},
            "help": {"text": plain_page(name), "markdown": rule_page(name)},
            "defaultConfiguration": {"level": "error"},
            "properties": {"tags": ["jax", "pallas"]},
        }
        uri = page_uri(name)
        if uri is not None:
            rule["helpUri"] = uri
        return rule

    def _result(self, finding: Finding) -> dict[str, Any]:
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": self._rules.index(finding.rule),
            "level": _LEVELS[finding.severity],
            "message": {"text": with_verdicts(finding)},
            "locations": [self._location(finding.location)],
            "partialFingerprints": {"pallasLsp/v1": self._fingerprint(finding)},
            "properties": {
                "stage": finding.stage.value,
                "kernel": finding.kernel,
                "arguments": list(finding.arguments),
            },
        }
        if verdicts := finding.data.get("verdicts"):
            result["properties"]["verdicts"] = list(verdicts)
        if finding.related:
            result["relatedLocations"] = [
                {"id": number, **self._location(each.location), "message": {"text": each.message}}
                for number, each in enumerate(finding.related, 1)
            ]
        fixes = [self._fix(fix) for fix in finding.fixes if fix.edits and fix.verified is not False]
        if fixes:
            result["fixes"] = fixes
        return result

    def _location(self, location: Location) -> dict[str, Any]:
        physical = {"artifactLocation": self._artifact(location.path), "region": self._region(location)}
        return {"physicalLocation": physical}

    def _artifact(self, path: str) -> dict[str, str]:
        shown = self._outcome.shown_path(path)
        if Path(shown).is_absolute():
            return {"uri": Path(path).as_uri()}
        return {"uri": quote(shown), "uriBaseId": _ROOT}

    def _region(self, location: Location) -> dict[str, int]:
        return _region(lsp_range(self._outcome, location.path, location.range))

    def _fix(self, fix: Fix) -> dict[str, Any]:
        edits: dict[str, list[Edit]] = {}
        for edit in fix.edits:
            edits.setdefault(edit.path, []).append(edit)
        return {
            "description": {"text": fix.title},
            "artifactChanges": [
                {
                    "artifactLocation": self._artifact(path),
                    "replacements": [
                        {
                            "deletedRegion": self._region(Location(path, edit.range)),
                            "insertedContent": {"text": edit.new_text},
                        }
                        for edit in group
                    ],
                }
                for path, group in edits.items()
            ],
            "properties": {"safety": fix.safety.value, "verified": fix.verified is True},
        }

    def _notification(self, problem: Problem) -> dict[str, Any]:
        notification: dict[str, Any] = {
            "level": "warning",
            "descriptor": {"id": problem.kind},
            "message": {"text": " ".join(filter(None, (_sentence(problem.message), problem.remedy)))},
        }
        if problem.location is not None:
            notification["locations"] = [self._location(problem.location)]
        return notification

    def _fingerprint(self, finding: Finding) -> str:
        """Stays the same while lines move: the rule, the file, the text of the line, and which of its kind it is."""
        location = finding.location
        lines = self._outcome.sources.lines(location.path)
        text = lines[location.range.start.line].strip() if lines is not None else ""
        key = "\n".join((finding.rule, self._outcome.shown_path(location.path), text))
        self._seen[key] += 1
        return hashlib.sha256(f"{key}\n{self._seen[key]}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _region(range_: dict[str, dict[str, int]]) -> dict[str, int]:
    start, end = range_["start"], range_["end"]
    return {
        "startLine": start["line"] + 1,
        "startColumn": start["character"] + 1,
        "endLine": end["line"] + 1,
        "endColumn": end["character"] + 1,
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
