"""What is under way in the memory of one block of a Mosaic GPU kernel, and accesses that come too early.

Each asynchronous operation is a token; a thread knows the tokens of what it has waited for, and what other threads knew
when they arrived on a barrier that it waited for.  What it does not know may still be going on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .kernel import Found, places
from .regions import Memory, Region

Chain = tuple[Any, ...]
_PIPELINED = {("tcgen05_mma", "tcgen05_mma"), ("async_copy_smem_to_tmem", "tcgen05_mma")}
"""Operations of the tensor core that it does in the order in which they were started."""
_BY_PROXY = ("copy_smem_to_gmem", "wgmma_ref", "tcgen05_mma", "async_copy_smem_to_tmem")


@dataclass(eq=False)
class Thread:
    number: int
    known: set[int] = field(default_factory=set)
    clock: dict[int, int] = field(default_factory=dict)
    """How far the work of each thread was when this one heard of it."""
    copies: list[list[int]] = field(default_factory=list)
    """The groups of copies out of SMEM, oldest first; the last is not committed yet."""
    wgmmas: list[int] = field(default_factory=list)
    mmas: list[int] = field(default_factory=list)

    def hear(self, known: frozenset[int], clock: dict[int, int]) -> None:
        self.known |= known
        for thread, time in clock.items():
            self.clock[thread] = max(time, self.clock.get(thread, 0))

    def tick(self) -> int:
        self.clock[self.number] = self.clock.get(self.number, 0) + 1
        return self.clock[self.number]


@dataclass(frozen=True)
class Access:
    """A use of memory: by which operation of which thread; ``token`` where it goes on asynchronously."""

    name: str
    region: Region
    chain: Chain
    thread: int
    time: int
    token: int | None = None


class Hazards:
    """The memory of a block.  ``found``: the first access that comes too early, if any did."""

    def __init__(self) -> None:
        self.found: Found | None = None
        self.early: tuple[Access, int] | None = None
        """The copy that was read too early, and by which thread."""
        self._tokens = 0
        self._reads: dict[Memory, list[Access]] = {}
        self._writes: dict[Memory, list[Access]] = {}
        self._uncommitted: dict[Memory, list[Access]] = {}
        self._written: set[Memory] = set()
        self._stored: set[tuple[int, int, Region]] = set()
        """Which operation of which thread wrote what."""

    def token(self) -> int:
        self._tokens += 1
        return self._tokens

    def blur(self, memory: Memory) -> None:
        """Something that is not followed may have written it."""
        self._written.add(memory)

    def commit(self, space: str) -> None:
        for memory in [each for each in self._uncommitted if each.space == space]:
            del self._uncommitted[memory]

    def read(
        self,
        thread: Thread,
        name: str,
        memory: Memory,
        region: Region | None,
        chain: Chain,
        token: int | None = None,
        role: str = "",
    ) -> None:
        if region is None or self.found is not None:
            return
        if memory not in self._written:
            looped = any(each.primitive.name in ("scan", "while") for each in chain)
            facts: dict[str, Any] = {"read": name, "role": role, "memory_space": memory.space, "looped": looped}
            self._report("memory-never-written", chain, facts)
            return
        for write in self._open(self._writes, thread, region):
            if (write.name, name) in _PIPELINED:
                continue
            if write.token is None:
                if not self._alike(write, thread.number):
                    self._unordered(name, chain, write)
                return
            if region.exceeds(write.region):
                continue  # what is still to come may be masked in what is read, as rows before the first are
            self.early = write, thread.number
            facts = {"read": name, "copy": write.name, "memory_space": memory.space}
            self._report("read-before-wait", chain, facts, write, "the copy that is not waited for")
            return
        if (name in _BY_PROXY or memory.space != "smem") and self._not_committed(name, region, chain):
            return
        self._note(self._reads, Access(name, region, chain, thread.number, thread.tick(), token))

    def write(
        self,
        thread: Thread,
        name: str,
        memory: Memory,
        region: Region | None,
        chain: Chain,
        token: int | None = None,
    ) -> None:
        self._written.add(memory)
        if region is None or self.found is not None:
            return
        this = Access(name, region, chain, thread.number, 0, token)
        for other in [*self._open(self._reads, thread, region), *self._open(self._writes, thread, region)]:
            if (other.name, name) in _PIPELINED:
                continue
            if other.token is None or other.thread != thread.number:
                if self._alike(this, other.thread):
                    continue
                if token is None and other.token is None and other in self._reads.get(memory, ()):
                    self._unordered(other.name, other.chain, this)
                else:
                    self._unordered(name, chain, other)
                return
            facts = {"reader": other.name, "writer": name}
            self._report("smem-overwritten-in-use", chain, facts, other, "the read that is not waited for")
            return
        if (token is not None or memory.space == "tmem") and self._not_committed(name, region, chain):
            return
        access = Access(name, region, chain, thread.number, thread.tick(), token)
        self._note(self._writes, access)
        self._stored.add((id(chain[-1]), thread.number, region))
        if token is None:
            self._note(self._uncommitted, access)

    def _not_committed(self, name: str, region: Region, chain: Chain) -> bool:
        """Whether a store to a place is not committed yet, which is then told."""
        for store in self._uncommitted.get(region.memory, ()):
            if store.region.meets(region):
                facts = {"reader": name, "memory_space": region.memory.space}
                self._report("store-without-commit", chain, facts, store, "the store that is not committed")
                return True
        return False

    def _alike(self, write: Access, thread: int) -> bool:
        """Whether a thread writes the same place by the same operation: threads that do the same work do no harm."""
        return (id(write.chain[-1]), thread, write.region) in self._stored

    def _open(self, kind: dict[Memory, list[Access]], thread: Thread, region: Region) -> Iterator[Access]:
        """What may still be going on, for all that a thread knows."""
        for access in kind.get(region.memory, ()):
            if access.token is not None:
                going_on = access.token not in thread.known
            else:
                going_on = thread.clock.get(access.thread, 0) < access.time
            if going_on and access.region.meets(region):
                yield access

    def _note(self, kind: dict[Memory, list[Access]], access: Access) -> None:
        """Remember an access; of those of a thread to the same place only the last."""
        kept = [
            each
            for each in kind.get(access.region.memory, ())
            if (each.region, each.thread, each.name) != (access.region, access.thread, access.name)
            or (each.token is not None)
        ]
        kind[access.region.memory] = [*kept, access]

    def forget(self, threads: list[Thread]) -> None:
        """Drop what every thread knows to be over."""
        over = set.intersection(*(thread.known for thread in threads))
        for kind in (self._reads, self._writes):
            for memory, accesses in kind.items():
                kind[memory] = [each for each in accesses if each.token is None or each.token not in over]
        for thread in threads:
            thread.known -= over

    def _unordered(self, name: str, chain: Chain, other: Access) -> None:
        facts = {"this": name, "other": other.name}
        self._report("threads-unordered", chain, facts, other, "the use by another thread")

    def _report(
        self, check: str, chain: Chain, facts: dict[str, Any], other: Access | None = None, text: str = ""
    ) -> None:
        related = [{"frames": places(other.chain), "text": text}] if other is not None else []
        self.found = Found(check, places(chain), facts, related)
