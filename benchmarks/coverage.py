"""How many launches of public projects are reached without a word from their authors, how fast, and why others are not.

    .venvs/dev/bin/python benchmarks/coverage.py --python .venvs/jax-0.11.2/bin/python [--json FILE]

Projects are fetched when this runs; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import projects
from projects import Project

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SOURCES = ("own", "tests", "scripts", "comment", "recorded", "assumed")
KNOWN = frozenset({"own", "tests", "scripts", "recorded"})
"""Sources of types that are neither guessed nor written down for Pallas LSP."""


@dataclass
class LaunchResult:
    path: str
    line: int
    api: str
    body: str | None
    tested: bool
    source: str | None = None
    driver: str | None = None
    arguments: str | None = None
    stage: str | None = None
    kernels: int = 0
    reason: str = ""

    @property
    def reached(self) -> bool:
        return self.source in KNOWN


@dataclass
class FileResult:
    path: str
    seconds: float
    first_seconds: float | None


@dataclass
class ProjectResult:
    name: str
    version: str
    launches: list[LaunchResult] = field(default_factory=list)
    files: list[FileResult] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Files that were not checked, for want of time."""


def is_test(path: Path) -> bool:
    name = path.name
    in_tests = any(part in ("test", "tests") for part in path.parts[:-1])
    return in_tests or name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def product_files(root: Path) -> Iterator[Path]:
    from pallas_lsp.source.launches import find_launches

    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if is_test(relative) or (root / "scripts" in path.parents and root.name.startswith(projects.JAX_KERNELS)):
            continue
        with contextlib.suppress(OSError, ValueError, SyntaxError):
            if find_launches(str(path), path.read_text(encoding="utf-8")):
                yield path


async def measure(
    project: Project,
    result: ProjectResult,
    python: str,
    options: argparse.Namespace,
    log: Any,
    save: Callable[[], None],
) -> None:
    """Check each product file that launches, alone and for the first time; what is known by then is saved."""
    from pallas_lsp.discovery.index import Index
    from pallas_lsp.engine.engine import Engine
    from pallas_lsp.engine.settings import Settings
    from pallas_lsp.model import Report, Snapshot

    root = project.root.resolve()
    snapshot = Snapshot({}, (str(root),))
    index = Index(str(root))
    index.refresh(snapshot)
    engine = Engine(Settings(python=python, jobs=options.jobs), log=log)
    free = asyncio.Semaphore(options.jobs)

    async def one(path: Path) -> None:
        async with free:
            shown = path.relative_to(root).as_posix()
            started = time.monotonic()
            if started > options.end:
                result.left.append(shown)
                return
            first: list[float] = []

            def on_report(report: Report) -> None:
                if not first and any(status.captures for status in report.launches):
                    first.append(time.monotonic() - started)

            report = await engine.check(snapshot, str(path), on_report)
            seconds = round(time.monotonic() - started, 2)
            result.files.append(FileResult(shown, seconds, round(first[0], 2) if first else None))
            tested = any(index.entries[importer].test for importer, _ in index.importers(str(path)))
            rows = list(launches(report, str(path), shown, tested))
            result.launches += rows
            result.findings += findings(report, str(root), shown)
            result.problems += [f"{shown}: {problem.kind}: {problem.message}" for problem in report.problems]
            reached = sum(each.reached for each in rows)
            print(f"  {project.name}: {shown}: {reached} of {len(rows)}, {seconds:.1f} s", file=sys.stderr, flush=True)
            save()

    wanted = [path for path in product_files(root) if options.only is None or options.only in str(path)]
    try:
        await asyncio.gather(*(one(path) for path in wanted))
    finally:
        await engine.aclose()
    result.launches.sort(key=lambda row: (row.path, row.line))


def launches(report: Any, path: str, shown: str, tested: bool) -> Iterator[LaunchResult]:
    for status in report.launches:
        launch = status.launch
        if launch.location.path != path:
            continue
        line = launch.location.range.start.line + 1
        row = LaunchResult(shown, line, launch.api, launch.body, tested, reason=status.reason)
        best = max(status.captures, key=lambda capture: source_of(capture.driver) in KNOWN, default=None)
        if best is not None:
            row.source, row.driver = source_of(best.driver), best.driver
            row.arguments, row.stage = best.arguments, furthest(status.captures)
            row.kernels = len({capture.body for capture in status.captures})
        yield row


def furthest(captures: Sequence[Any]) -> str:
    order = ("read", "build", "trace", "lower", "confirm")
    return max((capture.stage.value for capture in captures), key=order.index)


def source_of(driver: str) -> str:
    kind = driver.partition(":")[0]
    found = {"guess": "assumed", "comment": "comment", "record": "recorded", "pytest": "tests", "script": "scripts"}
    return found.get(kind, "own")


def findings(report: Any, root: str, shown: str) -> Iterator[dict[str, Any]]:
    for finding in report.findings:
        if finding.severity.value in ("error", "warning"):
            place = finding.location
            yield {
                "checked": shown,
                "path": os.path.relpath(place.path, root),
                "line": place.range.start.line + 1,
                "rule": finding.rule,
                "severity": finding.severity.value,
                "message": finding.message,
            }


# -- the table --------------------------------------------------------------------------------------------------------


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def row_of(name: str, rows: Sequence[LaunchResult], files: Sequence[FileResult]) -> list[str]:
    tested = [row for row in rows if row.tested]
    mosaic = [row for row in rows if row.api == "plgpu.kernel"]
    mosaic_tested = [row for row in mosaic if row.tested]
    first = sorted(file.first_seconds for file in files if file.first_seconds is not None)
    every = sorted(file.seconds for file in files)
    counts = Counter(row.source for row in rows)
    return [
        name,
        str(len(rows)),
        str(sum(row.reached for row in rows)),
        *(str(counts[source]) for source in SOURCES),
        f"{sum(row.reached for row in tested)}/{len(tested)} {percent(sum(r.reached for r in tested), len(tested))}",
        f"{sum(row.reached for row in mosaic)}/{len(mosaic)} {percent(sum(r.reached for r in mosaic), len(mosaic))}"
        if mosaic
        else "-",
        f"{sum(r.reached for r in mosaic_tested)}/{len(mosaic_tested)}" if mosaic_tested else "-",
        f"{first[len(first) // 2]:.1f} s" if first else "-",
        f"{every[len(every) // 2]:.1f} s" if every else "-",
    ]


def table(results: Sequence[ProjectResult]) -> str:
    head = ["project", "launches", "reached", *SOURCES, "with tests", "plgpu.kernel", "with tests", "first", "all"]
    rows = [head]
    rows += [row_of(f"{each.name} {each.version}", each.launches, each.files) for each in results]
    everything = [row for each in results for row in each.launches]
    rows.append(row_of("together", everything, [file for each in results for file in each.files]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def reasons(results: Sequence[ProjectResult]) -> Iterator[str]:
    for project in results:
        for row in project.launches:
            if not row.reached:
                tests = "" if row.tested else " [no test imports the file]"
                assumed = f" [reached with types from: {row.source}]" if row.source else ""
                yield f"{project.name}: {row.path}:{row.line} {row.api} {row.body or ''}{tests}{assumed}: {row.reason}"


# -- the command ------------------------------------------------------------------------------------------------------


async def run(options: argparse.Namespace, folder: Path) -> int:
    environment = projects.Environment(os.path.abspath(options.python), folder)  # noqa: PTH100
    environment.make()
    chosen = [*(options.project or ()), *map(str, options.checkout or ())] or [projects.JAX_KERNELS, *projects.NAMES]
    results: list[ProjectResult] = []
    log = options.log.open("w", encoding="utf-8", errors="backslashreplace") if options.log else None
    for name in chosen:
        if name == projects.JAX_KERNELS:
            project = projects.jax_kernels(environment, folder, options.jax_tests)
        elif os.sep in name:
            project = projects.checkout(Path(name))
            environment.install(project)
        else:
            project = projects.fetch(name, folder, environment.python)
            environment.install(project)
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache  # what earlier runs found out must not help
            write = (lambda text: print(text, file=log, flush=True)) if log else (lambda _: None)
            results.append(ProjectResult(project.name, project.version))
            await measure(
                project, results[-1], environment.python, options, write, lambda: save(options, environment, results)
            )
    print("\n".join(reasons(results)))
    print()
    for each in results:
        for finding in each.findings:
            print(f"finding: {each.name}: {finding['path']}:{finding['line']} {finding['severity']} {finding['rule']}")
            print("    " + finding["message"].replace("\n", "\n    "))
        for problem in each.problems:
            print(f"problem: {each.name}: {problem}")
    for name, reason in environment.missing.items():
        print(f"not installed: {name}: {reason}")
    print(f"\njax {environment.jax}\n{table(results)}")
    for each in results:
        for path in each.left:
            print(f"not checked, for want of time: {each.name}: {path}")
    save(options, environment, results)
    return 0


def save(options: argparse.Namespace, environment: projects.Environment, results: Sequence[ProjectResult]) -> None:
    if options.json:
        document = {
            "jax": environment.jax,
            "machine": {"system": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()},
            "not_installed": environment.missing,
            "projects": [asdict(each) for each in results],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="an interpreter that has the jax to measure with")
    parser.add_argument(
        "--project", action="append", metavar="NAME",
        help="a project on the package index, or 'jax' for the kernels inside jax; may be repeated (default: a list)",
    )  # fmt: skip
    parser.add_argument(
        "--checkout", action="append", type=Path, metavar="FOLDER", help="a project's folder; repeatable"
    )
    parser.add_argument("--only", metavar="TEXT", help="check only files whose path holds this")
    parser.add_argument("--folder", type=Path, help="where projects and the environment are kept (default: nowhere)")
    parser.add_argument("--jax-tests", type=Path, metavar="FOLDER", help="tests/pallas of a checkout of jax, if any")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too, after each file")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="files checked at once (default: 1)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin with no file after this time")
    parser.add_argument("--log", type=Path, help="write the workers' log to this file")
    options = parser.parse_args()
    options.end = time.monotonic() + 60 * options.minutes
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(run(options, options.folder.resolve()))
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(options, Path(folder).resolve()))


if __name__ == "__main__":
    sys.exit(main())
