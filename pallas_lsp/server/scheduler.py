"""When which document is checked.

- The first edit after a pause is checked at once; while typing goes on, a check waits for a gap as long as such a check
  took lately (50 to 300 ms).  Edits collapse: only the newest text is checked.
- An edit cancels the check of the older text.  A document that only depends on the edited one waits until that one is
  done, and gives up its slot when the edited one needs it.
- A request that needs results (code actions) interrupts the wait.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

logger = logging.getLogger(__name__)

SHORTEST_WAIT = 0.05
LONGEST_WAIT = 0.3
PAUSE = 1.0
"""Without an edit for this long, the next one is the first after a pause."""
_HISTORY = 15


class Priority(enum.IntEnum):
    EDITED = 0
    DEPENDENT = 1


@dataclass(eq=False)
class _Entry:
    key: str
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    last_edit: float = float("-inf")
    priority: Priority = Priority.EDITED
    timer: asyncio.TimerHandle | None = None
    queued: bool = False
    task: asyncio.Task[None] | None = None
    edited: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waiting(self) -> bool:
        return self.timer is not None or self.queued

    @property
    def busy(self) -> bool:
        return self.waiting or self.task is not None


class Scheduler:
    """``check(key)`` checks the newest text of a document; its task is cancelled when that text is outdated.

    ``followers(key)`` names the documents whose results depend on that one: once it was edited and checked, they are
    checked again.
    """

    def __init__(
        self,
        check: Callable[[str], Coroutine[Any, Any, None]],
        followers: Callable[[str], Iterable[str]] = lambda _: (),
        slots: int = 2,
    ) -> None:
        self._check = check
        self._followers = followers
        self._slots = slots
        self._entries: dict[str, _Entry] = {}
        self._queue: list[_Entry] = []
        self._running: set[_Entry] = set()
        self._closed = False

    # -- requests -----------------------------------------------------------------------------------------------------

    def edited(self, key: str) -> None:
        """A document has a new text."""
        entry = self._entry(key)
        now = self._now()
        after_pause = now - entry.last_edit > PAUSE and not entry.busy
        entry.last_edit = now
        entry.edited = True
        self._start_over(entry, Priority.EDITED, 0.0 if after_pause else self.wait(key))

    def request(self, key: str, priority: Priority = Priority.EDITED) -> None:
        """Check a document now, though its text did not change."""
        self._start_over(self._entry(key), priority, 0.0)

    def wait(self, key: str) -> float:
        """How long an edit waits for the next one."""
        durations = self._entry(key).durations
        if not durations:
            return LONGEST_WAIT
        return min(max(median(durations), SHORTEST_WAIT), LONGEST_WAIT)

    def interrupt(self, key: str) -> None:
        """Do not wait for further edits: somebody asks for the results."""
        entry = self._entries.get(key)
        if entry is not None and entry.timer is not None:
            entry.timer.cancel()
            self._enqueue(entry)

    async def settled(self, key: str, timeout: float) -> bool:
        """Wait until the newest text of a document has been checked; False when that takes longer."""
        self.interrupt(key)
        entry = self._entries.get(key)
        if entry is None or not entry.busy:
            return True
        try:
            async with asyncio.timeout(timeout):
                await entry.idle.wait()
        except TimeoutError:
            return False
        return True

    def cancel(self, key: str) -> bool:
        """Stop checking a document until it is edited again.  False when there was nothing to stop."""
        entry = self._entries.get(key)
        if entry is None or not entry.busy:
            return False
        self._withdraw(entry)
        self._settle(entry)
        self._pump()
        return True

    def forget(self, key: str) -> None:
        """The document was closed."""
        self.cancel(key)
        self._entries.pop(key, None)

    def busy(self, key: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.busy

    @property
    def any_busy(self) -> bool:
        """Whether any document waits for a check or is being checked."""
        return any(entry.busy for entry in self._entries.values())

    async def close(self) -> None:
        self._closed = True
        tasks = [entry.task for entry in self._running if entry.task is not None]
        for entry in list(self._entries.values()):
            self.cancel(entry.key)
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)

    # -- workings -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _entry(self, key: str) -> _Entry:
        if key not in self._entries:
            self._entries[key] = _Entry(key)
        return self._entries[key]

    def _start_over(self, entry: _Entry, priority: Priority, delay: float) -> None:
        if self._closed:
            return
        # A document that was edited and is also a follower keeps the more urgent claim.
        entry.priority = min(priority, entry.priority) if entry.busy else priority
        self._withdraw(entry)
        entry.idle.clear()
        if delay <= 0:
            self._enqueue(entry)
        else:
            entry.timer = asyncio.get_running_loop().call_later(delay, self._enqueue, entry)
            self._pump()

    def _withdraw(self, entry: _Entry) -> None:
        """Take back whatever is planned or running for an entry."""
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        if entry.queued:
            self._queue.remove(entry)
            entry.queued = False
        if entry.task is not None:
            entry.task.cancel()
            entry.task = None
            self._running.discard(entry)

    def _enqueue(self, entry: _Entry) -> None:
        entry.timer = None
        entry.queued = True
        self._queue.append(entry)
        self._queue.sort(key=lambda e: e.priority)  # stable: first come, first served within a priority
        self._pump()

    def _pump(self) -> None:
        while self._queue and not self._closed:
            entry = self._queue[0]
            if len(self._running) >= self._slots and not self._make_room(entry):
                return
            self._queue.remove(entry)
            entry.queued = False
            self._running.add(entry)
            entry.task = asyncio.get_running_loop().create_task(self._run(entry), name=f"check {entry.key}")

    def _make_room(self, entry: _Entry) -> bool:
        """Put back a running check that is less urgent than ``entry``."""
        victim = max(self._running, key=lambda e: e.priority)
        if victim.priority <= entry.priority:
            return False
        self._withdraw(victim)
        victim.queued = True
        self._queue.append(victim)
        return True

    async def _run(self, entry: _Entry) -> None:
        me = asyncio.current_task()
        start = self._now()
        try:
            await self._check(entry.key)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("A check failed inside the server; the last results stay. Please report this.")
        if entry.task is not me:  # withdrawn while it ended
            return
        entry.durations.append(self._now() - start)
        entry.task = None
        self._running.discard(entry)
        self._settle(entry)
        self._pump()

    def _settle(self, entry: _Entry) -> None:
        """An entry has nothing left to do; those that waited for it may begin."""
        edited, entry.edited = entry.edited, False
        entry.priority = Priority.EDITED
        entry.idle.set()
        if not edited or self._closed:
            return
        for key in self._followers(entry.key):
            other = self._entries.get(key)
            if other is not None and other is not entry and not other.waiting:
                self._start_over(other, Priority.DEPENDENT, 0.0)
