"""What reaches a launch: the top level, the main block, tests."""

from __future__ import annotations

import textwrap
import time

import pytest

from pallas_lsp.model import Document, Snapshot
from pallas_lsp.source.drivers import driver_range, find_drivers

HEAD = textwrap.dedent("""
    import functools, unittest
    import jax, pytest
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def body(x_ref, o_ref): ...

    def kernel(x):
        return pl.pallas_call(body, out_shape=x)(x)

    def unrelated(x):
        return x
    """)


def find(text: str, head: str = HEAD, **others: str):
    documents = {"/w/file.py": Document("/w/file.py", head + textwrap.dedent(text))}
    for name, source in others.items():
        path = f"/w/{name}.py"
        documents[path] = Document(path, textwrap.dedent(source))
    return find_drivers(Snapshot(documents, ("/w",)), "/w/file.py")


def ids(text: str, head: str = HEAD, **others: str) -> list[str]:
    return [driver.id for driver in find(text, head, **others)]


def abstract(text: str, head: str = HEAD) -> list[str]:
    """The first lines of the statements that are evaluated abstractly."""
    source = head + textwrap.dedent(text)
    module = next((d for d in find(text, head) if d.kind == "module"), None)
    lines = source.split("\n")
    return [lines[number - 1].strip() for number in module.lines] if module is not None else []


# -- the main block ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guard",
    [
        'if __name__ == "__main__":',
        "if __name__ == '__main__':",
        'if "__main__" == __name__:',
        'if (__name__ == "__main__"):',
        'if __name__ in ("__main__",):',
        'if __name__ == "__main__" and DEBUG:',
        "if not __name__ != '__main__':",
    ],
)
def test_main_blocks(guard):
    (driver,) = find(f"{guard}\n    kernel(jnp.ones(8))\n")
    assert (driver.id, driver.kind, driver.path, driver.name, driver.lines) == ("main", "main", "/w/file.py", "", ())


@pytest.mark.parametrize("text", ["", "if __name__ == 'other':\n    kernel(1)\n", "if DEBUG:\n    pass\n"])
def test_no_main_block(text):
    assert "main" not in ids(text)


# -- the top level ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kernel(jnp.ones(8))", ["kernel(jnp.ones(8))"]),
        ("x = jnp.ones(8)\ny = kernel(x)\nprint(y)", ["x = jnp.ones(8)", "y = kernel(x)", "print(y)"]),
        ("N = 8\nx = jnp.ones(N)\ny = kernel(x)", ["x = jnp.ones(N)", "y = kernel(x)"]),
        ("k = jax.random.key(0)\nx = jax.random.normal(k)\nkernel(x)", None),
        ("a = jnp.ones(8)\nb = jnp.ones(9)\nkernel(a)", ["a = jnp.ones(8)", "kernel(a)"]),
        ("f = jax.jit(kernel)\nf(jnp.ones(8))", ["f(jnp.ones(8))"]),
        ("f = functools.partial(kernel)\ny = f(1)", ["y = f(1)"]),
        ("f = jax.vmap(jax.jit(kernel))\ny = f(1)", ["y = f(1)"]),
        ("f = lambda x: kernel(x)\ny = f(1)", ["y = f(1)"]),
        ("y = jax.jit(kernel)(1)", ["y = jax.jit(kernel)(1)"]),
        ("y = (lambda: kernel(1))()", ["y = (lambda: kernel(1))()"]),
        ("k = pl.pallas_call(body, t)\ny = k(x)", ["y = k(x)"]),
        ("y = jax.vmap(lambda x: pl.pallas_call(b, t)(x))(1)", ["y = jax.vmap(lambda x: pl.pallas_call(b, t)(x))(1)"]),
        ("y = pl.pallas_call(body, t)(x)", ["y = pl.pallas_call(body, t)(x)"]),
        ("y = pl.pallas_call(body, t)(x)\nz = y + 1\nw = 2", ["y = pl.pallas_call(body, t)(x)", "z = y + 1"]),
        ("y = time_it(kernel, 1)", ["y = time_it(kernel, 1)"]),
        ("y = time_it(lambda: kernel(1))", ["y = time_it(lambda: kernel(1))"]),
        ("class M:\n  def __call__(self, x):\n    return kernel(x)\nm = M()\ny = m(1)", ["m = M()", "y = m(1)"]),
        ("d = {'k': kernel}\ny = d['k'](1)", ["y = d['k'](1)"]),
        ("for n in range(3):\n  kernel(n)", ["for n in range(3):"]),
        ("with jax.disable_jit():\n  y = kernel(1)\nprint(y)", ["with jax.disable_jit():", "print(y)"]),
        ("try:\n  kernel(1)\nexcept Exception:\n  pass", ["try:"]),
        ("if DEBUG:\n  kernel(1)", ["if DEBUG:"]),
        ("def go():\n  kernel(1)\ngo()", ["go()"]),
        ("def go(): return again()\ndef again(): return kernel(1)\ngo()", ["go()"]),
        ("r = []\nr.append(kernel(1))\nprint(r)", ["r.append(kernel(1))", "print(r)"]),
        ("r = {}\nr['a'] = kernel(1)\nprint(r)", ["r['a'] = kernel(1)", "print(r)"]),
        ("y = kernel(1)\ndef show(): print(y)\nshow()", ["y = kernel(1)", "show()"]),
        ("y = kernel(1)\nassert jnp.allclose(y, 1)", ["y = kernel(1)", "assert jnp.allclose(y, 1)"]),
        ("a, b = jnp.ones(1), 2\nkernel(a)", ["a, b = jnp.ones(1), 2", "kernel(a)"]),
        ("n = int(jnp.ones(()))\nx = jnp.ones(n)\nkernel(x)", ["x = jnp.ones(n)", "kernel(x)"]),
        ("x = [jnp.ones(n) for n in (1, 2)]\nn = f(3)\nkernel(x)", ["x = [jnp.ones(n) for n in (1, 2)]", "kernel(x)"]),
        ("unrelated(1)", []),
        ("def f(kernel): return kernel\nf(1)", []),
        ("x = jnp.ones(8)", []),
        ("f = jax.jit(kernel)", []),
        ("def late():\n  kernel(1)", []),
    ],
)
def test_statements_to_evaluate_abstractly(text, expected):
    assert abstract(text) == (text.split("\n") if expected is None else expected)


def test_a_launch_that_is_only_built_needs_the_top_level_run():
    (driver,) = find("k = pl.pallas_call(body, t)\n")
    assert (driver.id, driver.kind, driver.lines) == ("module", "module", ())
    assert ids("@pl.kernel(out_shape=t)\ndef k(x): ...\n") == ["module"]
    assert ids("class K:\n  k = pl.pallas_call(body, t)\n") == ["module"]
    assert ids("def f():\n  @pl.kernel(out_shape=t)\n  def k(x): ...\n") == []


# -- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a():\n  kernel(1)\ndef test_b():\n  unrelated(1)\n", ["test:test_a"]),
        ("def testing():\n  kernel(1)\ndef helper():\n  kernel(1)\n", ["test:testing"]),
        ("async def test_a():\n  kernel(1)\n", ["test:test_a"]),
        ("def test_a():\n  helper()\ndef helper():\n  kernel(1)\n", ["test:test_a"]),
        ("def test_a():\n  def inner():\n    kernel(1)\n  inner()\n", ["test:test_a"]),
        ("def test_a():\n  pl.pallas_call(body, t)(1)\n", ["test:test_a"]),
        ("def test_a(kernel):\n  unrelated(kernel)\n", ["test:test_a"]),
        ("@pytest.mark.parametrize('f', [kernel])\ndef test_a(f):\n  f(1)\n", ["test:test_a"]),
        ("@pytest.fixture\ndef fixed():\n  return kernel\ndef test_a(fixed):\n  fixed(1)\n", ["test:test_a"]),
        (
            "@pytest.fixture\ndef one():\n  return kernel\n@pytest.fixture()\ndef two(one):\n  return one\n"
            "def test_a(two):\n  two(1)\n",
            ["test:test_a"],
        ),
        ("if True:\n  def test_a():\n    kernel(1)\n", ["test:test_a"]),
        ("class TestA:\n  def test_a(self):\n    kernel(1)\n  def test_b(self): ...\n", ["test:TestA.test_a"]),
        ("class TestA:\n  def __init__(self): ...\n  def test_a(self):\n    kernel(1)\n", []),
        ("class Other:\n  def test_a(self):\n    kernel(1)\n", []),
        ("class A(unittest.TestCase):\n  def test_a(self):\n    kernel(1)\n", ["test:A.test_a"]),
        ("class A(parameterized.TestCase):\n  def test_a(self):\n    kernel(1)\n", ["test:A.test_a"]),
        (
            "class A(jtu.JaxTestCase):\n  def test_a(self):\n    self.go()\n  def go(self):\n    kernel(1)\n",
            ["test:A.test_a"],
        ),
        (
            "class A(unittest.TestCase):\n  def setUp(self):\n    self.k = kernel\n"
            "  def test_a(self):\n    self.k(1)\n",
            ["test:A.test_a"],
        ),
        (
            "class Base(unittest.TestCase):\n  def go(self):\n    kernel(1)\n"
            "class A(Base):\n  def test_a(self):\n    self.go()\n",
            ["test:A.test_a"],
        ),
        (
            "class Base:\n  def test_a(self):\n    kernel(1)\nclass TestB(Base): ...\n",
            ["test:TestB.test_a"],
        ),
    ],
)
def test_tests(text, expected):
    assert ids(text) == expected


def test_a_local_name_is_not_the_kernel():
    assert (
        ids("def test_a():\n  kernel = unrelated\n  kernel(1)\ndef test_b(x=unrelated):\n  lambda kernel: kernel(x)\n")
        == []
    )
    assert ids("def test_a():\n  global kernel\n  kernel = kernel or unrelated\n") == ["test:test_a"]


def test_all_in_order():
    text = "kernel(1)\ndef test_a():\n  kernel(1)\nif __name__ == '__main__':\n  kernel(2)\n"
    assert ids(text) == ["module", "main", "test:test_a"]


def test_where_a_driver_stands():
    text = HEAD + "\n@jax.jit\ndef test_a():\n  kernel(1)\n\nif __name__ == '__main__':\n  kernel(2)\n"
    lines = text.split("\n")
    documents = {"/w/file.py": Document("/w/file.py", text)}
    drivers = find_drivers(Snapshot(documents), "/w/file.py")
    found = {d.id: driver_range(text, d) for d in drivers}
    assert lines[found["main"].start.line].startswith("if __name__")
    assert lines[found["test:test_a"].start.line] == "def test_a():"
    assert all(driver_range("(", d) is None for d in drivers)


# -- launches in other files ------------------------------------------------------------------------------------------

TESTS = "def test_a():\n  go(1)\ndef test_b():\n  other(1)\nif __name__ == '__main__':\n  pass\n"


@pytest.mark.parametrize(
    ("head", "others"),
    [
        ("from kernels import go\n", {"kernels": HEAD}),
        ("from kernels import *\n", {"kernels": HEAD + "go = kernel\n"}),
        ("from pack.kernels import go\n", {"pack/kernels": HEAD}),
        ("from pack import go\n", {"pack/__init__": "from .inner import go\n", "pack/inner": HEAD}),
        ("from .kernels import go\n", {"kernels": HEAD}),
        ("from . import kernels\ngo = kernels.go\n", {"kernels": HEAD}),
        ("import kernels as k\ngo = k.go\n", {"kernels": HEAD}),
        ("import pack.kernels\ngo = pack.kernels.go\n", {"pack/kernels": HEAD}),
        ("from kernels import (\n  a,  # one\n  go,\n)\n", {"kernels": HEAD}),
        ("from lib import go\n", {"src/lib": HEAD}),
        ("from one import go\n", {"one": "from two import go\n", "two": "from one import x\nfrom three import go\n",
                                  "three": HEAD}),
    ],
)  # fmt: skip
def test_a_file_that_imports_one_with_a_launch(head, others):
    assert ids(TESTS, head, **others) == ["main", "test:test_a"]


def test_imports_without_a_launch_do_not_count():
    assert ids(TESTS, "from plain import go\n", plain="def go(): ...\n") == []
    assert ids(TESTS, "from missing import go\n") == []
    assert ids(TESTS, "from ... import go\n") == []
    assert ids(TESTS, "import jax\n") == []


def test_files_on_disk_count_as_open_ones_do(tmp_path):
    (tmp_path / "kernels.py").write_text(HEAD)
    (tmp_path / "bad.py").write_bytes(b"\xff pallas kernel")
    path = tmp_path / "file.py"
    path.write_text("from kernels import go\nimport bad\n" + TESTS)
    assert [d.id for d in find_drivers(Snapshot(roots=(str(tmp_path),)), str(path))] == ["main", "test:test_a"]
    opened = str(tmp_path / "kernels.py")
    snapshot = Snapshot({opened: Document(opened, "def go(): ...\n")}, (str(tmp_path),))
    assert find_drivers(snapshot, str(path)) == ()


def test_two_megabytes_take_seconds_at_most():
    filler = "".join(
        f"def helper_{n}(a, b):\n    return [helper_{n - 1}(a, b) * {n}, a, 'text']\n\n\n" for n in range(30_000)
    )
    started = time.monotonic()
    assert ids(filler + "helper_29999(1, 2)\ndef test_a():\n  kernel(1)\n") == ["test:test_a"]
    assert time.monotonic() - started < 40
