"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "fori_body_arity": Snippet(
        """\


def k(x_ref, o_ref):
    def step(acc):
       #^^^^
        return acc

    o_ref[...] = jax.lax.fori_loop(0, 4, step, x_ref[...])


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`step` takes 1 argument"],
        fixes=1,
    ),
    "run_scoped_with_fewer_types": Snippet(
        """\


def k(x_ref, o_ref):
    def scope(tmp_ref, spare_ref):
       #^^^^^
        tmp_ref[...] = x_ref[...]
        o_ref[...] = tmp_ref[...]

    pl.run_scoped(scope, pltpu.VMEM((512, 256), jnp.float32))


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`scope` takes 2 arguments, but it is called with 1: `pl.run_scoped`"],
        fixes=1,
    ),
    "run_scoped_with_another_keyword": Snippet(
        """\


def k(x_ref, o_ref):
    def scope(tmp_ref):
        tmp_ref[...] = x_ref[...]
        o_ref[...] = tmp_ref[...]

    pl.run_scoped(scope, buffer=pltpu.VMEM((512, 256), jnp.float32))
                        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`scope` has no parameter `buffer`"],
        fixes=1,
    ),
    "cond_args": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.cond(pl.program_id(0) == 0, lambda x: x, lambda: x_ref[...], x_ref[...])
                                                             #^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["This function takes 0 arguments"],
        fixes=1,
    ),
}


def test_callback_parameters_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "callback-parameters-mismatch", SNIPPETS)
