"""The folder that a run works in: what user code writes to its working or temporary folder goes away with it."""

from __future__ import annotations

import contextlib
import os
import tempfile

PREFIX = "pallas-lsp-"


def enter(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chdir(folder)
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = folder
    os.environ["PWD"] = folder
    tempfile.tempdir = None
