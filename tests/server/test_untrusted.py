"""The shipped server in a workspace that would run something if it could; and where the server leaves what it knows."""

from __future__ import annotations

import asyncio
import contextlib
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from editor_client import PROJECT, Editor
from lsprotocol import types
from test_end_to_end import children, expression

EXAMPLE = (PROJECT / "examples" / "faulty_run_state_without_value.py").read_text(encoding="utf-8")
TOUCH = "import pathlib\npathlib.Path({marker!r}).touch()\n"


class Trap:
    """A workspace in which whatever is run leaves a file: imports, tests, interpreters, commands of settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "workspace"
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.folder.mkdir()
        for name in ("kernels", "conftest", "test_kernels", "sitecustomize", "pallas_lsp", "platformdirs", "jax"):
            self.write(f"{name}.py", TOUCH.format(marker=str(self.marks / name)) + EXAMPLE)
        self.write("test_kernels.py", TOUCH.format(marker=str(self.marks / "test")) + "import kernels\n")
        for name in ("python", "python3"):
            self.program(f".venv/bin/{name}")
        self.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
        self.write(".vscode/settings.json", '{"pallas-lsp.interpreter": ".venv/bin/python"}')
        self.write("pyproject.toml", "[tool.pallas-lsp]\ninterpreter = '.venv/bin/python'\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def program(self, name: str, then: str = "exit 1") -> Path:
        """A program that tells that it was started."""
        path = self.write(name, f"#!/bin/sh\ntouch '{self.marks / Path(name).name}'\n{then}\n")
        path.chmod(0o755)
        return path

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def settings(self) -> dict[str, Any]:
        """What a workspace could say, flat and nested."""
        command = [str(self.program("confirm-command"))]
        python = str(self.folder / ".venv" / "bin" / "python")
        return {
            "interpreter": python,
            "python": python,
            "environment": {"PYTHONSTARTUP": "kernels.py", "PYTHONPATH": str(self.folder), "BASH_ENV": command[0]},
            "confirm": {"mode": "launch", "command": command, "enable": True, "launch": True},
            "confirm.command": command,
            "settings": {"confirm": {"command": command}, "interpreter": python},
            "trusted": True,
        }


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@contextlib.asynccontextmanager
async def editing(trap: Trap, options: Any, session: dict[str, Any], folder: dict[str, Any]) -> Any:
    editor = Editor(trap.folder, "visual-studio-code")
    editor.settings = session
    editor.client.set_configuration(folder, section="pallas-lsp", scope_uri=trap.folder.as_uri())
    try:
        await editor.start(options)
        yield editor
        assert await editor.stop() == 0
    finally:
        with contextlib.suppress(Exception):
            server = editor.client._server
            if server is not None and server.returncode is None:
                server.kill()


async def use(editor: Editor, text: str) -> None:
    """Everything that a person may do with a file."""
    client, document = editor.client, types.TextDocumentIdentifier(editor.uri())
    editor.open(text)
    await editor.published(1)
    editor.change(text + "\n", 2)
    await editor.published(2)
    whole = types.Range(types.Position(0, 0), types.Position(text.count("\n"), 0))
    place = expression(text, "plgpu.kernel").start
    await editor.actions(whole, [])
    await editor.actions(whole, [], ["source.fixAll"])
    await client.text_document_hover_async(types.HoverParams(document, place))
    await client.text_document_code_lens_async(types.CodeLensParams(document))
    for name, *arguments in (
        ("checkFile", editor.uri()),
        ("checkWorkspace",),
        ("learnShapes", editor.uri()),
        ("confirm", editor.uri()),
        ("confirm", editor.uri(), {"launch": True}),
        ("debugInformation",),
        ("restart",),
    ):
        with contextlib.suppress(Exception):  # some refuse, which is right
            await client.workspace_execute_command_async(types.ExecuteCommandParams(f"pallas-lsp.{name}", arguments))
    for kind in ("jaxpr", "mlir", "ptx"):
        with contextlib.suppress(Exception):
            params = {"textDocument": {"uri": editor.uri()}, "line": place.line, "kind": kind}
            await client.protocol.send_request_async("pallas/views", params)
    client.text_document_did_save(types.DidSaveTextDocumentParams(document))
    await asyncio.sleep(0.5)


@pytest.mark.parametrize("options", [{"trusted": False}, {}], ids=["refused", "not answered"])
async def test_an_untrusted_workspace_runs_nothing(trap: Trap, options: dict[str, Any]) -> None:
    said = trap.settings()
    async with editing(trap, options, {}, said) as editor:
        await use(editor, (trap.folder / "kernels.py").read_text())
        assert children(editor.pid) == []
        assert all(not each.diagnostics for each in editor._published)
        assert len(editor.asked) == (not options)
    assert trap.ran == []


async def test_the_trap_works(trap: Trap, newest_jax_python: Any) -> None:
    """Or the test above would prove nothing: in a trusted folder the same file, and its interpreter, are run."""
    trap.program(".venv/bin/python", f'exec {newest_jax_python.python} "$@"')
    async with editing(trap, {"trusted": True}, {}, {**trap.settings(), "environment": {}}) as editor:
        editor.open((trap.folder / "kernels.py").read_text())
        await editor.published(1)
    assert "python" in trap.ran
    assert "kernels" in trap.ran


async def test_a_trusted_folder_still_starts_no_command_for_confirmations(trap: Trap, newest_jax_python: Any) -> None:
    said = {"interpreter": newest_jax_python.python}
    async with editing(trap, {"trusted": True}, said, {**trap.settings(), **said, "environment": {}}) as editor:
        trap.write("kernels.py", EXAMPLE)
        await use(editor, EXAMPLE)
    assert "confirm-command" not in trap.ran


# -- the log and what is left on the disk ------------------------------------------------------------------------------

MARKED = EXAMPLE.replace("# jax raises", "# zebra_in_a_comment: jax raises").replace(
    "M, N, K = 64, 128, 128\n",
    "M, N, K = 64, 128, 128\nUNUSED = 'zebra_in_a_string'\nzebra_in_a_name = UNUSED is 'zebra_in_a_warning'\n"
    "import warnings; warnings.warn('told', stacklevel=1); zebra_on_a_warned_line = 1\n",
)


async def test_neither_the_log_nor_what_is_kept_holds_source_text(tmp_path: Path, newest_jax_python: Any) -> None:
    """At the default level, with a fault found, fixed, and a driver that stops."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    editor = Editor(folder, "visual-studio-code")
    editor.settings = {"interpreter": newest_jax_python.python, "confirm": "off"}
    log = tmp_path / "server.log"
    editor.arguments = ("--log-file", str(log))
    await editor.start({"trusted": True})
    editor.open(MARKED)
    got = await editor.published(1)
    assert [each.code for each in got.diagnostics] == ["run-state-uninitialized-ref"]
    await editor.preferred(got.diagnostics[0].range, got.diagnostics)
    editor.change(MARKED.replace("print(matmul(", "zebra_stops_here('zebra_argument', matmul("), 2)
    await editor.published(2)
    editor.change(MARKED.replace("def matmul(a, b):", "def matmul(a, zebra_broken"), 3)
    await editor.published(3)
    await asyncio.sleep(1)
    assert await editor.stop() == 0
    told = log.read_text(encoding="utf-8")
    assert "kernels.py: 1 kernel launch" in told
    assert [line for line in told.splitlines() if "zebra" in line and "NameError" not in line] == []
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if b"zebra" in path.read_bytes()] == []


async def test_temporary_files_are_private(tmp_path: Path, newest_jax_python: Any) -> None:
    """The folder of a run and what lies in it; caches and the state are the user's alone as well."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    report = tmp_path / "modes"
    look = (
        "import os, tempfile\n"
        "here = os.getcwd()\n"
        f"with open({str(report)!r}, 'a') as file:\n"
        "    for each in (here, tempfile.gettempdir()):\n"
        "        print(oct(os.stat(each).st_mode & 0o777), os.stat(each).st_uid == os.getuid(), file=file)\n"
        "    print(os.path.commonpath([os.environ['HOME'], here]) == here, file=file)\n"
    )
    editor = Editor(folder, "visual-studio-code")
    editor.settings = {"interpreter": newest_jax_python.python, "confirm": "off"}
    editor.arguments = ("--log-file", str(folder / "server.log"))
    await editor.start({"trusted": True})
    editor.open(look + EXAMPLE)
    assert (await editor.published(1)).diagnostics
    assert await editor.stop() == 0
    lines = report.read_text().splitlines()
    assert lines
    assert set(lines) == {"0o700 True", "True"}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077 and sys.platform != "win32"] == []
