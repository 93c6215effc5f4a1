"""The catalogue of the places where jax refuses a kernel, and how many of them a rule explains.

    python scripts/catalogue.py [--python PYTHON ...] [--write] [--fall-back [PART]] [--claimed [PART]]

Reads the sources of the jax that each PYTHON has (those under ``.venvs/jax-*`` without any), tells what is new and what
vanished against ``docs/catalogue/sites.csv``, and prints the coverage.  ``docs/catalogue.md`` says how to go on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from pallas_lsp.rules.catalogue import claims, coverage, judgements, probe, record  # noqa: E402
from pallas_lsp.rules.catalogue.coverage import CLAIMED, Assigned  # noqa: E402
from pallas_lsp.rules.catalogue.evidence import UNCLASSIFIED  # noqa: E402
from pallas_lsp.rules.catalogue.sites import Site  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="The catalogue of jax's raise sites.")
    parser.add_argument("--python", action="append", default=[], help="an interpreter with a jax to read")
    parser.add_argument("--version", help="count only the sites of this recorded version")
    parser.add_argument("--write", action="store_true", help="record what was read and decided")
    parser.add_argument("--fall-back", nargs="?", const="", metavar="PART", help="list the sites without a rule")
    parser.add_argument("--claimed", nargs="?", const="", metavar="PART", help="list what rules claim but do not tell")
    options = parser.parse_args()

    folder = PROJECT / record.FOLDER
    kept = record.load(folder / record.SITES)
    by_hand = judgements.read(folder / record.JUDGEMENTS)
    read = [probe.ask(python) for python in options.python or _interpreters()]
    rows = record.updated(kept, read, by_hand)
    for title, sites in (("new", set(rows) - set(kept)), ("vanished", set(kept) - set(rows))):
        for site in sorted(sites):
            print(f"{title}: {_line(site)}")
    for row in rows.values():
        if row.verdict.kind == UNCLASSIFIED:
            print(f"unclassified: {_line(row.site)}")
    if options.write:
        (folder / record.SITES).write_text(record.dump(rows.values()), encoding="utf-8", newline="\n")
    chosen = [row for row in rows.values() if options.version in (None, *row.versions)]
    assigned = list(coverage.assign(chosen, claims.claims()))
    for given, how in ((options.fall_back, ""), (options.claimed, CLAIMED)):
        if given is not None:
            _print(assigned, how, given)
    print(coverage.table(coverage.count(sorted(chosen, key=lambda row: row.site), assigned)))
    return 0


def _interpreters() -> list[str]:
    return [str(path) for path in sorted(PROJECT.glob(".venvs/jax-*/bin/python"))]


def _print(assigned: list[Assigned], how: str, part: str) -> None:
    for each in sorted(assigned, key=lambda each: each.row.site):
        line = _line(each.row.site)
        if each.how == how and part in line:
            print(f"{each.rule}: {line}")


def _line(site: Site) -> str:
    return f"{site.file} {site.function}: {site.exception}: {site.text}"


if __name__ == "__main__":
    sys.exit(main())
