"""``pallas-lsp explain``: a rule's page, or the list of rules."""

from __future__ import annotations

import argparse
import difflib
import shutil
import sys

from rich import box
from rich.console import Console
from rich.table import Table

from pallas_lsp.cli.main import UsageError
from pallas_lsp.cli.outcome import EXIT_OK
from pallas_lsp.cli.rulebook import PAGE_WIDTH, all_rules, plain, render_markdown, rule_page
from pallas_lsp.cli.streams import is_terminal, use_color


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="RULE", help="the rule's name, as findings show it; none: list all")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")


def run(arguments: argparse.Namespace) -> int:
    color = use_color(sys.stdout, arguments.color)
    width = min(shutil.get_terminal_size((PAGE_WIDTH, 24)).columns, PAGE_WIDTH)
    if arguments.rule is None:
        _list(color, width)
        return EXIT_OK
    name = arguments.rule.strip().lower().replace("_", "-")
    if name not in {rule.name for rule in all_rules()}:
        raise UsageError(_unknown(arguments.rule, name))
    sys.stdout.write(render_markdown(rule_page(name), width=width, color=color))
    return EXIT_OK


def _unknown(given: str, name: str) -> str:
    names = [rule.name for rule in all_rules()]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    close += [each for each in names if name and name in each and each not in close][:3]
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"there is no rule named {given!r}.{hint} 'pallas-lsp explain' lists all rules."


def _list(color: bool, width: int) -> None:
    if not is_terminal(sys.stdout):  # one a line, for other programs
        for rule in all_rules():
            print(f"{rule.name}\t{plain(rule.summary)}")
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("rule", style="bold", no_wrap=True)
    table.add_column("what it does")
    for rule in all_rules():
        table.add_row(rule.name, plain(rule.summary))
    console = Console(file=sys.stdout, no_color=not color, highlight=False, markup=False, emoji=False, width=width)
    console.print(table)
    console.print("\n'pallas-lsp explain RULE' shows the page of a rule.")
