"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "ref_add": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref + 1.0
                #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_mul_right": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = 2.0 * x_ref
                      #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_val": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * x_ref
                             #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_exp": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref)
                        #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_where": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.where(x_ref[...] > 0, x_ref, 0.0)
                                          #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_astype": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref.astype(jnp.float32)
                #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_T": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref.T
                #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
    ),
    "ref_compare": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.where(x_ref > 0, 1.0, 0.0)
                          #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_augadd": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    o_ref += x_ref[...]
   #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`o_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_augadd_ref": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    o_ref[...] += x_ref
                 #^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_at_add": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref.at[pl.ds(0, 512)] + 1
                #^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref.at[pl.ds(0, 512)]` is a ref, a place in memory"],
        fixes=1,
    ),
    "ref_iter": Snippet(
        """\


def k(x_ref, o_ref):
    for r in x_ref:
            #^^^^^
        o_ref[...] = r


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
    ),
    "ref_helper": Snippet(
        """\


def double(a):
    return a * 2.0
          #^


def k(x_ref, o_ref):
    o_ref[...] = double(x_ref)


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`a` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_star": Snippet(
        """\


def k(*refs):
    x_ref, o_ref = refs
    o_ref[...] = jnp.tanh(x_ref) + 1.0
                         #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "ref_multi_line": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.where(
        x_ref[...] > 0,
        x_ref,
       #^^^^^
        0.0,
    )


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`x_ref` is a ref (float32[512, 256]), a place in memory"],
        fixes=1,
    ),
    "turned": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], x_ref.T)
                                    #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS((X.shape[0], X.shape[0]), X.dtype))(X)
""",
        ["read it with `x_ref[...]`"],
        fixes=1,
    ),
    "bound": Snippet(
        """\


def k(n_ref, x_ref, o_ref):
    o_ref[...] = jax.lax.fori_loop(0, n_ref, lambda i, x: x + 1, x_ref[...])
                                     #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(jnp.ones((1,), jnp.int32), X)
""",
        ["read it with `n_ref[0]`"],
        fixes=1,
    ),
    "ref_list": Snippet(
        """\


def k(*refs):
    refs[1][...] = jnp.exp(refs[0])
                          #^^^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`refs[0]` is a ref, a place in memory"],
        fixes=1,
    ),
}


def test_ref_used_as_array(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "ref-used-as-array", SNIPPETS)
