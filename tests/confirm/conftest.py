"""Engines whose confirmer is the real worker program with a GPU that a script plays (``fake_gpu``)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from confirm_kit import FAKE, GPU, IDLE, Checked, Make

from pallas_lsp.confirm.confirmation import Confirmations
from pallas_lsp.confirm.gpus import Found, Gpu, Load
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.confirm.verdicts import Store
from pallas_lsp.engine import Engine, Settings


@pytest.fixture
def confirming(tmp_path: Path, newest_jax_python: Any) -> Make:
    """``confirming(script, gpus=..., load=..., **settings)``: see ``fake_gpu`` for the script."""

    @contextlib.asynccontextmanager
    async def make(
        script: dict[str, Any] | None = None,
        *,
        gpus: tuple[Gpu, ...] = (GPU,),
        load: Callable[[Gpu], Load | None] = lambda _: IDLE,
        worker: str = FAKE,
        name: str = "one",
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> AsyncIterator[Checked]:
        script = {"log": str(tmp_path / "compiled.log"), **(script or {})}
        base = Settings(
            python=newest_jax_python.python,
            environment={"FAKE_GPU": json.dumps(script), **(environment or {})},
            worker=worker,
            figures=True,
            discovery=False,
            confirm=ConfirmSettings(**{"patience": 1.0, "warm": False, **settings}),
        )
        engine = Engine(base, print)
        found = Found(gpus, "" if gpus else "no NVIDIA driver was found")
        assert base.confirm is not None
        confirmations = Confirmations(base.confirm, base, print, Store(tmp_path / name), lambda: found, load)
        engine._confirmations = confirmations
        try:
            yield Checked(engine, confirmations, tmp_path)
        finally:
            await engine.aclose()

    return make
