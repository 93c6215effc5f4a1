"""The engine with each tested jax: what users' files do, good and bad."""

from __future__ import annotations

import asyncio
import sys
import textwrap

import pytest

from pallas_lsp.engine import Engine, Limits, Settings
from pallas_lsp.model import Document, Snapshot, Stage

HEAD = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def right(x):
    params = plgpu.CompilerParams()
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=params)(x)


def wrong(x_ref, o_ref):
    pl.run_state(lambda acc: None)(plgpu.ACC((64, 128), jnp.float32))


def faulty(x):
    return plgpu.kernel(wrong, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


X = jax.ShapeDtypeStruct((128,), jnp.float32)
"""
OWN = {"discovery": False, "guess": False}
"""Only the drivers of the file itself."""
MAIN = 'if __name__ == "__main__":\n    print(right(jnp.ones(128)))\n'


@pytest.fixture
async def engine(jax_python):
    log: list[str] = []
    limits = Limits(trace_seconds=20, memory_bytes=1 << 30)
    engine = Engine(Settings(python=jax_python.python, limits=limits, guess=False), log.append)
    engine.lines = log
    yield engine
    await engine.aclose()


async def check(engine: Engine, text: str, folder: str = "/w", **others: str):
    path = f"{folder}/file.py"
    documents = {path: Document(path, textwrap.dedent(text), 1)}
    for name, source in others.items():
        documents[f"{folder}/{name}.py"] = Document(f"{folder}/{name}.py", source, 1)
    return await engine.check(Snapshot(documents, (folder,)), path)


def kinds(report) -> list[str]:
    return [problem.kind for problem in report.problems]


async def test_a_right_kernel(engine, jax_python):
    report = await check(engine, HEAD + MAIN)
    assert (report.findings, kinds(report)) == ((), [])
    status = next(s for s in report.launches if s.launch.body == "double")
    assert [c.stage for c in status.captures] == [Stage.LOWER]
    assert any("float32[128]" in line for line in engine.lines)
    info = await engine.worker_info("/w/file.py")
    assert info.jax == jax_python.version


async def test_a_fault_does_not_hide_a_right_kernel(engine):
    main = 'if __name__ == "__main__":\n    x = jnp.ones(128)\n    faulty(x)\n    right(x)\n'
    report = await check(engine, HEAD + main)
    assert {f.location.range.start.line for f in report.findings} == {17}
    by_body = {s.launch.body: [c.stage for c in s.captures] for s in report.launches}
    assert by_body == {"double": [Stage.LOWER], "wrong": [Stage.BUILD]}


async def test_a_kernel_that_stays_right_however_often_it_is_checked(engine):
    reports = await asyncio.gather(*(check(engine, HEAD + MAIN + f"# {n}\n") for n in range(6)))
    assert [kinds(r) + list(r.findings) for r in reports] == [[]] * 6


@pytest.mark.parametrize(
    ("top", "kind"),
    [
        ("import os; os._exit(1)", "exited"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("while True: pass", "timed-out"),
        ("import threading; threading.Event().wait()", "timed-out"),
    ],
)
async def test_top_levels_that_end_the_process(newest_jax_python, top, kind):
    engine = Engine(Settings(python=newest_jax_python.python, limits=Limits(import_seconds=3), **OWN))
    try:
        report = await check(engine, HEAD + top + "\n" + MAIN)
        assert kinds(report) == [kind]
        assert all(status.reason for status in report.launches)
        assert kinds(await check(engine, HEAD + MAIN)) == []
    finally:
        await engine.aclose()


@pytest.mark.parametrize("top", ["import sys; sys.exit(3)", "raise ValueError('mine')", "import no_such_module"])
async def test_top_levels_that_raise_are_a_reason_and_no_finding(engine, top):
    report = await check(engine, HEAD + top + "\n" + MAIN)
    assert report.findings == ()
    assert all("stopped on line" in status.reason for status in report.launches)


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits")
async def test_a_top_level_that_eats_memory(engine):
    top = "hoard = []\nwhile True: hoard.append(bytearray(1 << 26))\n"
    report = await check(engine, HEAD + top + MAIN)
    assert report.findings == ()
    assert "out-of-memory" in kinds(report) or all("MemoryError" in s.reason for s in report.launches)
    assert kinds(await check(engine, HEAD + MAIN)) == []


async def test_an_endless_test_beside_a_faulty_one(newest_jax_python):
    tests = "def test_endless():\n    while True: right(X)\ndef test_faulty():\n    faulty(jnp.ones(128))\n"
    engine = Engine(Settings(python=newest_jax_python.python, limits=Limits(trace_seconds=4), **OWN))
    try:
        report = await check(engine, HEAD + tests)
        assert kinds(report) == ["timed-out"]
        assert {f.location.range.start.line for f in report.findings} == {17}
    finally:
        await engine.aclose()


async def test_open_documents_that_import_each_other(engine, tmp_path):
    text = "import jax.numpy as jnp\nfrom helper import right, faulty\n\n\ndef test_it():\n    right(jnp.ones(128))\n"
    report = await check(engine, text, str(tmp_path), helper=HEAD)
    assert (report.findings, kinds(report)) == ((), [])
    assert [s.launch.location.path for s in report.launches] == [str(tmp_path / "helper.py")]
    report = await check(engine, text.replace("right(j", "faulty(j"), str(tmp_path), helper=HEAD)
    found = [(f.location.path, f.location.range.start.line) for f in report.findings]
    assert found == [(str(tmp_path / "helper.py"), 17)]


async def test_one_run_a_process(newest_jax_python):
    engine = Engine(Settings(python=newest_jax_python.python, fork=False, **OWN))
    try:
        for _ in range(2):
            report = await check(engine, HEAD + MAIN)
            assert [len(s.captures) for s in report.launches] == [1, 0]
    finally:
        await engine.aclose()


async def test_an_interpreter_without_jax(server_python):
    engine = Engine(Settings(python=server_python))
    try:
        report = await check(engine, HEAD + MAIN)
        assert kinds(report) == ["no-jax"]
        assert f"{server_python} -m pip install jax" in report.problems[0].remedy
    finally:
        await engine.aclose()
