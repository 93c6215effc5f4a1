"""``pallas-lsp trust``: the folders whose code the language server may run."""

from __future__ import annotations

import argparse
from pathlib import Path

from pallas_lsp.cli.main import UsageError
from pallas_lsp.cli.outcome import EXIT_OK
from pallas_lsp.server.trust import TrustError, TrustStore

_ABOUT = """Checking kernels runs the code of their folder, so that the language server asks first.
An answer holds for everything below its folder; the innermost one wins.
'pallas-lsp check' never asks: naming a file to it is consent."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _ABOUT
    parser.add_argument("path", nargs="?", metavar="PATH", help="a folder, or a file in it (default: this folder)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--never", action="store_true", help="never run the folder's code, and do not ask")
    what.add_argument("--revoke", action="store_true", help="forget the answer, so that the server asks again")
    what.add_argument("--list", action="store_true", help="list the answers")


def run(arguments: argparse.Namespace) -> int:
    store = TrustStore()
    if arguments.list:
        if arguments.path is not None:
            raise UsageError("--list takes no path")
        for folder, trusted in sorted(store.decisions().items()):
            print(f"{'trusted' if trusted else 'never'}\t{folder}")
        return EXIT_OK
    folder = _folder(arguments.path or str(Path.cwd()), must_exist=not arguments.revoke)
    try:
        if arguments.revoke:
            if not store.forget(folder):
                raise UsageError(f"there is no answer for {folder}; 'pallas-lsp trust --list' shows those there are")
            print(f"Forgotten: {folder}")
        else:
            kept = store.remember(folder, not arguments.never)
            print(f"{'Never run' if arguments.never else 'Trusted'}: {kept}")
    except TrustError as error:
        raise UsageError(str(error)) from error
    return EXIT_OK


def _folder(given: str, *, must_exist: bool) -> str:
    path = Path(given).expanduser()
    if path.is_file():
        path = path.parent
    if must_exist and not path.is_dir():
        raise UsageError(f"there is no folder {path}")
    return str(path)
