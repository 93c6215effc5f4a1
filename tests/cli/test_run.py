"""Checking, verifying and fixing, with an engine that answers from a script."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakes import FakeEngine, reached, replacing, report, where, word_judge

from pallas_lsp.cli.outcome import Outcome
from pallas_lsp.cli.run import Request, Run
from pallas_lsp.cli.sources import Sources
from pallas_lsp.model import Finding, LaunchStatus, Problem, Report, Safety, Severity, Snapshot, Stage


def run(engine: FakeEngine, *files: Path, **options: object) -> Outcome:
    request = Request([str(file) for file in files], cwd=str(files[0].parent), **options)  # type: ignore[arg-type]
    return asyncio.run(Run(engine, request, Sources()).outcome())


def write(folder: Path, text: str, name: str = "k.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_fix_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    file = write(tmp_path, "bad = 1\n")
    outcome = run(FakeEngine(word_judge({"bad": "good"})), file)
    assert [fix.verified for finding in outcome.findings for fix in finding.fixes] == [True]
    assert outcome.exit_code == 1
    assert outcome.jax == "0.11.2"
    engine = FakeEngine(word_judge({"bad": "good"}))
    outcome = run(engine, file, verify=False)
    assert [fix.verified for finding in outcome.findings for fix in finding.fixes] == [None]
    assert engine.calls == ["check k.py"]


@pytest.mark.parametrize(
    ("severity", "code"),
    [(Severity.ERROR, 1), (Severity.WARNING, 1), (Severity.INFORMATION, 0), (Severity.HINT, 0)],
)
def test_only_errors_and_warnings_count(tmp_path: Path, severity: Severity, code: int) -> None:
    assert run(FakeEngine(word_judge({"bad": "good"}, severity)), write(tmp_path, "bad\n")).exit_code == code


def test_fixes_are_applied_in_a_chain_until_none_is_left(tmp_path: Path) -> None:
    file = write(tmp_path, "one two\r\nthree\r\n")
    file.write_bytes(b"one two\r\nthree\r\n")
    outcome = run(FakeEngine(word_judge({"one": "1\n", "two": "2", "three": "3"})), file, fix=True)
    assert file.read_bytes() == b"1\r\n 2\r\n3\r\n"
    assert len(outcome.applied) == 3
    assert outcome.findings == ()
    assert outcome.exit_code == 0
    assert outcome.diff is None


def test_suggested_and_failing_fixes_are_not_applied(tmp_path: Path) -> None:
    file = write(tmp_path, "bad\n")

    def judge(snapshot: Snapshot, path: str) -> Report:
        text = snapshot.documents[path].text
        if "bad" not in text:
            return report(path)
        fixes = (
            replacing("does not help", path, text, "bad", "bad bad"),
            replacing("other meaning", path, text, "bad", "good", Safety.SUGGESTED),
        )
        return report(path, findings=(Finding("r", where(text, "bad", path), "m", fixes=fixes),))

    outcome = run(FakeEngine(judge), file, fix=True)
    assert file.read_text() == "bad\n"
    assert outcome.applied == ()
    assert [fix.verified for fix in outcome.findings[0].fixes] == [False, True]


def test_fixes_that_undo_each_other_come_to_an_end(tmp_path: Path) -> None:
    file = write(tmp_path, "black\n")

    class Forgiving(FakeEngine):
        async def verify(self, *arguments: object) -> object:  # type: ignore[override]
            from dataclasses import replace

            return replace(arguments[3], verified=True)  # type: ignore[type-var]

    outcome = run(Forgiving(word_judge({"black": "white", "white": "black"})), file, fix=True)
    assert len(outcome.applied) == 1
    assert file.read_text() == "white\n"


def test_a_diff_writes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "bad\nrest\n")
    outcome = run(FakeEngine(word_judge({"bad": "good"})), file, fix=True, write=False)
    assert file.read_text() == "bad\nrest\n"
    assert outcome.diff == "--- a/k.py\n+++ b/k.py\n@@ -1,2 +1,2 @@\n-bad\n+good\n rest\n"
    assert outcome.findings == ()
    assert outcome.exit_code == 1, "the file on disk still has it"


def test_a_fix_may_lie_in_another_file(tmp_path: Path) -> None:
    helper = write(tmp_path, "bad\n", "helper.py")
    main = write(tmp_path, "import helper\n", "main.py")

    def judge(snapshot: Snapshot, path: str) -> Report:
        document = snapshot.documents.get(str(helper))
        text = document.text if document is not None else helper.read_text()
        if "bad" not in text:
            return report(path)
        fix = replacing("Write good", str(helper), text, "bad", "good")
        return report(path, findings=(Finding("r", where(text, "bad", str(helper)), "m", fixes=(fix,)),))

    class Trusting(FakeEngine):
        async def verify(self, *arguments: object) -> object:  # type: ignore[override]
            from dataclasses import replace

            return replace(arguments[3], verified=True)  # type: ignore[type-var]

    outcome = run(Trusting(judge), main, fix=True)
    assert helper.read_text() == "good\n"
    assert main.read_text() == "import helper\n"
    assert outcome.findings == ()


def test_one_failure_does_not_hide_what_other_files_have(tmp_path: Path) -> None:
    good, bad = write(tmp_path, "bad\n", "a.py"), write(tmp_path, "x\n", "b.py")
    judge = word_judge({"bad": "good"})

    def failing(snapshot: Snapshot, path: str) -> Report:
        if path == str(bad):
            raise RuntimeError("lost")
        return judge(snapshot, path)

    outcome = run(FakeEngine(failing), good, bad, jobs=2)
    assert len(outcome.findings) == 1
    assert [problem.kind for problem in outcome.problems] == ["internal"]
    assert "RuntimeError: lost" in outcome.problems[0].message
    assert outcome.problems[0].remedy


def test_findings_in_a_shared_helper_are_one(tmp_path: Path) -> None:
    helper, one, two = (write(tmp_path, "bad\n", name) for name in ("helper.py", "one.py", "two.py"))

    def judge(snapshot: Snapshot, path: str) -> Report:
        kind = "f32[8]" if path == str(one) else "bf16[16]"
        found = Finding(
            "r", where("bad\n", "bad", str(helper)), f"It is bad.\nFound while tracing for {kind}.", arguments=(kind,)
        )
        return report(path, findings=(found,))

    outcome = run(FakeEngine(judge), one, two)
    assert [finding.arguments for finding in outcome.findings] == [("f32[8]", "bf16[16]")]


def test_a_launch_reached_from_another_file_is_checked(tmp_path: Path) -> None:
    library, test = write(tmp_path, "launch\n", "library.py"), write(tmp_path, "use\n", "test.py")
    status = reached(str(library))

    def judge(snapshot: Snapshot, path: str) -> Report:
        if path == str(library):
            return report(path, launches=(LaunchStatus(status.launch, (), "nothing in this file reaches it"),))
        return report(path, launches=(status,))

    outcome = run(FakeEngine(judge), library, test)
    assert outcome.problems == ()
    assert outcome.exit_code == 0
    alone = run(FakeEngine(judge), library)
    assert alone.exit_code == 3
    assert "nothing in this file reaches it" in alone.problems[0].message


def test_findings_win_over_what_could_not_be_checked(tmp_path: Path) -> None:
    file = write(tmp_path, "bad\n")
    judge = word_judge({"bad": "good"})

    def both(snapshot: Snapshot, path: str) -> Report:
        from dataclasses import replace

        return replace(judge(snapshot, path), problems=(Problem("timed-out", "m", "r"),))

    assert run(FakeEngine(both), file).exit_code == 1
    assert run(FakeEngine(lambda _, path: report(path, problems=(Problem("x", "m"),))), file).exit_code == 3


def test_files_are_checked_at_the_same_time_as_asked(tmp_path: Path) -> None:
    files = [write(tmp_path, "x\n", f"k{n}.py") for n in range(6)]
    running = 0
    most = 0

    class Slow(FakeEngine):
        async def check(self, snapshot: Snapshot, path: str) -> Report:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return Report(path, None, Stage.LOWER, True)

    run(Slow(word_judge({})), *files, jobs=3)
    assert most == 3
