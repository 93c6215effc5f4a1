"""From a report to the same report with GPU verdicts: which kinds of GPU there are, what is known, what is run."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cattrs

from pallas_lsp import __version__
from pallas_lsp.confirm.compare import COMPILED, Judgement, annotate, compare, is_silent
from pallas_lsp.confirm.confirmer import Confirmer, environment_flags
from pallas_lsp.confirm.gpus import Found, Gpu, Load, find, load
from pallas_lsp.confirm.jobs import Answer, Job, crash_of
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.confirm.verdicts import Opinion, Store, key
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.judge import judge
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import Backend, Capture, Driver, Fault, Finding, Report, Snapshot, Stage, WorkerInfo
from pallas_lsp.rules.context import Context

_converter = cattrs.Converter(detailed_validation=False)
_LASTING = ("compiled", "launched", "timed out", "crashed")
"""States of a program that need no second look; a fault is judged anew, for its place moves with the text."""


@dataclass(frozen=True)
class Subject:
    """What is to be confirmed: the file as it was checked.  ``info``: what this machine's interpreter has."""

    python: str
    info: WorkerInfo
    snapshot: Snapshot
    path: str
    drivers: tuple[Driver, ...]
    texts: Mapping[str, str]
    report: Report
    launch: bool = False
    """Launch the kernels, whatever the settings say."""


@dataclass(frozen=True)
class Confirmation:
    """``report`` has the verdicts; ``state`` says in words what kept them away, for the status; empty if nothing."""

    report: Report
    state: str = ""
    gpus: tuple[str, ...] = ()


class Confirmations:
    """The confirmers of this machine's GPUs (by kind), or of the one that the settings' command reaches."""

    def __init__(
        self,
        settings: ConfirmSettings,
        base: Settings,
        log: Log,
        store: Store | None = None,
        find_gpus: Callable[[], Found] = find,
        load_of: Callable[[Gpu], Load | None] = load,
    ) -> None:
        self.settings = settings
        self._base = base
        self._log = log
        self._store = store or Store()
        self._find = find_gpus
        self._load_of = load_of
        self._kinds: dict[str, list[Confirmer]] | None = None
        self._none = ""
        self._remote: dict[str, Any] = {}

    async def confirm(self, subject: Subject) -> Confirmation:
        """Never raises but for a cancelled task, which ends what runs."""
        report = subject.report
        if not _has_gpu_kernels(report):
            return Confirmation(report)
        kinds = await self._confirmers()
        if not kinds:
            return Confirmation(report, f"no GPU: {self._none}")
        answers = await asyncio.gather(*(self._of_kind(kind, each, subject) for kind, each in kinds.items()))
        judgements = [answer for answer in answers if isinstance(answer, Judgement)]
        reasons = [answer for answer in answers if isinstance(answer, str)]
        names = tuple(f"{each.gpu} ({each.compute_capability})" for each in judgements)
        return Confirmation(annotate(report, judgements), "; ".join(reasons), names)

    async def aclose(self) -> None:
        if self._kinds is not None:
            await asyncio.gather(*(each.aclose() for group in self._kinds.values() for each in group))
        self._kinds = None

    async def _confirmers(self) -> dict[str, list[Confirmer]]:
        """By kind of GPU, one confirmer for each GPU."""
        if self._kinds is None:
            kinds: dict[str, list[Confirmer]] = {}
            if self.settings.command:
                kinds["command"] = [Confirmer(None, self.settings, self._base, self._log)]
            else:
                found = await asyncio.to_thread(self._find)
                self._none = found.reason
                for gpu in found.gpus:
                    confirmer = Confirmer(gpu, self.settings, self._base, self._log, self._load_of)
                    kinds.setdefault(gpu.kind, []).append(confirmer)
            self._kinds = kinds
        return self._kinds

    async def _of_kind(self, kind: str, confirmers: Sequence[Confirmer], subject: Subject) -> Judgement | str:
        """What a kind of GPU says, or why it says nothing."""
        confirmer = min(confirmers, key=lambda each: each.waiting)
        try:
            jax = await self._jax(confirmer, subject)
        except WorkerUnavailable as error:
            return error.message
        launch = subject.launch or self.settings.launch
        circumstances = (kind, jax, launch, environment_flags(), self.settings.command)
        digests = _digests(subject.report)
        known = {digest: entry for digest in digests if (entry := self._program(digest, circumstances)) is not None}
        gpu = self._gpu(confirmer)
        if gpu is not None and _is_settled(subject.report, digests, known):
            return compare(subject.report, _captures(subject.report), (), known, gpu)
        whole = key("file", circumstances, __version__, _texts(subject), self._base.targets)
        if (entry := self._store.get(whole)) is not None and (kept := _decoded(entry, known)) is not None:
            return kept
        answer = await confirmer.run(
            Job(
                subject.python,
                subject.snapshot,
                subject.path,
                subject.drivers,
                subject.texts,
                self._base.targets,
                whole,
                frozenset(known),
                launch,
            )
        )
        if answer.state != "done":
            return f"{answer.state}: {answer.detail}"
        self._remote[kind] = answer.gpu
        return self._judged(subject, answer, known, circumstances, whole)

    def _judged(
        self,
        subject: Subject,
        answer: Answer,
        known: Mapping[str, dict[str, Any]],
        circumstances: tuple[object, ...],
        whole: str,
    ) -> Judgement:
        programs = {**known, **answer.programs}
        for digest, entry in answer.programs.items():
            if entry.get("state") in _LASTING:
                self._store.put(key("program", digest, circumstances), entry)
        captures = tuple(answer.outcome.captures.values())
        context = Context(subject.snapshot, subject.info, captures, subject.drivers)
        faults = [*answer.outcome.faults.values(), *_crashes(captures, known)]
        findings = judge(faults, context)
        judgement = compare(subject.report, captures, findings, programs, answer.gpu)
        if all(entry.get("state") != "no memory" for entry in programs.values()):
            self._store.put(whole, _encoded(judgement))
        return judgement

    def _program(self, digest: str, circumstances: tuple[object, ...]) -> dict[str, Any] | None:
        return self._store.get(key("program", digest, circumstances))

    def _gpu(self, confirmer: Confirmer) -> Mapping[str, Any] | None:
        if confirmer.gpu is not None:
            return {"name": confirmer.gpu.name, "compute_capability": confirmer.gpu.compute_capability}
        return self._remote.get("command")

    async def _jax(self, confirmer: Confirmer, subject: Subject) -> str:
        """The jax that compiles: this machine's interpreter's own, or the one that the command comes to."""
        if not self.settings.command:
            return subject.info.jax or ""
        if "jax" not in self._remote:
            self._remote["jax"] = (await confirmer.info(subject.python)).jax or ""
        return str(self._remote["jax"])


def _has_gpu_kernels(report: Report) -> bool:
    """Whether a file has something that a GPU may say a word on."""
    return any(capture.backend is not Backend.TPU for status in report.launches for capture in status.captures) or any(
        finding.stage is not Stage.READ for finding in report.findings
    )


def _captures(report: Report) -> tuple[Any, ...]:
    return tuple(capture for status in report.launches for capture in status.captures)


def _crashes(captures: Iterable[Capture], known: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """The faults of programs that were left out because the compiler crashed at them before."""
    return [
        crash_of(capture, str(known[digest].get("detail") or "ended by a signal"))
        for capture in captures
        for digest in capture.resources.get("programs") or ()
        if known.get(digest, {}).get("state") == "crashed"
    ]


def _digests(report: Report) -> set[str]:
    return {digest for capture in _captures(report) for digest in capture.resources.get("programs") or ()}


def _is_settled(report: Report, digests: set[str], known: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the kernels' programs alone answer everything: each is known, and no finding needs to be shown again."""
    captures = _captures(report)
    if not digests or digests - known.keys():
        return False
    if any(entry.get("state") not in (*COMPILED, "timed out") for entry in known.values()):
        return False
    return all(is_silent(finding, captures) for finding in report.findings)


def _texts(subject: Subject) -> str:
    digest = hashlib.sha256(repr(subject.drivers).encode("utf-8", "backslashreplace"))
    for path in sorted(subject.texts):
        digest.update(repr((path, subject.texts[path])).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _encoded(judgement: Judgement) -> dict[str, Any]:
    return {
        "gpu": judgement.gpu,
        "computeCapability": judgement.compute_capability,
        "opinions": [[list(key), _converter.unstructure(opinion)] for key, opinion in judgement.opinions.items()],
        "findings": [_converter.unstructure(finding) for finding in judgement.findings],
        "programs": {digest: dict(entry) for digest, entry in judgement.programs.items()},
    }


def _decoded(entry: Mapping[str, Any], known: Mapping[str, dict[str, Any]]) -> Judgement | None:
    """A kept judgement; None where this version does not understand it."""
    try:
        opinions = {
            (str(key[0]), str(key[1]), int(key[2]), int(key[3]), str(key[4])): _converter.structure(value, Opinion)
            for key, value in entry["opinions"]
        }
        findings = tuple(_converter.structure(finding, Finding) for finding in entry["findings"])
        return Judgement(entry["gpu"], entry["computeCapability"], opinions, findings, {**known, **entry["programs"]})
    except Exception:  # cattrs raises what it likes
        return None
