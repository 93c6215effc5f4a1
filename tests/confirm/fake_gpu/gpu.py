"""What takes the place of ``worker/compiling.py``; executed by ``__main__`` under a name that is nobody's code."""

import importlib
import json
import os
import signal
import time
from pathlib import Path

script = json.loads(os.environ.get("FAKE_GPU", "{}"))
compiling = importlib.import_module("pallas_lsp_worker.compiling")
abstract_devices = importlib.import_module("pallas_lsp_worker.abstract_devices")


class JaxRuntimeError(RuntimeError):
    pass


def play(action):
    if action.startswith("fail: "):
        raise JaxRuntimeError(action.removeprefix("fail: "))
    if action == "hang":
        time.sleep(600)
    if action == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)


def device():
    if "none" in script:
        raise compiling.NoDevice(script["none"])
    name, capability = script.get("name", "NVIDIA Fake"), script.get("compute_capability", "9.0")
    return {"name": name, "compute_capability": capability, "index": 0}


class Job(compiling.Job):
    def on_device(self):
        return abstract_devices.abstract_device("cuda", device()["compute_capability"])

    def compile(self):
        if "log" in script:
            with Path(script["log"]).open("a") as file:
                file.write("compiled\n")
        self._play("compile")
        self.figures.update(compile_seconds=0.2, registers=90, threads=128, smem_bytes=32768, static_smem_bytes=1)

    def launch(self):
        self._play("launch")
        self.figures["launch_seconds"] = 0.01

    def _play(self, step):
        for part, action in script.get(step, {}).items():
            if part in str(self._jaxpr):
                play(action)


def install():
    compiling.Job = Job
    compiling.device = device
