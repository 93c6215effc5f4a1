"""Matrix product on Hopper tensor cores: TMA copies and wgmma overlap in a pipeline over K."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

TILE_M, TILE_N, TILE_K = 128, 128, 64
STAGES = 4


def tiled(dtype):
    """The transforms with which wgmma and TMA read a tile from shared memory: 128-byte rows, swizzled."""
    return (plgpu.TilingTransform((8, 128 // jnp.dtype(dtype).itemsize)), plgpu.SwizzleTransform(128))


def matmul_kernel(a_gmem, b_gmem, o_gmem, o_smem):
    m, n = jax.lax.axis_index("m"), jax.lax.axis_index("n")

    def accumulate(acc):
        def step(_, a_smem, b_smem):
            plgpu.wgmma(acc, a_smem, b_smem)
            plgpu.wgmma_wait(1)  # The previous step is done, so that its buffers can be filled again.

        transforms = tiled(a_gmem.dtype)
        plgpu.emit_pipeline(
            step,
            grid=(a_gmem.shape[1] // TILE_K,),
            in_specs=[
                plgpu.BlockSpec((TILE_M, TILE_K), lambda k: (m, k), transforms=transforms, delay_release=1),
                plgpu.BlockSpec((TILE_K, TILE_N), lambda k: (k, n), transforms=transforms, delay_release=1),
            ],
            max_concurrent_steps=STAGES,
        )(a_gmem, b_gmem)
        return acc[...]

    o_smem[...] = pl.run_scoped(accumulate, plgpu.ACC((TILE_M, TILE_N), jnp.float32)).astype(o_smem.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[pl.ds(m * TILE_M, TILE_M), pl.ds(n * TILE_N, TILE_N)])
    plgpu.wait_smem_to_gmem(0)


@jax.jit
def matmul(a, b):
    m, n = a.shape[0], b.shape[1]
    return plgpu.kernel(
        matmul_kernel,
        out_type=jax.ShapeDtypeStruct((m, n), a.dtype),
        scratch_types=[plgpu.SMEM((TILE_M, TILE_N), a.dtype, transforms=tiled(a.dtype))],
        grid=(m // TILE_M, n // TILE_N),
        grid_names=("m", "n"),
    )(a, b)


if __name__ == "__main__":
    key_a, key_b = jax.random.split(jax.random.key(0))
    a = jax.random.normal(key_a, (1024, 512), jnp.bfloat16)
    b = jax.random.normal(key_b, (512, 1024), jnp.bfloat16)
    print(jnp.abs(matmul(a, b) - a @ b).max())
