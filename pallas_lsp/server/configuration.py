"""Settings of the whole session and of each workspace folder: pulled from clients that answer, else as pushed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from lsprotocol import types

from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.server import logs
from pallas_lsp.server.documents import Documents
from pallas_lsp.server.settings import SECTION, FolderSettings, ServerSettings, read

logger = logging.getLogger(__name__)

_TIMEOUT = 5.0

Pull = Callable[[types.ConfigurationParams], Awaitable[Any]]


class Configuration:
    def __init__(self, documents: Documents, pull: Pull) -> None:
        self.pulls = False
        """Whether the client answers ``workspace/configuration``."""
        self.ready = asyncio.Event()
        self._documents = documents
        self._pull = pull
        self._initial = ServerSettings()
        self._session = ServerSettings()
        self._folders: dict[str, ServerSettings] = {}
        self._complain = _Complaints()

    def preset(self, log_level: str, interpreter: str | None) -> None:
        """What the command line says; settings are stronger."""
        self._initial = self._session = ServerSettings(FolderSettings(interpreter=interpreter), log_level)

    def initialize(self, options: Any) -> None:
        """Take the initialization options: the settings themselves, or an object that holds them in ``settings``."""
        if isinstance(options, dict) and isinstance(options.get("settings"), dict):
            options = options["settings"]
        self._complain.begin()
        self._initial = self._session = read(_section(options), self._complain, self._initial)
        self._set_log_level()

    async def pull(self) -> None:
        """Ask the client for the settings of the session and of each folder."""
        if self.pulls:
            roots = self._documents.roots
            items = [types.ConfigurationItem(section=SECTION)]
            items += [types.ConfigurationItem(self._documents.uri_of(root), SECTION) for root in roots]
            try:
                async with asyncio.timeout(_TIMEOUT):
                    answers = await self._pull(types.ConfigurationParams(items))
                session, *folders = answers
            except Exception as error:
                logger.warning("The client did not give the settings (%r); the last ones stay.", error)
            else:
                self._complain.begin()
                self._session = read(_plain(session), self._complain, self._initial)
                self._folders = {
                    root: _as_said_by_the_user(read(_plain(answer), self._complain, self._initial), self._session)
                    for root, answer in zip(roots, folders, strict=False)
                    if answer is not None
                }
                self._set_log_level()
        self.ready.set()

    def push(self, settings: Any) -> None:
        """Take the settings of a ``didChangeConfiguration`` of a client that does not answer questions."""
        section = _section(settings)
        if section is not None:
            self._complain.begin()
            self._session = read(section, self._complain, self._initial)
            self._folders = {}
            self._set_log_level()

    def of(self, path: str) -> FolderSettings:
        """The settings for a file."""
        return self._folders.get(self._documents.root_of(path), self._session).folder

    def in_use(self) -> set[FolderSettings]:
        return {self._session.folder, *(each.folder for each in self._folders.values())}

    @property
    def session(self) -> ServerSettings:
        return self._session

    def _set_log_level(self) -> None:
        logs.set_level(self._session.log_level)


class _Complaints:
    """Says what is wrong with a setting once, though the session and each folder have it and it is read again."""

    def __init__(self) -> None:
        self._before: set[str] = set()
        self._now: set[str] = set()

    def begin(self) -> None:
        """The settings are read anew: what is wrong no more may be told when it comes back."""
        self._before, self._now = self._now, set()

    def __call__(self, text: str) -> None:
        if text not in self._now | self._before:
            logger.warning("Settings of %s: %s.", SECTION, text)
        self._now.add(text)


def _as_said_by_the_user(folder: ServerSettings, session: ServerSettings) -> ServerSettings:
    """A folder's settings without what a folder must not say: the command that confirmations start, that they launch
    kernels, and limits beyond the session's."""
    wanted, own = folder.folder, session.folder
    limits = own.engine().limits
    confirm = wanted.confirm
    if confirm is not None:
        allowed = own.confirm or ConfirmSettings()
        confirm = replace(
            confirm,
            command=allowed.command if own.confirm is not None else (),
            launch=confirm.launch and own.confirm is not None and allowed.launch,
            seconds=min(confirm.seconds, allowed.seconds),
            launch_seconds=min(confirm.launch_seconds, allowed.launch_seconds),
        )
    seconds, memory = wanted.time_limit, wanted.memory_limit
    if seconds is not None and seconds > min(limits.trace_seconds, limits.lower_seconds):
        seconds = own.time_limit
    if memory is not None:
        memory = min(memory, limits.memory_bytes)
    return replace(folder, folder=replace(wanted, confirm=confirm, time_limit=seconds, memory_limit=memory))


def _section(settings: Any) -> Any:
    """The section, whether it was sent alone or in an object that holds it."""
    settings = _plain(settings)
    if isinstance(settings, dict):
        for name in (SECTION, SECTION.replace("-", "_")):
            if name in settings:
                return settings[name]
    return settings


def _plain(value: Any) -> Any:
    """A JSON value as dicts and lists, whatever objects the decoder made of it."""
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    return value
