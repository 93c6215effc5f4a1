"""When which document is checked, on virtual time."""

from __future__ import annotations

import asyncio

from server_harness import run

from pallas_lsp.server.scheduler import LONGEST_WAIT, SHORTEST_WAIT, Priority, Scheduler


class Checks:
    """Checks that take as long as a test says, with a diary of when each began and how it ended."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = seconds
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, str]] = []

    async def __call__(self, key: str) -> None:
        self.began.append((key, round(asyncio.get_running_loop().time(), 3)))
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ended.append((key, "cancelled"))
            raise
        self.ended.append((key, "done"))


def test_the_first_edit_after_a_pause_is_checked_at_once():
    async def test():
        checks = Checks()
        scheduler = Scheduler(checks)
        await asyncio.sleep(10)
        scheduler.edited("a")
        assert await scheduler.settled("a", 1)
        assert checks.began == [("a", 10.0)]

    run(test())


def test_edits_collapse_and_only_the_last_text_is_checked_to_the_end():
    async def test():
        checks = Checks(0.5)
        scheduler = Scheduler(checks)
        for _ in range(10):
            scheduler.edited("a")
            await asyncio.sleep(0.02)
        assert await scheduler.settled("a", 5)
        assert checks.ended == [("a", "cancelled"), ("a", "done")]

    run(test())


def test_the_wait_follows_the_durations_within_its_bounds():
    async def test():
        checks = Checks()
        scheduler = Scheduler(checks)
        assert scheduler.wait("a") == LONGEST_WAIT
        for seconds, expected in ((0.001, SHORTEST_WAIT), (0.12, 0.12), (9.0, LONGEST_WAIT)):
            checks.seconds = seconds
            for _ in range(20):
                scheduler.request("a")
                await scheduler.settled("a", 60)
            assert abs(scheduler.wait("a") - expected) < 0.01

    run(test())


def test_an_edit_while_typing_waits():
    async def test():
        checks = Checks(0.1)
        scheduler = Scheduler(checks)
        scheduler.request("a")
        await scheduler.settled("a", 1)
        scheduler.edited("a")  # after a pause: at once
        await asyncio.sleep(0.05)
        start = asyncio.get_running_loop().time()
        scheduler.edited("a")
        while scheduler.busy("a"):
            await asyncio.sleep(0.01)
        assert checks.began[-1][1] >= round(start + 0.1, 3)

    run(test())


def test_a_request_for_results_interrupts_the_wait():
    async def test():
        checks = Checks(0.1)
        scheduler = Scheduler(checks)
        scheduler.edited("a")
        await asyncio.sleep(0.01)
        scheduler.edited("a")  # waits 300 ms
        await asyncio.sleep(0.01)
        assert await scheduler.settled("a", 1)
        assert checks.began[-1] == ("a", 0.02)

    run(test())


def test_settled_gives_up_after_its_time():
    async def test():
        scheduler = Scheduler(Checks(10))
        scheduler.request("a")
        assert not await scheduler.settled("a", 0.5)
        assert await scheduler.settled("unknown", 0.5)

    run(test())


def test_followers_are_checked_after_the_edited_document_only():
    async def test():
        checks = Checks(0.1)
        scheduler = Scheduler(checks, lambda key: ["b", "c"] if key == "a" else ["a"], slots=2)
        for key in "abc":
            scheduler.request(key)
            await scheduler.settled(key, 1)
        checks.began.clear()
        await asyncio.sleep(5)
        scheduler.edited("a")
        await scheduler.settled("a", 1)
        await asyncio.sleep(1)
        assert [key for key, _ in checks.began] == ["a", "b", "c"]
        assert checks.began[1][1] >= checks.began[0][1] + 0.1

    run(test())


def test_an_edited_document_takes_the_slot_of_a_follower():
    async def test():
        checks = Checks(1.0)
        scheduler = Scheduler(checks, slots=1)
        scheduler.request("b", Priority.DEPENDENT)
        await asyncio.sleep(0.1)
        scheduler.edited("a")
        await scheduler.settled("a", 5)
        await scheduler.settled("b", 5)
        assert checks.ended == [("b", "cancelled"), ("a", "done"), ("b", "done")]

    run(test())


def test_slots_limit_what_runs_at_once():
    async def test():
        checks = Checks(1.0)
        scheduler = Scheduler(checks, slots=2)
        for key in "abcd":
            scheduler.request(key)
        await asyncio.sleep(0.5)
        assert [key for key, _ in checks.began] == ["a", "b"]
        await asyncio.sleep(2)
        assert [key for key, _ in checks.began] == ["a", "b", "c", "d"]

    run(test())


def test_cancel_stops_and_frees_the_slot():
    async def test():
        checks = Checks(1.0)
        scheduler = Scheduler(checks, slots=1)
        scheduler.request("a")
        scheduler.request("b")
        await asyncio.sleep(0.1)
        assert scheduler.cancel("a")
        assert not scheduler.cancel("a")
        await scheduler.settled("b", 5)
        assert checks.ended == [("a", "cancelled"), ("b", "done")]

    run(test())


def test_a_check_that_fails_does_not_block_the_next(caplog):
    async def test():
        failing = True

        async def check(_: str) -> None:
            if failing:
                raise RuntimeError("broken")

        scheduler = Scheduler(check, slots=1)
        scheduler.request("a")
        assert await scheduler.settled("a", 1)
        failing = False
        scheduler.request("a")
        assert await scheduler.settled("a", 1)

    run(test())
    assert "broken" in caplog.text


def test_close_ends_what_runs():
    async def test():
        checks = Checks(10)
        scheduler = Scheduler(checks)
        scheduler.request("a")
        await asyncio.sleep(0.1)
        await scheduler.close()
        assert checks.ended == [("a", "cancelled")]
        scheduler.edited("a")
        await asyncio.sleep(1)
        assert len(checks.began) == 1

    run(test())
