"""What was decided by hand: ``docs/catalogue/judgements.toml``, whose head says how it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pallas_lsp.rules.catalogue.evidence import INTERNAL, REACHABLE, Verdict
from pallas_lsp.rules.catalogue.sites import Site


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    file: str
    functions: tuple[str, ...] = ("*",)
    texts: tuple[str, ...] = ("",)
    assertions: bool = False

    def fits(self, site: Site) -> bool:
        said = f"{site.exception}: {site.text}"
        return (
            fnmatchcase(site.file, self.file)
            and any(fnmatchcase(site.function, pattern) for pattern in self.functions)
            and any(text in said for text in self.texts)
            and (not self.assertions or (site.exception == "assert" and site.silent))
        )


def read(path: Path) -> tuple[Judgement, ...]:
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("judgement", [])
    return tuple(
        Judgement(
            Verdict(REACHABLE if entry["reachable"] else INTERNAL, entry["reason"]),
            entry["file"],
            tuple(entry.get("functions", ("*",))),
            tuple(entry.get("texts", ("",))),
            entry.get("assertions", False),
        )
        for entry in entries
    )


def of(site: Site, judgements: Sequence[Judgement]) -> Judgement | None:
    """The first judgement that fits a site."""
    return next((each for each in judgements if each.fits(site)), None)
