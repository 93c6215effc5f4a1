"""Files that are not open, checked by the command for the whole workspace, and how long their findings hold."""

from __future__ import annotations

import asyncio

from server_harness import FakeEngine, Session, at, finding, run

from pallas_lsp.model import Report, Stage

KERNEL = """\
from jax.experimental import pallas as pl
import sizes
pl.pallas_call(print, out_shape=sizes.SHAPE)
"""
CREATED, CHANGED, DELETED = 1, 2, 3


def found_in_each(call) -> Report:
    where = finding(call.path, at(2, 0, 14), message="Bad.")
    return Report(call.path, None, Stage.LOWER, True, (where,))


def in_workspace(tmp_path, test, auto=found_in_each) -> None:
    async def body():
        (tmp_path / "a.py").write_text(KERNEL)
        (tmp_path / "sizes.py").write_text("SHAPE = None\n")
        session = Session(tmp_path, FakeEngine(auto))
        await session.initialize()
        await test(session)
        assert await session.end() == 0

    run(body())


async def sweep(s: Session) -> dict:
    return await s.request("workspace/executeCommand", {"command": "pallas-lsp.checkWorkspace", "arguments": []})


def tell(s: Session, name: str, kind: int) -> None:
    s.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": s.uri(name), "type": kind}]})


async def shown(s: Session, name: str = "a.py") -> int:
    await asyncio.sleep(1)
    return len(s.published(name)[-1]["diagnostics"])


def test_a_late_event_of_what_was_checked_ends_nothing(tmp_path):
    async def test(s: Session):
        answer = await sweep(s)
        assert (answer["files"], answer["findings"]) == (1, 1), answer
        for kind in (CREATED, CHANGED):
            tell(s, "a.py", kind)
            assert await shown(s) == 1

    in_workspace(tmp_path, test)


def test_a_changed_or_deleted_file_has_no_findings_any_more(tmp_path):
    async def test(s: Session):
        await sweep(s)
        s.path_of("a.py").write_text(KERNEL + "# changed\n")
        tell(s, "a.py", CHANGED)
        assert await shown(s) == 0
        await sweep(s)
        assert await shown(s) == 1
        s.path_of("a.py").unlink()
        tell(s, "a.py", DELETED)
        assert await shown(s) == 0

    in_workspace(tmp_path, test)


def test_findings_go_when_an_imported_file_changes(tmp_path):
    async def test(s: Session):
        await sweep(s)
        tell(s, "sizes.py", CHANGED)
        assert await shown(s) == 1
        s.path_of("sizes.py").write_text("SHAPE = 512\n")
        tell(s, "sizes.py", CHANGED)
        assert await shown(s) == 0

    in_workspace(tmp_path, test)


def test_a_file_that_changed_while_it_was_checked_shows_nothing(tmp_path):
    def edited_meanwhile(call) -> Report:
        (tmp_path / "a.py").write_text(KERNEL + "# changed\n")
        return found_in_each(call)

    async def test(s: Session):
        await sweep(s)
        await asyncio.sleep(1)
        assert not s.published()

    in_workspace(tmp_path, test, edited_meanwhile)
