"""Matrix product on Blackwell: tcgen05 accumulates in tensor memory (TMEM) while the next tiles are copied in."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

TILE_M, TILE_N, TILE_K = 128, 128, 64
BUFFERS = 2
TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def matmul_kernel(a_gmem, b_gmem, o_gmem, a_smem, b_smem, o_smem, acc_tmem, loaded, consumed):
    rows = pl.ds(jax.lax.axis_index("m") * TILE_M, TILE_M)
    cols = pl.ds(jax.lax.axis_index("n") * TILE_N, TILE_N)
    steps = a_gmem.shape[1] // TILE_K

    def load(step, slot):
        depth = pl.ds(step * TILE_K, TILE_K)
        plgpu.copy_gmem_to_smem(a_gmem.at[rows, depth], a_smem.at[slot], loaded.at[slot])
        plgpu.copy_gmem_to_smem(b_gmem.at[depth, cols], b_smem.at[slot], loaded.at[slot])

    for slot in range(BUFFERS):
        load(slot, slot)

    @pl.loop(0, steps)
    def _(step):
        slot = jax.lax.rem(step, BUFFERS)
        plgpu.barrier_wait(loaded.at[slot])
        plgpu.tcgen05_mma(acc_tmem, a_smem.at[slot], b_smem.at[slot], consumed.at[slot], accumulate=step > 0)
        plgpu.barrier_wait(consumed.at[slot])

        @pl.when(step + BUFFERS < steps)
        def _():
            load(step + BUFFERS, slot)

    o_smem[...] = plgpu.async_load_tmem(acc_tmem).astype(o_smem.dtype)
    plgpu.wait_load_tmem()
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[rows, cols])
    plgpu.wait_smem_to_gmem(0)


@jax.jit
def matmul(a, b):
    m, n = a.shape[0], b.shape[1]
    return plgpu.kernel(
        matmul_kernel,
        out_type=jax.ShapeDtypeStruct((m, n), jnp.float16),
        scratch_types=[
            plgpu.SMEM((BUFFERS, TILE_M, TILE_K), jnp.float16, transforms=TILED),
            plgpu.SMEM((BUFFERS, TILE_K, TILE_N), jnp.float16, transforms=TILED),
            plgpu.SMEM((TILE_M, TILE_N), jnp.float16, transforms=TILED),
            plgpu.TMEM((TILE_M, TILE_N), jnp.float32),
            plgpu.Barrier(num_arrivals=2, num_barriers=BUFFERS),
            plgpu.Barrier(num_barriers=BUFFERS, orders_tensor_core=True),
        ],
        grid=(m // TILE_M, n // TILE_N),
        grid_names=("m", "n"),
    )(a, b)


if __name__ == "__main__":
    a = jnp.ones((512, 256), jnp.float16)
    b = jnp.ones((256, 512), jnp.float16)
    print(jnp.abs(matmul(a, b) - a @ b).max())
