"""Editors with a server, shared by the faults of a file where a fault leaves the server be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from editor import Editor
from scene import Scene


@pytest.fixture(autouse=True)
def _on_linux():
    if sys.platform != "linux":
        pytest.skip("processes are looked up in /proc")


@pytest.fixture(scope="module")
def editors(tmp_path_factory, newest_jax_python):
    """``editors(settings, *others)``: an editor that has started its server, with more workspace folders; ended with
    the module."""
    started: list[Editor] = []

    def make(settings, *others: str, home: Path | None = None, **how) -> Editor:
        home = home or tmp_path_factory.mktemp("editor")
        folder = home / "workspace"
        roots = [folder, *(home / name for name in others)]
        for each in roots:
            each.mkdir()
        editor = Editor(folder, {"interpreter": newest_jax_python.python, **settings}, home=home, **how)
        started.append(editor)
        editor.start(*roots)
        return editor

    yield make
    for editor in started:
        editor.kill()


@pytest.fixture
def scenes(newest_jax_python):
    """``scenes(editor, fault)``: a folder of the editor's workspace for one fault."""
    made: list[Scene] = []

    def make(editor, fault) -> Scene:
        scene = Scene(editor, editor.folder / fault.name, newest_jax_python.python)
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.end()
