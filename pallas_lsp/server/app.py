"""The server object: the parts and how they are joined."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from pallas_lsp import __version__
from pallas_lsp.server import logs
from pallas_lsp.server.checker import Checker
from pallas_lsp.server.client import Client
from pallas_lsp.server.closed import ClosedFiles
from pallas_lsp.server.code_actions import CodeActions
from pallas_lsp.server.commands import COMMANDS
from pallas_lsp.server.configuration import Configuration
from pallas_lsp.server.consent import Consent
from pallas_lsp.server.dependents import Dependents
from pallas_lsp.server.diagnostics import Publisher
from pallas_lsp.server.documents import Documents
from pallas_lsp.server.engines import EngineFactory, Engines, make_engine
from pallas_lsp.server.hardening import HardenedProtocol
from pallas_lsp.server.hover import Hovers
from pallas_lsp.server.lenses import Lenses
from pallas_lsp.server.lifetime import watch_client
from pallas_lsp.server.notebooks import SYNC, Notebooks
from pallas_lsp.server.progress import ProgressBars
from pallas_lsp.server.results import Results
from pallas_lsp.server.scheduler import Scheduler
from pallas_lsp.server.settings import FolderSettings
from pallas_lsp.server.status import StatusReporter
from pallas_lsp.server.sweep import Sweep
from pallas_lsp.server.trust import TrustStore

logger = logging.getLogger(__name__)


class PallasServer(LanguageServer):
    """``make`` makes an engine for settings; ``store`` keeps the answers about trust.  Tests bring their own."""

    protocol: HardenedProtocol

    def __init__(self, make: EngineFactory = make_engine, store: TrustStore | None = None) -> None:
        super().__init__(
            "pallas-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=SYNC,
            protocol_cls=HardenedProtocol,
        )
        self.client = Client()
        self.documents = Documents()
        self.results = Results(self.documents)
        self.notebooks = Notebooks(self.documents)
        self.publisher = Publisher(self.documents, self.results, self._send_diagnostics)
        self.configuration = Configuration(self.documents, self.workspace_configuration_async)
        self.consent = Consent(store or TrustStore(), self.window_show_message_request_async)
        self.engines = Engines(make, self._environment_changed)
        self.bars = ProgressBars(self.window_work_done_progress_create_async, self.progress)
        self.status = StatusReporter(self.protocol.notify, self.window_show_message)
        self.dependents = Dependents(self.documents)
        self.checker = Checker(
            self.documents,
            self.results,
            self.publisher,
            self.configuration,
            self.consent,
            self.engines,
            self.bars,
            self.status,
            ClosedFiles(self.dependents),
        )
        self.scheduler = Scheduler(self.checker.check, self.dependents.importers)
        self.checker.scheduler = self.scheduler
        self.checker.refresh = self._refresh_lenses
        self.code_actions = CodeActions(
            self.documents,
            self.results,
            self.publisher,
            self.configuration,
            self.engines,
            self.checker,
            self.window_show_message,
        )
        self.checker.prepare = self.code_actions.prepare
        self.sweep = Sweep(self)
        self.lenses = Lenses(self.documents, self.results, self.configuration)
        self.hovers = Hovers(self.documents, self.results)
        self.exit_code: asyncio.Future[int] | None = None
        self._log_handler: logging.Handler | None = None
        self._background: set[asyncio.Task[None]] = set()
        for name, handler in COMMANDS.items():
            self.command(name)(handler)

    # -- the client ---------------------------------------------------------------------------------------------------

    def meet(self, params: types.InitializeParams) -> None:
        """Take in what the client said of itself."""
        self.client = Client.of(params)
        for part in (self.publisher, self.status, self.code_actions, self.hovers, self.lenses):
            part.client = self.client
        self.bars.enabled = self.client.progress
        self.documents.encoding = types.PositionEncodingKind(self.protocol.workspace.position_encoding).value
        options = params.initialization_options
        if isinstance(options, dict) and options.get("commands") is False:
            # The client has commands of these names itself and would refuse to take ours; it may still ask for them.
            self.protocol.fm.commands.clear()
        trusted = options.get("trusted") if isinstance(options, dict) else None
        self.consent.said = trusted if isinstance(trusted, bool) else None
        if params.process_id is not None:
            self.spawn(watch_client(params.process_id, lambda reason: self.stop(1, reason)))
        self.configuration.pulls = self.client.configuration
        self.configuration.initialize(options)

    def log_to_client(self, console: logging.Handler | None) -> None:
        """From now on the log goes to the client, and to standard error no more, which editors show as well."""
        loop = asyncio.get_running_loop()

        def send(params: types.LogMessageParams) -> None:
            loop.call_soon_threadsafe(self.window_log_message, params)

        self._log_handler = logs.ClientHandler(send)
        logs.add(self._log_handler)
        if console is not None:
            logs.remove(console)

    def _environment_changed(self, settings: FolderSettings) -> None:
        self.checker.check_settings(settings)

    def _refresh_lenses(self) -> None:
        if self.client.refreshes_lenses:
            self.workspace_code_lens_refresh(None, lambda _: None)

    def _send_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        self.notebooks.send(params, self.text_document_publish_diagnostics)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the handlers; the reference keeps it from being collected."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- called by the protocol ---------------------------------------------------------------------------------------

    async def execute_command(self, params: types.ExecuteCommandParams) -> Any:
        handler = COMMANDS.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"There is no command {params.command!r}")
        return await handler(self, params.arguments or [])

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """pygls would show a popup for each; the log is where such things are looked for."""
        logger.error(
            "%s: %s. The server goes on; please report this with the log.", getattr(source, "__name__", source), error
        )

    def pause(self) -> None:
        """Stop what uses the engines, before they are ended or changed."""
        self.code_actions.verifier.forget()
        self.code_actions.verifier.forget_kept()
        self.checker.background.give_way()
        self.sweep.cancel()
        self.checker.confirming.cancel_all()
        for document in self.documents.all():
            self.scheduler.cancel(document.path)

    # -- the end ------------------------------------------------------------------------------------------------------

    def stop(self, code: int, reason: str = "") -> None:
        """End the session; the first call decides the exit code."""
        if reason:
            logger.info("The server ends: %s", reason)
        if self.exit_code is not None and not self.exit_code.done():
            self.exit_code.set_result(code)

    async def close(self) -> None:
        """Stop all checks and end all workers."""
        self.sweep.cancel()
        if self._log_handler is not None:
            logs.remove(self._log_handler)
        self.checker.close()
        self.code_actions.verifier.forget()
        await self.scheduler.close()
        await self.engines.close()
