"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "transforms_in_the_spec": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(8,),
        in_specs=[plgpu.BlockSpec((64, 256), lambda i: (i, 0), transforms=(plgpu.TilingTransform((8, 32)),))],
                                                                         #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((64, 256), lambda i: (i, 0)),
        compiler_params=pltriton.CompilerParams(),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["this launch is not compiled by Mosaic GPU"],
        fixes=1,
        related=("This launches the kernel.",),
    ),
    "one_spec_for_both": Snippet(
        """\


def f(x):
    spec = plgpu.BlockSpec((64, 256), lambda i: (i, 0), transforms=(plgpu.TilingTransform((8, 32)),))
                                                                  #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(8,),
        in_specs=[spec],
        out_specs=spec,
        compiler_params=pltriton.CompilerParams(),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        fixes=1,
    ),
}


def test_transforms_outside_mosaic_gpu(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "transforms-outside-mosaic-gpu", SNIPPETS)
