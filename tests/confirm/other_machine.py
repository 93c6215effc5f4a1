"""Stands for the Python of another machine with a GPU: it runs what its command line says, and a script plays the GPU.

``python other_machine.py SCRIPT -u -c CODE``: what CODE starts is the worker that it has unpacked, with the fake GPU.
``hides`` in the script: a file that is not on the other machine's disk.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

FAKE = str(Path(__file__).resolve().parent / "fake_gpu")
start = subprocess.Popen


def start_with_gpu(command, env=None, **options):
    program = str(Path(command[-1]) / "__main__.py")
    return start(
        [*command[:-1], FAKE],
        env={**(env or os.environ), "FAKE_GPU": sys.argv[1], "FAKE_GPU_PROGRAM": program},
        **options,
    )


if hidden := json.loads(sys.argv[1]).get("hides"):
    Path(hidden).unlink(missing_ok=True)
subprocess.Popen = start_with_gpu
exec(sys.argv[-1], {"__name__": "__main__"})
