"""Diagnostics as texts, checks and documents change, with a fake engine on virtual time."""

from __future__ import annotations

import asyncio

import pytest
from server_harness import (
    PLAIN,
    VSCODE,
    Session,
    at,
    capture,
    finding,
    launch,
    run,
    syntax_problem,
)

from pallas_lsp.model import Location, Problem, Related, Severity, Stage


def in_session(tmp_path, test, **options):
    async def body():
        session = Session(tmp_path, **options)
        await test(session)
        assert await session.end() == 0

    run(body())


def test_an_opened_document_is_checked_and_published_with_its_version(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("import jax\nx = 1\n", version=7)
        call = await s.engine.called(0)
        assert (call.path, call.version, call.run) == (s.path(), 7, True)
        assert call.snapshot.roots == (str(tmp_path),)
        call.finish(finding(s.path(), at(1, 0, 1), message="Bad.", data={"tags": ["deprecated"]}))
        got = await s.publication(0)
        assert got["version"] == 7
        (diagnostic,) = got["diagnostics"]
        assert diagnostic["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
        assert (diagnostic["code"], diagnostic["source"], diagnostic["severity"]) == ("pallas-error", "pallas", 1)
        assert diagnostic["message"] == "Bad."
        assert diagnostic["tags"] == [2]
        assert diagnostic["codeDescription"]["href"].endswith("/pallas-error.md")
        assert diagnostic["data"]["stage"] == "trace"

    in_session(tmp_path, test)


def test_a_check_without_findings_says_so(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x = 1\n")
        (await s.engine.called(0)).finish()
        assert await s.publication(0) == {"uri": s.uri(), "version": 1, "diagnostics": []}

    in_session(tmp_path, test)


def test_an_edit_cancels_the_older_check_whose_results_are_never_published(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("one\n")
        first = await s.engine.called(0)
        s.change("two\n", 2)
        second = await s.engine.called(1)
        assert first.cancelled
        assert second.text == "two\n"
        first.report(finding(s.path(), at(0, 0, 3)))  # a message that was already under way
        second.finish()
        assert (await s.publication(0))["version"] == 2
        await asyncio.sleep(1)
        assert len(s.published()) == 1

    in_session(tmp_path, test)


def test_the_snapshot_is_the_text_when_the_check_began(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("one\n")
        first = await s.engine.called(0)
        s.change("two\n", 2)
        s.change("three\n", 3)
        second = await s.engine.called(1)
        assert first.text == "one\n"
        assert (second.text, second.version) == ("three\n", 3)

    in_session(tmp_path, test)


def test_old_findings_stay_and_move_until_they_are_replaced(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\nb\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(1, 0, 1)))
        await s.publication(0)
        s.change("new\na\nb\n", 2)
        call = await s.engine.called(1)
        call.report(stage=Stage.READ)  # says nothing of traces yet
        await asyncio.sleep(0.1)
        assert s.rules(s.published()[-1]) == [("pallas-error", 2, 0)]
        call.finish()
        await asyncio.sleep(0.1)
        assert s.published()[-1]["diagnostics"] == []

    in_session(tmp_path, test)


def test_trace_findings_come_first_and_do_not_flicker(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\nb\n")
        trace = finding(s.path(), at(0, 0, 1), "traced", stage=Stage.TRACE)
        lower = finding(s.path(), at(1, 0, 1), "lowered", stage=Stage.LOWER)
        call = await s.engine.called(0)
        call.report(trace)
        assert s.rules(await s.publication(0)) == [("traced", 0, 0)]
        call.finish(trace, lower)
        assert s.rules(await s.publication(1)) == [("traced", 0, 0), ("lowered", 1, 0)]
        s.change("a\nb\n\n", 2)
        call = await s.engine.called(1)
        call.report(trace)  # the lowering finding stays until lowering says otherwise
        await asyncio.sleep(0.1)
        assert s.rules(s.published()[-1]) == [("traced", 0, 0), ("lowered", 1, 0)]
        call.finish(trace)
        await asyncio.sleep(0.1)
        assert s.rules(s.published()[-1]) == [("traced", 0, 0)]

    in_session(tmp_path, test)


def test_while_the_text_does_not_parse_the_last_findings_stay(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\nb\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(1, 0, 1)), launches=(launch(s.path(), at(1, 0, 1)),))
        s.change("(\na\nb\n", 2)
        (await s.engine.called(1)).finish(problems=(syntax_problem(),), stage=Stage.READ)
        got = await s.publication(1)
        assert (got["version"], s.rules(got)) == (2, [("pallas-error", 2, 0)])

    in_session(tmp_path, test)


def test_findings_in_a_file_that_is_not_open_stand_there_and_go_with_their_cause(tmp_path):
    async def test(s: Session):
        (tmp_path / "helper.py").write_text("# \U0001f600\nx = '\U0001f600', y\n", encoding="utf-8")
        await s.initialize()
        s.open("import helper\n")
        there = finding(s.path("helper.py"), at(1, 9, 10))
        (await s.engine.called(0)).finish(there)
        got = await s.publication(0, "helper.py")
        assert s.rules(got) == [("pallas-error", 1, 10)]  # UTF-16, read from disk
        assert "version" not in got
        s.shut()
        assert (await s.publication(1, "helper.py"))["diagnostics"] == []

    in_session(tmp_path, test)


def test_two_owners_of_findings_in_one_file(tmp_path):
    async def test(s: Session):
        (tmp_path / "helper.py").write_text("x\ny\n")
        await s.initialize()
        both = finding(s.path("helper.py"), at(0, 0, 1))
        s.open("1\n", "a.py")
        (await s.engine.called(0)).finish(both)
        s.open("2\n", "b.py")
        (await s.engine.called(1)).finish(both, finding(s.path("helper.py"), at(1, 0, 1), "other"))
        assert s.rules(await s.publication(1, "helper.py")) == [("pallas-error", 0, 0), ("other", 1, 0)]
        s.shut("b.py")
        assert s.rules(await s.publication(2, "helper.py")) == [("pallas-error", 0, 0)]
        s.shut("a.py")
        assert s.rules(await s.publication(3, "helper.py")) == []

    in_session(tmp_path, test)


def test_closing_clears_and_stops(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\n")
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 1)))
        await s.publication(0)
        s.change("b\n", 2)
        call = await s.engine.called(1)
        s.shut()
        assert (await s.publication(1))["diagnostics"] == []
        assert call.cancelled
        await asyncio.sleep(2)
        assert len(s.published()) == 2

    in_session(tmp_path, test)


def test_reopening_starts_afresh(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\n", version=5)
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 1)))
        s.shut()
        s.open("a\n", version=1)
        (await s.engine.called(1)).finish(finding(s.path(), at(0, 0, 1)))
        got = await s.publication(2)
        assert (got["version"], len(got["diagnostics"])) == (1, 1)

    in_session(tmp_path, test)


def test_an_edit_of_an_imported_module_checks_those_that_import_it(tmp_path):
    async def test(s: Session):
        (tmp_path / "between.py").write_text("from helper import x\n")
        await s.initialize()
        s.engine.auto = lambda call: call.make()
        s.open("import between\n", "main.py")
        s.open("unrelated = 1\n", "other.py")
        s.open("x = 1\n", "helper.py")
        await s.publication(0, "helper.py")
        await asyncio.sleep(1)
        s.engine.calls.clear()
        s.change("x = 2\n", 2, "helper.py")
        await asyncio.sleep(2)
        assert [call.path for call in s.engine.calls] == [s.path("helper.py"), s.path("main.py")]
        assert s.engine.calls[1].snapshot.documents[s.path("helper.py")].text == "x = 2\n"

    in_session(tmp_path, test)


def test_a_finding_in_another_open_document_moves_with_its_newer_text(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x\n", "helper.py")
        (await s.engine.called(0)).finish()
        s.open("import nothing\n", "a.py")
        call = await s.engine.called(1)
        s.change("# above\nx\n", 2, "helper.py")
        (await s.engine.called(2)).finish()
        call.finish(finding(s.path("helper.py"), at(0, 0, 1)))
        await asyncio.sleep(0.1)
        got = s.published("helper.py")[-1]
        assert (got["version"], s.rules(got)) == (2, [("pallas-error", 1, 0)])

    in_session(tmp_path, test)


def test_related_places_and_their_fallback_as_text(tmp_path):
    def related(s: Session):
        place = Location(s.path(), at(2, 0, 1))
        return finding(s.path(), at(0, 0, 1), message="Bad.", related=(Related(place, "Called here."),))

    async def rich(s: Session):
        await s.initialize(VSCODE)
        s.open("a\nb\nc\n")
        (await s.engine.called(0)).finish(related(s))
        (diagnostic,) = (await s.publication(0))["diagnostics"]
        assert diagnostic["message"] == "Bad."
        (info,) = diagnostic["relatedInformation"]
        assert (info["message"], info["location"]["range"]["start"]["line"]) == ("Called here.", 2)

    async def plain(s: Session):
        await s.initialize(PLAIN)
        s.open("a\nb\nc\n")
        (await s.engine.called(0)).finish(related(s))
        (diagnostic,) = (await s.publication(0))["diagnostics"]
        assert diagnostic["message"] == f"Bad.\n{s.path()}:3: Called here."
        assert not {"relatedInformation", "codeDescription", "data", "tags"} & diagnostic.keys()

    in_session(tmp_path, rich)
    in_session(tmp_path, plain)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 11), ("utf-16", 9), ("utf-32", 8)])
def test_columns_are_in_the_negotiated_units(tmp_path, encoding, column):
    async def test(s: Session):
        result = await s.initialize({**VSCODE, "general": {"positionEncodings": [encoding]}})
        assert result["capabilities"]["positionEncoding"] == encoding
        s.open('s = "\U0001f600"+x\r\nform\x0cfeed \u2028 y\n')
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 8, 9)), finding(s.path(), at(1, 12, 13), "second"))
        got = await s.publication(0)
        assert s.rules(got)[0] == ("pallas-error", 0, column)
        assert s.rules(got)[1] == ("second", 1, 14 if encoding == "utf-8" else 12)

    in_session(tmp_path, test)


def test_full_sync_is_announced_and_a_ranged_change_is_applied_all_the_same(tmp_path):
    async def test(s: Session):
        result = await s.initialize()
        assert result["capabilities"]["textDocumentSync"]["change"] == 1
        s.open("a\x0cb\nc = 1\n")
        (await s.engine.called(0)).finish()
        change = {
            "range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 5}},
            "text": "22",
        }
        s.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": s.uri(), "version": 2}, "contentChanges": [change]},
        )
        assert (await s.engine.called(1)).text == "a\x0cb\nc = 22\n"

    in_session(tmp_path, test)


def test_other_documents_are_left_alone(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("text", "notes.txt", language="plaintext")
        s.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": "output:tasks", "languageId": "python", "version": 1, "text": "x"}},
        )
        s.change("x", 2, "never-opened.py")
        await asyncio.sleep(2)
        assert s.engine.calls == []
        assert s.sent("textDocument/publishDiagnostics") == []

    in_session(tmp_path, test)


def test_an_unsaved_buffer_is_checked(tmp_path):
    async def test(s: Session):
        await s.initialize()
        uri = "untitled:Untitled-1"
        s.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": "x\n"}},
        )
        call = await s.engine.called(0)
        assert call.path == str(tmp_path / "Untitled-1.untitled.py")
        call.finish(finding(call.path, at(0, 0, 1)))
        await asyncio.sleep(0.1)
        (got,) = s.sent("textDocument/publishDiagnostics")
        assert (got["uri"], len(got["diagnostics"])) == (uri, 1)

    in_session(tmp_path, test)


def test_rules_can_be_turned_off_and_weakened(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": True, "settings": {"rules": {"a": "off", "b": "hint"}}})
        s.open("x\n")
        found = [finding(s.path(), at(0, 0, 1), rule, severity=Severity.ERROR) for rule in "abc"]
        (await s.engine.called(0)).finish(*found)
        got = await s.publication(0)
        assert [(d["code"], d["severity"]) for d in got["diagnostics"]] == [("b", 4), ("c", 1)]

    in_session(tmp_path, test)


def test_settings_are_pulled_and_reach_the_engine(tmp_path):
    async def test(s: Session):
        values = {"interpreter": ["/opt/python"], "timeLimit": 5}
        s.answers["workspace/configuration"] = lambda params: [values for _ in params["items"]]
        s.answers["client/registerCapability"] = None
        capabilities = {
            **VSCODE,
            "workspace": {
                "configuration": True,
                "didChangeConfiguration": {"dynamicRegistration": True},
                "didChangeWatchedFiles": {"dynamicRegistration": True},
            },
        }
        s.engine.auto = lambda call: call.make()
        await s.initialize(capabilities)
        s.open("x\n")
        await s.publication(0)
        assert [made.interpreter for made in s.engines_made] == ["/opt/python"]
        (registered,) = s.sent("client/registerCapability")
        assert len(registered["registrations"]) == 2
        values["interpreter"] = "/opt/other"
        s.notify("workspace/didChangeConfiguration", {"settings": None})
        await s.engine.called(1)
        assert [made.interpreter for made in s.engines_made] == ["/opt/python", "/opt/other"]
        assert s.engine.closed == 1
        (tmp_path / "helper.py").write_text("")
        s.engine.calls.clear()
        event = {"uri": s.uri("pyproject.toml"), "type": 2}
        s.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
        await s.engine.called(0)

    in_session(tmp_path, test)


def test_wrong_settings_are_named_and_the_rest_is_used(tmp_path):
    async def test(s: Session):
        options = {"interpreter": 3, "timeLimit": -1, "memoryLimit": 100, "rules": {"x": "loud"}, "typo": 1}
        await s.initialize(options={"trusted": True, "settings": options})
        s.open("x\n")
        (await s.engine.called(0)).finish()
        assert s.engine.settings.memory_limit == 100 << 20
        assert s.engine.settings.interpreter is None
        s.notify("workspace/didChangeConfiguration", {"settings": {"pallas-lsp": {"interpreter": "/p", "x": 1}}})
        await s.engine.called(1)
        assert s.engine.settings.interpreter == "/p"
        logged = " ".join(m["message"] for m in s.sent("window/logMessage"))
        assert "there is no setting 'x'" in logged

    in_session(tmp_path, test)


def test_workspace_folders_come_and_go(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("x\n")
        (await s.engine.called(0)).finish()
        other = tmp_path / "other"
        event = {"added": [{"uri": other.as_uri(), "name": "o"}], "removed": [{"uri": tmp_path.as_uri(), "name": "w"}]}
        s.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert (await s.engine.called(1)).snapshot.roots == (str(other),)

    in_session(tmp_path, test)


def test_status_says_how_far_each_document_is(tmp_path):
    async def test(s: Session):
        await s.initialize({**VSCODE, "experimental": {"pallasStatus": True}})
        s.open("a\nb\n")
        call = await s.engine.called(0)
        await asyncio.sleep(0.1)
        reached, unreached = launch(s.path(), at(0, 0, 1), capture()), launch(s.path(), at(1, 0, 1), reason="no driver")
        problem = Problem("timed-out", "it took too long", "Make it shorter.")
        call.finish(launches=(reached, unreached), problems=(problem,))
        await s.publication(0)
        first, *_, last = s.sent("pallas/status")
        assert (first["uri"], first["busy"]) == (s.uri(), True)
        assert last == {
            "uri": s.uri(),
            "busy": False,
            "health": "warning",
            "message": "2 kernel launches, 1 checked, 1 not reached",
            "stage": "lower",
            "kernels": {"found": 2, "reached": 1},
            "problems": [{"kind": "timed-out", "message": "it took too long", "remedy": "Make it shorter."}],
        }

    in_session(tmp_path, test)


def test_without_a_status_item_what_blocks_all_checks_is_shown_once(tmp_path):
    async def test(s: Session):
        await s.initialize()
        problem = Problem("no-jax", "/usr/bin/python3 has no jax", "Install it.")
        s.engine.auto = lambda call: call.make(launches=(launch(s.path(), at(0, 0, 1)),), problems=(problem,))
        s.open("a\n")
        await s.publication(0)
        s.change("b\n", 2)
        await s.publication(1)
        (shown,) = s.sent("window/showMessage")
        assert shown == {"type": 2, "message": "Pallas LSP: /usr/bin/python3 has no jax. Install it."}
        assert s.sent("pallas/status") == []

    in_session(tmp_path, test)


def test_progress_is_shown_for_long_checks_only_and_can_be_cancelled(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a\n")
        (await s.engine.called(0)).finish()
        await s.publication(0)
        await asyncio.sleep(2)
        assert s.sent("window/workDoneProgress/create") == []
        s.change("b\n", 2)
        call = await s.engine.called(1)
        await asyncio.sleep(0.7)
        call.report()
        (created,) = s.sent("window/workDoneProgress/create")
        begin, report = (m["value"] for m in s.sent("$/progress"))
        assert (begin["kind"], begin["title"], begin["cancellable"]) == ("begin", "Checking a.py", True)
        assert (report["kind"], report["message"]) == ("report", "lowering")
        s.notify("window/workDoneProgress/cancel", {"token": created["token"]})
        await asyncio.sleep(0.1)
        assert call.cancelled
        assert s.sent("$/progress")[-1]["value"]["kind"] == "end"

    in_session(tmp_path, test)


def test_hover_on_a_launch(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("a = call()\nb = call()\n")
        reached = launch(s.path(), at(0, 4, 10), capture("bf16[8,16]"))
        unreached = launch(s.path(), at(1, 4, 10), reason="nothing calls it", remedy="Write a test.")
        (await s.engine.called(0)).finish(launches=(reached, unreached))
        await s.publication(0)

        async def hover(line, character):
            place = {"textDocument": {"uri": s.uri()}, "position": {"line": line, "character": character}}
            return await s.request("textDocument/hover", place)

        first = await hover(0, 6)
        assert "`bf16[8,16]`" in first["contents"]["value"]
        assert "traced and lowered for 9.0" in first["contents"]["value"]
        text = (await hover(1, 4))["contents"]["value"]
        assert "Not checked: nothing calls it" in text
        assert "Write a test." in text
        assert await hover(0, 0) is None

    in_session(tmp_path, test)


def test_commands(tmp_path):
    async def test(s: Session):
        result = await s.initialize()
        offered = result["capabilities"]["executeCommandProvider"]["commands"]
        s.engine.auto = lambda call: call.make(finding(s.path(), at(0, 0, 1)))
        s.open("secret source text\n")
        await s.publication(0)

        async def command(name, *arguments):
            assert f"pallas-lsp.{name}" in offered
            params = {"command": f"pallas-lsp.{name}", "arguments": arguments}
            return await s.request("workspace/executeCommand", params)

        assert (await command("checkFile", s.uri()))["findings"] == 1
        assert len(s.engine.calls) == 2
        assert s.engine.renewed == [s.path()]
        assert "# pallas-error" in await command("explainRule", "pallas-error", {"show": False})
        assert "pallas-error" in [rule["name"] for rule in await command("rules")]
        information = await command("debugInformation")
        assert '"jax": "0.11.2"' in information
        assert "secret" not in information
        await command("restart")
        assert s.engine.closed == 1
        await s.engine.called(2)
        assert await command("cancel") == 0
        for wrong in (("explainRule", "no-such-rule"), ("checkFile", "file:///nowhere.py"), ("explainRule",)):
            number = s.start(
                "workspace/executeCommand", {"command": f"pallas-lsp.{wrong[0]}", "arguments": list(wrong[1:])}
            )
            assert (await s.response(number))["error"]["code"] == -32602
        assert (await s.response(s.start("workspace/executeCommand", {"command": "rm"})))["error"]["code"] == -32602

    in_session(tmp_path, test)


def test_the_log_holds_no_source_text(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.engine.auto = lambda call: call.make(finding(s.path(), at(0, 0, 1)))
        s.open("secret source text\n")
        await s.publication(0)
        s.change("secret source text, changed\n", 2)
        await s.publication(1)
        assert s.sent("window/logMessage")
        assert "secret" not in str(s.sent("window/logMessage"))

    in_session(tmp_path, test)


def test_findings_stay_while_the_code_stops_before_any_kernel(tmp_path):
    async def test(s: Session):
        await s.initialize(options={"trusted": True, "status": True})
        s.open("import jax\nbad\nworse\n")
        found = (finding(s.path(), at(1, 0, 3)), finding(s.path(), at(2, 0, 5), "other"))
        (await s.engine.called(0)).finish(*found, launches=(launch(s.path(), at(1, 0, 3), capture()),))
        await s.publication(0)
        s.change("import ja\nbad\nWORSE\n", 2)  # a name that is half typed, and an edit of what is marked
        unreached = launch(s.path(), at(1, 0, 3), reason="the file's top level stopped")
        (await s.engine.called(1)).finish(launches=(unreached,))
        got = await s.publication(1)
        assert (got["version"], s.rules(got)) == (2, [("pallas-error", 1, 0)])
        assert "stops before it reaches a kernel" in s.sent("pallas/status")[-1]["message"]
        s.change("import jax\nbad\nWORSE\n", 3)
        (await s.engine.called(2)).finish(launches=(launch(s.path(), at(1, 0, 3), capture()),))
        assert (await s.publication(2))["diagnostics"] == []

    in_session(tmp_path, test)


def test_findings_go_with_their_driver(tmp_path):
    async def test(s: Session):
        await s.initialize()
        s.open("bad\nmain\n")
        reached = launch(s.path(), at(0, 0, 3), capture())
        (await s.engine.called(0)).finish(finding(s.path(), at(0, 0, 3)), launches=(reached,))
        s.change("bad\n", 2)
        unreached = launch(s.path(), at(0, 0, 3), reason="nothing calls it")
        (await s.engine.called(1)).finish(launches=(unreached,), stage=Stage.READ)
        await asyncio.sleep(0.1)
        assert s.published()[-1]["diagnostics"] == []

    in_session(tmp_path, test)


def test_the_stages_that_are_wanted(tmp_path):
    async def trace(s: Session):
        await s.initialize(options={"trusted": True, "settings": {"stages": "trace"}})
        s.open("bad\n")
        call = await s.engine.called(0)
        call.report(finding(s.path(), at(0, 0, 3)))
        assert s.rules(await s.publication(0)) == [("pallas-error", 0, 0)]
        await asyncio.sleep(0.1)
        assert call.cancelled
        assert not s.server.scheduler.busy(s.path())

    async def read(s: Session):
        await s.initialize(
            options={
                "trusted": True,
                "settings": {"stages": "read", "discovery": {"enable": False}, "keepResults": False},
            }
        )
        s.open("bad\n")
        call = await s.engine.called(0)
        assert not call.run
        assert not s.engine.settings.discovery
        assert s.engine.settings.engine().kept is None
        call.finish(stage=Stage.READ)

    in_session(tmp_path, trace)
    in_session(tmp_path, read)


def test_a_client_with_commands_of_its_own_is_offered_none(tmp_path):
    async def test(s: Session):
        result = await s.initialize(options={"trusted": True, "commands": False})
        assert not result["capabilities"].get("executeCommandProvider", {}).get("commands")
        assert await s.request("workspace/executeCommand", {"command": "pallas-lsp.cancel"}) == 0

    in_session(tmp_path, test)
