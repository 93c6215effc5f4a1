"""Faults of the code that is checked: each ends a run, and no more than that."""

from __future__ import annotations

import time
from pathlib import Path

from editor import children, kill_hard
from kernels import good
from scene import Scene
from suite import Faults, Steps

FAULTS = Faults("The code that is checked")
SETTINGS = {"timeLimit": 1.5, "memoryLimit": 512}


def _run_in_the_main_block(scene: Scene) -> int:
    """The process of the run whose main block has made the file ``here`` in its folder."""
    while True:
        for pid in (each for worker in scene.editor.workers for each in children(worker)):
            if Path(f"/proc/{pid}/cwd/here").exists():
                return pid
        time.sleep(0.01)


@FAULTS.add("the worker is killed during a run", "the worker was ended by SIGKILL")
def worker_killed(scene: Scene) -> Steps:
    scene.type(good(main="open('here', 'w').close()\nimport time; time.sleep(0.5)"))
    _run_in_the_main_block(scene)
    kill_hard(*scene.editor.workers)
    yield


@FAULTS.add("the idle worker is killed", "the worker was ended by SIGKILL")
def idle_worker_killed(scene: Scene) -> Steps:
    scene.leftovers(5.0)
    kill_hard(*scene.editor.workers)
    yield


@FAULTS.add("a segmentation fault", "running the main block crashed the process: it was ended by SIGSEGV")
def segmentation_fault(scene: Scene) -> Steps:
    scene.type(good(main="import ctypes; ctypes.string_at(0)"))
    yield


@FAULTS.add("more memory than the limit", "the main block stopped on line .*MemoryError")
def out_of_memory(scene: Scene) -> Steps:
    scene.type(good(main="hoard = []\nwhile True: hoard.append(bytearray(64 << 20))"))
    yield


@FAULTS.add("the system ends the run for want of memory", "running the main block needed more memory than")
def killed_for_memory(scene: Scene) -> Steps:
    scene.type(good(main="open('here', 'w').close()\nimport time; time.sleep(60)"))
    kill_hard(_run_in_the_main_block(scene))
    yield


@FAULTS.add("an endless loop in Python", r"running the main block took more than 1\.5 s")
def endless_loop(scene: Scene) -> Steps:
    scene.type(good(main="while True: pass"))
    yield


@FAULTS.add("an endless loop in native code", r"running the main block took more than 1\.5 s")
def endless_native_loop(scene: Scene) -> Steps:
    scene.type(good(main="import re; re.match('(a+)+$', 'a' * 64 + 'b')"))
    yield


@FAULTS.add("`os._exit`", "running the main block ended the process: it ended itself with status 3")
def os_exit(scene: Scene) -> Steps:
    scene.type(good(main="import os; os._exit(3)"))
    yield


@FAULTS.add("`sys.exit`", "the main block stopped on line .*SystemExit: 4")
def sys_exit(scene: Scene) -> Steps:
    scene.type(good(main="import sys; sys.exit(4)"))
    yield


@FAULTS.add("an exception before the kernel", "the main block stopped on line .*ZeroDivisionError")
def exception(scene: Scene) -> Steps:
    scene.type(good(main="1 / 0"))
    yield


@FAULTS.add("an output flood (200,000 lines)", r"\.\.\. and \d+ more lines")
def output_flood(scene: Scene) -> Steps:
    scene.type(good(body="for number in range(200_000): print('line', number)\n"))
    yield


@FAULTS.add("a child process that ignores SIGTERM", "the main block stopped on line .*starts no programs")
def child_process(scene: Scene) -> Steps:
    scene.type(good(main="import subprocess\nsubprocess.Popen(['sh', '-c', \"trap '' TERM; sleep 600\"])"))
    yield


@FAULTS.add("a child process that ignores SIGTERM, forked past Python")
def forked_process(scene: Scene) -> Steps:
    code = (
        "import ctypes, signal, time\n"
        "if not ctypes.CDLL(None).fork():\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    time.sleep(600)"
    )
    scene.type(good(main=code))
    scene.see_it_clean()
    yield


@FAULTS.add("threads left behind")
def threads_left(scene: Scene) -> Steps:
    scene.type(good(main="import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"))
    scene.see_it_clean()
    yield


@FAULTS.add("the import of a missing package", "stopped on line .*No module named 'no_such_package'")
def missing_package(scene: Scene) -> Steps:
    scene.type(good(body="import no_such_package\n"))
    yield
