"""The closing lines: what was found, what was not checked, and what to do next."""

from __future__ import annotations

from rich.text import Text

from pallas_lsp.cli.outcome import Outcome, count_by_severity, is_applicable
from pallas_lsp.model import Severity

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
UNCHECKED = "bold magenta"
_NAMES = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "remark",
    Severity.HINT: "hint",
}


def summary(outcome: Outcome) -> list[Text]:
    rows = []
    if outcome.applied:
        verb = "Would apply" if outcome.diff is not None else "Applied"
        rows.append(Text(f"{verb} {_plural(len(outcome.applied), 'fix', 'fixes')}.", "bold green"))
    checked = _what_was_checked(outcome)
    if outcome.findings:
        counts = count_by_severity(outcome.findings)
        found = [_plural(counts[each], _NAMES[each]) for each in Severity if counts[each]]
        style = STYLES[next(each for each in Severity if counts[each])]
        rows.append(Text.assemble((f"Found {_listed(found)}", style), f" in {checked}."))
    elif outcome.problems and not any(status.captures for status in outcome.launches):
        rows.append(Text.assemble(("Nothing could be checked", "bold"), f" in {checked}."))
    elif outcome.problems:
        rows.append(Text.assemble(("Found nothing", "bold"), f" in what could be checked: {checked}."))
    elif not outcome.files:
        rows.append(Text("No file to check.", "bold"))
    elif not outcome.launches:
        rows.append(Text.assemble(("No kernel is launched", "bold"), f" in {checked}: there was nothing to check."))
    else:
        rows.append(Text.assemble(("No fault found", "bold green"), f" in {checked}."))
    if outcome.problems:
        log = f" The log is {outcome.log}." if outcome.log else ""
        rows.append(Text.assemble((f"{_plural(len(outcome.problems), 'thing')} could not be checked.", UNCHECKED), log))
    if outcome.gpus:
        rows.append(Text(f"Compiled on {_listed(list(outcome.gpus))}."))
    rows += [Text(f"Not confirmed by a GPU: {reason.removeprefix('no GPU: ')}.") for reason in outcome.unconfirmed]
    applicable = sum(any(is_applicable(fix) for fix in finding.fixes) for finding in outcome.findings)
    if applicable:
        rows.append(Text(f"{_plural(applicable, 'finding')} can be fixed with --fix (--diff shows the change)."))
    return rows


def _what_was_checked(outcome: Outcome) -> str:
    reached = [status for status in outcome.launches if status.captures]
    types = {(each.launch.location, capture.arguments) for each in reached for capture in each.captures}
    parts = _plural(len(outcome.files), "file")
    if outcome.launches:
        parts += f" with {_plural(len(outcome.launches), 'launch', 'launches')}"
        if 0 < len(reached) < len(outcome.launches):
            parts += f", {len(reached)} of them reached"
        if len(types) > len(reached):
            parts += f", for {len(types)} argument types"
    return f"{parts} (jax {outcome.jax})" if outcome.jax else parts


def _plural(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
