"""Reading and writing Python files without changing what was not meant to change."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from jax_environments import PROJECT

from pallas_lsp.cli.diffs import edited, file_diff
from pallas_lsp.cli.sources import Sources, UnreadableError, UnwritableError, read_source
from pallas_lsp.model import Edit, Position, Range


def insertion(path: Path, text: str) -> list[Edit]:
    return [Edit(str(path), Range(Position(1, 0), Position(1, 0)), text)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a = 1\nb = 2\n", b"a = 1\nnew = '\xc3\xa9'\nb = 2\n"),
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nnew = '\xc3\xa9'\r\nb = 2\r\n"),
        (b"\xef\xbb\xbfa = 1\nb = 2", b"\xef\xbb\xbfa = 1\nnew = '\xc3\xa9'\nb = 2"),
        (b"# -*- coding: latin-1 -*-\nb = '\xe4'\n", b"# -*- coding: latin-1 -*-\nnew = '\xe9'\nb = '\xe4'\n"),
        (b"a = 1\rb = 2\r", b"a = 1\rnew = '\xc3\xa9'\rb = 2\r"),
    ],
    ids=["utf-8", "crlf", "bom", "latin-1", "cr"],
)
def test_a_change_keeps_encoding_line_endings_and_mark(tmp_path: Path, data: bytes, expected: bytes) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(data)
    sources = Sources()
    text = sources.read(str(file)).text
    sources.change(str(file), edited(text, insertion(file, "new = 'é'\n")))
    sources.write()
    assert file.read_bytes() == expected
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")
def test_mode_and_symbolic_link_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    real.write_text("a = 1\n")
    real.chmod(0o750)
    link = tmp_path / "link.py"
    link.symlink_to(real)
    sources = Sources()
    sources.change(str(link), "a = 2\n")
    sources.write()
    assert link.is_symlink()
    assert real.read_text() == "a = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750


def test_a_file_that_changed_on_disk_is_left_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a = 1\n")
    two.write_text("b = 1\n")
    sources = Sources()
    sources.change(str(one), "a = 2\n")
    sources.change(str(two), "b = 2\n")
    two.write_text("b = 'changed by the user'\n")
    with pytest.raises(UnwritableError, match="changed on disk"):
        sources.write()
    assert one.read_text() == "a = 1\n", "all files or none"
    assert two.read_text() == "b = 'changed by the user'\n"
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_what_the_encoding_lacks_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(b"# coding: latin-1\na = 1\n")
    sources = Sources()
    sources.change(str(file), "# coding: latin-1\na = '日'\n")
    with pytest.raises(UnwritableError, match="iso-8859-1"):
        sources.write()
    assert file.read_bytes() == b"# coding: latin-1\na = 1\n"


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "k.py"
    file.write_text("a = 1\n")
    sources = Sources()
    sources.change(str(file), "a = 2\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everything
    with pytest.raises(UnwritableError, match="permission denied"):
        sources.write()
    assert file.read_text() == "a = 1\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a = '\xff\xfe'\n", "not UTF-8: byte 0xff on line 1"),
        (b"a = 1\n" * 5000 + b"b = '\xe4'\n", "not UTF-8: byte 0xe4 on line 5001"),
        (b"# coding: nonsense-9\n", "coding comment"),
        (b"# coding: ascii\nx = '\xe4'\n", "not ascii"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(data)
    with pytest.raises(UnreadableError) as caught:
        read_source(str(file))
    assert reason in caught.value.message
    assert caught.value.remedy


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no such file"):
        read_source(str(tmp_path / "none.py"))
    with pytest.raises(UnreadableError, match="not a regular file"):
        read_source(str(tmp_path))


def test_the_diff_names_missing_newlines_and_survives_odd_line_breaks() -> None:
    diff = "".join(file_diff("k.py", "a\x0cb\nc", "a\x0cb\nd"))
    assert diff == (
        "--- a/k.py\n+++ b/k.py\n@@ -1,2 +1,2 @@\n a\x0cb\n"
        "-c\n\\ No newline at end of file\n+d\n\\ No newline at end of file\n"
    )


_KILLED = """
import os, signal, sys
from pallas_lsp.cli.sources import Sources
sources = Sources()
for path in sys.argv[1:]:
    sources.change(path, sources.read(path).text.replace("old", "new"))
os.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
sources.write()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("function", ["replace", "fsync", "fdopen"])
def test_a_death_while_writing_leaves_the_old_files_whole(tmp_path: Path, function: str) -> None:
    """At any moment up to the rename: the file has all of its old text, and the next run is not disturbed."""
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in paths:
        path.write_bytes(b"\xef\xbb\xbfold = 1\r\n" * 1000)
        path.chmod(0o640)
    command = [sys.executable, "-c", _KILLED.format(function=function), *map(str, paths)]
    assert subprocess.run(command, check=False, env={"PYTHONPATH": str(PROJECT)}).returncode == -signal.SIGKILL
    for path in paths:
        assert path.read_bytes() == b"\xef\xbb\xbfold = 1\r\n" * 1000
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    left = [path for path in tmp_path.iterdir() if path not in paths]
    assert all(path.name.startswith(".") and path.name.endswith(".tmp") for path in left)  # nothing takes them for code
    sources = Sources()
    sources.change(str(paths[0]), sources.read(str(paths[0])).text.replace("old", "new"))
    sources.write()
    assert paths[0].read_bytes() == b"\xef\xbb\xbfnew = 1\r\n" * 1000


def test_when_a_later_file_cannot_be_replaced_the_earlier_ones_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    sources = Sources()
    for path in paths:
        path.write_text("old = 1\n")
        sources.change(str(path), "new = 1\n")
    replace = os.replace
    done: list[object] = []

    def fails(source: object, target: object) -> None:
        done.append(target)
        if len(done) == 2:  # the third puts the first file back
            raise OSError(28, "No space left on device")
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(UnwritableError, match="no space left"):
        sources.write()
    assert [path.read_text() for path in paths] == ["old = 1\n"] * 2
    assert sorted(tmp_path.iterdir()) == paths
