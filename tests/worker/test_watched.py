"""Which changes on the disk end a worker, because it has imported what was there before."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from pallas_lsp.worker import service


@pytest.mark.parametrize("installed", [True, False])
def test_a_checkout_of_jax_is_watched_file_by_file(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / ("site-packages" if installed else "checkout") / "jax"
    lowering = package / "_src" / "pallas" / "mosaic_gpu" / "lowering.py"
    lowering.parent.mkdir(parents=True)
    lowering.touch()
    jax = types.ModuleType("jax")
    jax.__file__ = str(package / "__init__.py")
    monkeypatch.setitem(sys.modules, "jax", jax)
    watched = service._watched({})
    assert str(package.parent) in watched
    assert (str(lowering) in watched) is not installed
