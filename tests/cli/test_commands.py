"""The command line itself: usage, rules' pages, and streams that are closed or broken."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from fakes import FakeEngine, word_judge

from pallas_lsp import __version__
from pallas_lsp.cli import check
from pallas_lsp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PALLAS = "from jax.experimental import pallas as pl\n"


def command(*arguments: str, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": ""}
    return subprocess.run(
        [sys.executable, "-m", "pallas_lsp", *arguments],
        cwd=cwd, env=environment, text=True, encoding="utf-8", check=False, timeout=60, **options,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / ".home"))
    return tmp_path


@pytest.fixture
def with_engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeEngine], None]:
    def use(engine: FakeEngine) -> None:
        @contextlib.asynccontextmanager
        async def opened(*_: object) -> AsyncIterator[FakeEngine]:
            yield engine
            await engine.aclose()

        monkeypatch.setattr(check, "open_engine", opened)

    return use


# -- usage ------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["chek"], "invalid choice: 'chek'"),
        (["check"], "required: PATH"),
        (["check", "none.py", "k.py"], "there is no file or folder 'none.py'"),
        (["check", "k.py", "--format", "xml"], "invalid choice: 'xml'"),
        (["check", "k.py", "--python", "no/such/python"], "there is no Python at"),
        (["check", "k.py", "--output", "no/such/report"], "there is no folder 'no/such'"),
        (["check", "k.py", "--output", "."], "is a folder"),
        (["check", "k.py", "--log-file", "no/such/log"], "the log file cannot be written"),
        (["check", "k.py", "--jobs", "0"], "not a number of 1 or more"),
        (["check", "k.py", "--fix", "--no-verify"], "--no-verify makes no sense"),
        (["check", "k.py", "--diff", "--format", "sarif"], "not as sarif"),
        (["explain", "no-such-rule"], "there is no rule named 'no-such-rule'"),
        (["serve", "--tcp", "nowhere"], "is not HOST:PORT"),
    ],
)
def test_a_wrong_command_line_is_2_with_a_reason(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.py").write_text(PALLAS)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--help"]) == 0
    assert "3    nothing found, but something could not be checked" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pallas-lsp {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {name} " in shown for name in ("check", "explain", "doctor", "serve"))


def test_an_empty_folder_is_0_with_a_remark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert main(["check", "empty"]) == 0
    captured = capsys.readouterr()
    assert "no Python file that imports Pallas in 'empty'" in captured.err
    assert captured.out == "No file to check.\n"


# -- check, with a scripted engine ------------------------------------------------------------


def test_fix_diff_goes_alone_to_standard_output(
    folder: Path, with_engine: Callable[[FakeEngine], None], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.py").write_text("bad\n")
    with_engine(FakeEngine(word_judge({"bad": "good"})))
    assert main(["check", "k.py", "--diff"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "--- a/k.py\n+++ b/k.py\n@@ -1 +1 @@\n-bad\n+good\n"
    assert "Would apply 1 fix." in captured.err
    assert (folder / "k.py").read_text() == "bad\n"
    assert main(["check", "k.py", "--fix"]) == 0
    assert "Applied 1 fix." in capsys.readouterr().out
    assert (folder / "k.py").read_text() == "good\n"


def test_output_goes_to_a_file_and_a_summary_to_standard_error(
    folder: Path, with_engine: Callable[[FakeEngine], None], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.py").write_text("bad\n")
    engine = FakeEngine(word_judge({"bad": "good"}))
    with_engine(engine)
    assert main(["check", "k.py", "--format", "json", "--output", "report.json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Found 1 error in 1 file")
    assert len(json.loads((folder / "report.json").read_text())["diagnostics"]) == 1
    assert engine.closed


@pytest.mark.parametrize(("choice", "colored"), [("always", True), ("never", False), ("auto", False)])
def test_colour(
    choice: str,
    colored: bool,
    folder: Path,
    with_engine: Callable[[FakeEngine], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "k.py").write_text("bad\n")
    with_engine(FakeEngine(word_judge({"bad": "good"})))
    main(["check", "k.py", "--color", choice])
    assert ("\x1b[" in capsys.readouterr().out) is colored


def test_a_fault_of_our_own_does_not_look_like_findings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(check, "select", broken)
    assert main(["check", "k.py"]) == 70
    assert "please report it" in capsys.readouterr().err


def test_without_a_log_folder_the_check_goes_on(
    folder: Path,
    with_engine: Callable[[FakeEngine], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "k.py").write_text("bad\n")
    (folder / "file").write_text("")
    monkeypatch.setattr("pallas_lsp.cli.logs.log_folder", lambda: folder / "file" / "log")
    with_engine(FakeEngine(word_judge({"bad": "good"})))
    assert main(["check", "k.py"]) == 1


# -- explain ------------------------------------------------------------


def test_explain_prints_a_page_or_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pallas-error"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# pallas-error\n")
    assert "## Why it is wrong" in page
    assert "\x1b" not in page
    assert main(["explain", "PALLAS_ERROR", "--color", "always"]) == 0
    assert "\x1b[" in capsys.readouterr().out
    assert main(["explain"]) == 0
    names = [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert "pallas-error" in names
    assert names == sorted(names)


def test_explain_suggests_a_rule_of_a_similar_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "palas-eror"]) == 2
    assert "Did you mean pallas-error" in capsys.readouterr().err


# -- streams ------------------------------------------------------------


def test_standard_streams_may_be_closed(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("x = 1\n")
    line = f'"{sys.executable}" -m pallas_lsp check k.py'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for redirection, output in (("<&-", True), (">&-", False), ("2>&-", True), ("<&- >&- 2>&-", False)):
        run = subprocess.run(
            ["bash", "-c", f"{line} {redirection}"], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert run.returncode == 0, redirection
        assert run.stderr == "", redirection
        assert run.stdout.startswith("No kernel is launched") is output, redirection


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("arguments", [["explain", "pallas-error"], ["check", "many"]])
def test_a_reader_that_stops_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(400):  # more than a pipe holds
        (tmp_path / "many" / f"kernel_with_a_long_name_{number:03}.py").write_text(PALLAS + "def f(:\n")
    reading, writing = os.pipe()
    os.close(reading)
    run = command(*arguments, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert run.stderr == ""
    assert run.returncode == (3 if arguments[0] == "check" else 0)


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(PALLAS + "x = 'é😀' +\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for name in ("text", "json", "sarif", "github"):
        run = subprocess.run(
            [sys.executable, "-m", "pallas_lsp", "check", "k.py", "-v", "--format", name],
            cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert run.returncode == 3
        assert run.stderr == b""
        assert run.stdout.isascii()
        if name in ("json", "sarif"):
            json.loads(run.stdout)
