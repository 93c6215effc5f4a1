"""The rules on operations whose arrays do not fit each other, and on names that jax's arrays do not have."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

TAIL = """


if __name__ == "__main__":
    pl.pallas_call(kernel, out_shape=SDS({out}, jnp.float32), compiler_params=pltpu.CompilerParams())({arguments})
"""


def kernel(body: str, says: list[str], *, out: str = "(8, 128)", arguments: str = "", **more: int) -> Snippet:
    tail = TAIL.format(out=out, arguments=arguments or "jnp.ones((8, 128)), jnp.ones((8,))")
    return Snippet(f"\n\ndef kernel(x_ref, b_ref, o_ref):\n{body}{tail}", says, **more)


BROADCAST = {
    "sum_without_keepdims": kernel(
        """\
    x = x_ref[...]
    o_ref[...] = x / jnp.sum(x, axis=-1)
                #^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`x` has the shape (8, 128) and `jnp.sum(x, axis=-1)` has the shape (8,)", "from the last dimension"],
        fixes=2,
    ),
    "where": kernel(
        """\
    x, b = x_ref[...], b_ref[...]
    o_ref[...] = jnp.where(x > 0, x, b)
                #^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`b` has the shape (8,)"],
        fixes=1,
    ),
    "lax": kernel(
        """\
    x, b = x_ref[...], b_ref[...]
    o_ref[...] = lax.mul(x, b)
                #^^^^^^^^^^^^^
""",
        ["`x` has the shape (8, 128) and `b` has the shape (8,)", "functions of `jax.lax` add no dimensions"],
        fixes=1,
    ),
    "select": kernel(
        """\
    x, b = x_ref[...], b_ref[...]
    o_ref[...] = lax.select(x > 0, x, b)
                #^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`jax.lax.select` must have the same"],
    ),
    "broadcast_to": kernel(
        """\
    o_ref[...] = jnp.broadcast_to(b_ref[...], x_ref.shape)
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`b_ref[...]` has the shape (8,), which does not broadcast to (8, 128)"],
        fixes=1,
    ),
    "augmented": kernel(
        """\
    x = x_ref[...]
    x += b_ref[...]
   #^
    o_ref[...] = x
""",
        ["`b_ref[...]` has the shape (8,)"],
        fixes=1,
    ),
    "square": kernel(  # two ways to add the dimension, and no telling which is meant
        """\
    o_ref[...] = x_ref[...] + b_ref[...]
                #^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["(8, 8, 128) and `b_ref[...]` has the shape (8,)"],
        out="(8, 8, 128)",
        arguments="jnp.ones((8, 8, 128)), jnp.ones((8,))",
    ),
}

MATMUL = {
    "transposed": kernel(
        """\
    o_ref[...] = jnp.dot(x_ref[...], b_ref[...])
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["sums over the 128 of `x_ref[...]` (8, 128) and the 32 of `b_ref[...]` (32, 128)"],
        out="(8, 32)",
        arguments="jnp.ones((8, 128)), jnp.ones((32, 128))",
        fixes=1,
    ),
    "transposed_twice": kernel(
        """\
    x, b = x_ref[...], b_ref[...]
    o_ref[...] = x @ b.T
                #^^^^^^^
""",
        ["the 128 of `x` (8, 128) and the 32 of `b.T` (32, 128)"],
        out="(8, 32)",
        arguments="jnp.ones((8, 128)), jnp.ones((128, 32))",
        fixes=1,
    ),
    "einsum": kernel(
        """\
    x, b = x_ref[...], b_ref[...]
    o_ref[...] = jnp.einsum("ij,jk->ik", x, b)
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["The index `j` stands for one size, but it is 128 in `x` and 32 in `b`"],
        out="(8, 128)",
        arguments="jnp.ones((8, 128)), jnp.ones((32, 128))",
    ),
}

NAMES = {
    "keepdim": kernel(
        """\
    x = x_ref[...]
    o_ref[...] = x - jnp.max(x, dim=-1, keepdim=True)
                               #^^^^^^
""",
        ["`jnp.max` has no parameter `dim`: in jax it is `axis`"],
        fixes=1,
    ),
    "method_parameter": kernel(
        """\
    x = x_ref[...]
    o_ref[...] = x - x.max(dim=-1, keepdims=True)
                          #^^^^^^
""",
        ["`x.max` has no parameter `dim`"],
        fixes=1,
    ),
    "clip": kernel(
        """\
    o_ref[...] = jnp.clip(x_ref[...], a_min=0.0, a_max=1.0)
                                     #^^^^^^^^^
""",
        ["`jnp.clip` has no parameter `a_min`: in jax it is `min`"],
        fixes=1,
    ),
    "to": kernel(
        """\
    x = x_ref[...]
    o_ref[...] = x.to(jnp.float32)
                #^^^^
""",
        ["Arrays have no method `to`: in jax it is `astype`"],
        fixes=1,
    ),
    "float": kernel(
        """\
    o_ref[...] = (x_ref[...] > 0).float()
                #^^^^^^^^^^^^^^^^^^^^^^
""",
        ["in jax it is `astype`"],
        fixes=1,
    ),
}


def test_shapes_do_not_broadcast(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "shapes-do-not-broadcast", BROADCAST)


def test_matmul_sizes_differ(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "matmul-sizes-differ", MATMUL)


def test_array_name_unknown(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "array-name-unknown", NAMES)
