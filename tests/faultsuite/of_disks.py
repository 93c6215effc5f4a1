"""Disks on which nothing can be written."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from kernels import good
from scene import Scene
from suite import Faults, Steps

FAULTS = Faults("Disks")

SIZE = 4 << 20
"""Bytes; the server's cache needs some."""


class Disk:
    """A small file system in memory, mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def mount(cls, folder: Path) -> Disk:
        """Skips the test where this user, or this machine, may mount nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            made = cls._run("mount", "-t", "tmpfs", "-o", f"size={SIZE},nr_inodes=4096", "tmpfs", str(folder))
        except FileNotFoundError:
            pytest.skip("there is no program to mount a file system")
        if made.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
        return cls(folder)

    @classmethod
    def at(cls, folder: Path) -> Disk:
        """The disk that was mounted at a folder."""
        assert folder.is_mount()
        return cls(folder)

    def fill(self) -> None:
        """Write until there is no room, neither for bytes nor for names of files, nor soon will be."""
        end = time.monotonic() + 5.0
        while any(self.folder.rglob("pallas-lsp-*")) and time.monotonic() < end:  # the folders of earlier runs
            time.sleep(0.05)
        filling = self.folder / "filling"
        filling.mkdir()
        with contextlib.suppress(OSError), (filling / "bytes").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        with contextlib.suppress(OSError):
            for number in itertools.count():
                (filling / str(number)).touch()

    def empty(self) -> None:
        shutil.rmtree(self.folder / "filling")

    def remount(self, how: str) -> None:
        self._run("mount", "-o", f"remount,{how}", str(self.folder)).check_returncode()

    def end(self) -> None:
        self._run("umount", "-l", str(self.folder))

    @staticmethod
    def _run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False)


def _disk(scene: Scene) -> Disk:
    """The disk that the editor's workspace, the server's cache and the runs' temporary folders are on."""
    disk = Disk.at(scene.editor.folder.parent)
    scene.later(lambda: disk.remount("rw"))
    return disk


@FAULTS.add("a disk that becomes read-only", "needs a temporary folder, which could not be made: Read-only file system")
def read_only_disk(scene: Scene) -> Steps:
    disk = _disk(scene)
    disk.remount("ro")
    scene.type(good(main="nothing_can_be_written = True"))
    yield
    disk.remount("rw")


@FAULTS.add("a full disk", "needs a temporary folder, which could not be made: No space left on device")
def full_disk(scene: Scene) -> Steps:
    disk = _disk(scene)
    disk.fill()
    scene.type(good(main="there_is_no_room = True"))
    yield
    disk.empty()
