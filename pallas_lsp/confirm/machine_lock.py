"""One job a GPU at a time, also where several editors and command lines share it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import sys
import tempfile
from collections.abc import AsyncIterator

_PAUSE = 0.1


@contextlib.asynccontextmanager
async def machine_lock(name: str | None) -> AsyncIterator[None]:
    """Hold the lock of a GPU of this machine; the system gives it back when a process dies."""
    if name is None or sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        descriptor = os.open(_path(name), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # a folder that cannot be written: each goes its own way
        yield
        return
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                await asyncio.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


def _path(name: str) -> str:
    with contextlib.suppress(Exception):
        return os.path.join(tempfile.gettempdir(), f"pallas-lsp-{getpass.getuser()}-{_plain(name)}.lock")  # noqa: PTH118
    return os.path.join(tempfile.gettempdir(), f"pallas-lsp-{_plain(name)}.lock")  # noqa: PTH118


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)[:80]
