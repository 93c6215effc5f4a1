"""The shipped command with the real engine, driven as VS Code and as Neovim drive it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from editor_client import PROJECT, WAIT, Editor
from lsprotocol import types
from pytest_lsp import LspSpecificationWarning

EXAMPLE = PROJECT / "examples" / "faulty_run_state_without_value.py"


@pytest.fixture
async def edit(tmp_path):
    """Starts editors and ends them."""
    started: list[Editor] = []

    async def make(profile: str, options: Any, **settings: Any) -> Editor:
        editor = Editor(tmp_path, profile)
        editor.settings = settings
        editor.answer = settings.pop("answer", None)
        started.append(editor)
        await editor.start(options)
        return editor

    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        yield make
    for editor in started:
        with contextlib.suppress(Exception):
            server = editor.client._server
            if server is not None and server.returncode is None:
                server.kill()


Make = Callable[..., Awaitable[Editor]]


def expression(text: str, part: str) -> types.Range:
    before = text[: text.index(part)]
    line = before.count("\n")
    column = len(before) - before.rfind("\n") - 1
    return types.Range(types.Position(line, column), types.Position(line, column + len(part)))


def applied(text: str, edits: Any) -> str:
    lines = text.splitlines(keepends=True)

    def offset(position: types.Position) -> int:
        return sum(map(len, lines[: position.line])) + position.character

    # Of several edits at one place, the first in the list comes first in the text.
    for each in [e for _, _, e in sorted(((offset(e.range.start), n, e) for n, e in enumerate(edits)), reverse=True)]:
        text = text[: offset(each.range.start)] + each.new_text + text[offset(each.range.end) :]
    return text


async def test_vscode_finds_fixes_and_sees_the_fault_vanish(edit: Make, jax_python):
    editor = await edit("visual-studio-code", {"trusted": True, "status": True}, interpreter=[jax_python.python])
    text = EXAMPLE.read_text()
    editor.open(text)
    got = await editor.published(1)
    (diagnostic,) = got.diagnostics
    assert diagnostic.range == expression(text, "plgpu.ACC((M, N), jnp.float32)")
    assert diagnostic.code == "run-state-uninitialized-ref"
    assert diagnostic.message
    assert Path(diagnostic.code_description.href.removeprefix("file://")).exists()
    action = await editor.preferred(diagnostic.range, got.diagnostics)
    (change,) = action.edit.document_changes
    assert change.text_document.version == 1
    fixed = applied(text, change.edits)
    assert fixed != text
    editor.change(fixed, 2)
    assert (await editor.checked(2)).diagnostics == ()
    await editor.until(lambda: editor.statuses and not editor.statuses[-1].busy)
    status = editor.statuses[-1]
    assert (status.health, status.kernels.found, status.kernels.reached) == ("ok", 1, 1)
    place = expression(fixed, "plgpu.kernel").start
    hover = await editor.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(editor.uri()), place)
    )
    assert "f16[64,128]" in hover.contents.value
    assert await editor.stop() == 0


async def test_neovim_is_asked_for_trust_and_fixes_all(edit: Make, newest_jax_python):
    editor = await edit("neovim", None, interpreter=newest_jax_python.python, answer="Trust this folder")
    text = "# \U0001f600\n" + EXAMPLE.read_text()
    editor.open(text)
    got = await editor.until(lambda: next((p for p in editor._published if p.diagnostics), None))
    assert len(editor.asked) == 1
    (diagnostic,) = got.diagnostics
    assert diagnostic.range == expression(text, "plgpu.ACC((M, N), jnp.float32)")
    (action,) = await editor.actions(diagnostic.range, got.diagnostics, ["source.fixAll"])
    resolved = await editor.client.code_action_resolve_async(action)
    fixed = applied(text, resolved.edit.changes[editor.uri()])
    editor.change(fixed, 2)
    assert (await editor.checked(2)).diagnostics == ()
    assert await editor.stop() == 0


async def test_typing_quickly_ends_with_the_diagnostics_of_the_last_text(edit: Make, newest_jax_python):
    editor = await edit("visual-studio-code", {"trusted": True}, interpreter=newest_jax_python.python)
    text = EXAMPLE.read_text()
    editor.open(text)
    await editor.published(1)
    versions = range(2, 40)
    for version in versions:
        editor.change("\n" * version + text + ("(" if version % 3 == 0 else ""), version)
        await asyncio.sleep(0.03)
    got = await editor.published(versions[-1])
    if not got.diagnostics:
        got = await editor.checked(versions[-1])
    assert [d.range.start.line for d in got.diagnostics] == [
        expression(text, "plgpu.ACC((M, N)").start.line + versions[-1]
    ]
    assert editor._published[-1].version == versions[-1]
    assert await editor.stop() == 0


async def test_a_killed_worker_and_a_restart_lose_nothing(edit: Make, newest_jax_python):
    editor = await edit("visual-studio-code", {"trusted": True}, interpreter=newest_jax_python.python)
    text = EXAMPLE.read_text()
    editor.open(text)
    assert (await editor.published(1)).diagnostics
    for pid in children(editor.pid):
        os.kill(pid, signal.SIGKILL)
    editor.change("\n" + text, 2)
    assert (await editor.published(2)).diagnostics
    await editor.client.workspace_execute_command_async(types.ExecuteCommandParams("pallas-lsp.restart"))
    editor.change("\n\n" + text, 3)
    assert (await editor.published(3)).diagnostics
    workers = children(editor.pid)
    assert workers
    assert await editor.stop() == 0
    await editor.until(lambda: not any(is_running(pid) for pid in workers))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere runs are no children of a worker")
async def test_a_fix_is_verified_before_it_is_asked_for(edit: Make, newest_jax_python):
    """The first request has it, with its edit, and no process is used up for it."""
    editor = await edit("visual-studio-code", {"trusted": True}, interpreter=newest_jax_python.python)
    editor.open(EXAMPLE.read_text())
    (diagnostic, *_) = (await editor.published(1)).diagnostics
    before = await quiet_processes(editor.pid)
    began = time.monotonic()
    actions = await editor.actions(diagnostic.range, [diagnostic])
    seconds = time.monotonic() - began
    assert [action.title for action in actions if action.is_preferred and action.edit is not None]
    assert seconds < 1.0, "50 ms where nothing else runs"
    assert await quiet_processes(editor.pid) == before
    assert await editor.stop() == 0


async def quiet_processes(pid: int) -> set[int]:
    """The processes below a server, once they have been the same for a while: no run is under way."""
    found: set[int] = set()
    since = time.monotonic()
    async with asyncio.timeout(WAIT):
        while not found or time.monotonic() - since < 2.0:
            await asyncio.sleep(0.1)
            workers = children(pid)
            now = {*workers, *(child for worker in workers for child in children(worker))}
            if now != found:
                found, since = now, time.monotonic()
    return found


async def test_an_untrusted_folder_is_read_only(edit: Make, newest_jax_python):
    editor = await edit("visual-studio-code", {"trusted": False, "status": True}, interpreter=newest_jax_python.python)
    editor.open(EXAMPLE.read_text())
    assert (await editor.published(1)).diagnostics == ()
    assert children(editor.pid) == []
    await editor.until(lambda: editor.statuses and not editor.statuses[-1].busy)
    status = editor.statuses[-1]
    assert (status.health, status.kernels.found, status.kernels.reached) == ("warning", 1, 0)
    assert await editor.stop() == 0


async def test_a_python_without_jax_is_named_with_the_remedy(edit: Make):
    editor = await edit("neovim", {"trusted": True}, interpreter=sys.executable)
    editor.open(EXAMPLE.read_text())
    assert (await editor.published(1)).diagnostics == ()
    await editor.until(lambda: editor.client.messages)
    (shown,) = editor.client.messages
    assert "no jax" in shown.message
    assert "pip install jax" in shown.message
    assert await editor.stop() == 0


def children(pid: int) -> list[int]:
    answer = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in answer.stdout.split()]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
