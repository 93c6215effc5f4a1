"""The output formats: one file each, found by this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pallas_lsp.cli.formats import github, json, sarif, text
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import Outcome

FORMATS: Mapping[str, Callable[[Outcome, View], None]] = {
    "text": text.render,
    "json": json.render,
    "github": github.render,
    "sarif": sarif.render,
}
