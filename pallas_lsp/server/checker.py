"""One check: a frozen snapshot in, diagnostics and status out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lsp.model import Finding, Report, Severity, Snapshot, Stage
from pallas_lsp.server.background import Background
from pallas_lsp.server.closed import ClosedFiles
from pallas_lsp.server.configuration import Configuration
from pallas_lsp.server.confirming import Confirming
from pallas_lsp.server.consent import Consent
from pallas_lsp.server.diagnostics import Publisher
from pallas_lsp.server.documents import Documents, OpenDocument, is_inside
from pallas_lsp.server.engines import EngineLike, Engines
from pallas_lsp.server.progress import ProgressBar, ProgressBars
from pallas_lsp.server.results import Results
from pallas_lsp.server.scheduler import Priority, Scheduler
from pallas_lsp.server.settings import FolderSettings
from pallas_lsp.server.status import StatusReporter

if TYPE_CHECKING:
    from pallas_lsp.confirm.confirmation import Confirmation

logger = logging.getLogger(__name__)

_UNTRUSTED = "the folder is not trusted, so that its code is not run"
_READ_ONLY = "the setting 'stages' is 'read', so that no code is run"
_NEXT = {Stage.READ: "building", Stage.BUILD: "tracing", Stage.TRACE: "lowering"}


class Checker:
    def __init__(
        self,
        documents: Documents,
        results: Results,
        publisher: Publisher,
        configuration: Configuration,
        consent: Consent,
        engines: Engines,
        bars: ProgressBars,
        status: StatusReporter,
        closed: ClosedFiles,
    ) -> None:
        self.scheduler: Scheduler
        self.refresh: Callable[[], None] = lambda: None
        """Asks the client to ask for lenses again."""
        self._documents = documents
        self._results = results
        self._publisher = publisher
        self._configuration = configuration
        self._consent = consent
        self._engines = engines
        self._bars = bars
        self._status = status
        self._closed = closed
        self._asking: set[asyncio.Task[None]] = set()
        self.confirming = Confirming(self._take_verdicts, lambda: self.scheduler.any_busy, status.gpu)
        self.background = Background(lambda: self.scheduler.any_busy)
        self.prepare: Callable[[str], Coroutine[Any, Any, None]] = _nothing
        """Verifies the fixes of a document's findings before anybody asks for them."""

    async def check(self, path: str) -> None:
        """Check the newest text of an open document; the scheduler cancels this when there is a newer one."""
        await self._configuration.ready.wait()
        self.confirming.cancel(path)
        document = self._documents.at(path)
        if document is None:
            return
        snapshot = self._documents.snapshot()
        settings = self._configuration.of(path)
        folder = self._documents.root_of(path)
        trusted = self._consent.allows(folder)
        engine = self._engines.get(settings)
        self.background.drop(path)
        self._status.busy(document.uri)
        title = f"Checking {Path(path).name}"
        try:
            with self._bars.start(title, lambda: self.scheduler.cancel(path)) as bar:

                def on_report(report: Report) -> None:
                    last = report.final or (settings.stage is Stage.TRACE and report.stage is Stage.TRACE)
                    self._take(replace(report, final=last), document, snapshot, settings, bar, trusted=trusted)
                    if last and not report.final:
                        checking.cancel()  # lowering is not wanted

                run = trusted and settings.stage is not Stage.READ
                checking = asyncio.ensure_future(engine.check(snapshot, path, on_report, run=run))
                await asyncio.wait([checking])
                if not checking.cancelled():
                    checking.result()
        except asyncio.CancelledError:
            checking.cancel()
            self._status.idle(document.uri)
            raise
        result = self._results.get(path)
        if result is not None and result.report is not None and run and result.snapshot is snapshot:
            report = result.report
            self.background.put(path, lambda: self._go_on(engine, report, document, snapshot, settings))
        if result is not None and result.launches and self._consent.decision(folder) is None:
            self._spawn(self._ask(folder))

    async def _go_on(
        self,
        engine: EngineLike,
        report: Report,
        document: OpenDocument,
        snapshot: Snapshot,
        settings: FolderSettings,
    ) -> None:
        """After a check, when nothing else is to be done: what stands behind its findings, and whether fixes hold."""
        await self._look_further(engine, report, document, snapshot, settings)
        await self.prepare(document.path)

    async def _look_further(
        self,
        engine: EngineLike,
        report: Report,
        document: OpenDocument,
        snapshot: Snapshot,
        settings: FolderSettings,
    ) -> None:
        """The faults that stand behind the first of a kernel."""
        try:
            found = await engine.further(snapshot, document.path, report)
        except Exception:
            logger.exception("Faults behind others could not be looked for. Please report this.")
            return
        if found is report or self._documents.at(document.path) is not document:
            return
        changed = self._keep(found, snapshot, settings, trusted=True)
        result = self._results.get(document.path)
        if result is not None:
            self._publisher.publish(changed | {document.path})
            self._status.result(document.uri, result, trusted=True)

    def _take(
        self,
        report: Report,
        document: OpenDocument,
        snapshot: Snapshot,
        settings: FolderSettings,
        bar: ProgressBar,
        *,
        trusted: bool,
    ) -> None:
        if self._documents.at(document.path) is not document:  # edited or closed since
            return
        changed = self._keep(report, snapshot, settings, trusted=trusted)
        result = self._results.get(report.path)
        if result is None:
            return
        if report.final:
            changed.add(document.path)  # says that this version has been checked, whatever was found
        else:
            bar.report(_NEXT.get(report.stage, ""))
        self._publisher.publish(changed)
        self._status.result(document.uri, result, trusted=trusted)
        if report.final and trusted and settings.confirm is not None and result.report is not None:
            self.confirming.after(self._engines.get(settings), snapshot, document.path, result.report)

    def _keep(self, report: Report, snapshot: Snapshot, settings: FolderSettings, *, trusted: bool) -> set[str]:
        """Take in a report as the settings leave it; returns the paths whose findings may have changed."""
        parsed = all(problem.kind != "syntax" for problem in report.problems)
        findings = tuple(filter(None, (_as_set(finding, settings) for finding in report.findings)))
        launches = report.launches
        if not trusted or settings.stage is Stage.READ:
            reason = _READ_ONLY if trusted else _UNTRUSTED
            launches = tuple(replace(each, reason=reason) for each in launches)
        shown = replace(report, findings=findings, launches=launches)
        return self._results.replace(report, shown, snapshot, parsed=parsed)

    async def check_closed(self, path: str) -> None:
        """Check a file that is not open; its findings stay until it or what it imports changes on disk, or until it
        is opened and closed."""
        snapshot, settings = self._documents.snapshot(), self._configuration.of(path)
        if settings.stage is Stage.READ or not self._consent.allows(self._documents.root_of(path)):
            return
        stamps = self._closed.stamps(path)
        report = await self._engines.get(settings).check(snapshot, path)
        if self._documents.at(path) is None and self._closed.checked(path, stamps):
            self._publisher.publish(self._keep(report, snapshot, settings, trusted=True))
            for problem in report.problems:
                logger.info("%s: %s. %s", path, problem.message, problem.remedy)

    def forget_closed(self, paths: set[str]) -> None:
        """Files may have changed on disk: what was found in those that are not open no longer holds then."""
        for path in self._closed.outdated(paths):
            if self._documents.at(path) is None:
                self._publisher.publish(self._results.forget(path) | {path})

    async def confirm(self, path: str, *, launch: bool = False) -> Confirmation | None:
        """Ask the GPUs about the last results of an open document and publish their verdicts; None without results."""
        result, settings = self._results.get(path), self._configuration.of(path)
        if result is None or result.report is None or result.snapshot is None:
            return None
        engine = self._engines.get(settings)
        return await self.confirming.now(engine, result.snapshot, path, result.report, launch=launch)

    def _take_verdicts(self, path: str, report: Report, snapshot: Snapshot) -> bool:
        """Publish a report with verdicts, once, if the text is still the one that was confirmed."""
        document, result = self._documents.at(path), self._results.get(path)
        if document is None or result is None or result.snapshot is not snapshot:
            return False
        if snapshot.documents[path].version != document.version:
            return False
        self._publisher.publish(self._keep(report, snapshot, self._configuration.of(path), trusted=True))
        self.refresh()
        return True

    async def _ask(self, folder: str) -> None:
        if await self._consent.ask(folder):
            self.check_folder(folder)

    def check_folder(self, folder: str) -> None:
        """Check the open documents of a folder again."""
        self.check_documents([d.path for d in self._documents.all() if is_inside(d.path, folder)])

    def check_all(self) -> None:
        self.check_documents([document.path for document in self._documents.all()])

    def check_settings(self, settings: FolderSettings) -> None:
        """Check the open documents with these settings again: the environment that they share has changed."""
        logger.info("The Python environment has changed; the open files are checked again.")
        self.check_documents([d.path for d in self._documents.all() if self._configuration.of(d.path) == settings])

    def check_documents(self, paths: list[str]) -> None:
        for path in paths:
            document = self._documents.at(path)
            if document is not None and document.is_python:
                self.scheduler.request(path, Priority.DEPENDENT)

    def close(self) -> None:
        self.confirming.cancel_all()
        self.background.close()
        for task in self._asking:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)


async def _nothing(_: str) -> None:
    """Stands for what is not wired up."""


def _as_set(finding: Finding, settings: FolderSettings) -> Finding | None:
    """A finding with the severity that the user set for its rule; None where the rule is off."""
    wanted = settings.severity(finding.rule)
    if wanted is None:
        return finding
    return None if wanted == "off" else replace(finding, severity=Severity(wanted))
