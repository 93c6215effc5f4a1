"""What the parts of a run on a GPU share: where its results go, its engines, and one confirmed file."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pallas_lsp.confirm.confirmation import Confirmations
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.confirm.verdicts import Store
from pallas_lsp.confirm.wording import figures
from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Report, Snapshot

PROJECT = Path(__file__).resolve().parent.parent.parent


class Nothing(Store):
    """A store that keeps nothing, so that each confirmation is a real one."""

    def get(self, key: str) -> dict[str, Any] | None:  # noqa: ARG002
        return None

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        pass


class Run:
    def __init__(self, out: Path, python: str, deadline: float) -> None:
        self.out = out
        self.python = python
        self.deadline = deadline
        self.log: list[str] = []

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def write(self, name: str, content: Any) -> None:
        text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
        (self.out / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}, {self.left():.0f} s left", flush=True)

    def engine(self, settings: ConfirmSettings, store: Store | None = None, **more: Any) -> Engine:
        base = Settings(python=self.python, figures=True, confirm=settings, discovery=False, **more)
        engine = Engine(base, self.log.append)
        folder = Path(tempfile.mkdtemp(prefix="pallas-lsp-store-"))
        engine._confirmations = Confirmations(settings, base, self.log.append, store or Store(folder))
        return engine


async def confirmed(engine: Engine, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    snapshot = Snapshot({str(path): Document(str(path), text)}, (str(path.parent),))
    began = time.perf_counter()
    report = await engine.check(snapshot, str(path))
    checked = time.perf_counter()
    confirmation = await engine.confirm(snapshot, str(path), report)
    done = time.perf_counter()
    return {
        "case": f"{path.parent.name}/{path.stem}",
        "problems": [problem.message for problem in report.problems],
        "unreached": [status.reason for status in report.launches if status.reason],
        "cpu": _findings(report),
        "gpu": _findings(confirmation.report),
        "verdicts": _verdicts(confirmation.report),
        "states": _states(confirmation.report),
        "figures": [
            line
            for status in confirmation.report.launches
            for capture in status.captures
            for line in figures(capture)
            if capture.resources.get("devices")
        ],
        "devices": [
            device
            for status in confirmation.report.launches
            for capture in status.captures
            for device in capture.resources.get("devices", ())
        ],
        "state": confirmation.state,
        "check_seconds": round(checked - began, 3),
        "confirm_seconds": round(done - checked, 3),
    }


def _findings(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "rule": finding.rule,
            "line": finding.location.range.start.line + 1,
            "stage": finding.stage.value,
            "severity": finding.severity.value,
            "message": finding.message,
            "verdicts": [each["verdict"] for each in finding.data.get("verdicts", ())],
        }
        for finding in report.findings
    ]


def _verdicts(report: Report) -> list[str]:
    return [
        f"{finding.rule}: {', '.join(v['verdict'] for v in finding.data.get('verdicts', ())) or 'none'}"
        for finding in report.findings
    ]


def _states(report: Report) -> list[str]:
    return [
        f"{capture.body.name if capture.body else capture.api}: {device['state']}"
        for status in report.launches
        for capture in status.captures
        for device in capture.resources.get("devices", ())
    ]
