"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "ref_mixed_index": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[o_ref]
                #^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[o_ref]` has the shape (512, 256, 256)"],
    ),
    "store_py": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = 1.5
                #^^^


if __name__ == "__main__":
    call(k, out=SDS(X.shape, jnp.int32))
""",
        ["`1.5` is a scalar"],
        fixes=1,
    ),
    "store_rank": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=1)
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS((512, 1), jnp.float32))
""",
        ["`jnp.sum(x_ref[...], axis=1)` has the shape (512,)"],
        fixes=3,
    ),
    "store_method": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...].max(-1)
                #^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS((512, 1), jnp.float32))
""",
        ["`x_ref[...].max(-1)` has the shape (512,)"],
        fixes=3,
    ),
    "store_scalar": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...])
                #^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS((1, 1), jnp.float32))
""",
        ["`jnp.sum(x_ref[...])` is a scalar"],
        fixes=2,
    ),
    "store_row": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0] = x_ref[0:1]
              #^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[0:1]` has the shape (1, 256)"],
        fixes=2,
    ),
    "store_broadcast": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[0]
                #^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[0]` has the shape (256,)"],
        fixes=1,
    ),
    "store_transposed": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...].T
                #^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[...].T` has the shape (256, 512)"],
        fixes=1,
    ),
    "store_keepdims": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS((512,), jnp.float32))
""",
        ["`jnp.sum(x_ref[...], axis=1, keepdims=True)` has the shape (512, 1)"],
    ),
    "oob_pyslice": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:128] = x_ref[448:576]
                  #^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[448:576]` has the shape (64, 256)"],
    ),
    "idx_bool": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0] = x_ref[x_ref[...] > 0]
              #^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[x_ref[...] > 0]` has the shape (512, 256, 256)"],
    ),
    "idx_barrier": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:2] = x_ref[pl.ds(0, -2)]
                #^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[pl.ds(0, -2)]` has the shape (-2, 256)"],
    ),
    "ref_bitcast": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref.bitcast(jnp.int8)[...]
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref.bitcast(jnp.int8)[...]` has the shape (2048, 256)"],
    ),
    "store_named": Snippet(
        """\


def k(x_ref, o_ref):
    total = jnp.sum(x_ref[...], axis=1)
    o_ref[...] = total
                #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS((512, 1), X.dtype))(X)
""",
        ["`total` has the shape (512,)"],
        fixes=3,
    ),
    "store_expr": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = jnp.mean(x * x, axis=-1) + 1e-6
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS((512, 1), X.dtype))(X)
""",
        ["`jnp.mean(x * x, axis=-1) + 1e-6` has the shape (512,)"],
        fixes=3,
    ),
    "store_at": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref.at[pl.ds(0, 256)][...] = x_ref[pl.ds(0, 128), :]
                                  #^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`x_ref[pl.ds(0, 128), :]` has the shape (128, 256)"],
    ),
    "method_of_a_view": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...]
    o_ref.at[0, :].set(0.0)
                      #^^^


if __name__ == "__main__":
    call(k)
""",
        ["`0.0` is a scalar, but `o_ref.at[0, :]` takes the shape (256,)"],
        fixes=1,
    ),
}


def test_store_shape_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "store-shape-mismatch", SNIPPETS)
