"""User code is run in trusted folders only, and the question comes once."""

from __future__ import annotations

import asyncio
import json
import logging
import os

import pytest
from server_harness import FakeEngine, Session, at, launch, run

from pallas_lsp.server.consent import LATER, NEVER, TRUST
from pallas_lsp.server.trust import TrustError, TrustStore


def in_session(tmp_path, test, **options):
    async def body():
        session = Session(tmp_path, **options)
        await test(session)
        assert await session.end() == 0

    run(body())


def with_kernel(call):
    return call.make(launches=(launch(call.path, at(0, 0, 1)),))


def without_kernel(call):
    return call.make()


def answer(title):
    return {"window/showMessageRequest": {"title": title} if title else None}


def test_a_client_that_trusts_is_not_asked(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": True})
        s.open("x\n")
        await s.publication(0)
        assert [call.run for call in s.engine.calls] == [True]
        assert s.sent("window/showMessageRequest") == []

    in_session(tmp_path, test, engine=FakeEngine(with_kernel))


def test_a_client_that_does_not_trust_is_not_asked_and_may_change_its_mind(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": False, "status": True})
        s.open("x\n")
        await s.publication(0)
        assert [call.run for call in s.engine.calls] == [False]
        status = s.sent("pallas/status")[-1]
        assert (status["health"], status["problems"][0]["kind"]) == ("warning", "not-trusted")
        assert s.sent("window/showMessageRequest") == []
        s.notify("pallas/didChangeTrust", {"trusted": "yes"})
        s.notify("pallas/didChangeTrust", {"trusted": True})
        assert (await s.engine.called(1)).run

    in_session(tmp_path, test, engine=FakeEngine(with_kernel))


def test_without_a_trust_of_its_own_the_client_is_asked_once_and_the_answer_is_kept(tmp_path):
    async def test(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        assert not (await s.engine.called(0)).run
        assert (await s.engine.called(1)).run
        (asked,) = s.sent("window/showMessageRequest")
        assert str(tmp_path) in asked["message"]
        assert [a["title"] for a in asked["actions"]] == [TRUST, LATER, NEVER]

    in_session(tmp_path, test, engine=FakeEngine(with_kernel), answers=answer(TRUST))
    assert TrustStore(tmp_path / "state" / "trust.json").decisions() == {str(tmp_path): True}

    async def again(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        assert (await s.engine.called(0)).run
        await asyncio.sleep(1)
        assert s.sent("window/showMessageRequest") == []

    in_session(tmp_path, again, engine=FakeEngine(with_kernel))


@pytest.mark.parametrize(("title", "kept"), [(NEVER, False), (LATER, None), (None, None)])
def test_other_answers_keep_the_code_unrun(tmp_path, title, kept):
    async def test(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        s.open("y\n", "b.py")
        await s.publication(0, "b.py")
        s.change("z\n", 2)
        await s.publication(1)
        assert [call.run for call in s.engine.calls] == [False] * 3
        assert len(s.sent("window/showMessageRequest")) == 1

    in_session(tmp_path, test, engine=FakeEngine(with_kernel), answers=answer(title))
    assert TrustStore(tmp_path / "state" / "trust.json").decision(str(tmp_path)) is kept


def test_a_client_that_cannot_ask_leaves_the_code_unrun(tmp_path):
    async def test(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        await s.publication(0)
        await asyncio.sleep(1)
        assert [call.run for call in s.engine.calls] == [False]

    in_session(tmp_path, test, engine=FakeEngine(with_kernel))


def test_a_file_without_kernels_raises_no_question(tmp_path):
    async def test(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        await s.publication(0)
        await asyncio.sleep(1)
        assert s.sent("window/showMessageRequest") == []

    in_session(tmp_path, test, engine=FakeEngine(without_kernel), answers=answer(TRUST))


def test_the_command_trusts_the_folder(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": False})
        s.open("x\n")
        await s.publication(0)
        params = {"command": "pallas-lsp.trust", "arguments": [s.uri()]}
        assert await s.request("workspace/executeCommand", params) == str(tmp_path)
        assert (await s.engine.called(1)).run

    in_session(tmp_path, test, engine=FakeEngine(with_kernel))


def test_the_home_directory_is_trusted_for_the_session_only(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "below"))

    async def test(s: Session):
        await s.initialize(options={})
        s.open("x\n")
        assert (await s.engine.called(1)).run

    in_session(tmp_path, test, engine=FakeEngine(with_kernel), answers=answer(TRUST))
    assert TrustStore(tmp_path / "state" / "trust.json").decisions() == {}


def test_trust_that_is_taken_back_ends_the_workers(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": True})
        s.open("x\n")
        await s.publication(0)
        s.notify("pallas/didChangeTrust", {"trusted": False})
        assert not (await s.engine.called(1)).run
        assert s.engine.closed == 1

    in_session(tmp_path, test, engine=FakeEngine(with_kernel))


# -- the store ---------------------------------------------------------------------------------------------------------


def test_the_innermost_answer_wins_and_links_are_followed(tmp_path):
    store = TrustStore(tmp_path / "trust.json")
    inner = tmp_path / "project" / "vendored"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    assert store.decision(str(inner)) is None
    store.remember(str(tmp_path / "link"), True)
    store.remember(str(inner), False)
    assert store.decision(str(tmp_path / "project" / "a.py")) is True
    assert store.decision(str(inner / "b.py")) is False
    assert store.decision(str(tmp_path / "project2")) is None
    assert store.forget(str(inner))
    assert not store.forget(str(inner))
    assert store.decision(str(inner)) is True


BROKEN = ["", "{", "[]", '{"folders": 3}', '{"folders": {"/": "yes"}}', "\udcff", "[" * 99999]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_trusts_nothing_and_can_be_written_again(tmp_path, content, caplog):
    path = tmp_path / "trust.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    store = TrustStore(path)
    with caplog.at_level(logging.WARNING):
        assert store.decision(str(tmp_path)) is None
    store.remember(str(tmp_path), True)
    assert store.decision(str(tmp_path)) is True
    assert json.loads(path.read_text())["version"] == 1


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere")
def test_a_state_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(TrustError, match=str(tmp_path)):
        TrustStore(tmp_path / "trust.json").remember("/x", True)


def test_no_half_file_is_left_behind(tmp_path, monkeypatch):
    store = TrustStore(tmp_path / "trust.json")
    store.remember("/a", True)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(TrustError, match="No space left"):
        store.remember("/b", True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["trust.json"]
    assert store.decisions() == {"/a": True}
