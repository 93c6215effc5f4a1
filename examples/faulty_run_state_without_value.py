"""Faulty: a matrix product whose accumulator enters ``pl.run_state`` without a value to start from."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

M, N, K = 64, 128, 128
TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def matmul_kernel(a_gmem, b_gmem, o_gmem, a_smem, b_smem, loaded):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, loaded)
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, loaded)
    plgpu.barrier_wait(loaded)

    def multiply(acc_ref):
        plgpu.wgmma(acc_ref, a_smem, b_smem)

    # jax raises NotImplementedError with an empty message here.
    o_gmem[...] = pl.run_state(multiply)(plgpu.ACC((M, N), jnp.float32))


@jax.jit
def matmul(a, b):
    return plgpu.kernel(
        matmul_kernel,
        out_type=jax.ShapeDtypeStruct((M, N), jnp.float32),
        scratch_types=[
            plgpu.SMEM((M, K), jnp.float16, transforms=TILED),
            plgpu.SMEM((K, N), jnp.float16, transforms=TILED),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(a, b)


if __name__ == "__main__":
    print(matmul(jnp.ones((M, K), jnp.float16), jnp.ones((K, N), jnp.float16)))
