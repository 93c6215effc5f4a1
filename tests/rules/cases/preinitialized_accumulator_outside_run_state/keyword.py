import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

T16 = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
T32 = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))


def mm_kernel(a_gmem, b_gmem, c_gmem, o_gmem, a_smem, b_smem, c_smem, o_smem, bars):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, bars.at[0])
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, bars.at[1])
    plgpu.copy_gmem_to_smem(c_gmem, c_smem, bars.at[2])
    plgpu.barrier_wait(bars.at[0])
    plgpu.barrier_wait(bars.at[1])
    plgpu.barrier_wait(bars.at[2])
    c = plgpu.layout_cast(c_smem[...], plgpu.Layout.WGMMA)

    def scope(acc):
        """Adds a product."""
        plgpu.wgmma(acc, a_smem, b_smem)
        return acc[...]  # the sum

    o_smem[...] = pl.run_scoped(scope, acc=plgpu.ACC.init(c))
#                                          ^^^^^^^^^^^^^^^^^
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


def matmul(a, b, c):
    return plgpu.kernel(
        mm_kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=[
            plgpu.SMEM((64, 64), jnp.bfloat16, transforms=T16),
            plgpu.SMEM((64, 128), jnp.bfloat16, transforms=T16),
            plgpu.SMEM((64, 128), jnp.float32, transforms=T32),
            plgpu.SMEM((64, 128), jnp.float32, transforms=T32),
            plgpu.Barrier(num_barriers=3),
        ],
    )(a, b, c)


if __name__ == "__main__":
    a = jnp.ones((64, 64), jnp.bfloat16)
    b = jnp.ones((64, 128), jnp.bfloat16)
    print(matmul(a, b, jnp.zeros((64, 128), jnp.float32)))
