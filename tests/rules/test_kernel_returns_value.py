"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "returns_value": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...]
    return o_ref[...]
          #^^^^^^^^^^


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["The kernel returns `o_ref[...]`"],
        fixes=1,
    ),
    "returns_lambda": Snippet(
        """\


def f(x):
    return pl.pallas_call(lambda x_ref, o_ref: x_ref[...], out_shape=SDS(x.shape, x.dtype))(x)
                                              #^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["The kernel returns `x_ref[...]`"],
    ),
    "plkernel_returns": Snippet(
        """\


def k(x_ref, o_ref):
    return x_ref[...]
          #^^^^^^^^^^


def f(x):
    return pl.kernel(k, out_type=SDS(x.shape, x.dtype), mesh=plgpu.Mesh(grid=(4,), grid_names=("i",)))(x)


if __name__ == "__main__":
    f(X)
""",
        ["The kernel returns `x_ref[...]`"],
        fixes=2,
    ),
}


def test_kernel_returns_value(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "kernel-returns-value", SNIPPETS)
