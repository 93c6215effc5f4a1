"""``pallas-lsp kernels``: the launches of files and folders, each kernel's argument types, and where they come from."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pallas_lsp.cli import check
from pallas_lsp.cli.formats.tables import print_launches
from pallas_lsp.cli.formats.text import point
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.main import UsageError
from pallas_lsp.cli.outcome import EXIT_OK, EXIT_UNCHECKED, Outcome
from pallas_lsp.cli.streams import silence, use_color
from pallas_lsp.model import Body, Capture, LaunchStatus, Problem, Stage
from pallas_lsp.origins import source

_ORDER = (Stage.READ, Stage.BUILD, Stage.TRACE, Stage.LOWER, Stage.CONFIRM)
_EXIT_CODES = """\
exit codes:
  0    every launch was reached
  2    the command line was wrong
  3    some launch was not reached; its reason is printed
"""


def configure(parser: argparse.ArgumentParser) -> None:
    check.configure_selection(parser)
    parser.epilog = _EXIT_CODES
    parser.set_defaults(confirm=False, confirm_command=None, launch=False, confirm_timeout=None, resources=False)
    parser.add_argument("--format", choices=("json", "text"), default="text", help="default: text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")


def run(arguments: argparse.Namespace) -> int:
    selection = check.selected(arguments)
    if not selection.files and not selection.empty_folders:
        raise UsageError("there is nothing to look at: name a Python file or a folder with some.")
    outcome = check.collect(arguments, selection, verify=False)
    try:
        if arguments.format == "json":
            json.dump([row.as_json(outcome) for row in rows(outcome)], sys.stdout, indent=1)
            sys.stdout.write("\n")
        else:
            console = View(sys.stdout, use_color(sys.stdout, arguments.color), True).console()
            print_launches(outcome, console)
            for problem in outcome.problems:
                console.print(_problem(outcome, problem), markup=False)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    return EXIT_OK if all(status.captures for status in outcome.launches) else EXIT_UNCHECKED


def _problem(outcome: Outcome, problem: Problem) -> str:
    """What to do about it; why a launch was not reached stands in its row."""
    if problem.kind != "not-reached":
        return f"{problem.message}. {problem.remedy}"
    return f"{point(outcome, problem.location)}: {problem.remedy}" if problem.location is not None else problem.remedy


@dataclass(frozen=True)
class Row:
    """One launch and one kernel that it launches; ``captures`` is empty where it was not reached."""

    status: LaunchStatus
    body: Body | None
    captures: tuple[Capture, ...]

    def as_json(self, outcome: Outcome) -> dict[str, Any]:
        launch = self.status.launch
        furthest = max(self.captures, key=lambda capture: _ORDER.index(capture.stage), default=None)
        body = self.body
        return {
            "path": outcome.shown_path(launch.location.path),
            "line": launch.location.range.start.line + 1,
            "api": launch.api,
            "kernel": {"path": outcome.shown_path(body.path), "line": body.line, "name": body.name} if body else None,
            "reached": bool(self.captures),
            "arguments": furthest.arguments if furthest is not None else None,
            "source": source(furthest.driver, outcome.shown_path) if furthest is not None else None,
            "stage": furthest.stage.value if furthest is not None else Stage.READ.value,
            "reason": None if self.captures else self.status.reason,
            "seconds": round(sum(capture.seconds for capture in self.captures), 4),
        }


def rows(outcome: Outcome) -> Iterator[Row]:
    for status in outcome.launches:
        kernels: dict[Body | None, list[Capture]] = {}
        for capture in status.captures:
            kernels.setdefault(capture.body, []).append(capture)
        if not kernels:
            yield Row(status, None, ())
        for body, captures in kernels.items():
            yield Row(status, body, tuple(captures))
