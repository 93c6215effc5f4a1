"""Random edits against checks that take random times: the last text wins and nothing goes back."""

from __future__ import annotations

import asyncio
import random

import pytest
from server_harness import FakeEngine, Session, at, capture, finding, fix, launch, run, syntax_problem

from pallas_lsp.model import Stage

NAMES = ("a.py", "b.py", "c.py")


class SlowEngine(FakeEngine):
    """Finds each ``bad`` after a random time; a text with ``(`` does not parse."""

    source: random.Random

    async def check(self, snapshot, path, on_report=None, *, run=True):
        self.auto = self.answer
        await asyncio.sleep(self.source.choice([0, 0.01, 0.1, 0.4, 2.0]))
        text = snapshot.documents[path].text
        if "(" not in text and on_report is not None:
            call = await self.early(snapshot, path, on_report)
            call.report(*self.findings(call), launches=self.launches(call))
            await asyncio.sleep(self.source.choice([0, 0.05, 0.5]))
        return await super().check(snapshot, path, on_report, run=run)

    async def early(self, snapshot, path, on_report):
        from server_harness import Call

        return Call(snapshot, path, True, on_report, asyncio.get_running_loop().create_future())

    def answer(self, call):
        if "(" in call.text:
            return call.make(problems=(syntax_problem(),), stage=Stage.READ)
        return call.make(*self.findings(call), launches=self.launches(call))

    def launches(self, call):
        return (launch(call.path, at(0, 0, 1), capture()),)

    def findings(self, call):
        found = []
        for number, line in enumerate(call.text.split("\n")):
            if "bad" in line:
                place = at(number, line.index("bad"), line.index("bad") + 3)
                found.append(finding(call.path, place, fixes=(fix(call.path, place, "good"),)))
        return found


def expected(text):
    return [("pallas-error", n, line.index("bad")) for n, line in enumerate(text.split("\n")) if "bad" in line]


@pytest.mark.parametrize("seed", range(25))
def test_the_last_text_wins(tmp_path, seed):
    source = random.Random(seed)
    engine = SlowEngine()
    engine.source = source

    async def test():
        s = Session(tmp_path, engine)
        await s.initialize()
        texts: dict[str, str] = {}
        versions = dict.fromkeys(NAMES, 0)
        for _ in range(60):
            name = source.choice(NAMES)
            action = source.random()
            versions[name] += 1
            if name not in texts:
                texts[name] = "import b\nbad\n"
                s.open(texts[name], name, versions[name])
            elif action < 0.7:
                lines = texts[name].split("\n")
                lines.insert(
                    source.randrange(len(lines)), source.choice(["", "bad", "ok", "x = bad", "(", "\U0001f600"])
                )
                if source.random() < 0.6:
                    del lines[source.randrange(len(lines))]
                texts[name] = "\n".join(lines)
                s.change(texts[name], versions[name], name)
            elif action < 0.8:
                del texts[name]
                s.shut(name)
            elif action < 0.9:
                s.start("textDocument/codeAction", s.action_params(at(1, 0, 3), name))
            else:
                s.start("workspace/executeCommand", {"command": "pallas-lsp.restart"})
            await asyncio.sleep(source.choice([0, 0.01, 0.05, 0.2, 1.0]))
        for name in texts:  # every text parses in the end
            versions[name] += 1
            texts[name] = texts[name].replace("(", "ok")
            s.change(texts[name], versions[name], name)
        await asyncio.sleep(60)
        for name in NAMES:
            last = s.published(name)[-1]
            if name in texts:
                assert last["version"] == versions[name]
                assert s.rules(last) == expected(texts[name])
            else:
                assert last["diagnostics"] == []
            seen = [each["version"] for each in s.published(name) if "version" in each]
            assert seen == sorted(seen)
        answered = {m["id"] for m in s.received if "id" in m and "method" not in m}
        assert answered == set(range(1, s._next_id + 1))
        assert await s.end() == 0

    run(test())
