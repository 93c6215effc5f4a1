"""Work that ends in order on Ctrl-C, and when the system asks the process to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


class Terminated(SystemExit):
    """A signal other than Ctrl-C ended the work; the exit code is the shell's for it."""


def run_interruptible(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run to the end, or cancel and clean up (workers are ended), then raise KeyboardInterrupt or Terminated."""
    received: list[int] = []

    async def main() -> _T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            received.append(number)
            task.cancel()

        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
                    loop.add_signal_handler(number, end, number)
        return await work()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if received:
            raise Terminated(128 + received[0]) from None
        raise
