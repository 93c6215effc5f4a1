"""Matrix product on Hopper: the copies of the next steps overlap with the products of this one."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from tiles import tiled

TILE_M, TILE_N, TILE_K = 128, 128, 64
STAGES = 4


def matmul_kernel(a_gmem, b_gmem, o_gmem, o_smem):
    m, n = jax.lax.axis_index("m"), jax.lax.axis_index("n")
    transforms = tiled(a_gmem.dtype)

    def accumulate(acc):
        def step(_, a_smem, b_smem):
            plgpu.wgmma(acc, a_smem, b_smem)
            plgpu.wgmma_wait(1)

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

    total = pl.run_scoped(accumulate, plgpu.ACC((TILE_M, TILE_N), jnp.float32))
    o_smem[...] = total.astype(o_smem.dtype)
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


def test_matmul():
    scale = 1.0
    a = jnp.full((1024, 512), scale, jnp.bfloat16)
    b = jnp.full((512, 1024), scale, jnp.bfloat16)
    assert matmul(a, b).shape == (1024, 1024)
