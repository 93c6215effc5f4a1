"""What an edit cannot change is not run again, and is shown where it stands now: with the tested jax versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Report, Snapshot

HEAD = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
"""
KERNEL = """

def kernel{n}(x_ref, o_ref):
    o_ref[...] = {value}


def op{n}(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel{n}, out_shape=shape, compiler_params=plt.CompilerParams())(x)


def test_op{n}():
    op{n}(jnp.zeros((16, 16), jnp.float32))
"""
FAULT = "jnp.sort(x_ref[...])"


def text(*values: str) -> str:
    return HEAD + "".join(KERNEL.format(n=n, value=value) for n, value in enumerate(values))


class Checker:
    def __init__(self, folder: Path, settings: Settings) -> None:
        self.path = str(folder / "kernels.py")
        self.roots = (str(folder),)
        self.engine = Engine(settings)
        self.ran: list[list[str]] = []
        original = self.engine._runner._run_once

        async def counted(*args: Any) -> Any:
            self.ran.append([driver.id for driver in args[3]])
            return await original(*args)

        self.engine._runner._run_once = counted  # type: ignore[method-assign]

    async def check(self, source: str, others: dict[str, str] | None = None) -> Report:
        self.ran.clear()
        documents = {path: Document(path, each, 1) for path, each in {self.path: source, **(others or {})}.items()}
        report = await self.engine.check(Snapshot(documents, self.roots), self.path)
        assert not report.problems
        return report


@pytest.fixture
async def make(jax_python: Any, tmp_path: Path) -> AsyncIterator[Callable[[], Checker]]:
    made: list[Checker] = []

    def one(**settings: Any) -> Checker:
        made.append(Checker(tmp_path, Settings(python=jax_python.python, **settings)))
        return made[-1]

    yield one
    for each in made:
        await each.engine.aclose()


def seen(report: Report) -> list[tuple[Any, ...]]:
    """All that a report says, but for what is measured."""
    findings = [(f.rule, f.location, f.message, f.severity, f.fixes, f.related, f.kernel) for f in report.findings]
    launches = [
        (each.launch, each.reason, [(c.arguments, c.launch, c.call, c.body, c.stage, c.targets) for c in each.captures])
        for each in report.launches
    ]
    return [*findings, *launches]


async def test_one_kernel_of_several(make: Callable[[], Checker]) -> None:
    checker, fresh = make(), make()
    first = await checker.check(text("x_ref[...]", FAULT, "x_ref[...] * 2"))
    assert checker.ran == [["test:test_op0", "test:test_op1", "test:test_op2"]]
    assert [f.rule for f in first.findings] == ["triton-unsupported-operation"]
    split = "jnp.sort(\n        x_ref[...]  # all\n    )"
    edits: dict[str, tuple[str, list[str]]] = {
        "a comment and a blank line": ("# x\n\n" + text("x_ref[...]", FAULT, "x_ref[...] * 2"), []),
        "another kernel": (text("x_ref[...] + 1", FAULT, "x_ref[...] * 2"), ["test:test_op0"]),
        "layout in the kernel": (text("x_ref[...]", split, "x_ref[...] * 2"), []),
        "a second fault": (text(FAULT, FAULT, "x_ref[...] * 2"), ["test:test_op0"]),
        "the first mended": (text(FAULT, "x_ref[...]", "x_ref[...] * 2"), ["test:test_op1"]),
        "back to the first text": (text("x_ref[...]", FAULT, "x_ref[...] * 2"), []),
    }
    for name, (source, expected) in edits.items():
        report = await checker.check(source)
        assert checker.ran == ([expected] if expected else []), name
        fresh.engine.renew(fresh.path)
        assert seen(report) == seen(await fresh.check(source)), name


async def test_results_outlive_the_session(make: Callable[..., Checker], tmp_path: Path) -> None:
    source = text(FAULT, "x_ref[...]")
    kept = tmp_path / "kept"
    checker = make(kept=kept)
    before = await checker.check(source)
    await checker.engine.aclose()
    assert kept.stat().st_mode & 0o077 == 0
    again = make(kept=kept)
    moved = await again.check("# Moved.\n" + source)
    assert again.ran == []
    assert [f.location.range.start.line - 1 for f in moved.findings] == [
        f.location.range.start.line for f in before.findings
    ]
    again.engine.renew(again.path)
    assert seen(await again.check("# Moved.\n" + source)) == seen(moved)
    assert again.ran == [["test:test_op0", "test:test_op1"]]


async def test_files_that_a_run_reads_count(make: Callable[..., Checker], tmp_path: Path) -> None:
    table = tmp_path / "tiles.txt"
    table.write_text("16", encoding="utf-8")
    source = text("x_ref[...]") + f"\nTILES = int(open({str(table)!r}).read())\nassert TILES < 100\n"
    checker = make()
    await checker.check(source)
    await checker.check(source + "# nothing\n")
    assert checker.ran == []
    table.write_text("128", encoding="utf-8")
    report = await checker.check(source + "# nothing\n")
    assert checker.ran
    assert report.launches[0].captures == ()


async def test_a_helper_in_an_open_file(make: Callable[..., Checker], tmp_path: Path) -> None:
    helper = str(tmp_path / "helper.py")
    source = text("scaled(x_ref[...])", "x_ref[...]").replace(
        "import jax\n", "import jax\nfrom helper import scaled\n", 1
    )
    checker = make()
    first = await checker.check(source, {helper: "def scaled(x):\n    return x\n"})
    assert first.findings == ()
    report = await checker.check(source, {helper: "import jax.numpy as jnp\ndef scaled(x):\n    return jnp.sort(x)\n"})
    assert {f.location.path for f in report.findings} == {helper}
    report = await checker.check(source, {helper: "import jax.numpy as jnp\ndef scaled(x):\n    return x\n"})
    assert checker.ran == [["test:test_op0"]]
    assert report.findings == ()


async def test_checks_at_once_share_nothing_wrong(make: Callable[..., Checker]) -> None:
    checker = make()
    await checker.check(text("x_ref[...]", "x_ref[...]"))
    sources = [text(FAULT, "x_ref[...]"), text("x_ref[...]", FAULT), text("x_ref[...]", "x_ref[...]")]
    reports = await asyncio.gather(*(checker.check(source) for source in sources))
    assert [[f.kernel for f in report.findings] for report in reports] == [["kernel0"], ["kernel1"], []]


async def test_tests_of_another_file(make: Callable[..., Checker], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tests = "import jax.numpy as jnp\nfrom kernels import op0, op1\n"
    for n in range(2):
        tests += f"\n\ndef test_op{n}():\n    op{n}(jnp.zeros((16, 16), jnp.float32))\n"
    (tmp_path / "test_kernels.py").write_text(tests, encoding="utf-8")
    (tmp_path / "kernels.py").write_text("", encoding="utf-8")

    def kernels(*values: str) -> str:
        parts = [
            KERNEL.format(n=n, value=value).partition("\n\n\ndef test_")[0] + "\n" for n, value in enumerate(values)
        ]
        return HEAD + "".join(parts)

    checker = make()
    await checker.check(kernels("x_ref[...]", "x_ref[...]"))  # a search
    await checker.check(kernels("x_ref[...] * 2", "x_ref[...]"))
    assert len(checker.ran) == 1
    report = await checker.check(kernels("x_ref[...] * 2", FAULT))
    (ran,) = checker.ran
    assert [driver.rpartition("::")[2] for driver in ran] == ["test_op1"]
    assert [finding.kernel for finding in report.findings] == ["kernel1"]
    assert all(launch.captures for launch in report.launches)
    moved = await checker.check("# Moved.\n" + kernels("x_ref[...] * 2", FAULT))
    assert checker.ran == []
    assert moved.findings[0].location.range.start.line == report.findings[0].location.range.start.line + 1


OUTSIDE = (
    HEAD
    + """

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def test_op():
    spec = pl.BlockSpec((16, 16), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 16), jnp.float32)
    params = plt.CompilerParams()
    launch = pl.pallas_call(kernel, shape, grid=(3,), in_specs=[spec], out_specs=spec, compiler_params=params)
    launch(jnp.ones((32, 16)))
"""
)


async def test_facts_with_any_name_come_back(make: Callable[..., Checker], tmp_path: Path) -> None:
    """This fault has a fact ``at``, and numbers for it."""
    checker = make()
    first = await checker.check(OUTSIDE)
    assert {each.rule for each in first.findings} == {"block-outside-array"}
    again = await checker.check(OUTSIDE)
    assert checker.ran == []
    assert seen(again) == seen(first)


async def test_what_is_damaged_on_the_disk_is_run_again(make: Callable[..., Checker], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = await make(kept=kept).check(OUTSIDE)
    await asyncio.sleep(0.5)
    files = list(kept.glob("*.json"))
    for content in ("{}", "[]", "{", '{"captures": [1], "faults": 2, "drivers": [{}], "reads": {}}', ""):
        for file in files:
            file.write_text(content)
        checker = make(kept=kept)
        report = await checker.check(OUTSIDE)
        assert checker.ran == [["test:test_op"]], content
        assert [each.message for each in report.findings] == [each.message for each in first.findings]
        await asyncio.sleep(0.5)


async def test_a_main_block_that_calls_several(make: Callable[..., Checker]) -> None:
    checker, fresh = make(), make()

    def program(*values: str, call: str = "op1(x)") -> str:
        parts = [
            KERNEL.format(n=n, value=value).partition("\n\n\ndef test_")[0] + "\n" for n, value in enumerate(values)
        ]
        main = f"    x = jnp.zeros((16, 16))\n    print(op0(x))\n    y = {call}\n    print(op2(x))\n"
        return HEAD + "".join(parts) + f'\n\nif __name__ == "__main__":\n{main}'

    steps = [
        program("x_ref[...]", FAULT, "x_ref[...]"),
        program("x_ref[...] + 1", FAULT, "x_ref[...]"),
        program("x_ref[...] + 1", "x_ref[...] + 1", "x_ref[...]"),
        "# Moved.\n" + program("x_ref[...] + 1", "x_ref[...] + 1", FAULT),
        program("x_ref[...] + 1", "x_ref[...] + 1", FAULT, call="op1(x * 2).no_such_thing"),
        program("x_ref[...] + 2", "x_ref[...] + 1", FAULT, call="op1(x * 2).no_such_thing"),
        program("x_ref[...] + 1", "x_ref[...] + 2", FAULT, call="op1(jnp.zeros((32, 32)))"),
        program("x_ref[...]", FAULT, "x_ref[...]"),
    ]
    times = []
    for source in steps:
        report = await checker.check(source)
        times.append(len(checker.ran))
        fresh.engine.renew(fresh.path)
        assert seen(report) == seen(await fresh.check(source)), source
    # What is not reached because the main block stops is run for guessed types, too.
    assert times == [1, 1, 1, 1, 3, 2, 1, 0]
