"""The command line with the real engine, worker and jax."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """import os, signal, sys, time
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def double(x_ref, o_ref):
    {body}


def run(x):
    return pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)


{top}
run(jnp.zeros((8, 128), jnp.float32))
"""
GOOD = "o_ref[...] = x_ref[...] * 2"

UNINITIALIZED = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def matmul(a_gmem, b_gmem, o_gmem, a_smem, b_smem, loaded):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, loaded)
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, loaded)
    plgpu.barrier_wait(loaded)

    def multiply(acc_ref):
        plgpu.wgmma(acc_ref, a_smem, b_smem)

    o_gmem[...] = pl.run_state(multiply)(plgpu.ACC((64, 128), jnp.float32))  # größer 😀


def test_matmul():
    a, b = jnp.zeros((64, 64), jnp.float16), jnp.zeros((64, 128), jnp.float16)
    out = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    scratch = [plgpu.SMEM(x.shape, x.dtype, transforms=TILED) for x in (a, b)] + [plgpu.Barrier(num_arrivals=2)]
    plgpu.kernel(matmul, out_type=out, scratch_types=scratch)(a, b)
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


def environment(folder: Path) -> dict[str, str]:
    home = {name: str(folder / ".home") for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    return {**os.environ, **home, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


def check(folder: Path, *arguments: str, python: str, timeout: float = 120) -> Ran:
    run = subprocess.run(
        [sys.executable, "-m", "pallas_lsp", "check", "--python", python, *arguments],
        cwd=folder, env=environment(folder), capture_output=True, text=True, encoding="utf-8", timeout=timeout,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in run.stderr, run.stderr
    return Ran(run.returncode, run.stdout, run.stderr)


def write(folder: Path, name: str = "k.py", body: str = GOOD, top: str = "") -> Path:
    path = folder / name
    path.write_text(KERNEL.format(body=body, top=top), encoding="utf-8")
    return path


def test_a_fault_is_found_fixed_and_gone(tmp_path: Path, jax_python: Any) -> None:
    (tmp_path / "k.py").write_bytes(b"\xef\xbb\xbf" + UNINITIALIZED.replace("\n", "\r\n").encode())
    write(tmp_path, "good.py")
    ran = check(tmp_path, ".", "--format", "json", python=jax_python.python)
    document = ran.json
    assert ran.code == 1
    assert document["jax"] == jax_python.version
    (found,) = document["diagnostics"]
    line = next(n for n, text in enumerate(UNINITIALIZED.splitlines()) if "run_state" in text)
    start = UNINITIALIZED.splitlines()[line].index("plgpu.ACC")
    assert found["path"] == "k.py"
    assert found["code"] == "run-state-uninitialized-ref"
    assert found["range"]["start"] == {"line": line, "character": start}
    assert any(fix["verified"] and fix["safety"] == "safe" for fix in found["fixes"])
    assert {launch["path"] for launch in document["launches"] if launch["captures"]} == {"k.py", "good.py"}
    assert document["problems"] == []
    fixed = check(tmp_path, ".", "--fix", python=jax_python.python)
    assert (fixed.code, fixed.out.splitlines()[0]) == (0, "Applied 1 fix."), fixed.out
    data = (tmp_path / "k.py").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert "größer 😀" in data.decode("utf-8-sig")
    again = check(tmp_path, ".", "--fix", python=jax_python.python)
    assert again.code == 0
    assert "No fault found in 2 files with 2 launches" in again.out
    assert (tmp_path / "k.py").read_bytes() == data


def test_no_launch_is_nothing_to_check(tmp_path: Path, newest_jax_python: Any) -> None:
    (tmp_path / "k.py").write_text("x = 1\n")
    ran = check(tmp_path, "k.py", python=newest_jax_python.python)
    assert (ran.code, ran.out) == (0, "No kernel is launched in 1 file: there was nothing to check.\n")


BAD_MODULES = {
    "raises": (GOOD, "raise OSError('weights.bin is missing')", {"not-reached"}, "OSError: weights.bin is missing"),
    "exits": (GOOD, "sys.exit(3)", {"not-reached"}, "SystemExit: 3"),
    "os_exit": (GOOD, "os._exit(3)", {"exited", "not-reached"}, "ended itself with status 3"),
    "crashes": (GOOD, "os.kill(os.getpid(), signal.SIGSEGV)", {"crashed", "not-reached"}, "SIGSEGV"),
    "kernel_kills": ("os.abort()", "", {"crashed"}, "SIGABRT"),
    "loops": (GOOD, "while True: pass", {"timed-out", "not-reached"}, "took more than 10 s"),
}


@pytest.fixture(scope="module")
def bad_modules(tmp_path_factory: pytest.TempPathFactory, newest_jax_python: Any) -> Ran:
    """All of them and a good one, in one check."""
    folder = tmp_path_factory.mktemp("bad")
    for name, (body, top, _, _) in BAD_MODULES.items():
        write(folder, f"{name}.py", body, top)
    write(folder, "good.py")
    return check(folder, ".", "--format", "json", "--timeout", "10", python=newest_jax_python.python)


@pytest.mark.parametrize("name", BAD_MODULES)
def test_bad_modules_are_named(name: str, bad_modules: Ran) -> None:
    problems = [problem for problem in bad_modules.json["problems"] if problem["path"] == f"{name}.py"]
    _, _, kinds, said = BAD_MODULES[name]
    assert {problem["kind"] for problem in problems} == kinds
    assert any(said in problem["message"] for problem in problems), problems


def test_bad_modules_harm_no_other_file(bad_modules: Ran) -> None:
    assert bad_modules.code == 3
    (good,) = [launch for launch in bad_modules.json["launches"] if launch["path"] == "good.py"]
    assert [capture["stage"] for capture in good["captures"]] == ["lower"]
    assert "good.py" not in {problem["path"] for problem in bad_modules.json["problems"]}


def test_memory_is_limited(tmp_path: Path, newest_jax_python: Any) -> None:
    write(tmp_path, top="kept = []\nwhile True: kept.append(bytearray(1 << 28))")
    ran = check(tmp_path, "k.py", "--memory", "1", python=newest_jax_python.python)
    assert ran.code == 3
    assert "MemoryError" in ran.out or "out-of-memory" in ran.out


def test_what_a_module_prints_stays_out_of_the_output(tmp_path: Path, newest_jax_python: Any) -> None:
    write(tmp_path, top="print('to stdout')\nprint('to stderr', file=sys.stderr)\nos.write(1, b'raw bytes\\n')")
    ran = check(tmp_path, "k.py", "--format", "json", "--log-file", "check.log", python=newest_jax_python.python)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["diagnostics"] == []
    log = (tmp_path / "check.log").read_text()
    assert all(text in log for text in ("to stdout", "to stderr", "raw bytes"))


def test_a_file_of_two_megabytes(tmp_path: Path, newest_jax_python: Any) -> None:
    write(
        tmp_path,
        top="TABLE = [\n" + "    1234567890,\n" * 140_000 + "]",
        body="o_ref[...] = jnp.dot(x_ref[...], 1.5j)[0]",
    )
    ran = check(tmp_path, "k.py", python=newest_jax_python.python)
    assert ran.code == 1
    assert "k.py:8:" in ran.out


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"from jax.experimental import pallas\ndef f(:\n", "syntax"),
        (b"from jax.experimental import pallas\nx = '\xe4'\n", "encoding"),
        (b"from jax.experimental import pallas\n\0\n", "syntax"),
    ],
)
def test_files_that_are_no_python(data: bytes, kind: str, tmp_path: Path, newest_jax_python: Any) -> None:
    (tmp_path / "k.py").write_bytes(data)
    ran = check(tmp_path, "k.py", python=newest_jax_python.python)
    assert ran.code == 3
    assert f"not checked[{kind}]" in ran.out
    assert "= help: " in ran.out


def test_an_interpreter_without_jax(tmp_path: Path, server_python: str) -> None:
    write(tmp_path, "a.py")
    write(tmp_path, "b.py")
    ran = check(tmp_path, ".", python=server_python)
    if "not checked" not in ran.out:
        pytest.skip("the Python that runs the tests has jax")
    assert ran.code == 3
    assert ran.out.count("not checked[no-jax]") == 1, "one reason for all files"
    assert " --> a.py\n --> b.py\n" in ran.out
    assert "pip install jax" in ran.out


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_workers(number: int, code: int, tmp_path: Path, newest_jax_python: Any) -> None:
    write(tmp_path, top=f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "pallas_lsp", "check", "--python", newest_jax_python.python, "k.py"],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    worker = int((tmp_path / "pid").read_text())
    for _ in range(50):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the process that ran the checked code is still there")


def test_doctor(tmp_path: Path, jax_python: Any) -> None:
    def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pallas_lsp", "doctor", *arguments],
            cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    run = doctor("--python", jax_python.python, "--format", "json")
    facts = json.loads(run.stdout)
    assert run.returncode == 0
    assert facts["usable"] is True
    assert facts["jax"] == jax_python.version
    assert facts["interpreter_reason"] == "as --python says"
    assert set(facts["backends"]) == {"mosaic_gpu", "triton", "tpu"}
    assert facts["mode"] in ("fork", "spare")
    text = doctor("--python", str(tmp_path / "none"))
    assert text.returncode == 3
    assert "there is no Python at" in text.stdout
    assert "Kernels cannot be checked" in text.stdout
