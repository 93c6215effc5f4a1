"""What stands behind the first fault of a kernel comes after the check, and never for a text that is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from server_harness import FakeEngine, Session, at, finding, run


class FurtherEngine(FakeEngine):
    """Finds ``second`` behind each ``first``, when the test lets it."""

    asked = 0
    stopped = 0

    def __init__(self):
        super().__init__()
        self.go_on = asyncio.Event()

    async def further(self, snapshot, path, report):
        self.asked += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        text = snapshot.documents[path].text.splitlines()
        behind = [finding(path, at(n, 0, 6), "behind") for n, line in enumerate(text) if line == "second"]
        return replace(report, findings=(*report.findings, *behind))


def in_session(tmp_path, test):
    async def body():
        session = Session(tmp_path, FurtherEngine())
        await session.initialize()
        await test(session)
        assert await session.end() == 0

    run(body())


def test_it_is_published_after_the_check(tmp_path):
    async def test(s: Session):
        s.open("first\nsecond\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 5), "front"))
        assert s.rules(await s.publication(0)) == [("front", 0, 0)]
        s.engine.go_on.set()
        got = await s.publication(1)
        assert s.rules(got) == [("front", 0, 0), ("behind", 1, 0)]
        assert got["version"] == 1

    in_session(tmp_path, test)


def test_an_edit_stops_it(tmp_path):
    async def test(s: Session):
        s.open("first\nsecond\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 5), "front"))
        await s.publication(0)
        while not s.engine.asked:
            await asyncio.sleep(0.01)
        s.change("second\n", 2)
        call = await s.engine.called(1)
        assert s.engine.stopped == 1
        s.engine.go_on.set()
        call.finish()
        for _ in range(1000):
            if s.published()[-1]["version"] == 2 and s.rules(s.published()[-1]) == [("behind", 0, 0)]:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(s.published())

    in_session(tmp_path, test)


def test_a_failure_of_it_leaves_what_was_found(tmp_path):
    async def test(s: Session):
        async def broken(snapshot, path, report):
            raise RuntimeError("no")

        s.engine.further = broken
        s.open("first\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 5), "front"))
        await s.publication(0)
        await asyncio.sleep(1)
        assert s.rules(s.published()[-1]) == [("front", 0, 0)]

    in_session(tmp_path, test)
