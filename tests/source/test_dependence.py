"""Which drivers belong together, and which edits change what a driver brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lsp.model import Document, Driver, Snapshot
from pallas_lsp.source.dependence import Group, groups
from pallas_lsp.source.drivers import find_drivers
from pallas_lsp.source.launching import launching
from pallas_lsp.source.workspace import imported_files

TESTS = """
import jax.numpy as jnp
from kernels import one, two

class TestOne:
    def test_it(self):
        one(jnp.zeros(8))

def test_other():
    two(jnp.zeros(64))
"""
FILE = "/work-folder/kernels.py"
HELPER = "/work-folder/helpers.py"
HELPERS = """
SCALE = 2

def scaled(x):
    return x * SCALE

def shifted(x):
    return x + 1
"""
TEXT = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from helpers import scaled, shifted

BLOCK = 64

def _launch(kernel, x, block):
    return pl.pallas_call(kernel, out_shape=x, grid=(x.shape[0] // block,))(x)

def one_kernel(x_ref, o_ref):
    @pl.when(True)
    def _():
        o_ref[...] = scaled(x_ref[...])

@jax.jit
def one(x):
    return pl.pallas_call(one_kernel, out_shape=x)(x)

def two_kernel(x_ref, o_ref):
    o_ref[...] = shifted(x_ref[...])

def _two(x):
    return pl.pallas_call(two_kernel, out_shape=x, grid=(x.shape[0] // BLOCK,))(x)

two = jax.jit(_two)

def test_one():
    one(jnp.zeros(64))

def test_two():
    two(jnp.zeros(64))

def test_two_again():
    two(jnp.zeros(128))
"""


def found(text: str = TEXT, helpers: str = HELPERS, *, helper_open: bool = True) -> dict[str, Group]:
    documents = {FILE: Document(FILE, text, 1), HELPER: Document(HELPER, helpers, 1)}
    snapshot = Snapshot(documents, ("/work-folder",))
    texts = {FILE: text, **imported_files(snapshot, FILE, text)}
    if not helper_open:
        snapshot = Snapshot({FILE: documents[FILE]}, ("/work-folder",), {**snapshot.memo})
    every = groups(snapshot, FILE, texts, find_drivers(snapshot, FILE))
    return {" ".join(f"{d.id}{d.lines or ''}" for d in group.drivers): group for group in every}


def changed(old: str, new: str) -> set[str]:
    """The groups whose digest differs after an edit of the file."""
    assert old in TEXT
    before, after = found(), found(TEXT.replace(old, new))
    assert before.keys() == after.keys()
    return {name for name in before if before[name].digest != after[name].digest}


ONE, TWO = "test:test_one", "test:test_two test:test_two_again"


def test_drivers_that_share_a_launch_belong_together() -> None:
    assert list(found()) == [ONE, TWO]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("BLOCK = 64", "BLOCK = 64  # rows", set()),
        ("    o_ref[...] = shifted(x_ref[...])", "    o_ref[...] = shifted(\n        x_ref[...])", set()),
        ("shifted(x_ref", "scaled(x_ref", {TWO}),
        ("BLOCK = 64", "BLOCK = 32", {TWO}),
        ("scaled(x_ref[...])", "x_ref[...]", {ONE}),
        ("zeros(128)", "zeros(256)", {TWO}),
        ("two = jax.jit(_two)", "two = jax.jit(_two, static_argnums=0)", {ONE, TWO}),
        ("@jax.jit\n", "@functools.partial(jax.jit)\n", {ONE, TWO}),
        ("def _launch(kernel, x, block):", "def _launch(kernel, x, block=BLOCK):", {ONE, TWO}),
        ("def _launch(kernel, x, block):", "def _launch(kernel, x, rows):", set()),
        ("import functools\n", "import functools, os\n", {ONE, TWO}),
    ],
)
def test_an_edit_changes_what_depends_on_it(old: str, new: str, expected: set[str]) -> None:
    assert changed(old, new) == expected


def test_names_are_followed_into_open_files() -> None:
    before, after = found(), found(helpers=HELPERS.replace("SCALE = 2", "SCALE = 3"))
    assert before[ONE].digest != after[ONE].digest
    assert before[TWO].digest == after[TWO].digest


def test_a_name_that_an_import_no_longer_finds_stops_everything() -> None:
    before = found()
    for helpers in (HELPERS.replace("def scaled", "def scaled_new"), HELPERS.replace("def shifted", "def shift")):
        after = found(helpers=helpers)
        assert {name for name in before if before[name].digest != after[name].digest} == {ONE, TWO}


@pytest.mark.parametrize(
    "more",
    [
        "\ndef configure():\n    global BLOCK\n    BLOCK = 32\n",
        "\ndef configure():\n    jax.config.update('jax_enable_x64', True)\n",
        "\nCACHE = {}\ndef cached(x):\n    CACHE[x] = x\n",
        "\nSEEN = []\ndef note(x):\n    SEEN.append(x)\n",
        "\ndef tune(config):\n    config.block = 32\n",
        "\ndef tune(options):\n    options['block'] = 32\n",
        "\ndef any_name(name):\n    return globals()[name]\n",
        "\nimport os\ndef test_with_flags():\n    os.environ['A'] = '1'\n    one(jnp.zeros(8))\n",
        "\ndef grouped(x):\n    return jax.lax.ragged_dot(x, x, x)\n",
    ],
)
def test_with_state_everything_is_one_group(more: str) -> None:
    assert len(found(TEXT + more)) == 1


def test_a_foreign_library_may_launch_for_both() -> None:
    text = TEXT.replace("import functools", "import functools\nfrom kernel_library import mha")
    text = text.replace("one(jnp.zeros(64))", "one(mha(64))").replace("two(jnp.zeros(64))", "two(mha(64))")
    assert list(found(text)) == [f"{ONE} {TWO}"]


def test_tests_of_another_file_are_for_themselves() -> None:
    test_file = "/work-folder/test_kernels.py"
    text = TEXT.partition("def test_one")[0]
    drivers = [
        Driver(f"pytest:{test_file}::{name}", "pytest", test_file, name)
        for name in ("TestOne.test_it", "test_other[a-1]")
    ]

    def digests(text: str, tests: str = TESTS) -> list[str]:
        documents = {path: Document(path, each, 1) for path, each in ((FILE, text), (HELPER, HELPERS))}
        snapshot = Snapshot(documents, ("/work-folder",))
        texts = {FILE: text, test_file: tests, **imported_files(snapshot, FILE, text)}
        found = groups(snapshot, FILE, texts, drivers)
        assert [[driver.name for driver in group.drivers] for group in found] == [
            ["TestOne.test_it"],
            ["test_other[a-1]"],
        ]
        return [group.digest for group in found]

    one, two = digests(text)
    assert digests(text.replace("scaled(x_ref[...])", "x_ref[...]"))[1] == two
    assert digests(text.replace("shifted(x_ref[...])", "x_ref[...]"))[0] == one
    assert digests(text, TESTS.replace("zeros(64)", "zeros(128)"))[0] == one
    assert digests(text, TESTS.replace("zeros(64)", "zeros(128)"))[1] != two


MAIN = """
if __name__ == "__main__":
    x = jnp.zeros(64)
    first = one(x)
    for n in (1, 2):
        two(jnp.zeros(64 * n))
    print(first)
"""


def test_statements_of_a_main_block_are_for_themselves() -> None:
    text = TEXT.partition("def test_one")[0] + MAIN

    def lines(text: str) -> dict[tuple[int, ...], str]:
        drivers = find_drivers(Snapshot({FILE: Document(FILE, text, 1)}), FILE)
        every = groups(
            Snapshot({FILE: Document(FILE, text, 1), HELPER: Document(HELPER, HELPERS, 1)}),
            FILE,
            {FILE: text, HELPER: HELPERS},
            drivers,
        )
        return {group.drivers[0].lines: group.digest for group in every}

    before = lines(text)
    number = {content.strip(): line for line, content in enumerate(text.splitlines(), 1)}
    one, two = (number["first = one(x)"], number["print(first)"]), (number["for n in (1, 2):"],)
    assert list(before) == [one, two]
    edits = {
        "shifted(x_ref": {two},
        "scaled(x_ref[...])": {one},
        "x = jnp.zeros(64)": {one, two},
        "for n in (1, 2)": {two},
        "print(first)": {one},
    }
    for old, expected in edits.items():
        after = lines(
            text.replace(
                old,
                old.replace("shifted", "abs")
                .replace("scaled", "abs")
                .replace("64", "8")
                .replace("2)", "3)")
                .replace("print", "repr"),
            )
        )
        assert {key for key in before if before[key] != after[key]} == expected, old


def test_a_main_block_that_may_end_early_is_one() -> None:
    text = TEXT.partition("def test_one")[0] + MAIN.replace(
        "    print(first)", "    if len(first): raise SystemExit\n    print(first)"
    )
    assert [group.drivers[0].lines for group in found(text).values()] == [()]


def test_a_main_block_unites_tests_with_its_statements() -> None:
    every = [[(driver.id, len(driver.lines)) for driver in group.drivers] for group in found(TEXT + MAIN).values()]
    assert every == [
        [("main", 2), ("test:test_one", 0)],
        [("main", 1), ("test:test_two", 0), ("test:test_two_again", 0)],
    ]


def test_statements_that_share_an_object_belong_together() -> None:
    text = (
        TEXT.partition("def test_one")[0]
        + "\nclass Tiles:\n    pass\n"
        + MAIN.replace("    x = ", "    tiles = Tiles()\n    x = ")
    )
    assert len(found(text)) == 2
    both = text.replace("one(x)", "one(x, tiles)").replace("two(jnp", "two(tiles.of(1), jnp")
    assert len(found(both)) == 1


@pytest.mark.parametrize(
    ("more", "together"),
    [
        ("", False),
        ("import jax.numpy as jnp, os\nfrom .other import name\n", False),
        ("from kernels import one\n", True),
        ("from jax.experimental import pallas as pl\ndef launch(k, x):\n    return pl.pallas_call(k, x)(x)\n", True),
        ("from kernel_library import mha\n", True),
        ("import numpy, kernel_library as lib\n", True),
        ("def launch():\n    from jax.experimental.pallas.ops.gpu import attention\n", True),
    ],
)
def test_a_file_on_the_disk_unites_what_uses_it_only_where_it_may_launch(
    tmp_path: Path, more: str, together: bool
) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS + more)
    (tmp_path / "other.py").write_text("name = 1\n")
    file = tmp_path / "kernels.py"
    file.write_text(TEXT)
    snapshot = Snapshot({str(file): Document(str(file), TEXT, 1)}, (str(tmp_path),))
    texts = {str(file): TEXT, **imported_files(snapshot, str(file), TEXT)}
    every = groups(snapshot, str(file), texts, find_drivers(snapshot, str(file)))
    assert len(every) == (1 if together else 2)


def test_a_file_that_uses_one_that_launches_may_launch_too() -> None:
    texts = {
        "/w/deep.py": "from jax.experimental import pallas as pl\nf = pl.pallas_call\n",
        "/w/middle/__init__.py": "from deep import f\n",
        "/w/top.py": "import middle\n",
        "/w/apart.py": "SIZE = 3\n",
    }
    assert launching(Snapshot({}, ("/w",)), texts) == set(texts) - {"/w/apart.py"}
