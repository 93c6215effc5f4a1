"""One engine for the server and the command line: snapshot in, findings out."""

from pallas_lsp.engine.engine import Engine
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.settings import Limits, Settings

__all__ = ["Engine", "Limits", "Settings", "WorkerUnavailable"]
