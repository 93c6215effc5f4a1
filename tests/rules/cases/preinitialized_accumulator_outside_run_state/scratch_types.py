import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

T16 = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def mm_kernel(a_gmem, b_gmem, o_gmem, a_smem, b_smem, bars, acc):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, bars.at[0])
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, bars.at[1])
    plgpu.barrier_wait(bars.at[0])
    plgpu.barrier_wait(bars.at[1])
    plgpu.wgmma(acc, a_smem, b_smem)
    o_gmem[...] = acc[...]


def matmul(a, b):
    return plgpu.kernel(
        mm_kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=[
            plgpu.SMEM((64, 64), jnp.bfloat16, transforms=T16),
            plgpu.SMEM((64, 128), jnp.bfloat16, transforms=T16),
            plgpu.Barrier(num_barriers=2),
            plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32)),
#           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        ],
    )(a, b)


if __name__ == "__main__":
    print(matmul(jnp.ones((64, 64), jnp.bfloat16), jnp.ones((64, 128), jnp.bfloat16)))
