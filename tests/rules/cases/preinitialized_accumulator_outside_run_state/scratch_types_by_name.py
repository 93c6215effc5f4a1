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
    shapes = {"a_smem": (64, 64), "b_smem": (64, 128)}
    scratch = {name: plgpu.SMEM(shape, jnp.bfloat16, transforms=T16) for name, shape in shapes.items()}
    f = plgpu.kernel(
        mm_kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=dict(
            **scratch,
            bars=plgpu.Barrier(num_barriers=2),
            acc=plgpu.ACC.init(jnp.full((64, 128), 1.0, jnp.float32)),
#               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        ),
    )
    return f(a, b)


if __name__ == "__main__":
    print(matmul(jnp.ones((64, 64), jnp.bfloat16), jnp.ones((64, 128), jnp.bfloat16)))
