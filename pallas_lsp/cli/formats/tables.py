"""The table of launches that ``check -v`` shows: what was reached, by what, with which arguments, and how far."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from pallas_lsp.cli.excerpt import printable
from pallas_lsp.cli.formats.summary import UNCHECKED
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.model import Capture, LaunchStatus


def launch_table(outcome: Outcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("launch", "kernel", "arguments", "reached by", "lowered for", "stage", "ms"):
        table.add_column(column, overflow="fold", justify="right" if column == "ms" else "left")
    for status in outcome.launches:
        launch = status.launch
        place = _place(outcome, launch.location.path, launch.location.range.start.line + 1)
        if not status.captures:
            reason = Text(f"not reached: {printable(status.reason)}", UNCHECKED)
            table.add_row(Text(place), Text(printable(launch.body or launch.api)), reason)
        for capture in status.captures:
            table.add_row(*(Text(printable(cell)) for cell in _cells(outcome, place, status, capture)))
    return table


def _place(outcome: Outcome, path: str, line: int) -> str:
    return printable(f"{outcome.shown_path(path)}:{line}")


def _cells(outcome: Outcome, place: str, status: LaunchStatus, capture: Capture) -> list[str]:
    kernel = capture.body.name if capture.body is not None else status.launch.body or status.launch.api
    source = capture.driver
    if capture.call is not None and (call := _place(outcome, capture.call.path, capture.call.line)) != place:
        source += f" at {call}"
    lowered = ", ".join(capture.targets) or f"({capture.backend.value})"
    return [place, kernel, capture.arguments, source, lowered, capture.stage.value, f"{capture.seconds * 1000:.0f}"]
