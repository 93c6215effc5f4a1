"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "fori_dtype": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.fori_loop(0, 4, lambda i, a: a + x_ref[...], jnp.zeros((512, 256), jnp.bfloat16))
                                                                 #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` starts with bfloat16[512,256] here"],
        fixes=1,
    ),
    "fori_shape": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.fori_loop(0, 4, lambda i, a: a + x_ref[...], jnp.zeros(256))
                                                                 #^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` starts with float32[256] here"],
        fixes=1,
    ),
    "fori_none": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    def body(i, _):
        o_ref[...] += x_ref[...]

    lax.fori_loop(0, 4, body, 0)
                             #^


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` gives its body something else than the body returns"],
        fixes=1,
    ),
    "fori_none_ok": Snippet(
        """\


def k(x_ref, o_ref):
    def body(i, acc):
        return None

    o_ref[...] = lax.fori_loop(0, 4, body, x_ref[...])
                                          #^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` gives its body something else than the body returns"],
    ),
    "fori_returns_with_none": Snippet(
        """\


def k(x_ref, o_ref):
    def body(i, _):
        return i

    lax.fori_loop(0, 4, body, None)
                             #^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` gives its body something else than the body returns"],
        fixes=1,
    ),
    "fori_closure": Snippet(
        """\


def k(x_ref, o_ref):
    def body(i, acc):
        return acc + x_ref[i].astype(jnp.float32)

    acc = lax.fori_loop(0, 4, body, 0)
                                   #^
    o_ref[0] = acc


if __name__ == "__main__":
    call(k)
""",
        ["`fori_loop` starts with float32[] here"],
        fixes=1,
    ),
    "while_carry": Snippet(
        """\


def k(x_ref, o_ref):
    i, a = lax.while_loop(
        lambda c: c[0] < 4,
        lambda c: (c[0] + 1, c[1] + x_ref[...]),
        (0, jnp.zeros((512, 256), jnp.bfloat16)),
           #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    )
    o_ref[...] = a


if __name__ == "__main__":
    call(k)
""",
        ["`while_loop` starts with bfloat16[512,256] here"],
        fixes=1,
    ),
    "scan_carry": Snippet(
        """\


def k(x_ref, o_ref):
    a, _ = lax.scan(lambda c, x: (c + x, None), jnp.zeros((256,), jnp.bfloat16), x_ref[...])
                                               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    o_ref[0] = a


if __name__ == "__main__":
    call(k)
""",
        ["`scan` starts with bfloat16[256] here"],
    ),
    "carry_named": Snippet(
        """\


def k(x_ref, o_ref):
    start = jnp.zeros(o_ref.shape, dtype=jnp.bfloat16)

    def step(i, acc):
        return acc + x_ref[...]

    o_ref[...] = lax.fori_loop(0, 4, step, init_val=start)
                                                   #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`fori_loop` starts with bfloat16[512,256] here"],
        fixes=1,
    ),
}


def test_loop_carry_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "loop-carry-mismatch", SNIPPETS)
