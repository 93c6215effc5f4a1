"""Equations of ``pltpu.einshape`` that do not fit the array or themselves."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "einshape-equation-invalid"


def _einshape(arguments: str, out: str = "(4, 8, 32)", marked: bool = True) -> str:
    equation = arguments.partition(",")[0]
    before, _, after = arguments.partition(", ")
    call = f"pltpu.einshape({before}, x_ref[...]{', ' + after if after else ''})"
    mark = f"{' ' * (len('    o_ref[...] = pltpu.einshape(') - 1)}#{'^' * len(equation)}\n" if marked else ""
    return (
        f"\n\ndef kernel(x_ref, o_ref):\n    o_ref[...] = {call}\n{mark}\n\n"
        f'if __name__ == "__main__":\n    call(kernel, jnp.ones((8, 128)), SDS({out}, jnp.float32))\n'
    )


SNIPPETS = {
    "sizes_missing": Snippet(_einshape('"a(bc)->bac"'), says=("size 128 is split into b and c", "`b=...`")),
    "size_does_not_divide": Snippet(
        _einshape('"a(bc)->bac", b=5', marked=False), says=("128 is no multiple of 5",), fixes=1
    ),
    "sizes_too_small": Snippet(_einshape('"a(bc)->bac", b=4, c=16'), says=("make 64, but", "has 128")),
    "too_many_names": Snippet(_einshape('"abc->bac"'), says=("names 3 dimensions", "the shape (8, 128)")),
    "no_arrow": Snippet(_einshape('"ab=>ba"'), says=("one `->`",)),
    "open_parenthesis": Snippet(_einshape('"a(bc->bac"'), says=("parentheses",)),
    "closed_twice": Snippet(_einshape('"a(bc))->bac", b=4'), says=("parentheses",)),
    "unknown_name": Snippet(_einshape('"ab->bc"'), says=("`c` stands on the right",)),
    "name_left_out": Snippet(_einshape('"ab->b"'), says=("neither sums nor broadcasts",)),
    "right": Snippet(_einshape('"a(bc)->bac", b=4', marked=False), rule=""),
}


def test_einshape_equation_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
