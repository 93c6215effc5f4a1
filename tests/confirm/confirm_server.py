"""The server with the real engine and a GPU that the script in FAKE_GPU plays; without one there is no GPU."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from pallas_lsp.confirm.confirmation import Confirmations
from pallas_lsp.confirm.gpus import Found, Gpu, Load
from pallas_lsp.confirm.verdicts import Store
from pallas_lsp.engine import Engine
from pallas_lsp.server.app import PallasServer
from pallas_lsp.server.engines import EngineLike
from pallas_lsp.server.main import serve
from pallas_lsp.server.settings import FolderSettings
from pallas_lsp.server.trust import TrustStore

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ["PALLAS_LSP_TEST_FOLDER"])
GPU = Gpu(0, "GPU-fake-0", "NVIDIA Fake", "9.0", 80 << 30)


def make_engine(settings: FolderSettings) -> EngineLike:
    base = replace(settings.engine(), worker=str(HERE / "fake_gpu"), discovery=False)
    engine = Engine(base, lambda text: print(text, file=sys.stderr))
    if base.confirm is not None:
        found = Found((GPU,), "") if "FAKE_GPU" in os.environ else Found((), "no NVIDIA driver was found")
        confirm = replace(base.confirm, warm=False)
        store = Store(FOLDER / "verdicts")
        engine._confirmations = Confirmations(confirm, base, print, store, lambda: found, lambda _: Load(0, 70 << 30))
    return engine


if __name__ == "__main__":
    sys.exit(serve(make_server=lambda: PallasServer(make_engine, TrustStore(FOLDER / "trust"))))
