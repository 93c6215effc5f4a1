"""Asking whether a folder's code may be run, once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from lsprotocol import types

from pallas_lsp.server.trust import TrustError, TrustStore, canonical, is_too_wide

logger = logging.getLogger(__name__)

TRUST, NEVER, LATER = "Trust this folder", "Never for this folder", "Not now"

Ask = Callable[[types.ShowMessageRequestParams], Awaitable[types.MessageActionItem | None]]


class Consent:
    """``said``: what the client itself says of its workspace, None where it has no such notion."""

    def __init__(self, store: TrustStore, ask: Ask) -> None:
        self.said: bool | None = None
        self._store = store
        self._ask = ask
        self._session: dict[str, bool] = {}

    def allows(self, folder: str) -> bool:
        """Whether the folder's code may be run."""
        return self.decision(folder) is True

    def decision(self, folder: str) -> bool | None:
        if self.said is not None:
            return self.said
        stored = self._store.decision(folder)
        return stored if stored is not None else self._session.get(canonical(folder))

    async def ask(self, folder: str) -> bool:
        """Ask the user unless that was done before.  True when the folder has just become trusted."""
        if self.decision(folder) is not None:
            return False
        self._session[canonical(folder)] = False  # one question at a time, and one a session
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=f"Pallas LSP found kernels in {folder}. Checking them runs the code of this folder "
            "(its modules are imported). Trust this folder?",
            actions=[types.MessageActionItem(title) for title in (TRUST, LATER, NEVER)],
        )
        try:
            answer = await self._ask(params)
        except Exception as error:
            logger.info("The question about trust was not answered (%s): %s is only read, not run.", error, folder)
            return False
        if answer is None or answer.title not in (TRUST, NEVER):
            logger.info("%s is only read, not run; 'pallas-lsp trust %s' changes that.", folder, folder)
            return False
        return self.decide(folder, answer.title == TRUST)

    def decide(self, folder: str, trusted: bool) -> bool:
        """Keep an answer; returns it."""
        self._session[canonical(folder)] = trusted
        if trusted and is_too_wide(folder):
            logger.info("%s holds too much to be trusted for good: the answer is for this session only.", folder)
            return trusted
        try:
            self._store.remember(folder, trusted)
        except TrustError as error:
            logger.warning("%s", error)
        logger.info("%s is %s.", folder, "trusted" if trusted else "not trusted: its code is only read, not run")
        return trusted
