"""Axes that a kernel asks for by a name that nothing gave."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "axis-name-unbound"


def _kernel(value: str, mark: str, options: str) -> str:
    line = f"    o_ref[...] = {value}"
    marked = f"{' ' * (line.index(mark) - 1)}#{'^' * len(mark)}\n" if mark else ""
    return (
        f"\n\ndef kernel(x_ref, o_ref):\n{line}\n{marked}\n\n"
        f'if __name__ == "__main__":\n    call(kernel, jnp.ones((8, 128)), {options})\n'
    )


TPU = "compiler_params=pltpu.CompilerParams()"
SNIPPETS = {
    "index": Snippet(
        _kernel('x_ref[...] * lax.axis_index("z")', 'lax.axis_index("z")', f"grid=(2,), {TPU}"),
        says=('named "z"', "`pl.program_id(0)`"),
        fixes=1,
        related=("The grid",),
    ),
    "triton": Snippet(
        _kernel('x_ref[...] * lax.axis_index("z")', "", "grid=(2,), compiler_params=pltriton.CompilerParams()"),
        says=("`pl.program_id(0)`",),
        fixes=1,
    ),
    "size": Snippet(
        _kernel('x_ref[...] * lax.axis_size("z")', 'lax.axis_size("z")', f"grid=(2, 2), {TPU}"),
        says=("`pl.num_programs(0)`",),
    ),
    "sum": Snippet(
        _kernel('lax.psum(x_ref[...], "z")', "", f"grid=(2,), {TPU}"), says=("cannot combine their values",)
    ),
    "right": Snippet(_kernel("x_ref[...] * pl.program_id(0)", "", f"grid=(2,), {TPU}"), rule=""),
}


def test_axis_name_unbound(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
