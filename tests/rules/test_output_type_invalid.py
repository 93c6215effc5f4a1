"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "out_tuple": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=(512, 256))(x)
                                                #^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`(512, 256)` is a plain tuple, which is read as a sequence of outputs"],
        fixes=1,
    ),
    "out_none": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=None)(x)
                                                #^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`None` stands for no output, so the kernel gets `None` in place of an output ref"],
        fixes=1,
    ),
    "out_missing": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, grid=(4,))(x)
          #^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`out_shape` is missing"],
        fixes=1,
    ),
    "out_pair": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=(x.shape, x.dtype))(x)
                                                #^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`(x.shape, x.dtype)` is a plain tuple, which is read as a sequence of outputs"],
        fixes=1,
    ),
    "gpu_out_tuple": Snippet(
        """\


def f(x):
    return plgpu.kernel(copy_kernel, out_type=x.shape)(x)
                                             #^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`x.shape` is a shape without a dtype, and a tuple is read as a sequence of outputs"],
        fixes=1,
    ),
    "plkernel_out_missing": Snippet(
        """\


def f(x):
    return pl.kernel(copy_kernel, out_type=x.shape, mesh=plgpu.Mesh(grid=(4,), grid_names=("i",)))(x)
                                          #^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`x.shape` is a shape without a dtype, and a tuple is read as a sequence of outputs"],
        fixes=1,
    ),
}


def test_output_type_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "output-type-invalid", SNIPPETS)
