"""An instruction of Blackwell's on tensor memory."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def through(o_ref, tmem, smem):
    plgpu.async_store_tmem(tmem, jnp.full((128, 128), 1, jnp.float32))
    plgpu.commit_tmem()
    smem[...] = plgpu.async_load_tmem(tmem)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(smem, o_ref)
    plgpu.wait_smem_to_gmem(0)


def run():
    return plgpu.kernel(
        through,
        out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_types=[plgpu.TMEM((128, 128), jnp.float32), plgpu.SMEM((128, 128), jnp.float32)],
    )()


if __name__ == "__main__":
    run()
