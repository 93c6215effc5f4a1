"""Correct Mosaic GPU kernels in unusual dress: roles of threads, warps, clusters, classes, rings of buffers."""

import functools

import jax
import jax.experimental.pallas as pallas
import jax.experimental.pallas.mosaic_gpu as mg
import jax.numpy as jnp
from jax import lax

BK, STAGES = 64, 2


def tiled(shape, dtype):
    columns = 128 // jnp.dtype(dtype).itemsize
    return mg.SMEM(shape, dtype, transforms=(mg.TilingTransform((8, columns)), mg.SwizzleTransform(128)))


def by_roles(a, b):
    """One thread copies, the other multiplies; the steps are a Python loop, the scratch a dictionary."""

    def kernel(a, b, out, *, a_s, b_s, full, empty):
        role = lax.axis_index("role")
        steps = a.shape[1] // BK

        @pallas.when(role == 0)
        def _consume():
            def loop(acc):
                for step in range(steps):
                    slot = step % STAGES
                    mg.barrier_wait(full.at[slot])
                    mg.wgmma(acc, a_s.at[slot], b_s.at[slot])
                    mg.wgmma_wait(0)
                    mg.barrier_arrive(empty.at[slot])
                return acc[...]

            out[...] = pallas.run_scoped(loop, mg.ACC((64, 128), jnp.float32))

        @pallas.when(role == 1)
        def _produce():
            for step in range(steps):
                slot = step % STAGES
                if step >= STAGES:
                    mg.barrier_wait(empty.at[slot])
                part = pallas.ds(step * BK, BK)
                mg.copy_gmem_to_smem(a.at[:, part], a_s.at[slot], full.at[slot])
                mg.copy_gmem_to_smem(b.at[part], b_s.at[slot], full.at[slot])

    scratch = {
        "a_s": tiled((STAGES, 64, BK), a.dtype),
        "b_s": tiled((STAGES, BK, 128), b.dtype),
        "full": mg.Barrier(num_arrivals=2, num_barriers=STAGES),
        "empty": mg.Barrier(num_barriers=STAGES),
    }
    run = functools.partial(mg.kernel, num_threads=2, thread_name="role", scratch_types=scratch)
    return run(kernel, out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32))(a, b)


class Broadcast:
    """A method as body, and a copy for a pair of blocks."""

    shape = (64, 128)

    def body(self, src, dst, tile, bar):
        mg.copy_gmem_to_smem(src, tile, bar, collective_axes="pair")
        mg.barrier_wait(bar)
        dst[lax.axis_index("pair")] = tile[...] + 1

    def __call__(self, x):
        out = jax.ShapeDtypeStruct((2, *self.shape), x.dtype)
        scratch = [mg.SMEM(self.shape, x.dtype), mg.Barrier()]
        return mg.kernel(self.body, out_type=out, cluster=(2,), cluster_names=("pair",), scratch_types=scratch)(x)


def blackwell_parts(a, b):
    """The result leaves TMEM in parts."""

    def body(a, b, o, a_s, b_s, part, acc, loaded, done):
        for ref, tile in zip((a, b), (a_s, b_s), strict=True):
            mg.copy_gmem_to_smem(ref, tile, loaded)
        mg.barrier_wait(loaded)
        mg.tcgen05_mma(acc, a_s, b_s, accumulate=False)
        mg.tcgen05_commit_arrive(done)
        mg.barrier_wait(done)
        for number in range(2):
            columns = pallas.ds(number * 64, 64)
            part[...] = mg.async_load_tmem(acc.at[:, columns]).astype(jnp.float16)
            mg.wait_load_tmem()
            mg.commit_smem()
            mg.copy_smem_to_gmem(part, o.at[:, columns])
            mg.wait_smem_to_gmem(0)

    half = jnp.float16
    scratch = [*(tiled(shape, half) for shape in ((128, 64), (64, 128), (128, 64))), mg.TMEM((128, 128), jnp.float32)]
    barriers = [mg.Barrier(num_arrivals=2), mg.Barrier(orders_tensor_core=True)]
    out = jax.ShapeDtypeStruct((128, 128), half)
    return mg.kernel(body, out_type=out, scratch_types=scratch + barriers)(a, b)


def warps_copy(x):
    """Single warps start the copies, the warpgroup waits for them."""

    def body(x, o, tile, bar):
        @pallas.core_map(mg.WarpMesh(axis_name="warp"))
        def _():
            warp = lax.axis_index("warp")

            @pallas.when(warp == 0)
            def _():
                mg.copy_gmem_to_smem(x, tile, bar)

            @pallas.when(warp == 1)
            def _():
                mg.barrier_wait(bar)
                mg.copy_smem_to_gmem(tile, o)

        mg.wait_smem_to_gmem(0)

    scratch = [mg.SMEM(x.shape, x.dtype), mg.Barrier()]
    return mg.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_types=scratch)(x)


def carried(x):
    """A pipeline that carries a value, its index maps made by a function."""

    def at(*axes):
        return lambda *index: tuple(index[axis] for axis in axes)

    def body(x, o):
        def step(scale, _, x_s, total):
            return total + jnp.sum(x_s[...]) * scale

        pipeline = mg.emit_pipeline(
            functools.partial(step, 2.0),
            grid=(2, 2),
            in_specs=[mg.BlockSpec((64, 64), at(0, 1))],
            max_concurrent_steps=2,
            init_carry=jnp.float32(0),
        )
        o[...] = jnp.broadcast_to(pipeline(x), (128,))

    return mg.kernel(body, out_type=jax.ShapeDtypeStruct((128,), jnp.float32))(x)


def test_all():
    half = jnp.float16
    by_roles(jnp.ones((64, 256), half), jnp.ones((256, 128), half))
    Broadcast()(jnp.ones((64, 128)))
    blackwell_parts(jnp.ones((128, 64), half), jnp.ones((64, 128), half))
    warps_copy(jnp.ones((8, 128)))
    carried(jnp.ones((128, 128)))
