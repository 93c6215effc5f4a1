"""The table of launches that ``check -v`` shows: what was reached, by what, with which arguments, and how far."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from pallas_lsp.cli.excerpt import printable
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.model import Capture, LaunchStatus


def launch_table(outcome: Outcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title="Launches", title_justify="left")
    for column in ("place", "launch", "kernel", "arguments", "reached by", "for", "stage", "ms"):
        table.add_column(column, overflow="fold", justify="right" if column == "ms" else "left")
    for status in outcome.launches:
        place = f"{outcome.shown_path(status.launch.location.path)}:{status.launch.location.range.start.line + 1}"
        if not status.captures:
            reason = Text(f"not reached: {printable(status.reason)}", "magenta")
            table.add_row(printable(place), status.launch.api, printable(status.launch.body or ""), reason)
        for capture in status.captures:
            table.add_row(*_cells(outcome, place, status, capture))
            place = ""
    return table


def _cells(outcome: Outcome, place: str, status: LaunchStatus, capture: Capture) -> list[str]:
    kernel = capture.body.name if capture.body is not None else status.launch.body or ""
    cells = [
        place,
        status.launch.api,
        kernel,
        capture.arguments,
        _source(outcome, capture),
        ", ".join((capture.backend.value, *capture.targets)),
        capture.stage.value,
        f"{capture.seconds * 1000:.0f}",
    ]
    return [printable(cell) for cell in cells]


def _source(outcome: Outcome, capture: Capture) -> str:
    """The driver, and the line of its call that reached the launch."""
    if capture.call is None:
        return capture.driver
    return f"{capture.driver} ({outcome.shown_path(capture.call.path)}:{capture.call.line})"
