"""Many small faulty kernels in one worker run each: what rules find in them, and what their fixes do.

A snippet is the text of a file.  A comment ``#^^^`` under a line marks the range that is expected there.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pallas_lsp
from pallas_lsp.engine.codec import decode
from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Capture, Document, Driver, Fault, Finding, Fix, Snapshot, WorkerInfo
from pallas_lsp.rules.context import Context
from pallas_lsp.source.edits import apply_edits
from pallas_lsp.source.positions import Lines

WORKER = Path(pallas_lsp.__file__).parent / "worker"
RUNNER = Path(__file__).parent / "snippet_runner.py"
MARK = re.compile(r"^\s*#(\^+)$")


@dataclass(frozen=True)
class Snippet:
    """``says``: parts of the message; ``fixes``: how many offered fixes must verify; ``since``, ``before``: of jax."""

    text: str
    says: Sequence[str] = ()
    fixes: int = 0
    rule: str | None = None
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = (99,)
    related: Sequence[str] = ()


@dataclass
class Outcome:
    text: str
    findings: tuple[Finding, ...] = ()
    faults: tuple[Fault, ...] = ()
    fixed: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    """By the title of a fix: what is found after it."""
    edited: dict[str, str] = field(default_factory=dict)
    crash: str = ""
    lowered: bool = False
    """Whether a kernel was lowered to the end."""

    def source(self, finding: Finding) -> str:
        return Lines(self.text).slice(finding.location.range)


def run(python: str, version: str, texts: Mapping[str, str]) -> dict[str, Outcome]:
    """What the rules find in each text."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [python, str(RUNNER), str(WORKER), folder], capture_output=True, text=True, check=False, timeout=900
        )
        for line in done.stdout.splitlines():
            found = json.loads(line)
            name = found["name"]
            path = str(Path(folder, f"{name}.py"))
            info = WorkerInfo(1, "3", python, version)
            context = Context(
                Snapshot({path: Document(path, texts[name])}, (folder,)),
                info,
                [decode(capture, Capture) for capture in found["captures"]],
                [Driver("main", "main", path)],
            )
            faults = tuple(decode(fault, Fault) for fault in found["faults"])
            findings = judge(faults, context)
            lowered = any(capture["stage"] == "lower" for capture in found["captures"])
            outcomes[name] = Outcome(texts[name], findings, faults, crash=found.get("crash", ""), lowered=lowered)
    missing = set(texts) - set(outcomes)
    assert not missing, f"no answer for {sorted(missing)}: {done.stderr[-2000:]}"
    return outcomes


def run_with_fixes(python: str, version: str, texts: Mapping[str, str]) -> dict[str, Outcome]:
    """The same, and what is found after each fix."""
    outcomes = run(python, version, texts)
    edited: dict[str, str] = {}
    origin: dict[str, tuple[str, Fix]] = {}
    for name, outcome in outcomes.items():
        for finding in outcome.findings:
            for fix in finding.fixes:
                key = f"{name}__{len(edited)}"
                edited[key] = apply_edits(outcome.text, fix.edits)
                origin[key] = (name, fix)
    for key, after in (run(python, version, edited) if edited else {}).items():
        name, fix = origin[key]
        if after.lowered or after.findings:
            outcomes[name].fixed[fix.title] = after.findings
        outcomes[name].edited[fix.title] = edited[key]
    return outcomes


@functools.cache
def _cached(python: str, version: str, texts: tuple[tuple[str, str], ...]) -> dict[str, Outcome]:
    return run_with_fixes(python, version, dict(texts))


def check(python: str, version: str, rule: str, head: str, snippets: Mapping[str, Snippet]) -> None:
    """Run all snippets of a rule and compare: rule, range, words, fixes."""
    jax = tuple(int(part) for part in version.split(".") if part.isdigit())
    wanted = {name: s for name, s in snippets.items() if s.since <= jax and jax < s.before}
    texts = {name: head + textwrap.dedent(s.text) for name, s in wanted.items()}
    outcomes = _cached(python, version, tuple(sorted(texts.items())))
    problems = []
    for name, snippet in wanted.items():
        problems += [
            f"{name}: {each}"
            for each in compare(outcomes[name], snippet, rule if snippet.rule is None else snippet.rule)
        ]
    assert not problems, "\n" + "\n".join(problems)


def compare(outcome: Outcome, snippet: Snippet, rule: str) -> list[str]:
    """What is not as expected."""
    if outcome.crash:
        return [outcome.crash]
    if not rule:
        return [f"unexpected {f.rule}: {f.message}" for f in outcome.findings]
    found = [f for f in outcome.findings if f.rule == rule]
    if not found:
        others = [f"{f.rule}: {f.message}" for f in outcome.findings]
        return [f"no {rule}, but {others}; sites {[f.site for f in outcome.faults]}"]
    finding = found[0]
    problems = [f"{part!r} is not in {finding.message!r}" for part in snippet.says if part not in finding.message]
    wanted = marked(outcome.text)
    range_ = finding.location.range
    got = (range_.start.line, range_.start.character, range_.end.character)
    if wanted and (range_.start.line != range_.end.line or got not in wanted):
        problems.append(f"marks {outcome.source(finding)!r} at {got}, not {wanted}")
    told = " ".join(each.message for each in finding.related)
    problems += [f"{part!r} is not in the related {told!r}" for part in snippet.related if part not in told]
    working = [title for title, after in outcome.fixed.items() if not any(f.rule == rule for f in after)]
    clean = [title for title in working if not outcome.fixed[title]]
    if len(clean) < snippet.fixes:
        after = {title: [f.message for f in found] for title, found in outcome.fixed.items()}
        problems.append(f"{len(clean)} of the fixes work, not {snippet.fixes}: {after}\n{outcome.edited}")
    return problems


def marked(text: str) -> list[tuple[int, int, int]]:
    """The marked ranges: 0-based line, first column, column after the last."""
    found = []
    for number, line in enumerate(text.split("\n")):
        match = MARK.match(line)
        if match:
            found.append((number - 1, match.start(1), match.end(1)))
    return found


_HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
{backend}
S = jax.ShapeDtypeStruct
X = jnp.zeros(({rows}, 128), jnp.float32)
I = jnp.zeros(({rows}, 128), jnp.int32)
OUT = S(({rows}, 128), jnp.float32)


def launch(body, out, *arrays, **options):
    return pl.pallas_call(body, out_shape=out, **{{**OPTIONS, **options}})(*arrays)


"""
TRITON = _HEAD.format(
    backend="from jax.experimental.pallas import triton as plt\n\nOPTIONS = {'compiler_params': plt.CompilerParams()}",
    rows=64,
)
TPU = _HEAD.format(backend="from jax.experimental.pallas import tpu as pltpu\n\nOPTIONS = {}", rows=64)
