"""From the measured phrases of a session to the figures and their table."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from editor import percentile
from session import Expected, Phrase
from subjects import FIFTY, ONE

RATIO, MORE_SECONDS = 1.3, 0.02
"""The target: a result comes after at most 1.3 times the bare work and 20 ms, besides the wait for further edits."""
_EDITS = "new correct text"
_SYNTAX = "broken syntax"
_BACK = "text seen before"
_HELPER = "helper edited"
WHAT = {
    Expected.TRACE: "finding of tracing",
    Expected.LOWER: "finding of lowering",
    Expected.CLEAN: _EDITS,
    Expected.SYNTAX: _SYNTAX,
}
_ORDER = (*WHAT.values(), _HELPER, _BACK)


def _what(phrase: Phrase) -> str:
    if phrase.back:
        return _BACK
    return _HELPER if phrase.kind == "helper" else WHAT[phrase.expected]


@dataclass(frozen=True)
class Measured:
    """Seconds after the last keystroke of a phrase.

    ``wait``: until the check began, ``stable``: until nothing more came, ``found``: until the finding was shown,
    ``bare``: what the bare process needed to come as far.
    """

    phrase: Phrase
    wait: float
    stable: float
    found: float | None = None
    bare: float | None = None

    @property
    def result(self) -> float:
        """When the user has what the phrase leads to."""
        return self.found if self.found is not None else self.stable


@dataclass
class Result:
    kernel: str
    keystrokes: int
    open_seconds: float = 0.0
    measured: list[Measured] = field(default_factory=list)
    anew: list[float] = field(default_factory=list)


def document(results: Iterable[Result], jax: str, machine: Mapping[str, Any]) -> dict[str, Any]:
    kernels = {result.kernel: _kernel(result) for result in results}
    figures: dict[str, Any] = {
        "jax": jax, "machine": machine, "date": datetime.date.today().isoformat(), "kernels": kernels,
    }  # fmt: skip
    if FIFTY in kernels and ONE in kernels:
        many, one = (kernels[name]["results"] for name in (FIFTY, ONE))
        edits = [what for what in (WHAT[Expected.TRACE], WHAT[Expected.LOWER], _EDITS) if what in many and what in one]
        if edits:
            ratios = [many[what]["checking"]["p50"] / one[what]["checking"]["p50"] for what in edits]
            figures["fifty_to_one"] = median(ratios)
    return figures


def _kernel(result: Result) -> dict[str, Any]:
    groups: dict[str, list[Measured]] = {}
    for each in result.measured:
        groups.setdefault(_what(each.phrase), []).append(each)
    found = {what: _group(groups[what]) for what in _ORDER if what in groups}
    figures: dict[str, Any] = {
        "keystrokes": result.keystrokes,
        "phrases": len(result.measured),
        "open_seconds": result.open_seconds,
        "stable": _spread([each.stable for each in result.measured]),
        "results": found,
    }
    if result.anew and _EDITS in found:
        figures["anew_seconds"] = median(result.anew)
        figures["times_faster_than_anew"] = median(result.anew) / found[_EDITS]["checking"]["p50"]
    return figures


def _group(group: list[Measured]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "count": len(group),
        "wait": _spread([each.wait for each in group]),
        "result": _spread([each.result for each in group]),
        "checking": _spread([each.result - each.wait for each in group]),
    }
    pairs = [(each.result - each.wait, each.bare) for each in group if each.bare is not None]
    if pairs:
        figures["bare"] = _spread([bare for _, bare in pairs])
        figures["to_bare"] = _spread([checking / bare for checking, bare in pairs])
        within = sum(checking <= RATIO * bare + MORE_SECONDS for checking, bare in pairs)
        figures["within_target"] = within / len(pairs)
    return figures


def _spread(values: list[float]) -> dict[str, float]:
    return {"p50": median(values), "p95": percentile(values, 95), "worst": max(values)}


def markdown(figures: Mapping[str, Any]) -> str:
    machine = figures["machine"]
    load = "" if machine["load_per_core"] is None else f", {machine['load_per_core']:.1f} processes a core at the end"
    lines = [
        f"Measured on {figures['date']} with jax {figures['jax']} on {machine['cpus']} cores{load}. Milliseconds.",
        "",
        "| kernel | what | times | wait p50 | shown p50 | p95 | worst | bare p50 | ratio p50 | p95 | within target |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, kernel in figures["kernels"].items():
        for what, group in kernel["results"].items():
            cells = [name, what, str(group["count"]), _ms(group["wait"]["p50"]), *map(_ms, group["result"].values())]
            if "bare" in group:
                ratio = group["to_bare"]
                cells += [_ms(group["bare"]["p50"]), f"{ratio['p50']:.2f}", f"{ratio['p95']:.2f}"]
                cells += [f"{100 * group['within_target']:.0f} %"]
            else:
                cells += ["", "", "", ""]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| kernel | keystrokes | stable p50 | p95 | worst | opened | run anew | times faster |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name, kernel in figures["kernels"].items():
        cells = [name, str(kernel["keystrokes"]), *map(_ms, kernel["stable"].values()), _ms(kernel["open_seconds"])]
        anew = kernel.get("anew_seconds")
        cells += ["", ""] if anew is None else [_ms(anew), f"{kernel['times_faster_than_anew']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    if "fifty_to_one" in figures:
        lines += ["", f"Editing one kernel of 50 costs {figures['fifty_to_one']:.2f} times editing it alone."]
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f}"
