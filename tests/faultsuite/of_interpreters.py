"""Faults of the Python that runs the user's code, and what is installed in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernels import faulty
from scene import Scene
from suite import Faults, Steps

FAULTS = Faults("Interpreters and environments")


class Environment:
    """A virtual environment of the tested Python, into which jax is "installed" by a path file."""

    def __init__(self, scene: Scene, name: str = "env") -> None:
        self.folder = scene.folder / name
        self.jax_python = scene.jax_python
        make = [self.jax_python, "-m", "venv", "--without-pip", str(self.folder)]
        subprocess.run(make, check=True, capture_output=True)
        ask = [self.jax_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        self.jax = subprocess.run(ask, check=True, capture_output=True, text=True).stdout

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install_jax(self) -> None:
        (self.packages / "jax.pth").write_text(self.jax)

    def install_module(self, name: str, text: str) -> None:
        (self.packages / f"{name}.py").write_text(text)


def _with(scene: Scene, interpreter: Path) -> None:
    """The user chooses an interpreter and then makes the known mistake, which cannot be shown."""
    scene.configure(interpreter=str(interpreter))
    scene.type(scene.next_text)
    scene.wait_for_the_check()


@FAULTS.add("jax is missing, and is then installed", "has no jax.*Install it there")
def no_jax(scene: Scene) -> Steps:
    environment = Environment(scene)
    _with(scene, environment.folder)
    yield
    environment.install_jax()


@FAULTS.add("jax is broken, and is then repaired", "jax cannot be imported in .*libgone.*Repair the installation")
def broken_jax(scene: Scene) -> Steps:
    environment = Environment(scene)
    environment.install_module("jax", "raise ImportError('libgone.so: cannot open shared object file')\n")
    _with(scene, environment.folder)
    yield
    (environment.packages / "jax.py").unlink()
    environment.install_jax()


@FAULTS.add("jax is too old, and is then upgraded", r"has jax 0\.4\.30; Pallas kernels are checked from jax 0\.10 on")
def old_jax(scene: Scene) -> Steps:
    environment = Environment(scene)
    pallas = environment.packages / "jax" / "experimental" / "pallas"
    pallas.mkdir(parents=True)
    for folder in (pallas, pallas.parent, pallas.parent.parent):
        (folder / "__init__.py").write_text("__version__ = '0.4.30'\n")
    _with(scene, environment.folder)
    yield
    (environment.packages / "jax").rename(environment.folder / "jax-0.4.30")
    environment.install_jax()


@FAULTS.add("there is no interpreter where the setting says, until it is made", "there is no Python at .*/env")
def no_interpreter(scene: Scene) -> Steps:
    environment = Environment(scene, "elsewhere")
    environment.install_jax()
    _with(scene, scene.folder / "env")
    yield
    environment.folder.rename(scene.folder / "env")


@FAULTS.add(
    "the interpreter ends at once, until it is repaired", "did not run the checker: it ended itself with status 1"
)
def broken_interpreter(scene: Scene) -> Steps:
    python = scene.save("#!/bin/sh\nexit 1\n", "python")
    python.chmod(0o755)
    _with(scene, python)
    yield
    python.write_text(f'#!/bin/sh\nexec {scene.jax_python} "$@"\n')


@FAULTS.add("a package is installed during the session", "stopped on line .*No module named 'package_to_come'")
def package_installed(scene: Scene) -> Steps:
    environment = Environment(scene)
    environment.install_jax()
    scene.next_text = faulty(body="import package_to_come\n")
    _with(scene, environment.folder)
    yield
    environment.install_module("package_to_come", "")


@FAULTS.add("jax is removed during the session, and comes back", "has no jax.*Install it there")
def jax_removed(scene: Scene) -> Steps:
    environment = Environment(scene)
    environment.install_jax()
    scene.configure(interpreter=str(environment.folder))
    scene.see_it_clean()
    (environment.packages / "jax.pth").unlink()
    scene.editor.until(lambda: scene.editor.said("has no jax"))
    scene.type(scene.next_text)
    scene.wait_for_the_check()
    yield
    environment.install_jax()
