"""``workspace/executeCommand``: what a user can ask of the server by name (``docs/lsp.md`` describes each)."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from pallas_lsp import __version__
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.origins import listed, subject
from pallas_lsp.rules.base import registry, rule_named
from pallas_lsp.server.pages import page_text, page_uri, web_pages

if TYPE_CHECKING:
    from pallas_lsp.server.app import PallasServer
    from pallas_lsp.server.documents import OpenDocument

Handler = Callable[["PallasServer", Sequence[Any]], Awaitable[Any]]

_CHECK_TIMEOUT = 600.0


async def restart(server: PallasServer, _: Sequence[Any]) -> None:
    """End all workers and check the open documents again."""
    server.pause()
    await server.engines.close()
    for document in server.documents.all():
        server.engines.get(server.configuration.of(document.path)).renew(document.path)
    server.checker.check_all()


async def check_file(server: PallasServer, arguments: Sequence[Any]) -> dict[str, Any]:
    """Run all of a document's code now and wait for its results."""
    document = _document(server, arguments)
    server.engines.get(server.configuration.of(document.path)).renew(document.path)
    return await _check(server, document)


async def _check(server: PallasServer, document: OpenDocument) -> dict[str, Any]:
    server.scheduler.request(document.path)
    await server.scheduler.settled(document.path, _CHECK_TIMEOUT)
    result = server.results.get(document.path)
    status = server.status.last().get(document.uri, {})
    return {"findings": len(result.found) if result is not None else 0, "status": status}


async def cancel(server: PallasServer, arguments: Sequence[Any]) -> int:
    """Stop the checks of one document, or of all; returns how many were stopped."""
    documents = [_document(server, arguments)] if arguments else server.documents.all()
    swept = not arguments and server.sweep.cancel()
    return sum(server.scheduler.cancel(document.path) for document in documents) + swept


async def check_workspace(server: PallasServer, _: Sequence[Any]) -> dict[str, Any]:
    """Check every file of the workspace that launches kernels and wait for the results."""
    count = await server.sweep.run()
    return {"message": count.sentence(), "files": count.files, "findings": count.findings}


async def learn_shapes(server: PallasServer, arguments: Sequence[Any]) -> dict[str, Any]:
    """Look again for what calls a document's kernels, and check it."""
    document = _document(server, arguments)
    server.engines.get(server.configuration.of(document.path)).forget(document.path)
    await check_file(server, arguments)
    result = server.results.get(document.path)
    if result is None or not result.launches:
        return {"message": "this file launches no kernel."}
    drivers = sorted({capture.driver for status in result.launches for capture in status.captures})
    reached = f"{result.reached} of {len(result.launches)} kernel launches reached"
    names = listed(subject(driver) for driver in drivers) if drivers else ""
    return {"message": f"{reached}{', by ' if drivers else ''}{names}.", "drivers": drivers}


async def confirm(server: PallasServer, arguments: Sequence[Any]) -> dict[str, Any]:
    """Take a document's kernels to the GPUs and wait for their verdicts.

    ``{"launch": true}`` as second argument (or beside ``uri``): also launch each once, on generated inputs.
    """
    document = _document(server, arguments)
    await _check(server, document)
    options = next((each for each in reversed(arguments) if isinstance(each, dict)), {})
    if server.configuration.of(document.path).confirm is None:
        return {"message": "not confirmed: the setting 'confirm' is off.", "gpus": []}
    confirmation = await server.checker.confirm(document.path, launch=options.get("launch") is True)
    if confirmation is None:
        return {"message": "there is nothing to confirm: no kernel of this file was lowered.", "gpus": []}
    if confirmation.state:
        return {"message": f"not confirmed: {confirmation.state}.", "gpus": list(confirmation.gpus)}
    if not confirmation.gpus:
        return {"message": "there is nothing to confirm: no kernel of this file is for a GPU.", "gpus": []}
    return {"message": f"confirmed on {', '.join(confirmation.gpus)}.", "gpus": list(confirmation.gpus)}


async def explain_rule(server: PallasServer, arguments: Sequence[Any]) -> str:
    """Show a rule's page; returns it as Markdown.  A second argument ``{"show": false}`` only returns it."""
    name = arguments[0] if arguments else None
    page = page_text(name) if isinstance(name, str) else None
    if not isinstance(name, str) or page is None:
        raise JsonRpcInvalidParams(f"There is no rule {name!r}")
    options = arguments[1] if len(arguments) > 1 else {}
    if isinstance(options, dict) and options.get("show") is False:
        return page
    uri = page_uri(name)
    if server.client.show_document and uri is not None:
        await server.window_show_document_async(
            types.ShowDocumentParams(uri, external=bool(web_pages()) or None, take_focus=True)
        )
    else:
        rule = rule_named(name)
        text = f"{name}: {rule.summary}" if rule is not None else name
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
    return page


async def rules(_: PallasServer, __: Sequence[Any]) -> list[dict[str, str]]:
    """The names and summaries of all rules."""
    return [{"name": rule.name, "summary": rule.summary} for rule in sorted(registry(), key=lambda each: each.name)]


async def trust(server: PallasServer, arguments: Sequence[Any]) -> str:
    """Trust the folder of a document (the user asked for it by name); returns the folder."""
    document = _document(server, arguments)
    folder = server.documents.root_of(document.path)
    server.consent.said = None
    server.consent.decide(folder, trusted=True)
    server.checker.check_folder(folder)
    return folder


async def debug_information(server: PallasServer, _: Sequence[Any]) -> str:
    """What a bug report needs, as JSON text: no source text in it."""
    documents = []
    for document in server.documents.all():
        folder = server.documents.root_of(document.path)
        trusted = server.consent.allows(folder)
        entry: dict[str, Any] = {
            "path": document.path,
            "version": document.version,
            "characters": len(document.text),
            "trusted": trusted,
            "status": server.status.last().get(document.uri),
        }
        if trusted and document.is_python:
            entry["worker"] = await _worker(server, document)
        documents.append(entry)
    information = {
        "server": {
            "version": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
        },
        "client": {"name": server.client.name, "version": server.client.version},
        "positionEncoding": server.documents.encoding,
        "roots": list(server.documents.roots),
        "documents": documents,
    }
    return json.dumps(information, indent=2)


async def _worker(server: PallasServer, document: OpenDocument) -> Any:
    engine = server.engines.get(server.configuration.of(document.path))
    try:
        info = await engine.worker_info(document.path, server.documents.roots)
    except WorkerUnavailable as error:
        return {"unavailable": error.message, "remedy": error.remedy}
    return {"executable": info.executable, "python": info.python, "jax": info.jax, "missing": dict(info.missing)}


def _document(server: PallasServer, arguments: Sequence[Any]) -> OpenDocument:
    """The open document that the first argument names: its URI, or an object with ``uri``."""
    first = arguments[0] if arguments else None
    uri = first.get("uri") if isinstance(first, dict) else first
    document = server.documents.get(server.notebooks.inward(uri)[0]) if isinstance(uri, str) else None
    if document is None:
        raise JsonRpcInvalidParams(f"{uri!r} is not an open document; the command takes a document's URI")
    return document


COMMANDS: dict[str, Handler] = {
    "pallas-lsp.restart": restart,
    "pallas-lsp.checkFile": check_file,
    "pallas-lsp.checkWorkspace": check_workspace,
    "pallas-lsp.confirm": confirm,
    "pallas-lsp.learnShapes": learn_shapes,
    "pallas-lsp.cancel": cancel,
    "pallas-lsp.explainRule": explain_rule,
    "pallas-lsp.rules": rules,
    "pallas-lsp.trust": trust,
    "pallas-lsp.debugInformation": debug_information,
}
