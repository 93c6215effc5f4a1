"""The recorded catalogue, ``docs/catalogue/sites.csv``: every site with its versions, its class, and the reason for it.

Which rule explains a site is not recorded: the rules say it themselves.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pallas_lsp.rules.catalogue import judgements
from pallas_lsp.rules.catalogue.evidence import Verdict
from pallas_lsp.rules.catalogue.judgements import Judgement
from pallas_lsp.rules.catalogue.probe import Jax
from pallas_lsp.rules.catalogue.sites import Site

FOLDER = Path("docs/catalogue")
SITES, JUDGEMENTS = "sites.csv", "judgements.toml"
_HEAD = ("file", "function", "exception", "text", "number", "versions", "class", "reason")


@dataclass(frozen=True)
class Row:
    site: Site
    versions: tuple[str, ...]
    verdict: Verdict


def load(path: Path) -> dict[Site, Row]:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for each in rows:
        site = Site(each["file"], each["function"], each["exception"], each["text"], int(each["number"] or 1))
        found[site] = Row(site, tuple(each["versions"].split()), Verdict(each["class"], each["reason"]))
    return found


def dump(rows: Iterable[Row]) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_HEAD)
    for row in sorted(rows, key=lambda row: row.site):
        site = row.site
        number = site.number if site.number > 1 else ""
        known = (" ".join(row.versions), row.verdict.kind, row.verdict.reason)
        out.writerow((site.file, site.function, site.exception, site.text, number, *known))
    return text.getvalue()


def updated(rows: Mapping[Site, Row], read: Sequence[Jax], by_hand: Sequence[Judgement]) -> dict[Site, Row]:
    """The catalogue after some versions were read again; what no version has any more is left out."""
    again = {jax.version for jax in read}
    found = {
        site: replace(row, versions=tuple(v for v in row.versions if v not in again)) for site, row in rows.items()
    }
    for jax in sorted(read, key=lambda jax: _numbers(jax.version)):
        for site, verdict in jax.sites.items():
            kept = found[site].versions if site in found else ()
            found[site] = Row(site, tuple(sorted({*kept, jax.version}, key=_numbers)), verdict)
    return {site: judged(row, by_hand) for site, row in found.items() if row.versions}


def judged(row: Row, by_hand: Sequence[Judgement]) -> Row:
    decided = judgements.of(row.site, by_hand)
    return replace(row, verdict=decided.verdict) if decided is not None else row


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
