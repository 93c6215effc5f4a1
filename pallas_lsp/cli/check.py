"""``pallas-lsp check``: files and folders in, findings out."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from pallas_lsp.cli.files import Selection, select
from pallas_lsp.cli.formats import FORMATS
from pallas_lsp.cli.formats.summary import summary
from pallas_lsp.cli.formats.view import View
from pallas_lsp.cli.interrupts import run_interruptible
from pallas_lsp.cli.logs import open_log
from pallas_lsp.cli.main import UsageError
from pallas_lsp.cli.outcome import EXIT_USAGE, Outcome
from pallas_lsp.cli.progress import Bar
from pallas_lsp.cli.run import Checker, Request, Run
from pallas_lsp.cli.sources import Sources
from pallas_lsp.cli.streams import silence, use_color
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.engine import Engine
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.interpreter import find_interpreter
from pallas_lsp.engine.settings import Limits, Settings

_LIMITS = Limits()
_CONFIRM = ConfirmSettings()
_MOST_JOBS = 16
_EXIT_CODES = """\
exit codes:
  0    nothing found (remarks and hints do not count)
  1    errors or warnings found; with --fix, left after fixing
  2    the command line was wrong: nothing was checked
  3    nothing found, but something could not be checked; it is named with the reason
  70   a fault of Pallas LSP itself
  130  interrupted
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXIT_CODES
    configure_selection(parser)
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="default: text")
    parser.add_argument("--output", metavar="FILE", help="write the report to a file; a summary goes to standard error")
    parser.add_argument("--fix", action="store_true", help="apply the safe fixes that were verified")
    parser.add_argument("--diff", action="store_true", help="show what --fix would change as a diff; write nothing")
    parser.add_argument("--no-verify", action="store_true", help="do not verify fixes, which is faster")
    parser.add_argument(
        "--confirm", action="store_true",
        help="have a GPU confirm each finding and compile each kernel: one of this machine, or --confirm-command's",
    )  # fmt: skip
    parser.add_argument(
        "--confirm-command", metavar="COMMAND", type=_command,
        help="a Python with jax and a GPU elsewhere, as in 'ssh box python3'; implies --confirm",
    )  # fmt: skip
    parser.add_argument(
        "--launch", action="store_true",
        help="also launch each kernel once on the GPU, on generated inputs; implies --confirm",
    )  # fmt: skip
    parser.add_argument(
        "--confirm-timeout", metavar="SECONDS", type=_positive,
        help=f"how long the GPU's compiler may take for one kernel (default: {_CONFIRM.seconds:g})",
    )  # fmt: skip
    parser.add_argument(
        "--resources", action="store_true",
        help="show what each kernel needs: shared memory, TMEM and barriers, with --confirm also registers, spills and "
        "blocks per multiprocessor",
    )  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="show the launches, their arguments and sources")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")


def configure_selection(parser: argparse.ArgumentParser) -> None:
    """What to check, with which Python and under which limits."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH",
        help="a Python file, which is always checked, or a folder, in which the Python files that import Pallas are "
        "(all but those under .git, node_modules, virtual environments and the like)",
    )  # fmt: skip
    parser.add_argument(
        "--python", metavar="INTERPRETER",
        help="the Python with the jax to check with, or its virtual environment's folder (default: the active "
        "environment, else one beside the file or above it, else the Python that runs this command)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", metavar="N", type=_positive, help="how many files are checked at once (default: one for each core)"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_positive,
        help=f"how long importing, tracing or lowering may take (default: {_LIMITS.import_seconds:g}, "
        f"{_LIMITS.trace_seconds:g} and {_LIMITS.lower_seconds:g})",
    )  # fmt: skip
    parser.add_argument(
        "--memory", metavar="GIB", type=_positive,
        help=f"how much memory a check may use, in GiB (default: {_LIMITS.memory_bytes >> 30})",
    )  # fmt: skip
    parser.add_argument("--log-file", metavar="FILE", help="where the log goes, with what the checked code prints")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _command(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no command line: {error}") from error
    if not words:
        raise argparse.ArgumentTypeError("the command is empty")
    return words


def run(arguments: argparse.Namespace) -> int:
    fixing = arguments.fix or arguments.diff
    if fixing and arguments.no_verify:
        raise UsageError("--fix and --diff apply verified fixes only, so that --no-verify makes no sense with them.")
    if arguments.diff and arguments.format not in ("text", "json"):
        raise UsageError(f"--diff can be shown as text or json, not as {arguments.format}.")
    selection = selected(arguments)
    _check_destination(arguments.output)
    outcome = collect(arguments, selection, verify=not arguments.no_verify, fix=fixing, write=not arguments.diff)
    try:
        _write(outcome, arguments)
    except BrokenPipeError:  # whoever read our output has had enough; what was found stays the same
        silence(sys.stdout)
    except OSError as error:
        print(f"pallas-lsp check: error: the report could not be written: {error}", file=sys.stderr)
        return EXIT_USAGE
    return outcome.exit_code


def selected(arguments: argparse.Namespace) -> Selection:
    """The files that the arguments name; raises UsageError for one that is not there."""
    selection = select(arguments.paths)
    if selection.missing:
        raise UsageError("\n".join(f"there is no file or folder {path!r}." for path in selection.missing))
    for folder in selection.empty_folders:
        print(f"pallas-lsp: no Python file that imports Pallas in {folder!r}", file=sys.stderr)
    return selection


def collect(
    arguments: argparse.Namespace, selection: Selection, *, verify: bool, fix: bool = False, write: bool = False
) -> Outcome:
    """Check the files, with a progress bar on a terminal."""
    cwd = os.getcwd()  # noqa: PTH109 - as the shell shows it
    settings = _settings(arguments, cwd)
    try:
        log = open_log(arguments.log_file)
    except OSError as error:
        raise UsageError(f"the log file cannot be written: {error}") from error
    request = Request(
        selection.files,
        verify=verify,
        fix=fix,
        write=write,
        jobs=settings.jobs,
        skipped=len(selection.without_pallas),
        cwd=cwd,
        confirm=settings.confirm is not None,
    )
    color = use_color(sys.stderr, arguments.color)

    async def work() -> Outcome:
        async with open_engine(settings, log.write) as engine:
            with Bar(len(selection.files), 1 + fix, cwd, color) as bar:
                return await Run(engine, request, Sources(), bar).outcome()

    try:
        return replace(run_interruptible(work), log=log.path)
    finally:
        log.close()


@contextlib.asynccontextmanager
async def open_engine(settings: Settings, log: Callable[[str], None]) -> AsyncIterator[Checker]:
    """An engine whose workers end with it, however the block is left."""
    engine = Engine(settings, log=log)
    try:
        yield engine
    finally:
        await engine.aclose()


def _settings(arguments: argparse.Namespace, cwd: str) -> Settings:
    defaults = Settings()
    limits = defaults.limits
    if (seconds := arguments.timeout) is not None:
        limits = replace(
            limits, import_seconds=seconds, trace_seconds=seconds, lower_seconds=seconds,
            total_seconds=max(limits.total_seconds, 10 * seconds), cpu_seconds=max(limits.cpu_seconds, 10 * seconds),
        )  # fmt: skip
    if arguments.memory is not None:
        limits = replace(limits, memory_bytes=arguments.memory << 30)
    confirm = _confirm(arguments)
    return replace(
        defaults,
        python=_interpreter(arguments.python, cwd),
        limits=limits,
        figures=arguments.resources or confirm is not None,
        confirm=confirm,
        jobs=arguments.jobs or usable_cores(),
    )


def usable_cores() -> int:
    """How many files are checked at once where nobody says: nothing else waits, but each run needs some memory."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, _MOST_JOBS)


def _confirm(arguments: argparse.Namespace) -> ConfirmSettings | None:
    if not (arguments.confirm or arguments.confirm_command or arguments.launch):
        return None
    return replace(
        _CONFIRM,
        command=arguments.confirm_command or (),
        launch=arguments.launch,
        seconds=float(arguments.confirm_timeout or _CONFIRM.seconds),
        warm=False,  # one file comes after another, sooner than a GPU is started
    )


def _interpreter(setting: str | None, cwd: str) -> str | None:
    """The interpreter that was asked for, relative to the working directory; a wrong one is a usage error."""
    if setting is None:
        return None
    try:
        return find_interpreter(str(Path(cwd, "file.py")), (cwd,), setting)
    except WorkerUnavailable as error:
        raise UsageError(f"--python: {error.message}.") from error


def _check_destination(output: str | None) -> None:
    """A report that cannot be written is better known before the check than after it."""
    if output is None:
        return
    path = Path(output)
    if path.is_dir():
        raise UsageError(f"--output: {output!r} is a folder; name a file.")
    if not path.parent.is_dir():
        raise UsageError(f"--output: there is no folder {str(path.parent)!r}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--output: {output!r} cannot be written.")


def _write(outcome: Outcome, arguments: argparse.Namespace) -> None:
    errors = View(sys.stderr, use_color(sys.stderr, arguments.color), arguments.verbose, arguments.resources)
    if arguments.output is None:
        view = View(sys.stdout, use_color(sys.stdout, arguments.color), arguments.verbose, arguments.resources)
        _report(outcome, view, errors, arguments.format)
        sys.stdout.flush()
        return
    with Path(arguments.output).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
        view = View(out, arguments.color == "always", arguments.verbose, arguments.resources)
        _report(outcome, view, errors, arguments.format)
    for row in summary(outcome):
        errors.console().print(row)


def _report(outcome: Outcome, view: View, errors: View, name: str) -> None:
    if outcome.diff is not None and name == "text":
        # Only the diff, so that it can be applied: pallas-lsp check --diff x.py | git apply
        view.out.write(outcome.diff)
        FORMATS["text"](outcome, errors)
    else:
        FORMATS[name](outcome, view)
