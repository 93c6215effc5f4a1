"""One product of two tiles on Hopper tensor cores: copied to shared memory, multiplied once, copied back."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from tiles import tiled

ROWS, COLUMNS, DEPTH = 64, 128, 64


def product_kernel(a_gmem, b_gmem, o_gmem, a_smem, b_smem, o_smem, barrier):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, barrier)
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, barrier)
    plgpu.barrier_wait(barrier)

    def multiply(acc):
        plgpu.wgmma(acc, a_smem, b_smem)
        return acc[...]

    total = pl.run_scoped(multiply, plgpu.ACC((ROWS, COLUMNS), jnp.float32))
    o_smem[...] = total.astype(o_smem.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


@jax.jit
def product(a, b):
    transforms = tiled(a.dtype)
    return plgpu.kernel(
        product_kernel,
        out_type=jax.ShapeDtypeStruct((ROWS, COLUMNS), a.dtype),
        scratch_types=[
            plgpu.SMEM((ROWS, DEPTH), a.dtype, transforms=transforms),
            plgpu.SMEM((DEPTH, COLUMNS), a.dtype, transforms=transforms),
            plgpu.SMEM((ROWS, COLUMNS), a.dtype, transforms=transforms),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(a, b)


if __name__ == "__main__":
    scale = 1.0
    a = jnp.full((ROWS, DEPTH), scale, jnp.float16)
    b = jnp.full((DEPTH, COLUMNS), scale, jnp.float16)
    print(product(a, b))
