"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "captured_np": Snippet(
        """\


ORDER = np.array([3, 2, 1, 0])


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (ORDER[i], j))],
                                                        #^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`ORDER` is a NumPy array, which takes no traced index (int32[])"],
    ),
    "captured_list": Snippet(
        """\


ORDER = [3, 2, 1, 0]


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (ORDER[i], j))],
                                                        #^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["A Python sequence takes no traced index, `i` (int32[])"],
    ),
    "int_": Snippet(
        """\


def k(x_ref, o_ref):
    n = int(pl.program_id(0))
       #^^^^^^^^^^^^^^^^^^^^^
    o_ref[...] = x_ref[...] * n


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`pl.program_id(0)` (int32[]) cannot become a Python int"],
        fixes=2,
    ),
    "float_": Snippet(
        """\


def k(x_ref, o_ref):
    n = float(x_ref[0, 0])
       #^^^^^^^^^^^^^^^^^^
    o_ref[...] = x_ref[...] * n


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`x_ref[0, 0]` (float32[]) cannot become a Python float"],
        fixes=1,
    ),
    "list_index": Snippet(
        """\


def k(x_ref, o_ref):
    t = [1.0, 2.0]
    o_ref[...] = x_ref[...] * t[pl.program_id(0)]
                             #^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["A Python sequence takes no traced index, `pl.program_id(0)` (int32[])"],
    ),
    "np_fun": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = np.exp(x_ref[...])
                #^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`np.exp` computes with NumPy, which needs values"],
        fixes=1,
    ),
    "boolmask": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = jnp.sum(x[x > 0])
                        #^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["A mask `x > 0` gives a result whose size depends on values"],
    ),
    "item": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * x_ref[0, 0].item()
                             #^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[0, 0]` (float32[]) cannot become a Python value"],
        fixes=1,
    ),
    "format": Snippet(
        """\


def k(x_ref, o_ref):
    print(f"{x_ref[0, 0]:.3f}")
         #^^^^^^^^^^^^^^^^^^^^
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k)
""",
        ["A traced value cannot be formatted"],
    ),
    "numpy_in_numpy": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = np.log1p(np.exp(x_ref[...]))
                         #^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`np.exp` computes with NumPy"],
        fixes=1,
    ),
}


def test_traced_value_made_concrete(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "traced-value-made-concrete", SNIPPETS)
