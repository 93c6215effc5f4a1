"""The LSP methods, each a few lines that hand on to the part that does the work.

Handlers of notifications are plain functions: they change our state in the order in which the client sent them.
Requests that wait are coroutines, which ``$/cancelRequest`` cancels.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lsprotocol import types
from pygls import uris

from pallas_lsp.server.app import PallasServer
from pallas_lsp.server.code_actions import KINDS
from pallas_lsp.server.documents import OpenDocument, lines_on_disk
from pallas_lsp.server.settings import SECTION
from pallas_lsp.server.views import VIEWS, views
from pallas_lsp.source.notebooks import SUFFIX
from pallas_lsp.source.positions import Lines

logger = logging.getLogger(__name__)

DID_CHANGE_TRUST = "pallas/didChangeTrust"
_WATCHED = ("**/*.py", "**/pyproject.toml", "**/pyvenv.cfg")


def register(server: PallasServer, console: logging.Handler | None = None) -> None:
    _register_session(server, console)
    _register_documents(server)
    _register_workspace(server)
    _register_requests(server)


def _register_session(server: PallasServer, console: logging.Handler | None) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.meet(params)
        folders = [folder.uri for folder in params.workspace_folders or []]
        if not folders and (root := params.root_uri or (params.root_path and uris.from_fs_path(params.root_path))):
            folders = [root]
        server.documents.set_folders(folders)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        server.log_to_client(console)
        server.spawn(_settle_in(server))

    @server.feature(types.SHUTDOWN)
    def shutdown(*_: Any) -> None:
        server.spawn(server.close())

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel_progress(params: types.WorkDoneProgressCancelParams) -> None:
        server.bars.cancelled(params.token)

    @server.feature(DID_CHANGE_TRUST)
    def did_change_trust(params: Any) -> None:
        trusted = params.get("trusted") if isinstance(params, dict) else None
        if not isinstance(trusted, bool):
            logger.warning("Ignored an invalid %s: it must say {trusted: true or false}", DID_CHANGE_TRUST)
            return
        server.consent.said = trusted
        server.spawn(_trust_changed(server, trusted))


async def _trust_changed(server: PallasServer, trusted: bool) -> None:
    if not trusted:
        server.pause()
        await server.engines.close()
    server.checker.check_all()


async def _settle_in(server: PallasServer) -> None:
    """After the handshake: settings and registrations."""
    await server.configuration.pull()
    registrations = []
    if server.client.configuration_changes:
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registrations.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
    if server.client.watches_files:
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
        watch = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registrations.append(types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watch))
    if registrations:
        try:
            await server.client_register_capability_async(types.RegistrationParams(registrations))
        except Exception as error:
            logger.info("The client took no registrations (%s): changes outside the editor go unseen.", error)


def _register_documents(server: PallasServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        _opened(server, server.documents.open(params.text_document))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        old = server.documents.get(params.text_document.uri)
        _changed(server, old, server.documents.change(params))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        _saved(server, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        _closed(server, params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(params: types.DidOpenNotebookDocumentParams) -> None:
        _opened(server, server.notebooks.open(params))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(params: types.DidChangeNotebookDocumentParams) -> None:
        old = server.documents.get(params.notebook_document.uri)
        _changed(server, old, server.notebooks.change(params))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save_notebook(params: types.DidSaveNotebookDocumentParams) -> None:
        _saved(server, params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close_notebook(params: types.DidCloseNotebookDocumentParams) -> None:
        cells = server.notebooks.close(params.notebook_document.uri)
        _closed(server, params.notebook_document.uri)
        for uri in cells:
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _opened(server: PallasServer, document: OpenDocument | None) -> None:
    if document is None:
        return
    before = _text_on_disk(document)
    if before.text != document.text:  # an unsaved text that the editor kept
        server.results.edited(document.path, before, document.lines)
        server.checker.check_documents(server.dependents.importers(document.path))
    if document.is_python:
        server.scheduler.request(document.path)


def _changed(server: PallasServer, old: OpenDocument | None, new: OpenDocument | None) -> None:
    if old is None or new is None:
        logger.debug("Ignored a change of a document that is not open")
        return
    server.results.edited(new.path, old.lines, new.lines)
    server.code_actions.verifier.forget()
    server.checker.background.give_way()
    if new.is_python:
        server.scheduler.edited(new.path)


def _saved(server: PallasServer, uri: str) -> None:
    document = server.documents.get(uri)
    if document is not None and document.is_python:
        server.scheduler.interrupt(document.path)
        server.checker.check_documents(server.dependents.imported(document.path))


def _closed(server: PallasServer, uri: str) -> None:
    document = server.documents.close(uri)
    if document is None:
        return
    server.scheduler.forget(document.path)
    changed = server.results.forget(document.path)
    server.results.edited(document.path, document.lines, _text_on_disk(document))
    server.status.forget(document.uri)
    server.publisher.closed(document.uri, document.path)
    server.publisher.publish(changed - {document.path})
    # What is on disk holds again for those that import it.
    server.checker.check_documents(server.dependents.importers(document.path))


def _text_on_disk(document: OpenDocument) -> Lines:
    """What holds for everybody else while a document is not open."""
    if document.path.endswith(SUFFIX):  # nobody imports a notebook
        return document.lines
    return lines_on_disk(document.path) or Lines("")


def _register_workspace(server: PallasServer) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        removed = {folder.uri for folder in params.event.removed}
        kept = [uri for uri in server.documents.folders if uri not in removed]
        server.documents.set_folders([*kept, *(folder.uri for folder in params.event.added)])
        server.spawn(_reconfigure(server))

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        if not server.configuration.pulls:
            server.configuration.push(params.settings)
        server.spawn(_reconfigure(server))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        changed = {path for event in params.changes if (path := server.documents.path_of(event.uri)) is not None}
        came_or_went = any(event.type is not types.FileChangeType.Changed for event in params.changes)
        if came_or_went:
            server.documents.files_came_or_went()
            server.dependents.clear()
        changed -= {document.path for document in server.documents.all()}  # those come as edits
        server.checker.forget_closed(changed)
        server.code_actions.verifier.forget_kept()  # it may be of another text on the disk
        if any(not path.endswith(".py") for path in changed):
            server.checker.check_all()
        elif changed:
            open_paths = [document.path for document in server.documents.all() if document.is_python]
            affected = {path for path in open_paths if changed & server.dependents.closure(path)}
            if came_or_went:
                affected |= server.dependents.naming(open_paths, changed)
            server.checker.check_documents(sorted(affected))


async def _reconfigure(server: PallasServer) -> None:
    await server.configuration.pull()
    server.pause()
    await server.engines.keep(server.configuration.in_use())
    server.checker.check_all()


def _register_requests(server: PallasServer) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
    )
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        offset = server.notebooks.enter(params)
        return server.notebooks.leave_actions(await server.code_actions.offered(params), offset)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        resolved = await server.code_actions.resolve(action)
        server.notebooks.edit(resolved.edit)
        return resolved

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        await asyncio.sleep(0)
        uri, _ = server.notebooks.inward(params.text_document.uri)
        return server.notebooks.leave_lenses(server.lenses.lenses(uri), params.text_document.uri)

    @server.feature(VIEWS)
    async def show_views(params: Any) -> dict[str, Any]:
        return await views(server, params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        await asyncio.sleep(0)  # a request that is cancelled at once is not answered
        offset = server.notebooks.enter(params)
        return server.notebooks.leave_hover(server.hovers.hover(params), offset)
