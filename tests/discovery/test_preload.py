"""What a worker imports beforehand for later runs, and what it leaves to each run."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Snapshot

PACKAGES = {
    "harmless": "from harmless import more\n",
    "harmless/more": "",
    "uses_jax": "import jax.numpy as jnp\n",
    "uses_it_too": "from uses_jax import jnp as other\nimport uses_jax\n",
    "threaded": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "connecting": "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 0.1)\nexcept OSError: pass\n",
    "by_environment": "import os\nVALUE = os.environ.get('BY_USER')\n",
}
CHECKED = """
import os, sys
print("BEFOREHAND", sorted({name for name in NAMES if name in sys.modules}))
import harmless, uses_jax, uses_it_too, threaded, connecting, own
os.environ["BY_USER"] = "1"
import by_environment
print("VALUES", by_environment.VALUE, own.__file__, harmless.__file__)
from jax.experimental import pallas as pl
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]
if __name__ == "__main__":
    import jax.numpy as jnp
    pl.pallas_call(body, out_shape=jnp.ones(8))(jnp.ones(8))
"""


@pytest.fixture
def python(newest_jax_python: Any, tmp_path: Path) -> str:
    """An environment of its own with the packages, and with those of the tested one."""
    home = tmp_path / "venv"
    subprocess.run([newest_jax_python.python, "-m", "venv", "--without-pip", str(home)], check=True)
    command = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ask = [newest_jax_python.python, "-c", command]
    there = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    (own,) = home.glob("lib/python*/site-packages")
    (own / "jax.pth").write_text(f"{there}\n", encoding="utf-8")
    for name, text in PACKAGES.items():
        path = own / (f"{name}.py" if "/" in name else f"{name}/__init__.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(home / "bin" / "python")


async def test_only_what_does_no_harm_is_imported_beforehand(python: str, tmp_path: Path) -> None:
    text = CHECKED.replace("NAMES", repr([*(name.replace("/", ".") for name in PACKAGES), "own"]))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "own.py").write_text("", encoding="utf-8")
    log: list[str] = []
    engine = Engine(Settings(python=python), log.append)

    async def lines(version: int) -> str:
        log.clear()
        path = str(folder / "file.py")
        engine.renew(path)
        report = await engine.check(Snapshot({path: Document(path, text, version)}, (str(folder),)), path)
        assert report.launches[0].captures, (report, log)
        return "\n".join(log)

    try:
        for version in range(60):
            printed = await lines(version)
            if "BEFOREHAND ['harmless', 'harmless.more']" in printed:
                break
            assert "BEFOREHAND []" in printed
            await asyncio.sleep(1)  # packages are tried one by one while nothing else is to be done
        else:
            pytest.fail(printed)
        await asyncio.sleep(3)
        printed = await lines(100)
        assert "BEFOREHAND ['harmless', 'harmless.more']" in printed, "the others were refused for good"
        assert f"VALUES 1 {folder}/own.py {tmp_path}/venv/" in printed
        (folder / "harmless.py").write_text("", encoding="utf-8")
        printed = await lines(101)
        assert "BEFOREHAND []" in printed
        assert f"VALUES 1 {folder}/own.py {folder}/harmless.py" in printed, "the user's own comes first"
    finally:
        await engine.aclose()
