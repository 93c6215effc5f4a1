"""What the client can do, as plain flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability


@dataclass(frozen=True)
class Client:
    name: str = ""
    version: str = ""
    code_description: bool = False
    related_information: bool = False
    diagnostic_data: bool = False
    tags: bool = False
    code_action_literals: bool = False
    code_action_data: bool = False
    resolves_edit: bool = False
    preferred: bool = False
    disabled: bool = False
    document_changes: bool = False
    progress: bool = False
    configuration: bool = False
    configuration_changes: bool = False
    watches_files: bool = False
    show_document: bool = False
    markdown_hover: bool = False
    refreshes_lenses: bool = False
    own_commands: bool = False
    """The client has commands of the names of ours, and some that only a client can carry out (showing views)."""
    status: bool = False
    """The client takes ``pallas/status``: it said so in ``experimental.pallasStatus`` or its initialization options."""

    @staticmethod
    def of(params: types.InitializeParams) -> Client:
        capabilities = params.capabilities

        def has(name: str) -> bool:
            return bool(get_capability(capabilities, name, False))

        def lists(name: str) -> Sequence[Any]:
            return get_capability(capabilities, name, None) or ()

        experimental = capabilities.experimental
        options = params.initialization_options
        resolves = lists("text_document.code_action.resolve_support.properties")
        data = has("text_document.code_action.data_support")
        formats = lists("text_document.hover.content_format")
        return Client(
            name=params.client_info.name if params.client_info else "",
            version=(params.client_info.version or "") if params.client_info else "",
            code_description=has("text_document.publish_diagnostics.code_description_support"),
            related_information=has("text_document.publish_diagnostics.related_information"),
            diagnostic_data=has("text_document.publish_diagnostics.data_support"),
            tags=has("text_document.publish_diagnostics.tag_support"),
            code_action_literals=has("text_document.code_action.code_action_literal_support"),
            code_action_data=data,
            resolves_edit=data and "edit" in resolves,
            preferred=has("text_document.code_action.is_preferred_support"),
            disabled=has("text_document.code_action.disabled_support"),
            document_changes=has("workspace.workspace_edit.document_changes"),
            progress=has("window.work_done_progress"),
            configuration=has("workspace.configuration"),
            configuration_changes=has("workspace.did_change_configuration.dynamic_registration"),
            watches_files=has("workspace.did_change_watched_files.dynamic_registration"),
            show_document=has("window.show_document.support"),
            markdown_hover=types.MarkupKind.Markdown in formats,
            refreshes_lenses=has("workspace.code_lens.refresh_support"),
            own_commands=isinstance(options, dict) and options.get("commands") is False,
            status=_says(experimental, "pallasStatus") or _says(options, "status"),
        )


def _says(options: Any, name: str) -> bool:
    return isinstance(options, dict) and options.get(name) is True
