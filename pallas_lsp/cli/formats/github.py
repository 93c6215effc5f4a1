"""``--format github``: workflow commands, which GitHub Actions shows as annotations on the changed lines."""

from __future__ import annotations

import os

from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.confirm.wording import with_verdicts
from pallas_lsp.model import Location, Severity
from pallas_lsp.origins import shown_path

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}


def render(outcome: Outcome, view: View) -> None:
    root = os.environ.get("GITHUB_WORKSPACE") or outcome.cwd
    for finding in outcome.findings:
        message = [with_verdicts(finding)]
        message += [f"{_point(each.location, root)}: {each.message}" for each in finding.related]
        message += [f"fix: {fix.title}" for fix in finding.fixes if fix.verified]
        title = f"pallas-lsp ({finding.rule})"
        _command(view, _COMMANDS[finding.severity], finding.location, title, "\n".join(message), root)
    for problem in outcome.problems:
        message = [problem.message, problem.remedy]
        _command(view, "warning", problem.location, "pallas-lsp (not checked)", "\n".join(filter(None, message)), root)


def _command(view: View, command: str, location: Location | None, title: str, message: str, root: str) -> None:
    properties: dict[str, str] = {}
    if location is not None:
        start, end = location.range.start, location.range.end
        properties["file"] = shown_path(location.path, root)
        properties["line"] = str(start.line + 1)
        properties["endLine"] = str(end.line + 1)
        if start.line == end.line:  # GitHub takes no columns for a range of several lines
            properties["col"] = str(start.character + 1)
            properties["endColumn"] = str(end.character + 1)
    properties["title"] = title
    written = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    view.out.write(f"::{command} {written}::{_escape_data(message)}\n")


def _point(location: Location, root: str) -> str:
    return f"{shown_path(location.path, root)}:{location.range.start.line + 1}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
