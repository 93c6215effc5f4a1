"""Faulty: ``a @ b + c`` whose accumulator gets its start value in ``pl.run_scoped``, which takes none."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

M, N, K = 64, 128, 64
TILED_16 = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
TILED_32 = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))


def addmm_kernel(a_gmem, b_gmem, c_gmem, o_gmem, a_smem, b_smem, c_smem, loaded):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, loaded)
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, loaded)
    plgpu.copy_gmem_to_smem(c_gmem, c_smem, loaded)
    plgpu.barrier_wait(loaded)
    c = plgpu.layout_cast(c_smem[...], plgpu.Layout.WGMMA)

    def multiply(acc_ref):
        plgpu.wgmma(acc_ref, a_smem, b_smem)
        return acc_ref[...]

    o_gmem[...] = pl.run_scoped(multiply, plgpu.ACC.init(c))


@jax.jit
def addmm(a, b, c):
    return plgpu.kernel(
        addmm_kernel,
        out_type=jax.ShapeDtypeStruct((M, N), jnp.float32),
        scratch_types=[
            plgpu.SMEM((M, K), jnp.float16, transforms=TILED_16),
            plgpu.SMEM((K, N), jnp.float16, transforms=TILED_16),
            plgpu.SMEM((M, N), jnp.float32, transforms=TILED_32),
            plgpu.Barrier(num_arrivals=3),
        ],
    )(a, b, c)


if __name__ == "__main__":
    a, b = jnp.ones((M, K), jnp.float16), jnp.ones((K, N), jnp.float16)
    print(addmm(a, b, jnp.zeros((M, N), jnp.float32)))
