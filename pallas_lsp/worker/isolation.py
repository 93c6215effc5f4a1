"""What user code may not do while it is checked: reach the network, start programs, write to the user's home.

Limits of memory and time, the scratch folder and the process group are the process's own (``limits``, ``scratch``,
``zygote``).  Audit hooks see what Python code asks for, not what a native library does on its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

_NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
_PROGRAMS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
)
_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "USERPROFILE")


def enter(options: dict[str, Any]) -> list[str]:
    """Isolate this process from now on; what was refused is added to the list that is returned.

    ``options``: ``network`` and ``programs``, True where they are allowed.
    """
    refused: list[str] = []
    network, programs = bool(options.get("network")), bool(options.get("programs"))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if not network and event in _NETWORK and not _local(arguments):
            refused.append(event)
            raise PermissionError("Pallas LSP: code that is checked reaches no network")
        if not programs and event in _PROGRAMS:
            refused.append(event)
            raise PermissionError("Pallas LSP: code that is checked starts no programs")

    sys.addaudithook(refuse)
    if not programs:
        _no_spawned_processes()
    with contextlib.suppress(OSError):
        os.environ.update(_homes(os.getcwd()))
    return refused


def _homes(folder: str) -> dict[str, str]:
    """The variables that name the user's folders, for a home inside ``folder``."""
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    return {name: home for name in _HOMES if name in os.environ}


@contextlib.contextmanager
def another_home(folder: str) -> Iterator[None]:
    """For a while, have what is written to the user's home go into ``folder``."""
    before = {name: os.environ[name] for name in _HOMES if name in os.environ}
    with contextlib.suppress(OSError):
        os.environ.update(_homes(folder))
    try:
        yield
    finally:
        os.environ.update(before)


def _no_spawned_processes() -> None:
    """``multiprocessing`` starts its processes below the audited functions."""
    with contextlib.suppress(ImportError):
        import _posixsubprocess

        def refuse(*args: Any) -> int:
            del args
            raise PermissionError("Pallas LSP: code that is checked starts no programs")

        _posixsubprocess.fork_exec = refuse  # type: ignore[assignment,unused-ignore]


def _local(arguments: tuple[Any, ...]) -> bool:
    """Whether a socket operation stays on this machine without the network: a Unix socket."""
    address = arguments[1] if len(arguments) > 1 else None
    return isinstance(address, (str, bytes)) and (not address or str(address).startswith(("/", "\0", "b'\\x00")))


def no_clusters() -> None:
    """``jax.distributed.initialize`` waits for machines that are not there."""
    distributed = getattr(sys.modules.get("jax"), "distributed", None)
    if distributed is not None:
        distributed.initialize = _nothing


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for joining a cluster."""
