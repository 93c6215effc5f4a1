"""Fixes are verified before anybody asks, when nobody waits for anything else; a keystroke goes first."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from server_harness import FakeEngine, Session, at, finding, fix, run

PLACE = at(0, 0, 5)


class VerifyingEngine(FakeEngine):
    """Says when verifying a fix was stopped."""

    stopped = 0

    async def verify(self, snapshot, path, finding, fix, before=None):
        try:
            return await super().verify(snapshot, path, finding, fix, before)
        except asyncio.CancelledError:
            self.stopped += 1
            raise


def in_session(tmp_path, test, engine: FakeEngine | None = None):
    async def body():
        session = Session(tmp_path, engine or VerifyingEngine())
        await session.initialize()
        await test(session)
        assert await session.end() == 0

    run(body())


def faulty(s: Session, call, *titles: str):
    path = s.path()
    return call.make(finding(path, at(0, 0, 5), fixes=tuple(fix(path, at(0, 0, 5), "right", each) for each in titles)))


def check_faults(s: Session, *titles: str):
    """From now on each check of a text that begins with ``wrong`` finds a fault with fixes of these titles."""
    s.engine.auto = lambda call: faulty(s, call, *titles) if call.text.startswith("wrong") else call.make()


def test_a_prepared_fix_is_answered_in_no_time(tmp_path):
    async def test(s: Session):
        check_faults(s, "first", "second")
        s.open("wrong\n")
        await s.publication(0)
        await asyncio.sleep(1.0)
        assert [each.title for each in s.engine.verified] == ["first", "second"]
        loop = asyncio.get_running_loop()
        asked = loop.time()
        actions = await s.actions(PLACE)
        assert loop.time() - asked < 0.05
        assert {a["title"] for a in actions if "edit" in a} == {"first", "second"}
        assert len(s.engine.verified) == 2, "nothing was verified again"

    in_session(tmp_path, test)


def test_nothing_is_verified_while_a_check_runs(tmp_path):
    async def test(s: Session):
        s.open("wrong\n")
        s.open("other\n", "b.py")
        first, second = await s.engine.called(0), await s.engine.called(1)
        first.done.set_result(faulty(s, first, "first"))
        await asyncio.sleep(5.0)
        assert s.engine.verified == []
        second.finish()
        await asyncio.sleep(0.2)
        assert [each.title for each in s.engine.verified] == ["first"]

    in_session(tmp_path, test)


def test_a_keystroke_stops_it_and_it_begins_again_in_the_next_lull(tmp_path):
    async def test(s: Session):
        check_faults(s, "first")
        s.engine.hold_verify = asyncio.Event()
        s.open("wrong\n")
        s.open("other\n", "b.py")
        await asyncio.sleep(1.0)
        assert len(s.engine.verified) == 1
        s.change("other, too\n", 2, "b.py")
        await asyncio.sleep(0.05)
        assert s.engine.stopped == 1
        assert len(s.engine.verified) == 1, "somebody is typing"
        s.engine.hold_verify.set()
        await asyncio.sleep(1.0)
        assert len(s.engine.verified) == 2, "the finding of the other document is still there"

    in_session(tmp_path, test)


def test_an_edit_of_the_document_itself_drops_what_was_planned_for_it(tmp_path):
    async def test(s: Session):
        check_faults(s, "first")
        s.engine.hold_verify = asyncio.Event()
        s.open("wrong\n")
        await asyncio.sleep(1.0)
        s.change("right\n", 2)
        await asyncio.sleep(2.0)
        assert (s.engine.stopped, len(s.engine.verified)) == (1, 1)

    in_session(tmp_path, test)


def test_a_text_that_comes_back_needs_no_verifying_again(tmp_path):
    async def test(s: Session):
        check_faults(s, "first")
        s.open("wrong\n")
        await asyncio.sleep(1.0)
        s.change("right\n", 2)
        await asyncio.sleep(1.0)
        s.change("wrong\n", 3)
        await asyncio.sleep(1.0)
        assert len(s.engine.verified) == 1
        assert {a["title"] for a in await s.actions(PLACE) if "edit" in a} == {"first"}
        s.change("wrong, in another text\n", 4)
        await asyncio.sleep(1.0)
        assert len(s.engine.verified) == 2

    in_session(tmp_path, test)


def test_who_asks_meanwhile_waits_for_the_same_attempt(tmp_path):
    async def test(s: Session):
        check_faults(s, "first")
        s.engine.hold_verify = asyncio.Event()
        s.open("wrong\n")
        await asyncio.sleep(1.0)
        asking = asyncio.ensure_future(s.actions(PLACE))
        await asyncio.sleep(0.1)
        s.engine.hold_verify.set()
        actions = await asking
        assert {a["title"] for a in actions if "edit" in a} == {"first"}
        assert len(s.engine.verified) == 1

    in_session(tmp_path, test)


def test_a_fix_that_could_not_be_tried_is_tried_again_when_asked_for_later(tmp_path):
    class Failing(VerifyingEngine):
        async def verify(self, snapshot, path, finding, fix, before=None):
            self.verified.append(fix)
            if len(self.verified) == 1:
                raise RuntimeError("no")
            return replace(fix, verified=True)

    async def test(s: Session):
        check_faults(s, "first")
        s.open("wrong\n")
        await asyncio.sleep(1.0)
        s.change("right\n", 2)
        await asyncio.sleep(1.0)
        s.change("wrong\n", 3)
        await asyncio.sleep(1.0)
        assert len(s.engine.verified) == 2
        assert {a["title"] for a in await s.actions(PLACE) if "edit" in a} == {"first"}

    in_session(tmp_path, test, Failing())
