"""Views of refs that are larger or smaller than the ref."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "ref-reshape-invalid"


def _copy(view: str, mark: str = "", x: str = "jnp.ones((128, 256))", out: str = "") -> str:
    line = f"    o_ref[...] = {view}"
    marked = f"{' ' * (line.index(mark) - 1)}#{'^' * len(mark)}\n" if mark else ""
    launch = f"call(kernel, {x}{', ' + out if out else ''})"
    return f'\n\ndef kernel(x_ref, o_ref):\n{line}\n{marked}\n\nif __name__ == "__main__":\n    {launch}\n'


SNIPPETS = {
    "fewer_elements": Snippet(
        _copy("x_ref.reshape(64, 256)[...]", "x_ref.reshape(64, 256)"),
        says=("(128, 256) has 32768", "(64, 256) has 16384", "fewer"),
        fixes=1,
    ),
    "more_elements_of_a_slice": Snippet(
        _copy("x_ref.at[pl.ds(0, 8)].reshape((16, 256))[...]", "(16, 256)", out="SDS((8, 256), jnp.float32)"),
        says=("(8, 256) has 2048", "more"),
        fixes=1,
    ),
    "nothing_fits_the_rest": Snippet(
        _copy("x_ref.reshape(-1, 100)[...]"), says=("the ref has 32768 elements", "(100)", "68 would be left over")
    ),
    "another_divisor": Snippet(
        _copy("x_ref.reshape(2, -1, 5)[...]"), says=("the other dimensions (2 * 5 = 10) do not divide",)
    ),
    "two_inferred": Snippet(
        _copy("x_ref.reshape(-1, -1)[...]", out="SDS((1, 32768), jnp.float32)"), says=("Only one dimension",), fixes=1
    ),
    "bitcast_of_one_dimension": Snippet(
        _copy("x_ref.bitcast(jnp.int16)[...]", "jnp.int16", "jnp.ones((128,))"), says=("(n, 1)",)
    ),
    "bitcast_of_an_odd_number_of_rows": Snippet(
        _copy("x_ref.bitcast(jnp.int32)[...]", "jnp.int32", "jnp.ones((3, 128), jnp.int16)"),
        says=("ratio of the widths",),
    ),
    "right": Snippet(_copy("x_ref.reshape(256, -1)[...]", out="SDS((256, 128), jnp.float32)"), rule=""),
}


def test_ref_reshape_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
