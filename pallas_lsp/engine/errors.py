"""Why something could not be checked.

``Problem.kind`` is one of the names below; front ends may rely on them.
"""

from __future__ import annotations

from pallas_lsp.model import Location, Problem

FILE_KINDS = {
    "not-found": "the file does not exist",
    "not-a-file": "the path is a folder or a device",
    "unreadable": "the file may not be read",
    "encoding": "the file's bytes are no text in the encoding that it declares",
    "too-long": "the file is longer than an editor's server can read without standing still",
    "syntax": "the file does not parse (with a location)",
}
WORKER_KINDS = {
    "interpreter-missing": "no Python where the setting or the environment says",
    "interpreter-broken": "the Python did not start, or did not answer",
    "python-too-old": "the Python is older than the worker needs",
    "no-jax": "the Python has no jax, or its jax cannot be imported",
    "jax-too-old": "the jax is older than 0.10",
    "backend-missing": "a Pallas backend that the file uses cannot be imported",
}
RUN_KINDS = {
    "timed-out": "a stage took longer than its limit",
    "out-of-memory": "the run needed more memory than its limit",
    "crashed": "the process that ran the file was ended by a signal",
    "exited": "the file ended the process itself (os._exit)",
    "no-folder": "no temporary folder could be made for the run",
    "driver-stopped": "a file without launches of its own did not get to those that it imports",
    "internal-error": "a fault of ours",
}


class WorkerUnavailable(Exception):  # noqa: N818 - the name says what the state is
    """No worker for a file: what happened, and what to do."""

    def __init__(self, kind: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.remedy = remedy

    def problem(self, location: Location | None = None) -> Problem:
        return Problem(self.kind, self.message, self.remedy, location)


class RunFailed(Exception):  # noqa: N818
    """A run did not come to its end.  ``kind`` is one of RUN_KINDS, or ``cancelled``.

    ``worker``: the worker process itself ended, which for one that forks is not the run's doing.
    """

    def __init__(self, kind: str, message: str, stage: str = "", detail: str = "", *, worker: bool = False) -> None:
        super().__init__(message)
        self.worker = worker
        self.kind = kind
        self.message = message
        self.stage = stage
        self.detail = detail
