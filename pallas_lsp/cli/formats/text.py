"""``--format text``: for people, with the source and the exact range underlined."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from pallas_lsp.cli.diffs import changed_lines, edited
from pallas_lsp.cli.excerpt import GUTTER_STYLE, Mark, draw, gutter_width, printable
from pallas_lsp.cli.formats.summary import STYLES, UNCHECKED, summary
from pallas_lsp.cli.formats.tables import print_launches
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import CIRCUMSTANCES, Outcome
from pallas_lsp.confirm.wording import figures, verdict_sentences
from pallas_lsp.engine.errors import FILE_KINDS, WORKER_KINDS
from pallas_lsp.model import Finding, Fix, Location, Position, Problem, Related, Safety

_SECONDARY = "bold blue"
_FIX_LINES = 16
_SENTENCE = re.compile(r"(?<=[\w)\]`'\"][.!?]) +(?=[A-Z`])")
_EXCERPTS = 3
"""The places of one problem that are shown with their source; of more, only the places."""
_WHOLE_FILE = (WORKER_KINDS.keys() | FILE_KINDS.keys()) - {"syntax", "backend-missing"}
_TABLE_WIDTH = 1000
"""Where there is no terminal, lines may be as long as they have to be."""


def render(outcome: Outcome, view: View) -> None:
    console = view.console()
    for finding in outcome.findings:
        _print(console, _FindingText(outcome, finding, view.width).rows())
    for group in _group(outcome.problems):
        _print(console, _problems(outcome, group, view.width))
    if view.resources and outcome.launches:
        _print(console, _resources(outcome))
    if view.verbose and outcome.launches:
        print_launches(outcome, view.console(plain_width=_TABLE_WIDTH))
        console.print()
    _print(console, summary(outcome), end=False)


def _resources(outcome: Outcome) -> Iterable[Text]:
    """What each kernel needs, and on which GPU."""
    for status in outcome.launches:
        for capture in status.captures:
            name = capture.body.name if capture.body is not None else capture.api
            yield Text.assemble((f"{point(outcome, status.launch.location)} ", GUTTER_STYLE), (printable(name), "bold"))
            yield Text(f"    for {printable(capture.arguments)}")
            lines = figures(capture)
            yield from (Text(f"    {printable(line)}") for line in lines or ["nothing is known of what it needs"])


def _print(console: Console, rows: Iterable[Text], end: bool = True) -> None:
    for row in rows:
        console.print(row)
    if end:
        console.print()


class _FindingText:
    def __init__(self, outcome: Outcome, finding: Finding, width: int) -> None:
        self._outcome = outcome
        self._finding = finding
        self._width = width
        self._style = STYLES[finding.severity]
        marks = [Mark(finding.location.range), *(Mark(each.location.range) for each in finding.related)]
        self._gutter = gutter_width(marks)

    def rows(self) -> list[Text]:
        finding = self._finding
        first, *rest = finding.message.splitlines() or [""]
        first, *more = _SENTENCE.split(first, maxsplit=1)
        rest = more + rest
        rows = [
            Text.assemble(
                (f"{finding.severity.value}[{finding.rule}]", self._style),
                (f": {printable(first)}", "bold"),
            )
        ]
        rows += self._excerpts()
        rows += [self._note("note", printable(line)) for line in rest if line.strip()]
        rows += self._circumstances()
        rows += [self._note("gpu", printable(sentence)) for sentence in verdict_sentences(finding)]
        for fix in finding.fixes:
            rows += self._fix(fix)
        return rows

    def _excerpts(self) -> list[Text]:
        """The finding's file first; related places in the same file are drawn into the same excerpt."""
        location = self._finding.location
        by_path: dict[str, list[Related]] = {location.path: []}
        for each in self._finding.related:
            by_path.setdefault(each.location.path, []).append(each)
        rows: list[Text] = []
        for path, related in by_path.items():
            primary = path == location.path
            marks = [Mark(each.location.range, _label(each.message), _SECONDARY, False) for each in related]
            if primary:
                marks.insert(0, Mark(location.range, "", self._style))
            lines = self._outcome.sources.lines(path)
            start = location if primary else related[0].location
            rows.append(self._arrow("-->" if primary else ":::", start))
            if lines is not None:
                rows += draw(lines, marks, self._gutter, self._width)
            elif not primary:
                rows += [self._note("note", f"{self._point(each.location)}: {each.message}") for each in related]
        return rows

    def _arrow(self, arrow: str, location: Location) -> Text:
        return Text.assemble((" " * self._gutter + f"{arrow} ", GUTTER_STYLE), self._point(location))

    def _point(self, location: Location) -> str:
        return point(self._outcome, location)

    def _note(self, kind: str, message: str) -> Text:
        return Text.assemble((" " * self._gutter + " = ", GUTTER_STYLE), (f"{kind}: ", "bold"), message)

    def _circumstances(self) -> list[Text]:
        """For which argument types it holds, unless the message has said so."""
        finding = self._finding
        if any(line.startswith(CIRCUMSTANCES) for line in finding.message.splitlines()):
            missing = [each for each in finding.arguments if each not in finding.message]
            return [self._note("note", f"also for {printable('; '.join(missing))}")] if missing else []
        if not finding.arguments:
            return []
        kernel = f" of kernel `{finding.kernel}`" if finding.kernel else ""
        return [self._note("note", printable(f"found for the arguments {'; '.join(finding.arguments)}{kernel}"))]

    def _fix(self, fix: Fix) -> list[Text]:
        rows = [
            Text.assemble(
                (" " * self._gutter + " = ", GUTTER_STYLE),
                ("fix", "bold green" if fix.verified else "bold"),
                f": {printable(fix.title)} ",
                _verdict(fix),
            )
        ]
        return rows + (self._preview(fix) if fix.verified is not False else [])

    def _preview(self, fix: Fix) -> list[Text]:
        rows: list[Text] = []
        for path in dict.fromkeys(edit.path for edit in fix.edits):
            lines = self._outcome.sources.lines(path)
            if lines is None:
                continue
            after = edited(lines.text, [edit for edit in fix.edits if edit.path == path])
            if path != self._finding.location.path:
                rows.append(Text(" " * self._gutter + f"::: {self._outcome.shown_path(path)}", GUTTER_STYLE))
            changes = changed_lines(lines.text, after)
            gutter = max(self._gutter, *(len(str(number)) for number, _, _ in changes), 1)
            for number, sign, line in changes[:_FIX_LINES]:
                style = "red" if sign == "-" else "green"
                text = Text(f"{str(number).rjust(gutter)} ", GUTTER_STYLE)
                rows.append(text.append(f"{sign} {printable(line)}".rstrip(), style))
            if len(changes) > _FIX_LINES:
                rows.append(Text(f"{' ' * gutter} ... {len(changes) - _FIX_LINES} more lines", GUTTER_STYLE))
        return rows


def _verdict(fix: Fix) -> tuple[str, str]:
    kind = "safe" if fix.safety is Safety.SAFE else "may change the meaning"
    if fix.verified:
        return f"({kind}, verified)", "green"
    if fix.verified is None:
        return f"({kind}, not verified)", "yellow"
    return f"(not verified: {printable(fix.reason) or 'it does not hold'})", "yellow"


def _label(message: str) -> str:
    return printable(" ".join(message.split()))


def point(outcome: Outcome, location: Location) -> str:
    start = location.range.start
    cell = outcome.sources.cell(location.path, start.line)
    line = f"cell {cell.number}:{max(start.line - cell.start, 0) + 1}" if cell is not None else f"{start.line + 1}"
    return f"{printable(outcome.shown_path(location.path))}:{line}:{start.character + 1}"


def _group(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Problems that differ in their place alone: an interpreter without jax is one for all files."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.kind, problem.message, problem.remedy), []).append(problem)
    return list(groups.values())


def _problems(outcome: Outcome, group: list[Problem], width: int) -> list[Text]:
    problem = group[0]
    first, *rest = problem.message.splitlines() or [""]
    rows = [Text.assemble((f"not checked[{problem.kind}]", UNCHECKED), (f": {printable(first)}", "bold"))]
    locations = [each.location for each in group if each.location is not None]
    shows_source = len(locations) <= _EXCERPTS and problem.kind not in _WHOLE_FILE
    marks = [Mark(location.range, "", UNCHECKED) for location in locations]
    gutter = gutter_width(marks)
    for location, mark in zip(locations, marks, strict=True):
        lines = outcome.sources.lines(location.path)
        whole = problem.kind in _WHOLE_FILE or location.range.end == Position(0, 0)
        place = printable(outcome.shown_path(location.path)) if whole else point(outcome, location)
        rows.append(Text.assemble((" " * gutter + "--> ", GUTTER_STYLE), place))
        if lines is not None and shows_source and not whole:
            rows += draw(lines, [mark], gutter, width)
    for kind, text in (("note", rest), ("help", problem.remedy.splitlines())):
        rows += [
            Text.assemble((" " * gutter + " = ", GUTTER_STYLE), (f"{kind}: ", "bold"), printable(line))
            for line in text
            if line.strip()
        ]
    return rows
