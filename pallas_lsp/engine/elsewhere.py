"""Drivers of other files, for the launches that a file's own drivers do not reach."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from pallas_lsp.discovery import candidates
from pallas_lsp.discovery.index import Index
from pallas_lsp.discovery.memory import Memory
from pallas_lsp.discovery.roots import workspace_of
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.reading import Reading
from pallas_lsp.model import Backend, Capture, Driver, DriverOutcome, Launch, Snapshot
from pallas_lsp.recorder.store import Recordings
from pallas_lsp.source.drivers import find_drivers
from pallas_lsp.source.guess import guess_drivers
from pallas_lsp.source.workspace import read_text

MOST_BATCHES = 12
MOST_SECONDS = 120.0
SHAPES_PER_KERNEL = 3
MOST_BATCHES_AGAIN = 3
"""The files whose tests run again with another GPU answering."""
_PAUSE = 20.0
"""After a search that did not reach everything, how many times its duration an edited text waits for the next one."""
_LEAST_PAUSE = 30.0

Run = Callable[[str, tuple[Driver, ...]], Awaitable[Outcome]]
"""Runs drivers (path of the file that is executed, drivers)."""
OnBatch = Callable[[tuple[Driver, ...], Outcome], None]


@dataclass(frozen=True)
class _Fruitless:
    """A search that did not reach everything: what it saw, until when that holds for other texts, how drivers ended."""

    state: str
    text: str
    until: float
    ran: tuple[Driver, ...]
    ended: Mapping[str, DriverOutcome]
    read: Mapping[str, str]
    """The files of the drivers that ran, with their texts."""

    def holds(self, state: str, text: str, snapshot: Snapshot) -> bool:
        if self.state != state or (self.text != text and time.monotonic() >= self.until):
            return False
        return self.read == _texts(snapshot, self.ran)  # the state comes from an index that may be seconds old


class Elsewhere:
    """Finds drivers in the workspace and remembers which of them reached what."""

    def __init__(self, threads: Executor, log: Log) -> None:
        self._threads = threads
        self._log = log
        self._memory = Memory()
        self._recordings = Recordings()
        self._indexes: dict[str, Index] = {}
        self._fruitless: dict[str, _Fruitless] = {}

    async def known(self, snapshot: Snapshot, path: str) -> tuple[Driver, ...]:
        """The drivers elsewhere that reached the launches of a file before, and the calls that were recorded."""
        loop = asyncio.get_running_loop()
        remembered = await loop.run_in_executor(self._threads, self._memory.drivers, snapshot, path) or ()
        found = [driver for driver in remembered if driver.kind != "script"]
        recorded = await loop.run_in_executor(self._threads, self._recordings.drivers, _real(path))
        return (*found, *(replace(driver, path=path) for driver in recorded))

    async def search(
        self,
        snapshot: Snapshot,
        path: str,
        reading: Reading,
        outcome: Outcome,
        targets: Mapping[str, Sequence[str]],
        run: Run,
        on_batch: OnBatch,
    ) -> tuple[tuple[Driver, ...], Outcome]:
        """Run candidates, the likeliest first, until every launch is reached; at last with another of the ``targets``.

        Returns the drivers that ran, and what they brought together with ``outcome``.
        """
        loop = asyncio.get_running_loop()
        index = await loop.run_in_executor(self._threads, self._index, snapshot, path)
        state = await loop.run_in_executor(self._threads, index.state, path)
        before = self._fruitless.get(path)
        if before is not None and await loop.run_in_executor(
            self._threads, before.holds, state, reading.text, snapshot
        ):
            outcome.drivers = {**before.ended, **outcome.drivers}
            return before.ran, outcome
        lines = [launch.location.range.start.line + 1 for launch in unreached(reading.launches, outcome)]
        remembered = await loop.run_in_executor(self._threads, self._memory.drivers, snapshot, path) or ()
        scripts = [(driver,) for driver in remembered if driver.kind == "script"]
        ran: list[Driver] = []
        started = time.monotonic()
        found = itertools.chain(scripts, candidates.find(index, snapshot, path, lines))
        batches = _with_targets(found, *_other_targets(reading, targets))
        number = 0
        # The next one is looked for when those before it did not suffice.
        while (left := unreached(reading.launches, outcome)) and time.monotonic() - started < MOST_SECONDS:
            batch = await loop.run_in_executor(self._threads, next, batches, None)
            if batch is None:
                break
            if batch[0].target and not any(launch.backend in _TARGETED for launch in left):
                continue
            executed, drivers = self._prepared(snapshot, path, batch)
            if drivers:
                number += 1
                outcome = (await run(executed, drivers)).after(outcome, str(number))
                ran += drivers
                on_batch(tuple(ran), outcome)
        useful = _useful([*(driver for driver in reading.drivers if driver.kind == "pytest"), *ran], path, outcome)
        if useful:
            await loop.run_in_executor(self._threads, self._memory.remember, snapshot, path, useful)
        if unreached(reading.launches, outcome):
            seconds = time.monotonic() - started
            until = time.monotonic() + max(_LEAST_PAUSE, _PAUSE * seconds)
            ended = {driver: each for driver, each in outcome.drivers.items() if driver in {d.id for d in ran}}
            read = await loop.run_in_executor(self._threads, _texts, snapshot, ran)
            self._fruitless[path] = _Fruitless(state, reading.text, until, tuple(ran), ended, read)
        return tuple(ran), outcome

    async def guesses(self, snapshot: Snapshot, path: str, launches: Sequence[Launch]) -> tuple[Driver, ...]:
        """Calls with guessed types, for launches that no driver reaches."""
        lines = [launch.location.range.start.line + 1 for launch in launches]
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, guess_drivers, snapshot, path, lines)
        except (OSError, ValueError, SyntaxError):
            return ()

    def forget(self, path: str) -> None:
        """Search again at the next check of a file."""
        self._memory.forget(path)
        self._fruitless.pop(path, None)

    def _index(self, snapshot: Snapshot, path: str) -> Index:
        root, deep = workspace_of(snapshot, path)
        if root not in self._indexes:
            self._indexes[root] = Index(root, deep=deep)
        index = self._indexes[root]
        index.refresh(snapshot)
        return index

    def _prepared(self, snapshot: Snapshot, path: str, batch: tuple[Driver, ...]) -> tuple[str, tuple[Driver, ...]]:
        """The file to execute for a batch, and its drivers: tests are run by pytest, a script as itself."""
        if batch[0].kind != "script":
            return path, batch
        script = batch[0].path
        try:
            own = [driver for driver in find_drivers(snapshot, script) if driver.kind in ("module", "main")]
        except (OSError, ValueError, SyntaxError) as error:
            self._log(f"{script}: {error}")
            return script, ()
        return script, tuple(replace(driver, id=f"script:{script}:{driver.kind}") for driver in own)


def _with_targets(
    batches: Iterator[tuple[Driver, ...]], named: Sequence[str], others: Sequence[str]
) -> Iterator[tuple[Driver, ...]]:
    """The first batches, each once; the tests of the very first also for other GPUs: at once for those it names."""
    known: list[tuple[Driver, ...]] = []
    again: list[tuple[Driver, ...]] = []
    for batch in itertools.islice(batches, MOST_BATCHES):
        if batch in known:
            continue
        known.append(batch)
        yield batch
        if batch[0].kind == "pytest" and len(again) < MOST_BATCHES_AGAIN:
            again.append(batch)
            yield from (_for_target(batch, target) for target in named)
    for target in others:
        yield from (_for_target(batch, target) for batch in again)


def _for_target(batch: tuple[Driver, ...], target: str) -> tuple[Driver, ...]:
    return tuple(replace(each, id=f"{each.id}@{target}", target=target) for each in batch)


_TARGETED = (Backend.MOSAIC_GPU, Backend.ANY)
"""The backends of kernels that one GPU has and another lacks."""


_WORDS = {
    "8": ("sm80", "sm_80", "ampere", "a100"),
    "9": ("sm90", "sm_90", "hopper", "h100", "wgmma"),
    "10": ("sm100", "sm_100", "blackwell", "b200", "tcgen05"),
}
"""Words of a file that is about one generation of GPUs."""


def _other_targets(reading: Reading, targets: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """The GPUs that may answer where the file's own led to nothing: those that it names, and others."""
    text = reading.text.lower()
    launches = any(launch.backend in _TARGETED for launch in reading.launches)
    if not launches or not any(word in text for word in ("mosaic_gpu", "plgpu")):
        return [], []
    spoken = {generation for generation, words in _WORDS.items() if any(word in text for word in words)}
    known = ["8.0"] if "8" in spoken else []
    known += [target for target in targets.get("mosaic_gpu", ()) if target != gpu_of(text, targets)]
    named = [target for target in known if target.partition(".")[0] in spoken]
    return named, [target for target in known if target not in named]


def gpu_of(text: str, targets: Mapping[str, Sequence[str]]) -> str:
    """The GPU that answers for a file first: Blackwell where its instructions are named."""
    wanted = list(targets.get("mosaic_gpu", ())) or ["9.0"]
    return wanted[-1] if "tcgen05" in text and len(wanted) > 1 else wanted[0]


def unreached(launches: Sequence[Launch], outcome: Outcome) -> list[Launch]:
    """The launches of the file that have no capture yet."""
    lines = {(_real(c.launch.path), c.launch.line) for c in outcome.captures.values() if c.launch is not None}
    return [
        launch
        for launch in launches
        if not any(
            (_real(launch.location.path), line + 1) in lines
            for line in range(launch.location.range.start.line, launch.location.range.end.line + 1)
        )
    ]


def _useful(ran: Sequence[Driver], path: str, outcome: Outcome) -> tuple[Driver, ...]:
    """The drivers that brought a kernel of the file, or one of the first few sets of types for it."""
    seen: dict[tuple[object, ...], set[str]] = {}
    useful: dict[str, Driver] = {}
    known = {driver.id: driver if driver.kind == "pytest" else _script(driver) for driver in ran}
    order = {identifier: number for number, identifier in enumerate(known)}
    # The driver that ran first counts: a later one may only have tried another GPU.
    for capture in sorted(outcome.captures.values(), key=lambda each: order.get(each.driver, len(order))):
        driver = known.get(capture.driver) or _variant(capture.driver, ran)
        if driver is None or not _concerns(capture, path):
            continue
        types = seen.setdefault((capture.launch and capture.launch.line, capture.body), set())
        if capture.arguments not in types and len(types) < SHAPES_PER_KERNEL:
            types.add(capture.arguments)
            useful[driver.id] = driver
    return tuple(useful.values())


def _texts(snapshot: Snapshot, drivers: Sequence[Driver]) -> dict[str, str]:
    """The files of drivers with their texts; those that cannot be read are left out."""
    texts = {}
    for path in {driver.path for driver in drivers}:
        with contextlib.suppress(OSError, ValueError, SyntaxError):
            texts[path] = read_text(snapshot, path)
    return texts


def _script(part: Driver) -> Driver:
    """The script that a main block or a top level is of, as it is found and remembered."""
    return Driver(f"script:{part.path}", "script", part.path)


def _variant(identifier: str, ran: Sequence[Driver]) -> Driver | None:
    """A parameter set of a test, which the worker ran because the test's first ones did not reach everything."""
    for driver in ran:
        name, _, target = identifier.removeprefix(f"pytest:{driver.path}::").partition("@")
        if driver.kind == "pytest" and target == driver.target and name.startswith(driver.name) and name != identifier:
            return replace(driver, id=identifier, name=name)
    return None


def _concerns(capture: Capture, path: str) -> bool:
    places = [frame.path for frame in (capture.launch, capture.call) if frame is not None]
    if capture.body is not None:
        places.append(capture.body.path)
    return _real(path) in map(_real, places)


def _real(path: str) -> str:
    return os.path.realpath(path)
