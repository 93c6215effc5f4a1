"""The command ``pallas-lsp``: its subcommands, one module each, found by ``COMMANDS``."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from pallas_lsp import __version__
from pallas_lsp.cli.outcome import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from pallas_lsp.cli.streams import ensure_standard_streams, silence

COMMANDS = {
    "check": "check files or folders and report what is wrong",
    "kernels": "list the launches, each kernel's argument types and where they come from",
    "record": "run a program and remember the argument types of its kernels",
    "explain": "show the page of a rule, or list all rules",
    "doctor": "say what is installed, what is missing and what to do",
    "serve": "run the language server for an editor",
    "trust": "say whether the language server may run a folder's code",
}
"""Name and help.  The module ``pallas_lsp.cli.NAME`` has ``configure(parser)`` and ``run(arguments) -> exit code``."""


class UsageError(Exception):
    """What was wrong with the command line; exit code 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen subcommand's module is imported, so that none waits for the others."""
    parser = _Parser(
        prog="pallas-lsp",
        description="Shows the faults of JAX Pallas kernels on their exact line, without a GPU.",
        epilog="'pallas-lsp COMMAND --help' describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"pallas-lsp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        if name == chosen:
            importlib.import_module(f"pallas_lsp.cli.{name}").configure(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit code."""
    ensure_standard_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    try:
        parsed = build_parser(chosen).parse_args(words)
        try:
            code = int(importlib.import_module(f"pallas_lsp.cli.{parsed.command}").run(parsed))
        except UsageError as error:
            print(f"pallas-lsp {parsed.command}: error: {error}", file=sys.stderr)
            code = EXIT_USAGE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
        with contextlib.suppress(OSError):
            print("pallas-lsp: interrupted", file=sys.stderr)
    except BrokenPipeError:  # whoever read our output has had enough
        code = EXIT_OK
    except Exception:  # must not look like findings, which are 1
        code = EXIT_INTERNAL
        traceback.print_exc()
        print("pallas-lsp: this is a fault of Pallas LSP; please report it with the lines above.", file=sys.stderr)
    except SystemExit as leaving:  # argparse: --help, --version, usage
        code = leaving.code if isinstance(leaving.code, int) else EXIT_OK
    return _flushed(code)


def _flushed(code: int) -> int:
    """Everything printed is out before the interpreter ends, which would complain of a broken pipe."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            silence(stream)
    return code
