"""Checks from snapshot to report, with a worker that has no jax."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from pathlib import Path

import pytest
from fake_kernels import KERNEL

from pallas_lsp.engine import Limits, WorkerUnavailable
from pallas_lsp.engine.errors import FILE_KINDS, RUN_KINDS, WORKER_KINDS
from pallas_lsp.model import Document, Snapshot, Stage

SHORT = Limits(import_seconds=1.0, trace_seconds=1.0, lower_seconds=1.0)
LOOP = "while True: pass"


def kinds(report) -> list[str]:
    known = {*FILE_KINDS, *WORKER_KINDS, *RUN_KINDS}
    assert all(problem.kind in known for problem in report.problems)
    assert all(problem.message and problem.remedy for problem in report.problems)
    return [problem.kind for problem in report.problems]


async def test_a_launch_and_what_reached_it(checker):
    reports = []
    report = await checker.check(on_report=reports.append)
    assert [(r.stage, r.final) for r in reports] == [(Stage.TRACE, False), (Stage.LOWER, True)]
    assert reports[-1] is report
    assert (report.path, report.version, report.problems) == (checker.path, 1, ())
    (status,) = report.launches
    assert (status.launch.api, status.launch.body, status.reason) == ("pl.pallas_call", "body", "")
    assert [c.driver for c in status.captures] == ["main", "test:test_one", "test:test_two"]
    assert {c.stage for c in status.captures} == {Stage.LOWER}
    assert {c.stage for c in reports[0].launches[0].captures} == {Stage.TRACE}


async def test_both_ways_to_serve_runs(make_checker, fork):
    checker = make_checker(fork=fork)
    for _ in range(3):
        checker.engine.renew(str(checker.path))
        report = await checker.check()
        assert len(report.launches[0].captures) == 3
    assert len(checker.runs) == 3
    await checker.check()
    assert len(checker.runs) == 3


async def test_checks_run_at_once_but_only_so_many(make_checker, tmp_path):
    checker = make_checker(jobs=2)
    stamps = tmp_path / "stamps"
    do = {"main": f"open({str(stamps)!r}, 'a').write('+'); time.sleep(.3); open({str(stamps)!r}, 'a').write('-')"}
    await asyncio.gather(*(checker.check(do) for _ in range(6)))
    depth = highest = 0
    for mark in stamps.read_text():
        depth += 1 if mark == "+" else -1
        highest = max(highest, depth)
    assert highest == 2


# -- reasons ----------------------------------------------------------------------------------------------------------


async def test_a_launch_that_nothing_calls(checker):
    source = "from jax.experimental import pallas as pl\ndef f(x):\n    return pl.pallas_call(g, out_shape=x)(x)\n"
    report = await checker.check(source=source)
    assert report.final
    assert kinds(report) == []
    assert "calls it with argument types" in report.launches[0].reason
    assert checker.runs == []


async def test_drivers_that_stop_before_it_or_pass_it_by(checker):
    gone = "pass"
    report = await checker.check({"main": "raise ValueError: no file", "test:test_one": gone, "test:test_two": gone})
    assert report.launches[0].reason == "the main block stopped on line 99 before reaching it: ValueError: no file"
    report = await checker.check(dict.fromkeys(("main", "test:test_one", "test:test_two"), gone))
    assert report.launches[0].reason == (
        "the main block, the test test_one and the test test_two ran to the end without reaching it"
    )


async def test_a_file_without_launches_is_not_run(checker):
    for source in ("", "x = 1\n", "import jax\nprint(jax)\n"):
        report = await checker.check(source=source)
        assert (report.launches, report.findings, report.problems, report.final) == ((), (), (), True)
    assert checker.runs == []


async def test_a_launch_in_another_file_is_told_where_it_is(checker):
    helper = Path(checker.path).parent / "helper.py"
    helper.write_text("from jax.experimental import pallas as pl\ndef f(x):\n    return pl.pallas_call(g, x)(x)\n")
    source = "from helper import f\n\n\ndef test_one():\n    f(1)\n"
    report = await checker.check({"import": f"here.update(path={str(helper)!r}, line=3)"}, source)
    (status,) = report.launches
    assert (status.launch.location.path, status.launch.location.range.start.line) == (str(helper), 2)
    assert [c.driver for c in status.captures] == ["test:test_one"]


async def test_drivers_of_a_file_without_launches_that_stop_are_named(checker):
    helper = Path(checker.path).parent / "helper.py"
    helper.write_text("from jax.experimental import pallas as pl\ndef f(x):\n    return pl.pallas_call(g, x)(x)\n")
    source = "from helper import f\n\n\ndef test_one():\n    f(1)\n\n\ndef test_two():\n    f(1)\n"
    error = "raise ValueError: mine"
    report = await checker.check({"test:test_one": error, "test:test_two": error}, source)
    assert kinds(report) == ["driver-stopped"]
    assert (
        report.problems[0].message == "the test test_one stopped on line 99 before reaching a kernel: ValueError: mine"
    )
    assert kinds(await checker.check({"test:test_one": error}, source)) == []


async def test_a_file_that_is_only_read(checker):
    report = await checker.engine.check(checker.snapshot(), checker.path, run=False)
    assert (report.stage, report.final) == (Stage.READ, True)
    assert [status.reason for status in report.launches] == ["the file was only read, none of its code was run"]
    assert checker.runs == []


# -- text that cannot be read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "character"),
    [
        ("def f(:\n", 0, 6),
        ("x = 1\ny = (\n", 1, 4),
        ("x = 'é' +\n", 0, 9),
        ("a\x00b", 0, 0),
        ("if x:\nprint()\n", 1, 0),
    ],
)
async def test_a_file_that_does_not_parse(checker, text, line, character):
    report = await checker.engine.check(Snapshot({checker.path: Document(checker.path, text, 7)}), checker.path)
    assert (kinds(report), report.version, report.final, report.stage) == (["syntax"], 7, True, Stage.READ)
    where = report.problems[0].location
    assert where.path == checker.path
    assert where.range.start.line == line
    if "\x00" not in text:
        assert where.range.start.character == character


@pytest.mark.parametrize(
    "text", ["(" * 300, "x = " + "-" * 100_000 + "1", "x = " + "f(" * 90 + ")" * 90, "a" + ".b" * 20_000]
)
async def test_a_file_that_nests_deeply(checker, text):
    report = await checker.engine.check(
        Snapshot({checker.path: Document(checker.path, f"import pallas\nkernel\n{text}")}), checker.path
    )
    assert kinds(report) in ([], ["syntax"])


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"x = '\xff'\n", "encoding"),
        (b"# -*- coding: no-such -*-\n", "encoding"),
        (b"# -*- coding: ascii -*-\nx = '\xe9'\n", "encoding"),
        (b"\xef\xbb\xbf# -*- coding: latin-1 -*-\n", "encoding"),
        (b"\x00\xff\xfe" * 100, "encoding"),
    ],
)
async def test_bytes_that_are_no_text(checker, data, kind):
    Path(checker.path).write_bytes(data)
    assert kinds(await checker.engine.check(Snapshot(), checker.path)) == [kind]


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
async def test_declared_encodings(checker, coding):
    head = "" if coding.startswith("utf") else f"# -*- coding: {coding} -*-\n"
    Path(checker.path).write_bytes(checker.text(source=head + "# é\n" + KERNEL).encode(coding))
    report = await checker.engine.check(Snapshot(), checker.path)
    assert (kinds(report), len(report.launches), report.version) == ([], 1, None)


async def test_paths_that_are_no_file(checker, tmp_path):
    assert kinds(await checker.engine.check(Snapshot(), str(tmp_path / "missing.py"))) == ["not-found"]
    assert kinds(await checker.engine.check(Snapshot(), str(tmp_path))) == ["not-a-file"]
    if os.name == "posix":
        assert kinds(await checker.engine.check(Snapshot(), os.devnull)) == ["not-a-file"]
        os.mkfifo(tmp_path / "pipe.py")
        assert kinds(await checker.engine.check(Snapshot(), str(tmp_path / "pipe.py"))) == ["not-a-file"]


async def test_the_parsers_warnings_are_never_printed(checker):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await checker.check(source="x = '\\d' is 1\n1 is 1\nassert (1, 'pallas kernel')\n")
    assert caught == []


async def test_a_file_of_two_megabytes(checker):
    filler = "".join(f"def helper_{n}(a, b):\n    return [a * {n} + b, a, 'text']\n\n\n" for n in range(35_000))
    assert len(filler) > 2_000_000
    started = time.monotonic()
    report = await checker.check(source=KERNEL.replace("\n\nif", f"\n{filler}\nif"))
    assert (kinds(report), len(report.launches[0].captures)) == ([], 3)
    assert time.monotonic() - started < 60


# -- runs that die ----------------------------------------------------------------------------------------------------


async def test_an_endless_test_does_not_hide_the_others(make_checker, fork):
    checker = make_checker(limits=SHORT, fork=fork)
    report = await checker.check({"test:test_one": LOOP})
    assert kinds(report) == ["timed-out"]
    assert report.problems[0].message == "running the test test_one took more than 1 s"
    assert report.problems[0].location.range.start.line == 13
    assert [c.driver for c in report.launches[0].captures] == ["main", "test:test_two"]
    assert checker.runs == ["main test:test_one test:test_two", "main test:test_two"]


async def test_an_endless_lowering_does_not_hide_the_others(make_checker):
    checker = make_checker(limits=SHORT)
    report = await checker.check({"lower main": LOOP})
    assert kinds(report) == ["timed-out"]
    assert report.problems[0].message == "lowering the kernel body for (f32[8]) took more than 1 s"
    stages = {c.driver: c.stage for c in report.launches[0].captures}
    assert stages == {"main": Stage.TRACE, "test:test_one": Stage.LOWER, "test:test_two": Stage.LOWER}


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        ("os._exit(0)", "exited"),
        ("os.abort()", "crashed"),
        ("hoard = [bytearray(1 << 24) for _ in range(1 << 20)]", "out-of-memory"),
        ("raise ValueError('ours')", "internal-error"),
        ("import signal; os.kill(os.getppid(), signal.SIGKILL); time.sleep(9)", "crashed"),
    ],
)
async def test_a_death_during_import(make_checker, act, kind):
    checker = make_checker(limits=Limits(memory_bytes=256 << 20))
    report = await checker.check({"import": act})
    if "getppid" in act:
        assert kinds(report)[0] in ("crashed", "out-of-memory")
    else:
        assert kinds(report) == [kind]
        assert report.problems[0].message.startswith("importing the file ")
    assert "importing" in report.problems[0].message
    assert report.launches[0].reason
    assert kinds(await checker.check()) == []


async def test_text_that_killed_a_worker_is_not_run_again_until_it_changes(checker):
    reports = [await checker.check({"import": "os._exit(1)"}) for _ in range(3)]
    assert len(checker.runs) == 1
    assert {r.problems for r in reports} == {reports[0].problems}
    await checker.check({"import": "os._exit(2)"})
    assert len(checker.runs) == 2


async def test_a_changed_import_counts_as_a_change(checker):
    helper = Path(checker.path).parent / "helper.py"
    helper.write_text("X = 1\n")
    for _ in range(2):
        await checker.check({"import": "os._exit(1)"}, "import helper\n" + KERNEL)
    assert len(checker.runs) == 1
    helper.write_text("X = 22\n")
    await checker.check({"import": "os._exit(1)"}, "import helper\n" + KERNEL)
    assert len(checker.runs) == 2


async def test_deaths_in_many_drivers_are_told_but_do_not_go_on_for_ever(make_checker):
    checker = make_checker(limits=SHORT)
    tests = "".join(f"def test_{n}():\n    launch({n})\n\n\n" for n in range(12))
    do = {f"test:test_{n}": "os._exit(1)" for n in range(12)}
    report = await checker.check(do, KERNEL + tests)
    assert set(kinds(report)) == {"exited"}
    assert 2 < len(checker.runs) < 10


async def test_a_killed_worker_is_started_again(checker):
    await checker.check()
    (slot,) = checker.engine._pool._slots.values()
    os.kill(slot.ready.pid, 9)
    report = await checker.check()
    assert (kinds(report), len(report.launches[0].captures)) == ([], 3)


async def test_a_cancelled_check_ends_its_run(make_checker, fork):
    checker = make_checker(fork=fork)
    pid = Path(checker.path).parent / "pid"
    do = {"main": f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"}
    task = asyncio.create_task(checker.check(do))
    while not pid.exists() or not pid.read_text():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(2000):
        state = Path(f"/proc/{pid.read_text()}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX":
            break
        await asyncio.sleep(0.02)
    else:
        pytest.fail("the run lives on")
    assert kinds(await checker.check()) == []


async def test_aclose_during_a_check(make_checker, fork):
    checker = make_checker(fork=fork)
    task = asyncio.create_task(checker.check({"main": "time.sleep(600)"}))
    while not checker.runs:
        await asyncio.sleep(0.02)
    await checker.engine.aclose()
    report = await asyncio.wait_for(task, 60)
    assert len(report.problems) == 1
    assert kinds(await checker.check()) == ["interpreter-broken"]


# -- interpreters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "kind", "text"),
    [
        ('{"jax": null, "missing": {"jax": "ModuleNotFoundError: No module named \'jax\'"}}', "no-jax", "has no jax"),
        ('{"jax": null}', "no-jax", "has no jax"),
        ('{"jax": null, "missing": {"jax": "ImportError: libjax.so"}}', "no-jax", "cannot be imported"),
        ('{"jax": "0.9.2"}', "jax-too-old", "has jax 0.9.2"),
        ('{"jax": "0.4.35.dev1"}', "jax-too-old", "0.10"),
    ],
)
async def test_a_python_whose_jax_is_no_use(make_checker, info, kind, text):
    checker = make_checker(environment={"FAKE_INFO": info})
    report = await checker.check()
    assert kinds(report) == [kind]
    problem = report.problems[0]
    assert text in problem.message
    assert sys.executable in problem.message
    assert report.launches[0].reason == problem.message
    with pytest.raises(WorkerUnavailable) as caught:
        await checker.engine.worker_info(checker.path)
    assert caught.value.kind == kind


async def test_a_backend_that_is_missing_matters_where_it_is_used(make_checker):
    info = '{"missing": {"mosaic_gpu": "ModuleNotFoundError: No module named \'absl\'"}}'
    checker = make_checker(environment={"FAKE_INFO": info})
    assert kinds(await checker.check()) == []
    imports = "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
    report = await checker.check(source=imports + KERNEL.replace("pl.pallas_call", "plgpu.kernel"))
    assert kinds(report) == ["backend-missing"]
    assert "absl" in report.problems[0].message


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("import sys; sys.exit(1)", "interpreter-broken"),
        ("print('hello')", "interpreter-broken"),
        ("import time; time.sleep(60)", "interpreter-broken"),
        ("import os; os.kill(os.getpid(), 11)", "interpreter-broken"),
        ('print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', flush=True); input()', "interpreter-broken"),
        (
            'print(\'{"id":null,"error":{"code":5,"message":"","data":{"python":"3.8.1"}}}\', flush=True)',
            "python-too-old",
        ),
    ],
)
async def test_programs_that_are_no_python(make_checker, tmp_path, script, kind):
    program = tmp_path / "program.py"
    program.write_text(script)
    checker = make_checker(limits=Limits(start_seconds=3))
    checker.engine._pool._settings = type(checker.engine.settings)(
        **{**vars(checker.engine.settings), "worker": str(program)}
    )
    assert kinds(await checker.check()) == [kind]
    started = time.monotonic()
    assert kinds(await checker.check()) == [kind]
    assert time.monotonic() - started < 2


async def test_an_interpreter_that_is_not_there(make_checker, tmp_path):
    checker = make_checker(python=str(tmp_path / "none"))
    report = await checker.check()
    assert kinds(report) == ["interpreter-missing"]
    (tmp_path / "none").write_text("no program")
    assert kinds(await checker.check()) == ["interpreter-missing"]
    (tmp_path / "none").chmod(0o755)
    assert kinds(await checker.check()) == ["interpreter-broken"]


async def test_installed_packages_are_noticed(make_checker, tmp_path):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    checker = make_checker()
    await checker.check()
    (slot,) = checker.engine._pool._slots.values()
    first = slot.ready
    first._watched = {str(packages): packages.stat().st_mtime_ns}
    await checker.check()
    assert slot.ready is first
    os.utime(packages, ns=(1, 1))
    await checker.check()
    assert slot.ready is not first
    for _ in range(100):
        if not first.alive:
            break
        await asyncio.sleep(0.05)
    assert not first.alive


async def test_only_so_many_interpreters_are_kept(make_checker, tmp_path):
    checker = make_checker(interpreters=2)
    for n in range(4):
        link = tmp_path / f"python{n}"
        link.symlink_to(sys.executable)
        await checker.engine._pool.info(str(link))
        async with checker.engine._pool.worker(str(link)):
            pass
    assert len(checker.engine._pool._slots) == 2
