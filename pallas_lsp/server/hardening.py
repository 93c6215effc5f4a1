"""What pygls 2.1 needs to survive any client: every request gets an answer, nothing wrong with one message touches the
next, and no failure pops up in the editor.

- A request with invalid parameters, of an unknown method, before ``initialize`` or after ``shutdown`` gets an error
  response (pygls shows a popup and leaves the client waiting, or drops the request).
- ``workspace/executeCommand`` is cancelled where it runs (pygls answers "cancelled" and lets it run on).
- Payloads, which hold the user's source text, are not logged.
- Documents are kept by ``documents.py``; pygls' own copy splits lines where LSP does not.
"""

from __future__ import annotations

import functools
import json
import logging
from typing import TYPE_CHECKING, Any

from cattrs import transform_error
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage

if TYPE_CHECKING:
    from pallas_lsp.server.app import PallasServer

logger = logging.getLogger(__name__)

MessageId = int | str


class HardenedProtocol(LanguageServerProtocol):
    """pygls' protocol, fed one message body at a time through ``receive``."""

    _server: PallasServer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._initialized = False
        super().__init__(*args, **kwargs)

    @property
    def is_shut_down(self) -> bool:
        return self._shutdown

    # -- receiving ----------------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Handle one message.  Raises nothing: what is wrong with it is answered or logged."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, JsonRpcParseError(f"The message is not JSON: {type(error).__name__}"))
            return
        if not isinstance(data, dict):
            self._refuse(None, JsonRpcInvalidRequest("A message must be one JSON object"))
            return
        message_id = data.get("id")
        valid_id = isinstance(message_id, int | str) and not isinstance(message_id, bool)
        try:
            if data.get("jsonrpc") != "2.0":
                raise JsonRpcInvalidRequest('A message must say "jsonrpc": "2.0"')
            if "method" not in data:
                self._receive_response(data)
                return
            if not isinstance(data["method"], str):
                raise JsonRpcInvalidRequest("A method's name must be a string")
            if "id" not in data:
                self._receive_notification(data)
                return
            if not valid_id:
                raise JsonRpcInvalidRequest("A request's id must be a number or a string")
            self._receive_request(data)
        except JsonRpcException as error:
            self._refuse(message_id if valid_id else None, error)
        except Exception as error:
            logger.exception("A message could not be handled; the server goes on. Please report this.")
            if "method" in data and valid_id:
                self._refuse(message_id, JsonRpcInternalError(f"{type(error).__name__}: {error}"))

    def _receive_request(self, data: dict[str, Any]) -> None:
        method = data["method"]
        if self._shutdown:
            raise JsonRpcInvalidRequest("The server is shutting down")
        if method == types.INITIALIZE:
            if self._initialized:
                raise JsonRpcInvalidRequest("The server is already initialized")
            self._drop_bad_capabilities(data)
        elif not self._initialized:
            raise JsonRpcServerNotInitialized("The first request must be 'initialize'")
        self._get_handler(method)  # raises where the method is unknown
        kind = self.get_message_type(method) or JsonRPCRequestMessage
        if "id" not in kind.__annotations__:
            raise JsonRpcInvalidRequest(f"{method} is a notification, not a request")
        message = self._structure(data, kind)
        if method == types.INITIALIZE:
            self._initialized = True
        self.handle_message(message)

    def _receive_notification(self, data: dict[str, Any]) -> None:
        method = data["method"]
        if method != types.EXIT and (not self._initialized or self._shutdown):
            logger.debug("Ignored %s: the session has not begun or is over", method)
            return
        if method != types.CANCEL_REQUEST:
            try:
                self._get_handler(method)
            except JsonRpcMethodNotFound:
                logger.debug("Ignored the unknown notification %s", method)
                return
        try:
            message = self._structure(data, self.get_message_type(method) or JsonRPCNotification)
        except JsonRpcInvalidParams as error:
            logger.warning("Ignored an invalid %s: %s", method, error)
            return
        self.handle_message(message)

    def _receive_response(self, data: dict[str, Any]) -> None:
        """A response to a request of ours.  One that cannot be read fails the request, which would else wait on."""
        message_id = data.get("id")
        if not isinstance(message_id, int | str) or message_id not in self._result_types:
            logger.debug("Ignored a response to no request of ours")
            return
        result_type = self._result_types.pop(message_id)
        future = self._request_futures.pop(message_id, None)
        if future is None or future.done():
            return
        if (error := data.get("error")) is not None:
            known = isinstance(error, dict) and isinstance(error.get("code"), int)
            message = str(error.get("message", "")) if known else f"unreadable error: {error!r:.100}"
            future.set_exception(JsonRpcException(message or "error", error["code"] if known else None))
            return
        try:
            result = self._structure(data, result_type).result if result_type else data.get("result")
        except JsonRpcException as failure:
            future.set_exception(failure)
        else:
            future.set_result(result)

    def _structure(self, data: dict[str, Any], kind: Any) -> Any:
        if kind in (JsonRPCRequestMessage, JsonRPCNotification):  # a method of our own: parameters stay plain
            return kind(**{name: data.get(name) for name in kind.__annotations__})
        try:
            return self._converter.structure(data, kind)
        except Exception as error:
            reasons = "; ".join(transform_error(error)) or type(error).__name__
            raise JsonRpcInvalidParams(f"Invalid Params: {reasons[:500]}") from error

    def _drop_bad_capabilities(self, data: dict[str, Any]) -> None:
        """Drop the client capabilities that this LSP version does not know, so that a newer client can connect."""
        params = data.get("params")
        capabilities = params.get("capabilities") if isinstance(params, dict) else None
        if not isinstance(capabilities, dict):
            return
        for area in list(capabilities):
            if self._can_read({area: capabilities[area]}):
                continue
            if isinstance(capabilities[area], dict):
                for name in list(capabilities[area]):
                    if not self._can_read({area: {name: capabilities[area][name]}}):
                        del capabilities[area][name]
                        logger.warning("Ignored the client capability %s.%s, which is not readable", area, name)
            else:
                del capabilities[area]
                logger.warning("Ignored the client capability %s, which is not readable", area)

    def _can_read(self, capabilities: dict[str, Any]) -> bool:
        try:
            self._converter.structure(capabilities, types.ClientCapabilities)
        except Exception:
            return False
        return True

    def _handle_cancel_notification(self, msg_id: MessageId) -> None:
        future = self._request_futures.get(msg_id)
        # Requests of ours are in the same table; only the client's may be cancelled by the client.
        if future is not None and msg_id not in self._result_types:
            future.cancel()

    # -- sending ------------------------------------------------------------------------------------------------------

    def _refuse(self, message_id: MessageId | None, error: JsonRpcException) -> None:
        logger.warning("Refused a message: %s", error)
        self._send_response(message_id, error=error.to_response_error())

    def _send_response(
        self, msg_id: MessageId | None, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        # pygls would look the response's type up in the table of our own requests, and leave out an id that is null.
        outcome = {"result": result} if error is None else {"error": error}
        self._send_data({"jsonrpc": "2.0", "id": msg_id, **outcome})

    def _send_handler_result(self, future: Any, *, msg_id: MessageId) -> None:
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._send_response(msg_id, error=JsonRpcRequestCancelled("The request was cancelled").to_response_error())
            return
        error = future.exception()
        if error is None:
            self._send_response(msg_id, future.result())
        elif isinstance(error, JsonRpcException):
            logger.info("Refused a request: %s", error)
            self._send_response(msg_id, error=error.to_response_error())
        else:
            logger.error("A request failed. The server goes on; please report this.", exc_info=error)
            internal = JsonRpcInternalError(f"{type(error).__name__}: {error}")
            self._send_response(msg_id, error=internal.to_response_error())

    def _send_data(self, data: Any) -> None:
        if self.writer is None:
            return
        try:
            body = json.dumps(data, default=self._serialize_message, separators=(",", ":"))
        except Exception as error:
            logger.exception("A message could not be sent. Please report this.")
            message_id = data.get("id") if isinstance(data, dict) else None
            if message_id is None:
                return
            failure = {"code": JsonRpcInternalError.CODE, "message": f"The answer could not be written: {error}"}
            body = json.dumps({"jsonrpc": "2.0", "id": message_id, "error": failure})
        self.writer.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode("ascii"))

    # -- pygls' own handlers ------------------------------------------------------------------------------------------

    @functools.lru_cache  # noqa: B019 (one protocol object lives as long as the process)
    def get_message_type(self, method: str) -> Any:
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        self._server.stop(0 if self._shutdown else 1)

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        self.fm.features[types.WINDOW_WORK_DONE_PROGRESS_CANCEL](params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        return await self._server.execute_command(params)

    # Documents are kept by our own handlers alone.

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE](params)
