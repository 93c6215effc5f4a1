"""``pallas-lsp record -- COMMAND...``: run a program and remember with which types its kernels were launched."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pallas_lsp.cli.main import UsageError
from pallas_lsp.origins import shown_path
from pallas_lsp.recorder.store import Recordings

_INJECT = Path(__file__).resolve().parent.parent / "recorder" / "inject"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pallas-lsp record -- COMMAND..."
    parser.epilog = (
        "The command runs as it would without this, on its own devices; its exit code is this command's.  The types "
        "that were seen are kept in the user's cache directory, and checks use them from then on."
    )
    parser.add_argument(
        "command_line", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command, for example: python train.py"
    )


def run(arguments: argparse.Namespace) -> int:
    command = arguments.command_line
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError("name the command to run, for example: pallas-lsp record -- python train.py")
    if shutil.which(command[0]) is None:
        raise UsageError(f"there is no command {command[0]!r}.")
    with tempfile.TemporaryDirectory(prefix="pallas-lsp-record-") as folder:
        noted = Path(folder) / "launches.jsonl"
        path = os.pathsep.join(part for part in (str(_INJECT), os.environ.get("PYTHONPATH", "")) if part)
        environment = {**os.environ, "PYTHONPATH": path, "PALLAS_LSP_RECORD": str(noted)}
        process = subprocess.Popen(command, env=environment)
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:  # the program got it too, and decides
                continue
        lines = noted.read_text(encoding="utf-8", errors="replace").splitlines() if noted.exists() else []
    counts = Recordings().add(lines)
    cwd = os.getcwd()  # noqa: PTH109 - as the shell shows it
    for file, new in sorted(counts.items()):
        print(f"pallas-lsp: {new} new calls recorded for {shown_path(file, cwd)}", file=sys.stderr)
    if not counts:
        print("pallas-lsp: no kernel was launched from a function whose arguments can be recorded", file=sys.stderr)
    return 128 - code if code < 0 else code
