"""What a user may set about confirmations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConfirmSettings:
    """``command`` starts a Python with jax and a GPU on another machine or in a container, in place of this one.

    ``launch``: also run each kernel once, on generated inputs.  ``seconds``, ``launch_seconds``: for one kernel.
    ``patience``: how long a confirmation waits for a GPU that others use.  ``idle_seconds``: after which an unused
    confirmer is ended.  ``warm``: keep a process with a started GPU ready, which is fastest for one file at a time (in
    an editor) and holds some GPU memory meanwhile.  ``dumps``: how the compiler reports (``worker/compiling.py``).
    """

    command: tuple[str, ...] = ()
    launch: bool = False
    seconds: float = 60.0
    launch_seconds: float = 10.0
    patience: float = 120.0
    idle_seconds: float = 60.0
    warm: bool = True
    dumps: str = "prints"
