"""How much memory the server and its worker hold: with many open files, and after many edits.

    .venvs/dev/bin/python benchmarks/memory.py --python .venvs/jax-0.12.0.1/bin/python [--write] [--json FILE]

Linux only: figures are from /proc.  See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from editor import Bare, Editor
from page import write
from subjects import ONE, SUBJECTS

MEBIBYTE = 1 << 20
_PACE = 0.03
"""Seconds between edits: most of them end the check of the one before."""
_SETTLE_EACH = 25
"""After so many edits the results are waited for."""


@dataclass
class Figures:
    """Mebibytes of resident memory; ``spare`` is what the child that waits for a run has for itself alone."""

    files: int
    edits: int
    server: float = 0.0
    worker: float = 0.0
    bare: float = 0.0
    spare: float = 0.0
    server_after_some: float = 0.0
    worker_after_some: float = 0.0
    server_after_all: float = 0.0
    worker_after_all: float = 0.0


def resident(pid: int) -> float:
    """The memory of a process that is in use, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def unshared(pid: int) -> float:
    """What only this process uses."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


async def _spare(worker: int) -> int | None:
    """The child that waits for a run, once no other is there."""
    for _ in range(100):
        await asyncio.sleep(0.1)
        if len(found := children(worker)) == 1:
            return found[0]
    return None


async def measure(python: str, files: int, edits: int) -> Figures:
    figures = Figures(files, edits)
    subject = SUBJECTS[ONE](python)
    bare = Bare(python)
    figures.bare = resident(bare.pid)
    bare.close()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve() / "workspace"
        folder.mkdir()
        (folder / "pyproject.toml").touch()
        for name, text in subject.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        editor = Editor()
        await editor.start(folder, python)
        try:
            text = subject.files[subject.main]
            uris = [(folder / f"kernels_{number}.py").as_uri() for number in range(files)]
            for uri in uris:
                editor.open(uri, text)
            for uri in uris:
                await editor.shows(uri, 0, errors=False)
            (worker,) = children(editor.pid)
            spare = await _spare(worker)
            figures.spare = unshared(spare) if spare is not None else 0.0
            figures.server, figures.worker = resident(editor.pid), resident(worker)
            await _edit(editor, uris[0], text, range(1, edits // 5))
            figures.server_after_some, figures.worker_after_some = resident(editor.pid), resident(worker)
            await _edit(editor, uris[0], text, range(edits // 5, edits + 1))
            if children(editor.pid) != [worker]:
                raise SystemExit("the worker was started anew meanwhile")
            figures.server_after_all, figures.worker_after_all = resident(editor.pid), resident(worker)
        finally:
            await editor.stop()
    return figures


async def _edit(editor: Editor, uri: str, text: str, versions: range) -> None:
    """Texts that were not there before, each in a kernel's body."""
    for version in versions:
        editor.change(uri, version, text.replace(".5)", f".5 + {version}.25)"))
        await asyncio.sleep(_PACE)
        if version % _SETTLE_EACH == 0 or version == versions[-1]:
            await editor.shows(uri, version, errors=False)


def markdown(figures: Figures, seconds: float) -> str:
    grown = figures.server_after_all - figures.server_after_some, figures.worker_after_all - figures.worker_after_some
    after = f"after {figures.edits} edits"
    return "\n".join(
        [
            "| MiB | |",
            "|---|---|",
            f"| server, {figures.files} open files | {figures.server:.0f} |",
            f"| worker | {figures.worker:.0f} |",
            f"| bare process with the same imports | {figures.bare:.0f} ({figures.worker / figures.bare:.2f}) |",
            f"| the child that waits for the next run, of its own | {figures.spare:.0f} |",
            f"| server {after}, and since the first fifth of them | {figures.server_after_all:.0f} ({grown[0]:+.1f}) |",
            f"| worker {after}, and since the first fifth of them | {figures.worker_after_all:.0f} ({grown[1]:+.1f}) |",
            "",
            f"Measured in {seconds:.0f} s.",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    parser.add_argument("--files", type=int, default=20, help="open files (default: 20)")
    parser.add_argument("--edits", type=int, default=1000, help="edits (default: 1000)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    python = os.path.abspath(options.python)  # noqa: PTH100  # a virtual environment's link must stay
    began = time.monotonic()
    figures = asyncio.run(measure(python, options.files, options.edits))
    table = markdown(figures, time.monotonic() - began)
    print(table)
    if options.json:
        options.json.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")
    if options.write:
        write("memory", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
