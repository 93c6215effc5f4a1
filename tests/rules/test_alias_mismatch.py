"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "alias_in_range": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), input_output_aliases={1: 0})(x)
                                                                                             #^^^^


if __name__ == "__main__":
    f(X)
""",
        ["There is no input 1"],
        fixes=2,
    ),
    "alias_dtype": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(jnp.bfloat16)


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, jnp.bfloat16), input_output_aliases={0: 0})(x)
                                                                                        #^^^^


if __name__ == "__main__":
    f(X)
""",
        ["Output 0 is bfloat16[512, 256] and cannot reuse the memory of input 0 (`x`), which is"],
        fixes=1,
    ),
    "alias_list": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), input_output_aliases=[(0, 0)])(x)
                                                                                            #^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`input_output_aliases` is a list"],
        fixes=1,
    ),
    "alias_names": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), input_output_aliases={"x": 0})(x)
                                                                                             #^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["There is no input 'x': the kernel is called with 1 input, counted from 0."],
        fixes=2,
    ),
}


def test_alias_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "alias-mismatch", SNIPPETS)
