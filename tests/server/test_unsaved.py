"""A file whose text on the screen is not the one on the disk, when it is closed or opened."""

from __future__ import annotations

import asyncio

from server_harness import Call, FakeEngine, Session, at, finding, run

HELPER = "def helper():\n    bad\n"
UNSAVED = "# one\n# two\n" + HELPER


class FindsInHelper(FakeEngine):
    """The check of ``a.py`` finds each ``bad`` of ``b.py``, wherever that text is."""

    def __init__(self, folder):
        super().__init__(self.answer)
        self.helper = folder / "b.py"

    def answer(self, call: Call):
        if call.path == str(self.helper):
            return call.make()
        opened = call.snapshot.documents.get(str(self.helper))
        lines = (opened.text if opened is not None else self.helper.read_text()).split("\n")
        return call.make(*(finding(str(self.helper), at(n, 4, 7)) for n, line in enumerate(lines) if "bad" in line))


def in_session(tmp_path, test):
    async def body():
        (tmp_path / "b.py").write_text(HELPER)
        session = Session(tmp_path, FindsInHelper(tmp_path))
        await session.initialize()
        session.open("import b\n")
        await session.publication(0, "b.py")
        await test(session)
        assert await session.end() == 0

    run(body())


def test_what_is_found_in_a_closed_file_stands_in_the_text_on_the_disk(tmp_path):
    async def test(s: Session):
        s.open(HELPER, "b.py")
        s.change(UNSAVED, 2, "b.py")
        await asyncio.sleep(5)
        assert s.rules(s.published("b.py")[-1]) == [("pallas-error", 3, 4)]
        before = len(s.published("b.py"))
        s.shut("b.py")
        await asyncio.sleep(5)
        after = s.published("b.py")[before:]
        assert after and all(s.rules(each) == [("pallas-error", 1, 4)] for each in after)

    in_session(tmp_path, test)


def test_a_file_that_is_opened_with_an_unsaved_text_has_those_that_import_it_checked(tmp_path):
    async def test(s: Session):
        s.open(UNSAVED + "    bad\n", "b.py")
        await asyncio.sleep(5)
        assert s.rules(s.published("b.py")[-1]) == [("pallas-error", 3, 4), ("pallas-error", 4, 4)]
        checks = len(s.engine.calls)
        s.shut("b.py")
        await asyncio.sleep(5)
        s.open(HELPER, "b.py")  # as on the disk: only itself is checked
        await asyncio.sleep(5)
        assert [call.path for call in s.engine.calls[checks:]] == [s.path("a.py"), s.path("b.py")]

    in_session(tmp_path, test)
