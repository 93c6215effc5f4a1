"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "index_map_if": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i if i > 0 else 0, j))],
                                                             #^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "index_map_min": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (max(i - 1, 0), j))],
                                                        #^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["Python's `max` cannot compare traced values"],
        fixes=1,
    ),
    "while": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    while i < 4:
         #^^^^^
        i += 1
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
    ),
    "bool_and": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)

    @pl.when(i > 0 and i < 3)
            #^^^^^^^^^^^^^^^
    def _():
        o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "assert_": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    assert i >= 0
          #^^^^^^
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "ifexp": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    o_ref[...] = x_ref[...] * (1.0 if i == 0 else 2.0)
                                     #^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "max_": Snippet(
        """\


def k(x_ref, o_ref):
    n = max(pl.program_id(0), 1)
       #^^^^^^^^^^^^^^^^^^^^^^^^
    o_ref[...] = x_ref[...] * n


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python's `max` cannot compare traced values"],
        fixes=1,
    ),
    "range2": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...]
    for j in range(1, pl.program_id(0), 2):
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        o_ref[...] += 1.0


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python's `range` cannot count to a traced number"],
        fixes=1,
    ),
    "match_": Snippet(
        """\


def k(x_ref, o_ref):
    match pl.program_id(0):
         #^^^^^^^^^^^^^^^^
        case 0:
            o_ref[...] = x_ref[...]
        case _:
            o_ref[...] = x_ref[...] + 1


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
    ),
    "if_return": Snippet(
        """\


def k(x_ref, o_ref):
    if pl.program_id(0) == 0:
      #^^^^^^^^^^^^^^^^^^^^^
        return
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "if_assign": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    if i == 0:
      #^^^^^^
        s = 1.0
    else:
        s = 2.0
    o_ref[...] = x_ref[...] * s


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "if_elif": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    if i == 0:
      #^^^^^^
        o_ref[...] = x_ref[...]
    elif i == 1:
        o_ref[...] = x_ref[...] * 2
    else:
        o_ref[...] = x_ref[...] * 3


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "if_comment": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    # first run
    if i == 0:
      #^^^^^^
        # clear it
        o_ref[...] = jnp.zeros_like(o_ref)  # all of it
    o_ref[...] += x_ref[...]


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype), grid=(2,))(X)
""",
        ["Python cannot decide on a traced value"],
        fixes=1,
    ),
    "if_ref_value": Snippet(
        """\


def k(n_ref, x_ref, o_ref):
    if n_ref[0] > 2 and n_ref[0] < 5:
      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        o_ref[...] = x_ref[...]
    else:
        o_ref[...] = jnp.zeros_like(o_ref)


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(jnp.zeros(1, jnp.int32), X)
""",
        ["Python cannot decide on a traced value"],
    ),
    "range_two_carries": Snippet(
        """\


def k(n_ref, x_ref, o_ref):
    total = jnp.zeros((1, 256), jnp.float32)
    largest = jnp.full((1, 256), -jnp.inf, jnp.float32)
    for t in range(n_ref[0]):
            #^^^^^^^^^^^^^^^
        row = x_ref[pl.ds(t, 1), :]
        total += row
        largest = jnp.maximum(largest, row)
    o_ref[...] = total + largest


if __name__ == "__main__":
    pl.pallas_call(k, SDS((1, 256), X.dtype))(jnp.zeros(1, jnp.int32), X)
""",
        ["Python's `range` cannot count to a traced number"],
    ),
}


def test_python_control_flow_on_traced_value(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "python-control-flow-on-traced-value", SNIPPETS)
