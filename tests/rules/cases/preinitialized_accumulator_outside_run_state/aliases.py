import jax
import jax.experimental.pallas.mosaic_gpu as gpu
import jax.numpy as jnp
from jax.experimental.pallas import run_scoped as scoped
from jax.experimental.pallas.mosaic_gpu import WGMMAAccumulatorRef as Acc

T16 = (gpu.TilingTransform((8, 64)), gpu.SwizzleTransform(128))
T32 = (gpu.TilingTransform((8, 32)), gpu.SwizzleTransform(128))


def mm_kernel(a_gmem, b_gmem, c_gmem, o_gmem, a_smem, b_smem, c_smem, o_smem, bars):
    gpu.copy_gmem_to_smem(a_gmem, a_smem, bars.at[0])
    gpu.copy_gmem_to_smem(b_gmem, b_smem, bars.at[1])
    gpu.copy_gmem_to_smem(c_gmem, c_smem, bars.at[2])
    gpu.barrier_wait(bars.at[0])
    gpu.barrier_wait(bars.at[1])
    gpu.barrier_wait(bars.at[2])
    c = gpu.layout_cast(c_smem[...], gpu.Layout.WGMMA)

    def scope(acc):
        gpu.wgmma(acc, a_smem, b_smem)
        return acc[...]

    o_smem[...] = scoped(scope, Acc.init(c))
#                               ^^^^^^^^^^^
    gpu.commit_smem()
    gpu.copy_smem_to_gmem(o_smem, o_gmem)
    gpu.wait_smem_to_gmem(0)


def matmul(a, b, c):
    return gpu.kernel(
        mm_kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=[
            gpu.SMEM((64, 64), jnp.bfloat16, transforms=T16),
            gpu.SMEM((64, 128), jnp.bfloat16, transforms=T16),
            gpu.SMEM((64, 128), jnp.float32, transforms=T32),
            gpu.SMEM((64, 128), jnp.float32, transforms=T32),
            gpu.Barrier(num_barriers=3),
        ],
    )(a, b, c)


if __name__ == "__main__":
    a = jnp.ones((64, 64), jnp.bfloat16)
    b = jnp.ones((64, 128), jnp.bfloat16)
    print(matmul(a, b, jnp.zeros((64, 128), jnp.float32)))
