"""Where the output goes and how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from rich.console import Console

from pallas_lsp.cli.streams import is_terminal, supports_unicode

PLAIN_WIDTH = 160
"""The width of excerpts where there is no terminal to ask."""
NARROWEST = 40


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the caller: the exit code says what was found, whoever has stopped reading."""
        raise BrokenPipeError


@dataclass(frozen=True)
class View:
    out: IO[str]
    color: bool = False
    verbose: bool = False
    resources: bool = False

    @property
    def width(self) -> int:
        return max(self.console().width, NARROWEST)

    @property
    def ascii_only(self) -> bool:
        return not supports_unicode(self.out)

    def console(self, plain_width: int = PLAIN_WIDTH) -> Console:
        terminal = is_terminal(self.out)
        return _Console(
            file=self.out,
            force_terminal=self.color,
            color_system="standard" if self.color else None,
            no_color=not self.color,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
            legacy_windows=None if terminal else False,
            width=None if terminal else plain_width,
        )
