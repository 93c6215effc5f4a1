"""How much of what a user can reach is explained by a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pallas_lsp.rules.base import FALLBACK
from pallas_lsp.rules.catalogue import claims, trial
from pallas_lsp.rules.catalogue.claims import Claim
from pallas_lsp.rules.catalogue.evidence import INTERNAL, UNCLASSIFIED
from pallas_lsp.rules.catalogue.record import Row
from pallas_lsp.rules.catalogue.sites import Site

TOLD, ECHOED, CLAIMED = "told", "echoed", "claimed"


@dataclass(frozen=True)
class Assigned:
    """A reachable site and the rule that explains it, or the rules that claim it.

    ``how``: ``told`` where the rule answers to the raise alone, ``echoed`` where it does so with jax's own words,
    ``claimed`` where it declares the site and asks for facts of the program besides, empty for the fall-back.
    """

    row: Row
    rule: str
    how: str


@dataclass
class Count:
    sites: int = 0
    reachable: int = 0
    told: int = 0
    echoed: int = 0
    claimed: int = 0
    unclassified: int = 0

    @property
    def fallback(self) -> int:
        return self.reachable - self.told - self.echoed - self.claimed

    @property
    def share(self) -> float:
        return (self.told + self.claimed) / self.reachable if self.reachable else 1.0


def assign(rows: Iterable[Row], every: Sequence[Claim]) -> Iterator[Assigned]:
    """The reachable rows with their rules."""
    for row in rows:
        if row.verdict.kind in (INTERNAL, UNCLASSIFIED):
            continue
        rule, how = _rule(row.site, every)
        yield Assigned(row, rule, how)


def _rule(site: Site, every: Sequence[Claim]) -> tuple[str, str]:
    told = trial.told_by(site)
    if told is not None:
        return told.rule, ECHOED if told.echoed else TOLD
    claimed = claims.of(site, every)
    return (", ".join(claimed), CLAIMED) if claimed else (FALLBACK, "")


def count(rows: Iterable[Row], assigned: Iterable[Assigned]) -> dict[str, Count]:
    """By file."""
    found: dict[str, Count] = {}
    for row in rows:
        one = found.setdefault(row.site.file, Count())
        one.sites += 1
        one.unclassified += row.verdict.kind == UNCLASSIFIED
    for each in assigned:
        one = found[each.row.site.file]
        one.reachable += 1
        one.told += each.how == TOLD
        one.echoed += each.how == ECHOED
        one.claimed += each.how == CLAIMED
    return found


def table(counts: dict[str, Count]) -> str:
    """The counts as text, a line a file, and the sums of folders and of all."""
    lines = [f"{'sites':>6} {'reach':>6} {'told':>6} {'claim':>6} {'echo':>6} {'fall':>6} {'rules':>6} {'open':>5}"]
    groups: dict[str, Count] = {}
    for file, one in counts.items():
        lines.append(f"{_numbers(one)}  {file}")
        for group in (_group(file), "in all"):
            _add(groups.setdefault(group, Count()), one)
    lines.append("")
    total = groups.pop("in all", Count())
    lines += [f"{_numbers(one)}  {group}" for group, one in groups.items()]
    lines.append(f"{_numbers(total)}  in all")
    return "\n".join(lines)


def _group(file: str) -> str:
    folder, _, name = file.rpartition("/")
    if folder.startswith("jax/experimental/pallas"):
        return "jax/experimental/pallas/ops"
    return f"{folder}/" if name else folder


def _add(total: Count, one: Count) -> None:
    for name in ("sites", "reachable", "told", "echoed", "claimed", "unclassified"):
        setattr(total, name, getattr(total, name) + getattr(one, name))


def _numbers(one: Count) -> str:
    values = (one.sites, one.reachable, one.told, one.claimed, one.echoed, one.fallback)
    return " ".join(f"{value:6}" for value in values) + f" {one.share:6.1%} {one.unclassified:5}"
