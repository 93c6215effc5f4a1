"""Code actions: what is offered, verified, preferred, disabled and resolved."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from server_harness import PLAIN, VSCODE, FakeEngine, Session, at, capture, finding, fix, launch, run, syntax_problem

from pallas_lsp.model import Entry, Safety, Stage

NO_RESOLVE = {
    **VSCODE,
    "textDocument": {
        "codeAction": {
            key: value for key, value in VSCODE["textDocument"]["codeAction"].items() if key != "resolveSupport"
        }
    },
}


def in_session(tmp_path, test, **options):
    async def body():
        session = Session(tmp_path, **options)
        await test(session)
        assert await session.end() == 0

    run(body())


def apply(text: str, edits: list[dict]) -> str:
    lines = text.splitlines(keepends=True)

    def offset(position: dict) -> int:
        return sum(map(len, lines[: position["line"]])) + position["character"]

    spans = [(offset(e["range"]["start"]), n, offset(e["range"]["end"]), e["newText"]) for n, e in enumerate(edits)]
    for start, _, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def by_title(actions, title):
    (found,) = [action for action in actions if action["title"] == title]
    return found


def rename_check(call):
    """Finds every ``bad`` on its line; the safe fix renames it."""
    lines = call.text.splitlines()
    found = [
        finding(call.path, at(n, line.index("bad"), line.index("bad") + 3),
                fixes=(fix(call.path, at(n, line.index("bad"), line.index("bad") + 3), "good", f"Fix line {n}"),))
        for n, line in enumerate(lines)
        if "bad" in line
    ]  # fmt: skip
    return call.make(*found)


def test_a_safe_verified_fix_is_preferred_and_versioned(tmp_path):
    async def test(s: Session):
        result = await s.initialize()
        assert result["capabilities"]["codeActionProvider"]["codeActionKinds"] == [
            "quickfix",
            "refactor.rewrite",
            "source.fixAll",
            "source.fixAll.pallas",
        ]
        s.open("x = bad\n", version=3)
        await s.publication(0)
        diagnostics = s.published()[0]["diagnostics"]
        actions = await s.actions(at(0, 5, 5), diagnostics=diagnostics)
        action = by_title(actions, "Fix line 0")
        assert action["isPreferred"] is True
        assert action["kind"] == "quickfix"
        assert action["diagnostics"] == diagnostics
        (change,) = action["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": s.uri(), "version": 3}
        assert apply("x = bad\n", change["edits"]) == "x = good\n"
        assert await s.actions(at(0, 0, 1), only=["quickfix"]) == []

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_only_one_action_a_finding_is_preferred_and_never_a_suggested_one(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = bad\n")
        place = at(0, 4, 7)
        fixes = (
            fix(s.path(), place, "one", "suggested", Safety.SUGGESTED),
            fix(s.path(), place, "two", "first"),
            fix(s.path(), place, "three", "second"),
        )
        (await s.engine.called(0)).finish(finding(s.path(), place, fixes=fixes))
        await s.publication(0)
        actions = await s.actions(place)
        assert [a["title"] for a in actions if a.get("isPreferred")] == ["first"]
        suggested = by_title(actions, "suggested")
        assert not suggested.get("isPreferred")
        resolved = await s.request("codeAction/resolve", suggested)
        assert resolved["edit"]["documentChanges"][0]["edits"][0]["newText"] == "one"

    in_session(tmp_path, test)


def test_a_fix_that_does_not_hold_is_disabled_with_the_reason(tmp_path):
    async def test(s: Session):
        s.engine.verdict = lambda each: replace(each, verified=False, reason="the fault is still there")
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        assert action["disabled"] == {"reason": "the fault is still there"}
        assert not {"edit", "isPreferred", "data"} & action.keys()

    async def plain(s: Session):
        s.engine.verdict = lambda each: replace(each, verified=False, reason="the fault is still there")
        await s.initialize(PLAIN)
        s.open("x = bad\n")
        await s.publication(0)
        assert "Fix line 0" not in [a["title"] for a in await s.actions(at(0, 4, 7))]

    in_session(tmp_path, test, engine=FakeEngine(rename_check))
    in_session(tmp_path, plain, engine=FakeEngine(rename_check))


def test_a_slow_verification_is_left_to_resolve(tmp_path):
    async def test(s: Session):
        s.engine.hold_verify = asyncio.Event()
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        assert "edit" not in action
        assert "isPreferred" not in action
        number = s.start("codeAction/resolve", action)
        await asyncio.sleep(0.1)
        s.engine.hold_verify.set()
        answer = await s.response(number)
        assert answer["result"]["edit"]["documentChanges"]
        assert len(s.engine.verified) == 1  # the request and the resolution share it
        assert by_title(await s.actions(at(0, 4, 7)), "Fix line 0")["isPreferred"]

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_without_resolve_a_slow_verification_is_given_up(tmp_path):
    async def test(s: Session):
        s.engine.hold_verify = asyncio.Event()
        await s.initialize(NO_RESOLVE)
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        assert "in time" in action["disabled"]["reason"]
        s.engine.hold_verify.set()
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        assert action["isPreferred"]

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_resolving_says_why_a_fix_does_not_hold(tmp_path):
    async def test(s: Session):
        s.engine.hold_verify = asyncio.Event()
        s.engine.verdict = lambda each: replace(each, verified=False, reason="it adds a fault")
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        s.engine.hold_verify.set()
        resolved = await s.request("codeAction/resolve", action)
        assert "edit" not in resolved
        assert resolved["disabled"] == {"reason": "it adds a fault"}
        assert s.sent("window/showMessage")[0]["message"] == "Fix line 0: it adds a fault"

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_an_action_for_an_older_text_is_refused(tmp_path):
    async def test(s: Session):
        s.engine.hold_verify = asyncio.Event()
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        actions = await s.actions(at(0, 4, 7))
        s.change("xx = bad\n", 2)
        await s.publication(1)
        for action in actions:
            if "data" in action:
                answer = await s.response(s.start("codeAction/resolve", action))
                assert answer["error"]["code"] == -32801

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_a_text_that_changes_while_actions_are_made_gets_none(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = bad\n")
        call = await s.engine.called(0)
        number = s.start("textDocument/codeAction", s.action_params(at(0, 4, 7)))
        await asyncio.sleep(0.1)
        s.change("xx = bad\n", 2)
        (await s.engine.called(1)).finish()
        assert (await s.response(number))["result"] is None
        assert call.cancelled

    in_session(tmp_path, test)


def test_a_request_interrupts_the_wait_of_the_debounce(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        s.change("x = bad \n", 2)
        await s.publication(1)
        start = asyncio.get_running_loop().time()
        s.change("xx = bad\n", 3)  # waits for a pause in typing
        number = s.start("textDocument/codeAction", s.action_params(at(0, 5, 8)))
        answer = await s.response(number)
        assert by_title(answer["result"], "Fix line 0")
        assert asyncio.get_running_loop().time() - start < 0.05

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_an_unfinished_check_gives_no_fixes_of_an_older_text(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = bad\n")
        place = at(0, 4, 7)
        (await s.engine.called(0)).finish(finding(s.path(), place, fixes=(fix(s.path(), place, "good"),)))
        s.change("(\nx = bad\n", 2)
        (await s.engine.called(1)).finish(problems=(syntax_problem(),), stage=Stage.READ)
        await s.publication(1)
        titles = [a["title"] for a in await s.actions(at(1, 4, 7))]
        assert titles == ["Silence pallas-error on this line", "Explain pallas-error"]

    in_session(tmp_path, test)


def test_a_request_can_be_cancelled(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x\n")
        await s.engine.called(0)
        number = s.start("textDocument/codeAction", s.action_params(at(0, 0, 1)))
        await asyncio.sleep(0.1)
        s.notify("$/cancelRequest", {"id": number})
        assert (await s.response(number))["error"]["code"] == -32800
        number = s.start("workspace/executeCommand", {"command": "pallas-lsp.checkFile", "arguments": [s.uri()]})
        await asyncio.sleep(0.1)
        s.notify("$/cancelRequest", {"id": number})
        assert (await s.response(number))["error"]["code"] == -32800
        s.notify("$/cancelRequest", {"id": 12345})

    in_session(tmp_path, test)


def test_fix_all_goes_on_where_one_fix_uncovers_the_next_fault(tmp_path):
    def check(call):
        report = rename_check(call)
        return call.make(*report.findings[:1])  # one fault hides the next

    async def test(s: Session):
        await s.initialize()
        text = "a = bad\nb = 1\nc = bad\nd = bad"
        s.open(text)
        await s.publication(0)
        (action,) = await s.actions(at(0, 0, 0), only=["source.fixAll"])
        assert (action["kind"], "edit" in action) == ("source.fixAll.pallas", False)
        resolved = await s.request("codeAction/resolve", action)
        (change,) = resolved["edit"]["documentChanges"]
        assert apply(text, change["edits"]) == "a = good\nb = 1\nc = good\nd = good"

    in_session(tmp_path, test, engine=FakeEngine(check))


def test_fix_all_leaves_out_what_is_not_safe_or_does_not_hold(tmp_path):
    async def test(s: Session):
        s.engine.verdict = lambda each: replace(each, verified=each.title != "Fix line 0")
        await s.initialize()
        text = "a = bad\nb = bad\n"
        s.open(text)
        await s.publication(0)
        (action,) = await s.actions(at(0, 0, 0), only=["source.fixAll.pallas"])
        resolved = await s.request("codeAction/resolve", action)
        (change,) = resolved["edit"]["documentChanges"]
        assert apply(text, change["edits"]) == "a = bad\nb = good\n"
        s.change("a = 1\n", 2)
        await s.publication(1)
        assert await s.actions(at(0, 0, 0), only=["source.fixAll.pallas"]) == []
        assert await s.actions(at(0, 0, 0), only=["refactor"]) == []

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_clients_without_document_changes_get_changes(tmp_path):
    async def test(s: Session):
        await s.initialize(PLAIN)
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Fix line 0")
        assert list(action["edit"]["changes"]) == [s.uri()]
        assert "isPreferred" not in action

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_silencing(tmp_path):
    texts = {
        "x = bad\n": "x = bad  # pallas-lsp: ignore[pallas-error]\n",
        "x = bad  # why\n": "x = bad  # why  # pallas-lsp: ignore[pallas-error]\n",
        "x = bad # pallas-lsp: ignore[other]\n": "x = bad # pallas-lsp: ignore[other, pallas-error]\n",
    }

    async def test(s: Session):
        await s.initialize()
        for version, (before, after) in enumerate(texts.items(), 2):
            s.open(before, version=version)
            await s.publication(2 * (version - 2))
            action = by_title(await s.actions(at(0, 4, 7)), "Silence pallas-error on this line")
            resolved = await s.request("codeAction/resolve", action)
            assert apply(before, resolved["edit"]["documentChanges"][0]["edits"]) == after
            s.shut()

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_silencing_where_no_comment_can_stand_says_so(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open('x = """\nbad\n"""\n')
        await s.publication(0)
        action = by_title(await s.actions(at(1, 0, 3)), "Silence pallas-error on this line")
        resolved = await s.request("codeAction/resolve", action)
        assert "line of its own" in resolved["disabled"]["reason"]

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_explaining_shows_the_page(tmp_path):
    async def test(s: Session):
        s.answers["window/showDocument"] = {"success": True}
        await s.initialize()
        s.open("x = bad\n")
        await s.publication(0)
        action = by_title(await s.actions(at(0, 4, 7)), "Explain pallas-error")
        page = await s.request("workspace/executeCommand", action["command"])
        assert page.startswith("# pallas-error\n")
        (shown,) = s.sent("window/showDocument")
        assert shown["uri"].endswith("pallas-error.md")

    in_session(tmp_path, test, engine=FakeEngine(rename_check))


def test_fixes_in_another_open_document_that_changed_are_not_offered(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = 1\n", "helper.py")
        (await s.engine.called(0)).finish()
        s.open("x = bad\n")
        place = at(0, 4, 7)
        both = replace(fix(s.path(), place, "good"), edits=(
            *fix(s.path(), place, "good").edits, *fix(s.path("helper.py"), at(0, 4, 5), "2").edits,
        ))  # fmt: skip
        (await s.engine.called(1)).finish(finding(s.path(), place, fixes=(both,)), launches=(launch(s.path(), place),))
        await s.publication(0)
        assert by_title(await s.actions(place), "Do it")["edit"]
        s.change("x = 11\n", 2, "helper.py")
        (await s.engine.called(2)).finish()
        await asyncio.sleep(0.1)
        assert "Do it" not in [a["title"] for a in await s.actions(place)]

    in_session(tmp_path, test)


def test_fixes_in_a_closed_file_that_changed_on_the_disk_are_not_offered(tmp_path):
    async def test(s: Session):
        helper = tmp_path / "helper.py"
        helper.write_text("x = 1\n")
        await s.initialize()
        s.open("x = bad\n")
        place = at(0, 4, 7)
        elsewhere = fix(s.path("helper.py"), at(0, 4, 5), "2", safety=Safety.SUGGESTED)
        s.engine.hold_verify = asyncio.Event()  # it is offered before it was verified
        (await s.engine.called(0)).finish(finding(s.path(), place, fixes=(elsewhere,)))
        await s.publication(0)
        offered = by_title(await s.actions(place), "Do it")
        s.engine.hold_verify.set()
        resolved = await s.request("codeAction/resolve", offered)
        (change,) = resolved["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": s.uri("helper.py"), "version": None}
        helper.write_text("# x\nx = 1\n")
        answer = await s.response(s.start("codeAction/resolve", offered))
        assert answer["error"]["code"] == -32801
        assert "Do it" not in [a["title"] for a in await s.actions(place)]
        helper.write_text("x = 1\n")
        s.open("x = 1\n", "helper.py")  # the same text, now open
        (await s.engine.called(1)).finish()
        assert by_title(await s.actions(place), "Do it")

    in_session(tmp_path, test)


def test_fixing_all_leaves_a_closed_file_alone_that_changes_meanwhile(tmp_path):
    async def test(s: Session):
        helper = tmp_path / "helper.py"
        helper.write_text("x = 1\n")
        await s.initialize()
        s.open("x = bad\n")
        place = at(0, 4, 7)
        found = finding(s.path(), place, fixes=(fix(s.path("helper.py"), at(0, 4, 5), "2"),))
        (await s.engine.called(0)).finish(found)
        await s.publication(0)
        s.engine.auto = lambda call: call.make()
        for change, edited in ((lambda: helper.write_text("# x\nx = 1\n"), False), (lambda: None, True)):
            helper.write_text("x = 1\n")
            (action,) = await s.actions(place, only=["source.fixAll"])
            s.engine.hold_verify = asyncio.Event()
            number = s.start("codeAction/resolve", action)
            await asyncio.sleep(0.1)
            change()
            s.engine.hold_verify.set()
            assert ("edit" in (await s.response(number))["result"]) is edited

    in_session(tmp_path, test)


KERNELS = "# pallas: f(f32[8])\n@jit\ndef f(x):\n    return call(x)\n\nf(1)\n"


def known_calls(session, *calls):
    """The launch on line 3, reached with calls of ``f``."""
    entries = [(driver, Entry(session.path(), 2, call)) for driver, call in calls]
    return launch(session.path(), at(3, 11, 18), *(capture(driver=driver, entry=entry) for driver, entry in entries))


def test_known_calls_can_be_written_as_shape_comments(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open(KERNELS)
        test_driver = f"pytest:{s.path('tests/test_f.py')}::test_f"
        calls = [("comment:1", "f(f32[8])"), (test_driver, "f(bf16[16])"), ("guess:f", "f(f32[256], n=1)")]
        (await s.engine.called(0)).finish(launches=(known_calls(s, *calls), known_calls(s, calls[1])))
        await s.publication(0)
        actions = await s.actions(at(3, 12, 12), only=["refactor"])
        first = "Write as a shape comment: f(bf16[16]) (from tests/test_f.py::test_f)"
        second = "Write as a shape comment: f(f32[256], n=1) (from types assumed for f)"
        all_of_them = "Write all 2 known calls as shape comments"
        assert [action["title"] for action in actions] == [first, second, all_of_them]
        assert {action["kind"] for action in actions} == {"refactor.rewrite"}
        edits = [action["edit"]["documentChanges"][0]["edits"] for action in actions]
        assert apply(KERNELS, edits[0]) == KERNELS.replace("@jit", "# pallas: f(bf16[16])\n@jit")
        both = "# pallas: f(bf16[16])\n# pallas: f(f32[256], n=1)\n@jit"
        assert apply(KERNELS, edits[2]) == KERNELS.replace("@jit", both)
        assert len(await s.actions(at(1, 0, 0), only=["refactor"])) == 3, "at the function's head"
        assert await s.actions(at(5, 0, 0), only=["refactor"]) == [], "elsewhere"
        assert await s.actions(at(3, 12, 12), only=["quickfix"]) == [], "it mends nothing"

    in_session(tmp_path, test)


def test_calls_in_an_older_text_are_not_written(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open(KERNELS)
        (await s.engine.called(0)).finish(launches=(known_calls(s, ("main", "f(bf16[16])")),))
        await s.publication(0)
        assert len(await s.actions(at(3, 12, 12), only=["refactor"])) == 1
        s.change("\n" + KERNELS, 2)
        (await s.engine.called(1)).report(stage=Stage.TRACE)
        assert not await s.actions(at(4, 12, 12), only=["refactor"], triggerKind=2)

    in_session(tmp_path, test)
