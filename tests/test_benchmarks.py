"""The benchmarks run against a real server and write their figures; no time is judged here."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "benchmarks"))

from page import write  # noqa: E402
from session import Expected, session  # noqa: E402
from subjects import SUBJECTS  # noqa: E402


def test_latency_is_measured(newest_jax_python, tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROJECT / "benchmarks" / "latency.py"), "--python", newest_jax_python.python]
    command += ["--kernel", "tpu_matmul", "--edits", "2", "--warm-up", "0", "--bursts", "1", "--pause", "0.1"]
    run = subprocess.run([*command, "--json", str(figures)], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert "tpu_matmul" in run.stdout
    document = json.loads(figures.read_text(encoding="utf-8"))
    assert document["jax"] == newest_jax_python.version
    assert len(document["results"]) == 2, "called by its own file, and by another file's test"
    for result in document["results"]:
        assert result["edits"] == 2
        assert result["edit"]["median_ms"] > 0
        assert result["edit_to_bare"]["median"] > 0


def test_keystrokes_are_measured(newest_jax_python, tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROJECT / "benchmarks" / "keystrokes.py"), "--python", newest_jax_python.python]
    command += ["--kernel", "wgmma", "--keystrokes", "25", "--pause", "0.1", "--anew", "1", "--json", str(figures)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    kernel = json.loads(figures.read_text(encoding="utf-8"))["kernels"]["wgmma"]
    assert kernel["keystrokes"] >= 25
    assert kernel["anew_seconds"] > 0
    # Each was there when it was to be, or the benchmark had ended.
    kinds = {"finding of tracing", "finding of lowering", "new correct text", "text seen before", "broken syntax"}
    assert kinds <= set(kernel["results"]) <= {*kinds, "helper edited"}
    for result in kernel["results"].values():
        assert 0 <= result["wait"]["p50"] <= result["result"]["worst"]
    assert kernel["results"]["finding of tracing"]["to_bare"]["p50"] > 0
    assert "| wgmma | finding of tracing |" in run.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_bounded(newest_jax_python, tmp_path: Path):
    """In a short form, with bounds that a leak of 100 kB for each edit or a worker with another's imports exceeds."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROJECT / "benchmarks" / "memory.py"), "--python", newest_jax_python.python]
    run = subprocess.run(
        [*command, "--files", "20", "--edits", "150", "--json", str(figures)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    measured = json.loads(figures.read_text(encoding="utf-8"))
    assert 20 < measured["server"] < 120
    assert 0.8 < measured["worker"] / measured["bare"] < 1.3
    assert measured["server_after_all"] < 120
    assert measured["server_after_all"] - measured["server_after_some"] < 12
    assert measured["worker_after_all"] - measured["worker_after_some"] < 5


def test_many_files_are_measured(newest_jax_python, tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(PROJECT / "benchmarks" / "many.py"), "--python", newest_jax_python.python]
    command += ["--files", "3", "--jobs", "2", "--json", str(figures)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    measured = json.loads(figures.read_text(encoding="utf-8"))
    assert [each["jobs"] for each in measured["runs"]] == [2]
    assert measured["bare"] > 0
    assert "| 2 |" in run.stdout


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_session_ends_each_phrase_as_it_says(name: str, newest_jax_python):
    """Its keystrokes, one by one, lead to the texts of the phrases, and whatever was changed is taken back."""
    subject = SUBJECTS[name](newest_jax_python.python)
    phrases = session(subject, 200)
    assert phrases == session(subject, 200)
    texts = dict(subject.files)
    seen = set()
    for phrase in phrases:
        for stroke in phrase.keystrokes:
            text = texts[stroke.file]
            texts[stroke.file] = text[: stroke.start] + stroke.text + text[stroke.end :]
        parses = _parses(texts[subject.main])
        assert parses == (phrase.expected is not Expected.SYNTAX)
        seen.add((phrase.kind, phrase.expected))
        if phrase.expected is Expected.CLEAN and phrase.kind == "delete":
            assert subject.trace_fault.old in texts[subject.main]
    kinds = {kind for kind, _ in seen}
    assert kinds >= {"insert", "delete", "paste", "undo", "break", "repair", "helper", "driver"}
    assert {expected for _, expected in seen} == set(Expected)
    assert 200 <= sum(len(phrase.keystrokes) for phrase in phrases) < 300


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def test_a_table_takes_the_place_of_the_last_one(tmp_path: Path):
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- this: measured -->\nold\n<!-- this: end -->\nafter\n", encoding="utf-8")
    write("this", "new", page)
    write("this", "newest", page)
    assert page.read_text(encoding="utf-8") == (
        "before\n<!-- this: measured -->\n\nnewest\n\n<!-- this: end -->\nafter\n"
    )
    with pytest.raises(ValueError, match="no place for that"):
        write("that", "new", page)
