"""Verdicts over the protocol: the server, the real engine, and a GPU that a script plays."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from confirm_kit import kernel
from lsprotocol import types
from pytest_lsp.client import make_test_lsp_client

PROJECT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).resolve().parent / "confirm_server.py"
CUMSUM = kernel().replace("x_ref[...] * 2", "jnp.cumsum(x_ref[...])")


class Editor:
    """A client that keeps what the server publishes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = (folder / "kernels.py").as_uri()
        self.client = make_test_lsp_client()
        self.published: list[types.PublishDiagnosticsParams] = []
        self.statuses: list[Any] = []
        self.refreshed = 0
        features = self.client.protocol.fm.features
        del features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]
        # pygls marks handlers with attributes, which methods do not take.
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._publish(params))  # noqa: PLW0108
        self.client.feature("pallas/status")(lambda params: self._status(params))  # noqa: PLW0108
        self.client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda *_: self._refresh())

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        self.published.append(params)

    def _status(self, params: Any) -> None:
        self.statuses.append(params)

    def _refresh(self) -> None:
        self.refreshed += 1

    async def start(self, python: str, script: dict[str, Any] | None, **settings: Any) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "PALLAS_LSP_TEST_FOLDER": str(self.folder),
            **({} if script is None else {"FAKE_GPU": json.dumps({"log": str(self.folder / "log"), **script})}),
        }
        options = {"interpreter": python, "trusted": True, "status": True, **settings}
        await self.client.start_io(sys.executable, str(SERVER), env=environment)
        refresh = types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
        data = types.PublishDiagnosticsClientCapabilities(data_support=True, related_information=True)
        literals = types.ClientCodeActionLiteralOptions(
            types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix])
        )
        await self.client.initialize_session(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    workspace=types.WorkspaceClientCapabilities(code_lens=refresh),
                    text_document=types.TextDocumentClientCapabilities(
                        publish_diagnostics=data,
                        code_action=types.CodeActionClientCapabilities(code_action_literal_support=literals),
                    ),
                ),
                root_uri=self.folder.as_uri(),
                initialization_options=options,
            )
        )

    def open(self, text: str) -> None:
        item = types.TextDocumentItem(self.uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, text: str, version: int) -> None:
        document = types.VersionedTextDocumentIdentifier(version, self.uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def verdicts(self) -> types.PublishDiagnosticsParams:
        """The first diagnostics with verdicts."""
        return await until(lambda: next((p for p in self.published if _verdicts(p)), None))

    async def command(self, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams("pallas-lsp.confirm", list(arguments))
        return await self.client.workspace_execute_command_async(params)

    async def lenses(self) -> list[str]:
        document = types.TextDocumentIdentifier(self.uri)
        found = await self.client.text_document_code_lens_async(types.CodeLensParams(document))
        return [lens.command.title for lens in found or [] if lens.command is not None]

    async def hover(self, line: int) -> str:
        document, place = types.TextDocumentIdentifier(self.uri), types.Position(line, 20)
        found = await self.client.text_document_hover_async(types.HoverParams(document, place))
        assert found is not None and isinstance(found.contents, types.MarkupContent)
        return found.contents.value


def _verdicts(params: types.PublishDiagnosticsParams) -> list[str]:
    found = []
    for diagnostic in params.diagnostics:
        data: Any = diagnostic.data or {}
        given = data.get("verdicts") if isinstance(data, dict) else getattr(data, "verdicts", None)
        found += [v["verdict"] if isinstance(v, dict) else v.verdict for v in given or []]
    return found


async def until(found: Callable[[], Any], seconds: float = 60.0) -> Any:
    async with asyncio.timeout(seconds):
        while not (value := found()):
            await asyncio.sleep(0.02)
    return value


Make = Callable[..., Awaitable[Editor]]


@pytest.fixture
async def editor(tmp_path: Path, newest_jax_python: Any) -> AsyncIterator[Make]:
    started: list[Editor] = []

    async def make(script: dict[str, Any] | None, **settings: Any) -> Editor:
        editor = Editor(tmp_path)
        started.append(editor)
        await editor.start(newest_jax_python.python, script, **settings)
        return editor

    yield make
    for each in started:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(20):
                await each.client.shutdown_session()
                await each.client.stop()


async def test_a_verdict_comes_after_the_finding_and_annotates_it(editor: Make) -> None:
    client = await editor({})
    client.open(CUMSUM)
    confirmed = await client.verdicts()
    assert confirmed.version == 1 and _verdicts(confirmed) == ["confirmed"]
    (diagnostic,) = confirmed.diagnostics
    assert diagnostic.message.splitlines()[-1] == "Confirmed on NVIDIA Fake (compute capability 9.0)."
    first = next(p for p in client.published if p.diagnostics)
    assert first is not confirmed and first.diagnostics[0].range == diagnostic.range
    await until(lambda: client.statuses and getattr(client.statuses[-1], "gpu", "") == "NVIDIA Fake (9.0)")
    assert sum(1 for p in client.published if _verdicts(p)) == 1
    await until(lambda: client.refreshed)


async def test_figures_are_shown_and_a_launch_can_be_allowed(editor: Make) -> None:
    client = await editor({"launch": {"mul": "fail: INTERNAL: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS"}})
    text = kernel()
    client.open(text)
    await until(lambda: client.refreshed)
    line = next(n for n, each in enumerate(text.splitlines()) if "plgpu.kernel(" in each)
    figures = "NVIDIA Fake: 90 registers, 128 threads, 32 KiB of shared memory; 5 blocks per SM (limited by registers)"
    assert figures in await client.lenses()
    assert figures in await client.hover(line)
    assert not any(p.diagnostics for p in client.published)
    range_ = types.Range(types.Position(line, 20), types.Position(line, 20))
    context = types.CodeActionContext([], None, types.CodeActionTriggerKind.Invoked)
    params = types.CodeActionParams(types.TextDocumentIdentifier(client.uri), range_, context)
    actions = await client.client.text_document_code_action_async(params)
    (action,) = [each for each in actions or [] if "Launch" in each.title]
    assert action.title == "Launch this file's kernels once on NVIDIA Fake, with generated inputs"
    answer = await client.command(client.uri, {"launch": True})
    assert answer["message"] == "confirmed on NVIDIA Fake (9.0)."
    failed = await client.verdicts()
    assert _verdicts(failed) == ["device only"] and failed.diagnostics[0].code == "kernel-launch-failed"


async def test_an_edit_ends_the_confirmation_of_the_older_text(editor: Make) -> None:
    client = await editor({"compile": {"333": "hang"}})
    client.open(kernel().replace("* 2", "* 333"))
    await until((client.folder / "log").exists)  # its compiler is at work
    client.change(CUMSUM, 2)
    confirmed = await client.verdicts()
    assert confirmed.version == 2
    assert not [p for p in client.published if p.version == 1 and _verdicts(p)]


async def test_without_a_gpu_the_status_says_so_once_and_nothing_else(editor: Make) -> None:
    client = await editor(None)
    client.open(CUMSUM)
    await until(lambda: client.statuses and getattr(client.statuses[-1], "gpu", ""))
    assert client.statuses[-1].gpu == "no GPU: no NVIDIA driver was found"
    (diagnostic,) = client.published[-1].diagnostics
    assert "GPU" not in diagnostic.message.replace("Mosaic GPU", "")
    answer = await client.command(client.uri)
    assert answer["message"] == "not confirmed: no GPU: no NVIDIA driver was found."
    assert len({s.gpu for s in client.statuses if hasattr(s, "gpu")}) == 1


async def test_confirmations_can_be_off(editor: Make) -> None:
    client = await editor({}, confirm="off")
    client.open(CUMSUM)
    answer = await client.command(client.uri)
    assert answer["message"] == "not confirmed: the setting 'confirm' is off."
    await asyncio.sleep(1.5)
    assert not any(_verdicts(p) for p in client.published)
