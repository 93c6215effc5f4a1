"""The launches that ``check -v`` shows: what was reached, by what, with which arguments, and how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pallas_lsp.cli.excerpt import printable
from pallas_lsp.cli.formats.summary import UNCHECKED
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.model import Capture, LaunchStatus
from pallas_lsp.origins import words

_HEADINGS = ("launch", "kernel", "arguments", "source", "lowered for", "stage", "ms")


@dataclass(frozen=True)
class _Row:
    place: str
    kernel: str
    arguments: str = ""
    source: str = ""
    lowered: str = ""
    stage: str = ""
    milliseconds: str = ""
    reason: str = ""


def print_launches(outcome: Outcome, console: Console) -> None:
    """A table, or a list where the terminal is too narrow for it."""
    rows = list(_rows(outcome))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=True, justify="right" if heading == "ms" else "left")
    for row in rows:
        if row.reason:
            table.add_row(row.place, row.kernel, Text(row.reason, UNCHECKED))
        else:
            table.add_row(
                row.place, row.kernel, row.arguments, row.source, row.lowered, row.stage, row.milliseconds
            )  # fmt: skip
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width:
        console.print(table, soft_wrap=False)
        return
    for row in rows:
        console.print(Text(f"{row.place}  {row.kernel}", "bold"))
        if row.reason:
            console.print(Text(f"    {row.reason}", UNCHECKED))
            continue
        console.print(Text(f"    arguments   {row.arguments}"))
        console.print(Text(f"    source      {row.source}"))
        console.print(Text(f"    {row.stage:<10}  {row.lowered}, {row.milliseconds} ms"))


def _rows(outcome: Outcome) -> Iterator[_Row]:
    for status in outcome.launches:
        launch = status.launch
        place = _place(outcome, launch.location.path, launch.location.range.start.line + 1)
        if not status.captures:
            yield _Row(place, printable(launch.body or launch.api), reason=f"not reached: {printable(status.reason)}")
        for capture in status.captures:
            yield _capture(outcome, place, status, capture)


def _capture(outcome: Outcome, place: str, status: LaunchStatus, capture: Capture) -> _Row:
    kernel = capture.body.name if capture.body is not None else status.launch.body or status.launch.api
    source = words(capture.driver, outcome.shown_path)
    if capture.call is not None and (call := _place(outcome, capture.call.path, capture.call.line)) != place:
        source += f" at {call}"
    return _Row(
        place,
        printable(kernel),
        printable(capture.arguments),
        printable(source),
        printable(", ".join(capture.targets) or f"({capture.backend.value})"),
        capture.stage.value,
        f"{capture.seconds * 1000:.0f}",
    )


def _place(outcome: Outcome, path: str, line: int) -> str:
    return printable(f"{outcome.shown_path(path)}:{line}")
