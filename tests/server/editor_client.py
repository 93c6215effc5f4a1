"""A language client that drives the shipped command as an editor does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import client_capabilities
from pytest_lsp.client import make_test_lsp_client

PROJECT = Path(__file__).parent.parent.parent
WAIT = 60.0


def _function(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """pygls marks handlers with attributes, which methods do not take."""

    def handler(params: Any) -> Any:
        return method(params)

    return handler


class Editor:
    """A language client with the capabilities of an editor and one folder."""

    def __init__(self, folder: Path, profile: str) -> None:
        self.folder = folder
        self.profile = profile
        self.client = make_test_lsp_client()
        self.asked: list[types.ShowMessageRequestParams] = []
        self.statuses: list[Any] = []
        self.answer: str | None = None
        self.settings: dict[str, Any] = {}
        self.arguments: tuple[str, ...] = ()
        self._published: list[types.PublishDiagnosticsParams] = []
        self.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(_function(self._on_question))
        self.client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda _: None)
        self.client.feature("pallas/status")(_function(self.on_status))
        del self.client.protocol.fm.features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(_function(self.on_diagnostics))

    def _on_question(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.asked.append(params)
        return types.MessageActionItem(self.answer) if self.answer else None

    def on_status(self, params: Any) -> None:
        self.statuses.append(params)

    def on_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        self._published.append(params)

    def environment(self) -> dict[str, str]:
        """The server's environment, without what could name an interpreter."""
        return {
            **{name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")},
            "PYTHONPATH": str(PROJECT),
            "XDG_STATE_HOME": str(self.folder / ".state"),
            "XDG_CACHE_HOME": str(self.folder / ".cache"),
        }

    async def start(self, options: Any) -> types.InitializeResult:
        self.client.set_configuration(self.settings, section="pallas-lsp")
        await self.client.start_io(sys.executable, "-m", "pallas_lsp", "serve", *self.arguments, env=self.environment())
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=client_capabilities(self.profile),
                client_info=types.ClientInfo(self.profile),
                root_uri=self.folder.as_uri(),
                workspace_folders=[types.WorkspaceFolder(self.folder.as_uri(), "folder")],
                initialization_options=options,
            )
        )

    async def stop(self) -> int | None:
        await self.client.shutdown_session()
        server = self.client._server
        assert server is not None
        await self.client.stop()
        return server.returncode

    @property
    def pid(self) -> int:
        assert self.client._server is not None
        return self.client._server.pid

    def uri(self, name: str = "kernels.py") -> str:
        return (self.folder / name).as_uri()

    def open(self, text: str, name: str = "kernels.py") -> None:
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, text: str, version: int, name: str = "kernels.py") -> None:
        document = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def checked(self, version: int, name: str = "kernels.py") -> types.PublishDiagnosticsParams:
        """The diagnostics of a version, once its check is over."""
        await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams("pallas-lsp.checkFile", [self.uri(name)])
        )

        def last() -> types.PublishDiagnosticsParams | None:
            mine = [p for p in self._published if p.uri == self.uri(name)]
            return mine[-1] if mine and mine[-1].version == version else None

        return await self.until(last)

    async def published(self, version: int, name: str = "kernels.py") -> types.PublishDiagnosticsParams:
        """The first diagnostics of a version, nothing but time having passed."""
        return await self.until(
            lambda: next((p for p in self._published if (p.uri, p.version) == (self.uri(name), version)), None)
        )

    @staticmethod
    async def until(found: Callable[[], Any]) -> Any:
        async with asyncio.timeout(WAIT):
            while not (value := found()):
                await asyncio.sleep(0.02)
        return value

    async def actions(self, range_: types.Range, diagnostics: Any, only: Any = None) -> list[types.CodeAction]:
        context = types.CodeActionContext(list(diagnostics), only, types.CodeActionTriggerKind.Invoked)
        document = types.TextDocumentIdentifier(self.uri())
        found = await self.client.text_document_code_action_async(types.CodeActionParams(document, range_, context))
        # The client's decoder takes an action that has a command for a command.
        return [action for action in found or [] if isinstance(action, types.CodeAction)]

    async def preferred(self, range_: types.Range, diagnostics: Any) -> types.CodeAction:
        async with asyncio.timeout(WAIT):
            while True:
                for action in await self.actions(range_, diagnostics):
                    if action.is_preferred:
                        return action
                await asyncio.sleep(0.2)
