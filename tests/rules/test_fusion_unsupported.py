"""Computations that the fuser cannot take into a kernel."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "fusion-unsupported"


def _pulled(value: str) -> str:
    return f"""
from jax.experimental.pallas import fuser

if __name__ == "__main__":
    x = jnp.ones((256, 128))
    fn, values, _ = fuser.get_fusion_values(lambda: {value})
    spec = pl.BlockSpec((128, 128), lambda i: (i, 0))
    fuser.pull_block_spec(fn, spec, grid_len=1, scalar_prefetch_handler=None)(values)
"""


SNIPPETS = {
    "no_rule": Snippet(
        _pulled("jnp.cumsum(x, axis=0)"), says=("which block of the input of `cumsum`", "before or after the fused")
    ),
    "not_these_blocks": Snippet(
        _pulled("jnp.reshape(x, (128, 256))"), says=("the input of `reshape`", "float32[256,128]")
    ),
    "nothing_to_fuse": Snippet(
        """
from jax.experimental.pallas import fuser


@fuser.fuse
def f(x):
    return x + 1


if __name__ == "__main__":
    f(X)
""",
        says=("nothing to fuse",),
    ),
    "right": Snippet(_pulled("jnp.exp(x) * 2"), rule=""),
}


def test_fusion_unsupported(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
