"""When the server ends: signals, the client's death, and an exit that waits for no stuck thread."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

logger = logging.getLogger(__name__)

POLL_SECONDS = 5.0


def on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[str], None]) -> None:
    """Call ``stop`` in the loop when the process is told to end."""
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop, name)
        except (NotImplementedError, RuntimeError):  # Windows, or not the main thread
            with suppress(ValueError):
                signal.signal(number, lambda *_, name=name: loop.call_soon_threadsafe(stop, name))


def is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        import ctypes

        synchronize, timed_out = 0x00100000, 0x102
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(synchronize, False, pid)
        if not handle:
            return False
        try:
            return bool(kernel.WaitForSingleObject(handle, 0) == timed_out)
        finally:
            kernel.CloseHandle(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


async def _end_of(pid: int) -> None:
    """Wait for the end of a process, also of one that nobody reaps; raises OSError where the system does not tell."""
    if sys.platform != "linux":
        raise OSError("this system does not tell of it")
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    try:
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def watch_client(pid: int, stop: Callable[[str], None], seconds: float = POLL_SECONDS) -> None:
    """Call ``stop`` when the client's process is gone.

    A client in another container names a process that is not visible here; such a one is not watched.
    """
    if pid <= 0 or not is_alive(pid):
        logger.info("The client's process %d is not visible from here; the server ends with its input instead.", pid)
        return
    try:
        await _end_of(pid)
    except (OSError, AttributeError):  # the system does not tell: look
        while is_alive(pid):
            await asyncio.sleep(seconds)
    stop(f"the client's process {pid} is gone")


def exit_process(code: int) -> NoReturn:
    """End now.  ``sys.exit`` would first join every thread of every executor, stuck ones too."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)
