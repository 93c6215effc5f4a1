"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "kw_blockspec": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        SDS(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(block_shape=(128, 128), indexmap=lambda: (0, 0))],
                                                      #^^^^^^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`pl.BlockSpec` takes no argument `indexmap`"],
    ),
    "kw_run_state": Snippet(
        """\


def k(x_ref, o_ref):
    pl.debug_print("x {}", x_ref[...], sep=3)
                                      #^^^


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`pl.debug_print` takes no argument `sep`"],
        fixes=1,
    ),
    "pid_noaxis": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id()
                             #^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2, 2))
""",
        ["`pl.program_id` needs `axis`, too."],
    ),
    "when_called": Snippet(
        """\


def k(x_ref, o_ref):
    pl.when(pl.program_id(0) == 0, lambda: None)
                                  #^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`pl.when` takes no second positional argument"],
    ),
    "when_args": Snippet(
        """\


def k(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    #^^^^^^^
    def _(x):
        o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`pl.when` needs `x`, too."],
    ),
    "scratch_nodtype": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, scratch_shapes=[pltpu.VMEM((8, 128))])
                           #^^^^^^^^^^
""",
        ["`pltpu.VMEM` needs `dtype`, too."],
    ),
    "kw_shapes": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    plgpu.kernel(k, out_shape=SDS(X.shape, X.dtype), scratch_shapes=[plgpu.SMEM((8, 128), jnp.float32)])(
                   #^^^^^^^^^
        X
    )
""",
        ["`plgpu.kernel` takes no argument `out_shape`"],
        fixes=1,
        since=(0, 11, 2),
    ),
    "kw_pid": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id()
                             #^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`pl.program_id` needs `axis`, too."],
    ),
}


def test_unexpected_argument(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "unexpected-argument", SNIPPETS)
