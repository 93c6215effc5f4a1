"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "block_shape_int": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS((512,), x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec(128, lambda i: i)],
                              #^^^
        out_specs=pl.BlockSpec((128,), lambda i: (i,)),
    )(x)


if __name__ == "__main__":
    f(X[:, 0])
""",
        ["`128` is no tuple but an int"],
        fixes=1,
    ),
    "traced_by_jit": Snippet(
        """\


@jax.jit
def f(x, *, block):
    spec = pl.BlockSpec((block, 256), lambda i: (i, 0))
                       #^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=(4,), in_specs=[spec], out_specs=spec
    )(x)


if __name__ == "__main__":
    f(X, block=128)
""",
        ["has an entry that is no dimension", "`jax.jit` traces `block`: declare it static"],
        fixes=1,
    ),
    "traced_by_jit_with_another_static": Snippet(
        """\


@functools.partial(jax.jit, static_argnames="steps")
def f(x, *, block, steps):
    spec = pl.BlockSpec((block, 256), lambda i: (i, 0))
                       #^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=(steps,), in_specs=[spec], out_specs=spec
    )(x)


if __name__ == "__main__":
    f(X, block=128, steps=4)
""",
        ["`jax.jit` traces `block`"],
        fixes=1,
    ),
}


def test_block_shape_not_a_tuple(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "block-shape-not-a-tuple", SNIPPETS)
