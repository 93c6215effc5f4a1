"""The progress bar, on a terminal's standard error only."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from pallas_lsp.cli.excerpt import printable
from pallas_lsp.cli.streams import is_terminal
from pallas_lsp.model import Fix
from pallas_lsp.origins import shown_path

_OTHER_COLUMNS = 46
"""The width of the spinner, the bar, the count and the clock."""


class Bar:
    """How many files are done and what is being done; it is gone when the report is printed."""

    def __init__(self, files: int, passes: int, cwd: str, color: bool) -> None:
        self._cwd = cwd
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            console=Console(file=sys.stderr, no_color=not color, markup=False, emoji=False),
            transient=True,
            disable=not is_terminal(sys.stderr),
        )
        self._task: TaskID = self._progress.add_task("", total=files * passes)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()

    def checking(self, path: str) -> None:
        self._describe(f"checking {shown_path(path, self._cwd)}")

    def verifying(self, path: str, fix: Fix) -> None:
        self._describe(f"verifying in {shown_path(path, self._cwd)}: {fix.title}")

    def done(self) -> None:
        self._progress.advance(self._task)

    def _describe(self, text: str) -> None:
        text = printable(text)
        longest = max(self._progress.console.width - _OTHER_COLUMNS, 10)
        shown = text if cell_len(text) <= longest else set_cell_size(text, longest - 1) + "…"
        self._progress.update(self._task, description=shown.replace("[", r"\["))
