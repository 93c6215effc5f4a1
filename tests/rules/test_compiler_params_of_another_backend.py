"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "cp_tpu_on_gpu": Snippet(
        """\


def scale(x):
    return pl.pallas_call(
          #^^^^^^^^^^^^^^
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(x)


if __name__ == "__main__":
    scale(X)
""",
        ["`pl.pallas_call` does not launch Mosaic GPU kernels from jax 0.11 on"],
        fixes=2,
        since=(0, 11, 2),
    ),
    "cp_no_triton_for_a_mosaic_kernel": Snippet(
        """\


def scoped_kernel(x_ref, o_ref):
    def scope(tmp_ref):
        tmp_ref[...] = x_ref[...]
        plgpu.commit_smem()
        o_ref[...] = tmp_ref[...]

    pl.run_scoped(scope, plgpu.SMEM((512, 256), jnp.float32))


def scale(x):
    return pl.pallas_call(
          #^^^^^^^^^^^^^^
        scoped_kernel,
        in_specs=[pl.BlockSpec((512, 256), lambda: (0, 0))],
        out_shape=SDS(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(x)


if __name__ == "__main__":
    scale(X)
""",
        ["Launch with `plgpu.kernel`: there"],
        fixes=0,
        since=(0, 11, 2),
    ),
    "cp_tpu_gpukernel": Snippet(
        """\


if __name__ == "__main__":
    plgpu.kernel(copy_kernel, out_type=SDS(X.shape, X.dtype), compiler_params=pltpu.CompilerParams())(X)
                                                                             #^^^^^^^^^^^^^^^^^^^^^^
""",
        ["These are parameters for TPU"],
        fixes=2,
    ),
    "cp_triton_gpukernel": Snippet(
        """\


if __name__ == "__main__":
    plgpu.kernel(
        copy_kernel, out_type=SDS(X.shape, X.dtype), compiler_params=pltriton.CompilerParams(num_warps=4)
                                                                    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    )(X)
""",
        ["These are parameters for Triton"],
        fixes=2,
    ),
}


def test_compiler_params_of_another_backend(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "compiler-params-of-another-backend", SNIPPETS)
