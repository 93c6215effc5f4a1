"""Files that are unusual, and files that come and go."""

from __future__ import annotations

from kernels import faulty, good
from scene import Scene
from suite import Faults, Steps

FAULTS = Faults("Files")

_DRIVER = """\
import jax.numpy as jnp
from {module} import add

if __name__ == '__main__':
    add(jnp.ones(512), jnp.ones(512))
"""
_SIZES = "from sizes import LENGTH\n"
"""What a document has before its kernel that imports a file of the workspace."""


def _in_the_document(scene: Scene, **parts: str) -> None:
    """The document becomes unusual, and has the known fault at the end."""
    scene.type(good(**parts))
    scene.see_it_clean()
    scene.next_text = faulty(**parts)


def _imported(scene: Scene, text: str, encoding: str) -> None:
    """The document calls a kernel in an unusual file on disk, which then gets the known fault."""
    module = scene.save(text, "kernels_on_disk.py", encoding)
    scene.type(_DRIVER.format(module=module.stem))
    scene.see_it_clean()


@FAULTS.add("a file of 2 MB", "the file has 2,.* characters; one of more than 500,000 is not checked in an editor")
def two_megabytes(scene: Scene) -> Steps:
    scene.type(good(body="".join(f"def function_{n}(x):\n    return x + {n}\n\n" for n in range(46_000))))
    yield


@FAULTS.add("a comment of 400 kB")
def long_comment(scene: Scene) -> Steps:
    _in_the_document(
        scene, body="# a line of a comment that goes on and on, to no end and to nobody's delight\n" * 5000
    )
    yield


@FAULTS.add("form feeds and other separators that end no line")
def form_feeds(scene: Scene) -> Steps:
    _in_the_document(
        scene, top="\f# one\f two\v three\x1c four\x85 five\u2028 six\u2029\n", body="\f\nTEXT = 'a\x0cb\u2028c'\n"
    )
    yield


@FAULTS.add("emoji before the fault, on its line")
def emoji(scene: Scene) -> Steps:
    _in_the_document(scene, top="# \U0001f600\n", before="smile = '\U0001f600\U0001f469\u200d\U0001f467'; ")
    yield


@FAULTS.add("line ends of Windows (CRLF)")
def crlf(scene: Scene) -> Steps:
    scene.type(good().replace("\n", "\r\n"))
    scene.see_it_clean()
    yield
    scene.next_text = faulty().replace("\n", "\r\n")


@FAULTS.add("a byte order mark, in the editor's text")
def byte_order_mark(scene: Scene) -> Steps:
    _in_the_document(scene, top="\ufeff")
    yield


@FAULTS.add("a byte order mark, in a file on disk")
def byte_order_mark_on_disk(scene: Scene) -> Steps:
    _imported(scene, good(), "utf-8-sig")
    yield
    scene.change_on_disk("kernels_on_disk.py", faulty(), "utf-8-sig")


@FAULTS.add("a latin-1 file with a coding line, on disk")
def latin_1(scene: Scene) -> Steps:
    top = "# -*- coding: latin-1 -*-\nNAME = '\xe9\xe8\xfc'\n"
    _imported(scene, good(top=top), "latin-1")
    yield
    scene.change_on_disk("kernels_on_disk.py", faulty(top=top), "latin-1")


@FAULTS.add("an imported file in latin-1 without a coding line", "stopped on line .*SyntaxError.*(decode|Non-UTF-8)")
def wrong_encoding(scene: Scene) -> Steps:
    sizes = "LENGTH = 512\nNAME = '\xe9'\n"
    scene.save(sizes, "sizes.py", "latin-1")
    scene.next_text = faulty(body=_SIZES)
    scene.type(scene.next_text)
    yield
    scene.editor.changed_on_disk(scene.save(sizes, "sizes.py"))


@FAULTS.add("a folder that is a symbolic link")
def symbolic_link(scene: Scene) -> Steps:
    scene.save(good(), "real/kernels.py")
    (scene.folder / "link").symlink_to(scene.folder / "real")
    scene.open(good(), "link/kernels.py")
    scene.see_it_clean()
    yield


@FAULTS.add("a link to a file in another folder")
def linked_file(scene: Scene) -> Steps:
    scene.save(good(), "real/kernels.py")
    (scene.folder / "linked.py").symlink_to(scene.folder / "real" / "kernels.py")
    scene.open(good(), "linked.py")
    scene.see_it_clean()
    yield


@FAULTS.add("spaces, letters of other scripts and emoji in paths")
def odd_path(scene: Scene) -> Steps:
    path = "a folder/\u043c\u043e\u0439 \xfc \U0001f600 100%/ker nels #1.py"
    scene.save(good(), path)
    scene.open(good(), path)
    scene.see_it_clean()
    yield


@FAULTS.add("a file that was never saved")
def never_saved(scene: Scene) -> Steps:
    scene.open(good(), uri="untitled:Untitled-1")
    scene.see_it_clean()
    yield


@FAULTS.add("a file that is deleted while it is open")
def deleted(scene: Scene) -> Steps:
    file = scene.save(good())
    file.unlink()
    scene.editor.changed_on_disk(file, kind=3)
    scene.see_it_clean()
    yield


@FAULTS.add("an imported file is deleted, and comes back", "stopped on line .*No module named 'sizes'")
def import_deleted(scene: Scene) -> Steps:
    sizes = scene.save("LENGTH = 512\n", "sizes.py")
    scene.type(good(body=_SIZES))
    scene.see_it_clean()
    sizes.unlink()
    scene.editor.changed_on_disk(sizes, kind=3)
    scene.editor.until(lambda: scene.editor.said("No module named 'sizes'"))
    scene.next_text = faulty(body=_SIZES)
    scene.type(scene.next_text)
    scene.wait_for_the_check()
    yield
    scene.save("LENGTH = 512\n", "sizes.py")
    scene.editor.changed_on_disk(sizes, kind=1)


@FAULTS.add("a faulty file is renamed in the editor")
def renamed(scene: Scene) -> Steps:
    old = scene.save(faulty(), "old_name.py")
    scene.open(faulty(), "old_name.py")
    scene.editor.until(lambda: scene.shows_the_fault(0.0))
    before = scene.uri
    scene.close()
    new = old.rename(scene.folder / "new_name.py")
    scene.editor.changed_on_disk(old, kind=3)
    scene.editor.changed_on_disk(new, kind=1)
    scene.editor.until(lambda: scene.editor.published(before)[-1][1]["diagnostics"] == [])
    yield
    scene.open(faulty(), "new_name.py")
