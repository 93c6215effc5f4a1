"""Code actions: the fixes of findings, silencing a finding, explaining its rule, and fixing all that is safe.

What is offered belongs to the present text: while a newer one is unchecked the request waits a little, and answers with
nothing rather than with fixes of an older text.  Only a fix that is safe and verified is preferred.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from pallas_lsp.model import Edit, Finding, Fix, Safety
from pallas_lsp.server.checker import Checker
from pallas_lsp.server.client import Client
from pallas_lsp.server.comment_actions import KIND as COMMENT
from pallas_lsp.server.comment_actions import comment_actions
from pallas_lsp.server.configuration import Configuration
from pallas_lsp.server.convert import overlaps, to_range
from pallas_lsp.server.diagnostics import Publisher
from pallas_lsp.server.documents import Documents, OpenDocument
from pallas_lsp.server.engines import EngineLike, Engines
from pallas_lsp.server.fixes import Verifier, fix_all
from pallas_lsp.server.launch_action import launch_actions
from pallas_lsp.server.results import Known, Result, Results
from pallas_lsp.server.silence import silencing_edit
from pallas_lsp.server.workspace_edits import applies_to, workspace_edit

FIX_ALL = "source.fixAll.pallas"
KINDS = [types.CodeActionKind.QuickFix, COMMENT, types.CodeActionKind.SourceFixAll, FIX_ALL]
EXPLAIN = "pallas-lsp.explainRule"

_SETTLE_INVOKED, _SETTLE_AUTOMATIC = 10.0, 2.0
"""Seconds that a request waits for the check of the newest text."""
_VERIFY_RESOLVABLE, _VERIFY_NOW = 0.4, 10.0
"""Seconds for verifying before the answer: fixes that can be resolved later need not be waited for."""
_MOST_PREPARED = 20
"""Fixes of one document that are verified before somebody asks."""
_FIX_ALL_SECONDS = 60.0
_MODIFIED = "The text has changed since; ask for code actions again."


@dataclass(frozen=True)
class _Offer:
    """A finding at the requested place, with the check that found it."""

    result: Result
    known: Known


class CodeActions:
    def __init__(
        self,
        documents: Documents,
        results: Results,
        publisher: Publisher,
        configuration: Configuration,
        engines: Engines,
        checker: Checker,
        show: Callable[[types.ShowMessageParams], None],
    ) -> None:
        self.client = Client()
        self.verifier = Verifier()
        self._documents = documents
        self._results = results
        self._publisher = publisher
        self._configuration = configuration
        self._engines = engines
        self._checker = checker
        self._show = show

    # -- textDocument/codeAction --------------------------------------------------------------------------------------

    async def offered(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        document = self._documents.get(params.text_document.uri)
        if document is None or not self.client.code_action_literals:
            return None
        invoked = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic
        if not await self._checker.scheduler.settled(
            document.path, _SETTLE_INVOKED if invoked else _SETTLE_AUTOMATIC
        ) or self._is_stale(document):
            return None
        only = params.context.only
        offers = list(self._offers(document))
        actions: list[types.CodeAction] = []
        range_ = to_range(params.range, document.lines, self._documents.encoding)
        result = self._results.get(document.path)
        if _wanted(types.CodeActionKind.QuickFix, only):
            here = [offer for offer in offers if overlaps(offer.known.finding.location.range, range_)]
            actions += await self._quick_fixes(document, here, params.context.diagnostics)
            actions += launch_actions(document, result, range_)
        if _wanted(COMMENT, only):
            actions += comment_actions(document, result, range_, self._documents, self.client)
        if _wanted(FIX_ALL, only) and (only is not None or invoked):
            actions += await self._fix_all(document, offers)
        return None if self._is_stale(document) else actions

    async def prepare(self, path: str) -> None:
        """Verify the fixes of a document's findings one after the other, so that whoever asks has them at once."""
        result = self._results.get(path)
        if result is None or result.snapshot is None:
            return
        wanted = [
            (known, index)
            for known in result.found
            if known.fresh
            for index, fix in enumerate(known.finding.fixes)
            if fix.edits and fix.verified is None
        ]
        for known, index in wanted[:_MOST_PREPARED]:
            # Not awaited itself: who asks for the fix meanwhile joins in, and must not be cancelled with this.
            await asyncio.wait([self.verifier.start(self._engine(result), result, known, index)])

    def _offers(self, document: OpenDocument) -> Iterable[_Offer]:
        for known in self._results.at(document.path):
            result = self._results.owner_of(known)
            if result is not None and result.snapshot is not None:
                yield _Offer(result, known)

    def _is_stale(self, document: OpenDocument) -> bool:
        return self._documents.get(document.uri) is not document

    def _engine(self, result: Result) -> EngineLike:
        return self._engines.get(self._configuration.of(result.owner))

    async def _quick_fixes(
        self, document: OpenDocument, offers: Sequence[_Offer], diagnostics: Sequence[types.Diagnostic]
    ) -> list[types.CodeAction]:
        pairs = [
            (offer, index)
            for offer in offers
            if offer.known.fresh and self._still_applies(offer)
            for index in range(len(offer.known.finding.fixes))
        ]
        await self._verify_for_answer(pairs)
        actions = []
        for offer in offers:
            shown = self._shown(document, offer.known, diagnostics)
            preferred = False
            for each, index in pairs:
                if each is not offer:
                    continue
                action = self._fix_action(document, offer, index, shown)
                if action is not None:
                    # One preferred action a diagnostic: editors apply it without asking.
                    preferred, action.is_preferred = (
                        preferred or bool(action.is_preferred),
                        (action.is_preferred and not preferred) or None,
                    )
                    actions.append(action)
        for offer in offers:
            actions += self._other_actions(document, offer, self._shown(document, offer.known, diagnostics))
        return actions

    def _still_applies(self, offer: _Offer) -> bool:
        texts = offer.result.texts
        return all(applies_to(fix.edits, texts, self._documents) for fix in offer.known.finding.fixes)

    async def _verify_for_answer(self, pairs: Sequence[tuple[_Offer, int]]) -> None:
        """Verify what can be verified within the time that an answer may take."""
        tasks = [
            self.verifier.start(self._engine(offer.result), offer.result, offer.known, index)
            for offer, index in pairs
            if not self.client.resolves_edit or offer.known.finding.fixes[index].safety is Safety.SAFE
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=_VERIFY_RESOLVABLE if self.client.resolves_edit else _VERIFY_NOW)

    def _fix_action(
        self, document: OpenDocument, offer: _Offer, index: int, shown: Sequence[types.Diagnostic]
    ) -> types.CodeAction | None:
        fix = self.verifier.known(offer.result, offer.known, index)
        action = types.CodeAction(title=fix.title, kind=types.CodeActionKind.QuickFix, diagnostics=list(shown))
        if fix.verified:
            if self.client.preferred and fix.safety is Safety.SAFE:
                action.is_preferred = True
            action.edit = workspace_edit(fix.edits, self._documents, self.client)
            return action if action.edit is not None else None
        if fix.verified is None and self.client.resolves_edit:
            action.data = self._data(document, finding=offer.known.id, fix=index)
            return action
        return self._disabled(action, fix)

    def _disabled(self, action: types.CodeAction, fix: Fix) -> types.CodeAction | None:
        if not self.client.disabled:
            return None
        action.disabled = types.CodeActionDisabled(_reason(fix))
        return action

    def _other_actions(
        self, document: OpenDocument, offer: _Offer, shown: Sequence[types.Diagnostic]
    ) -> Iterable[types.CodeAction]:
        rule = offer.known.finding.rule
        silence = types.CodeAction(
            title=f"Silence {rule} on this line", kind=types.CodeActionKind.QuickFix, diagnostics=list(shown)
        )
        if self.client.resolves_edit:
            silence.data = self._data(document, finding=offer.known.id, silence=True)
            yield silence
        elif (edit := silencing_edit(offer.known.finding, document.text)) is not None:
            silence.edit = workspace_edit([edit], self._documents, self.client)
            yield silence
        title = f"Explain {rule}"
        yield types.CodeAction(
            title=title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=list(shown),
            command=types.Command(title=title, command=EXPLAIN, arguments=[rule]),
        )

    async def _fix_all(self, document: OpenDocument, offers: Sequence[_Offer]) -> list[types.CodeAction]:
        fixes = [fix for offer in offers if offer.known.fresh for fix in offer.known.finding.fixes]
        if not any(fix.safety is Safety.SAFE for fix in fixes):
            return []
        action = types.CodeAction(title="Fix all Pallas faults that have a safe fix", kind=FIX_ALL)
        if self.client.resolves_edit:
            action.data = self._data(document, fix_all=True)
            return [action]
        action.edit = await self._fix_all_edit(document)
        return [action] if action.edit is not None else []

    def _shown(
        self, document: OpenDocument, known: Known, diagnostics: Sequence[types.Diagnostic]
    ) -> list[types.Diagnostic]:
        """The client's own diagnostics for a finding, so that it can tell which ones an action solves."""
        ours = self._publisher.diagnostic(known, document.lines)
        same = [each for each in diagnostics if each.code == ours.code and each.range == ours.range]
        return same or [ours]

    @staticmethod
    def _data(document: OpenDocument, **what: Any) -> dict[str, Any]:
        return {"uri": document.uri, "version": document.version, **what}

    # -- codeAction/resolve -------------------------------------------------------------------------------------------

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        data = action.data
        if action.edit is not None or not isinstance(data, dict):
            return action
        uri = data.get("uri")
        if not isinstance(uri, str):
            raise JsonRpcInvalidParams("The action's data is not ours")
        document = self._documents.get(uri)
        if document is None or document.version != data.get("version"):
            raise JsonRpcContentModified(_MODIFIED)
        if data.get("fix_all"):
            action.edit = await self._fix_all_edit(document)
        else:
            offer = next((o for o in self._offers(document) if o.known.id == data.get("finding")), None)
            if offer is None:
                raise JsonRpcContentModified(_MODIFIED)
            if data.get("silence"):
                self._resolve_silence(action, offer, document)
            else:
                await self._resolve_fix(action, offer, data.get("fix"))
        if self._is_stale(document):
            raise JsonRpcContentModified(_MODIFIED)
        return action

    def _resolve_silence(self, action: types.CodeAction, offer: _Offer, document: OpenDocument) -> None:
        edit = silencing_edit(offer.known.finding, document.text)
        if edit is not None:
            action.edit = workspace_edit([edit], self._documents, self.client)
        else:
            self._tell(action, "No comment can stand on this line; put the expression on a line of its own first.")

    async def _resolve_fix(self, action: types.CodeAction, offer: _Offer, index: Any) -> None:
        if not isinstance(index, int) or not 0 <= index < len(offer.known.finding.fixes):
            raise JsonRpcInvalidParams("There is no such fix")
        if not offer.known.fresh or not self._still_applies(offer):
            raise JsonRpcContentModified(_MODIFIED)
        task = self.verifier.start(self._engine(offer.result), offer.result, offer.known, index)
        # A cancelled request must not cancel the verification: the next request joins in.
        fix = await asyncio.shield(task)
        if fix.verified:
            action.edit = workspace_edit(fix.edits, self._documents, self.client)
        else:
            self._tell(action, _reason(fix))

    def _tell(self, action: types.CodeAction, reason: str) -> None:
        """Say why an action that the user has chosen does nothing."""
        if self.client.disabled:
            action.disabled = types.CodeActionDisabled(reason)
        self._show(types.ShowMessageParams(types.MessageType.Warning, f"{action.title}: {reason}"))

    async def _fix_all_edit(self, document: OpenDocument) -> types.WorkspaceEdit | None:
        result = self._results.get(document.path)
        if result is None or result.snapshot is None or not result.final or not result.parsed or not result.ran:
            return None
        engine, snapshot, settings = self._engine(result), result.snapshot, self._configuration.of(document.path)

        def wanted(finding: Finding) -> bool:
            return settings.severity(finding.rule) != "off"

        edits: list[Edit] = []
        texts: dict[str, str] = {}
        try:
            async with asyncio.timeout(_FIX_ALL_SECONDS):
                report = result.report or await engine.check(snapshot, document.path)
                edits, texts = await fix_all(engine, snapshot, report, wanted, result.texts)
        except TimeoutError:
            self._show(
                types.ShowMessageParams(
                    types.MessageType.Warning,
                    f"Fixing all faults took longer than {_FIX_ALL_SECONDS:.0f} s and was given up; "
                    "apply the fixes one by one, or run 'pallas-lsp check --fix'.",
                )
            )
        if not edits or not applies_to(edits, texts, self._documents):
            return None
        return workspace_edit(edits, self._documents, self.client)


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a kind is asked for: the kinds asked for cover their sub-kinds."""
    return only is None or any(not each or kind == each or kind.startswith(f"{each}.") for each in only)


def _reason(fix: Fix) -> str:
    if fix.verified is None:
        return "the fix could not be verified in time; try again"
    return fix.reason or "the fix does not hold: the fault is still there with it"
