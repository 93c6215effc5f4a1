"""``pallas-lsp doctor``: what is installed, what is missing, what to do."""

from __future__ import annotations

import argparse
import json
import os
import sys

from rich.text import Text

from pallas_lsp.cli.diagnosis import Diagnosis, diagnose
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.interrupts import run_interruptible
from pallas_lsp.cli.outcome import EXIT_OK, EXIT_UNCHECKED
from pallas_lsp.cli.streams import use_color

_STYLES = {"ok": "green", "note": "blue", "warning": "bold yellow", "error": "bold red"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "exit codes: 0 kernels can be checked, 2 the command line was wrong, 3 kernels cannot be checked"
    parser.add_argument("--python", metavar="INTERPRETER", help="the Python to look at (default: the one 'check' uses)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")


def run(arguments: argparse.Namespace) -> int:
    diagnosis = run_interruptible(lambda: diagnose(arguments.python, os.getcwd()))  # noqa: PTH109
    view = View(sys.stdout, use_color(sys.stdout, arguments.color))
    if arguments.format == "json":
        _json(diagnosis, view)
    else:
        _text(diagnosis, view)
    return EXIT_OK if diagnosis.usable else EXIT_UNCHECKED


def _json(diagnosis: Diagnosis, view: View) -> None:
    items = [
        {"name": item.name, "state": item.state, "value": item.value, "remedy": item.remedy} for item in diagnosis.items
    ]
    document = {"usable": diagnosis.usable, **diagnosis.facts, "items": items}
    json.dump(document, view.out, indent=2, ensure_ascii=view.ascii_only)
    view.out.write("\n")


def _text(diagnosis: Diagnosis, view: View) -> None:
    console = view.console()
    name_width = max(len(item.name) for item in diagnosis.items)
    for item in diagnosis.items:
        console.print(
            Text.assemble(
                (f"{item.state:<8}", _STYLES[item.state]), (f"{item.name:<{name_width}}  ", "bold"), item.value
            )
        )
        for line in item.remedy.splitlines():
            console.print(Text.assemble(" " * (8 + name_width + 2), ("-> ", "bold"), line))
    console.print()
    if diagnosis.usable:
        console.print(Text("Kernels can be checked.", "bold green"))
    else:
        console.print(Text("Kernels cannot be checked: see what is marked as an error above.", "bold red"))
