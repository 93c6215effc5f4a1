"""Several roots and interpreters in one session: what is wrong in one must not be felt in the other."""

from __future__ import annotations

from editor import kill_hard
from kernels import faulty, good
from of_interpreters import Environment
from scene import Scene
from suite import Faults, Steps

FAULTS = Faults("Several workspace folders")

_SIZES = "from sizes import LENGTH\n"


def _other(scene: Scene) -> str:
    """The second workspace folder's document is open and clean; returns its URI.  Typing goes on in the first."""
    first = scene.uri, scene.text, scene.version
    folder = scene.editor.roots[1] / scene.folder.name
    folder.mkdir()
    (folder / "sizes.py").write_text("LENGTH = 1024\n")
    scene.open(good(body=_SIZES), folder / "kernels.py")
    scene.see_it_clean()
    other = scene.uri
    scene.uri, scene.text, scene.version = first
    return other


@FAULTS.add("two folders with a module of the same name")
def two_roots(scene: Scene) -> Steps:
    _other(scene)
    scene.save("LENGTH = 512\n", "sizes.py")
    own = _SIZES + "assert LENGTH == 512, LENGTH\n"
    scene.type(good(body=own))
    scene.see_it_clean()
    scene.next_text = faulty(body=own)
    yield


@FAULTS.add("two interpreters, of which one has no jax", "has no jax.*Install it there")
def two_interpreters(scene: Scene) -> Steps:
    environment = Environment(scene)
    other = scene.editor.roots[1].as_uri()
    _other(scene)
    scene.later(scene.editor.set)
    scene.editor.set_for(other, interpreter=str(environment.folder))
    yield


@FAULTS.add("two interpreters, the worker of one is killed", "the worker was ended by SIGKILL")
def one_worker_killed(scene: Scene) -> Steps:
    environment = Environment(scene)
    environment.install_jax()
    before = set(scene.editor.workers)
    other = _other(scene)
    scene.later(scene.editor.set)
    scene.editor.set_for(scene.editor.roots[1].as_uri(), interpreter=str(environment.folder))
    scene.editor.until(lambda: (status := scene.editor.status(other)) and not status["busy"] and _new(scene, before))
    kill_hard(*_new(scene, before))
    yield


def _new(scene: Scene, before: set[int]) -> set[int]:
    return set(scene.editor.workers) - before
