"""Limits on a run: memory, processor time, and no core dumps."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Thread stacks and allocator arenas are address space that thread pools reserve, not memory: jax's have one thread a
# core, and two for each of the eight host devices.
_RESERVED_PER_CORE = 96 << 20
_RESERVED = 24 * (8 << 20)
_M_ARENA_MAX = -8  # mallopt's number for it in glibc


def address_space() -> int:
    """Bytes of address space that this process has, or 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def apply(limits: dict[str, Any]) -> None:
    """Apply ``{memory_bytes, cpu_seconds}`` to this process, as far as the system can."""
    try:
        import resource
    except ImportError:  # Windows: the engine's clock is the only limit there
        return
    lower(resource.RLIMIT_CORE, 0)
    memory, present = limits.get("memory_bytes"), address_space()
    if memory and present:
        _few_arenas()
        reserved = _RESERVED + _RESERVED_PER_CORE * (os.cpu_count() or 1)
        lower(resource.RLIMIT_AS, present + int(memory) + reserved)
    if limits.get("cpu_seconds"):
        # The first limit sends SIGXCPU, which ends the process; the second is for code that ignores it.
        lower(resource.RLIMIT_CPU, int(time.process_time() + limits["cpu_seconds"]) + 1, 5)


def _few_arenas() -> None:
    """Keep the C library from reserving 64 MiB of address space for each thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 4)


def lower(kind: int, value: int, grace: int = 0) -> None:
    import resource

    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(kind)
        ceiling = value + grace
        if hard != resource.RLIM_INFINITY:
            ceiling = min(ceiling, hard)
        resource.setrlimit(kind, (min(value, ceiling), ceiling))


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the process that forked it dies, even by SIGKILL."""
    import signal

    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of what a run's processes leave behind, so that it can be ended and reaped."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


_IDLE_PRIORITY_CLASS = 0x40


def stand_back(nice: int) -> None:
    """Give way to other programs, with all that this process starts."""
    with contextlib.suppress(OSError, AttributeError):
        if hasattr(os, "nice"):
            os.nice(nice)
        else:
            kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
            kernel.SetPriorityClass(kernel.GetCurrentProcess(), _IDLE_PRIORITY_CLASS)
