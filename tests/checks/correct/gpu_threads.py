"""Correct Mosaic GPU kernels: copies, barriers, threads, scopes."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

SHAPE = (128, 128)
OUT = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def smem(*shape, dtype=jnp.float32, **options):
    return plgpu.SMEM(shape or SHAPE, dtype, **options)


def one_copy(x):
    def body(x_gmem, o_gmem, buf, out, bar):
        plgpu.copy_gmem_to_smem(x_gmem, buf, bar)
        plgpu.barrier_wait(bar)
        out[...] = buf[...] * 2.0
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(body, out_type=OUT, scratch_types=[smem(), smem(), plgpu.Barrier()])(x)


def two_copies_one_barrier(x):
    def body(x_gmem, o_gmem, a, b, bar):
        plgpu.copy_gmem_to_smem(x_gmem, a, bar)
        plgpu.copy_gmem_to_smem(x_gmem, b, bar)
        plgpu.barrier_wait(bar)
        o_gmem[...] = a[...] + b[...]

    return plgpu.kernel(body, out_type=OUT, scratch_types=[smem(), smem(), plgpu.Barrier(num_arrivals=2)])(x)


def three_arrivals_for_two_waits(x):
    """The third copy arrives before the first wait and counts for the second one."""

    def body(x_gmem, o_gmem, a, b, c, d, bar):
        plgpu.copy_gmem_to_smem(x_gmem, a, bar)
        plgpu.copy_gmem_to_smem(x_gmem, b, bar)
        plgpu.copy_gmem_to_smem(x_gmem, c, bar)
        plgpu.barrier_wait(bar)
        plgpu.copy_gmem_to_smem(x_gmem, d, bar)
        plgpu.barrier_wait(bar)
        o_gmem[...] = a[...] + b[...] + c[...] + d[...]

    scratch = [*[smem(*x.shape)] * 4, plgpu.Barrier(num_arrivals=2)]
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_types=scratch)(x)


def one_arrival_outside_the_loop(x):
    """The barrier of two arrivals gets one before the loop and one in it."""

    def body(x_gmem, o_gmem, a, b, bar):
        plgpu.copy_gmem_to_smem(x_gmem, a, bar)

        @pl.loop(0, 4)
        def _(step):
            plgpu.copy_gmem_to_smem(x_gmem, b, bar)
            plgpu.barrier_wait(bar)

            @pl.when(step < 3)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem, a, bar)

        o_gmem[...] = a[...] + b[...]

    return plgpu.kernel(body, out_type=OUT, scratch_types=[smem(), smem(), plgpu.Barrier(num_arrivals=2)])(x)


def arrivals_in_a_branch(x):
    def body(x_gmem, o_gmem, a, b, bar):
        plgpu.copy_gmem_to_smem(x_gmem, a, bar)

        @pl.when(jax.lax.axis_index("x") == 0)
        def _():
            plgpu.copy_gmem_to_smem(x_gmem, b, bar)

        @pl.when(jax.lax.axis_index("x") != 0)
        def _():
            plgpu.barrier_arrive(bar)

        plgpu.barrier_wait(bar)
        o_gmem[...] = a[...]

    scratch = [smem(), smem(), plgpu.Barrier(num_arrivals=2)]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch, grid=(1,), grid_names=("x",))(x)


def pipelined_with_slots(x):
    steps, slots = 4, 2

    def body(x_gmem, o_gmem, buf, out, bars):
        def fetch(step, slot):
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], buf.at[slot], bars.at[slot])

        for slot in range(slots):
            fetch(slot, slot)

        @pl.loop(0, steps)
        def _(step):
            slot = jax.lax.rem(step, slots)
            plgpu.barrier_wait(bars.at[slot])
            out[...] = buf[slot] * 2.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(out, o_gmem.at[pl.ds(step * 64, 64)])
            plgpu.wait_smem_to_gmem(0)

            @pl.when(step + slots < steps)
            def _():
                fetch(step + slots, slot)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((steps * 64, 64), jnp.float32),
        scratch_types=[smem(slots, 64, 64), smem(64, 64), plgpu.Barrier(num_barriers=slots)],
    )(x)


def fetched_ahead_in_the_loop(x):
    """Each step waits for what the one before fetched."""

    def body(x_gmem, o_gmem, buf, bar):
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], buf, bar)

        def step(number, total):
            plgpu.barrier_wait(bar)
            total = total + buf[...]

            @pl.when(number < 3)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(number * 64, 64)], buf, bar)

            return total

        start = plgpu.layout_cast(jnp.zeros((64, 64), jnp.float32), plgpu.Layout.WG_STRIDED((64, 64), vec_size=2))
        o_gmem[...] = jax.lax.fori_loop(0, 4, step, start)

    out = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    return plgpu.kernel(body, out_type=out, scratch_types=[smem(64, 64), plgpu.Barrier()])(x)


def producer_and_consumer(x):
    def body(x_gmem, o_gmem, buf, full, empty):
        thread = jax.lax.axis_index("wg")

        @pl.when(thread == 1)
        def _():
            @pl.loop(0, 4)
            def _(step):
                plgpu.barrier_wait(empty)
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], buf, full)

        @pl.when(thread == 0)
        def _():
            plgpu.barrier_arrive(empty)

            @pl.loop(0, 4)
            def _(step):
                plgpu.barrier_wait(full)
                o_gmem[pl.ds(step * 64, 64), :] = buf[...] * 2.0

                @pl.when(step < 3)
                def _():
                    plgpu.barrier_arrive(empty)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((256, 64), jnp.float32),
        scratch_types=[smem(64, 64), plgpu.Barrier(), plgpu.Barrier()],
        num_threads=2,
        thread_name="wg",
    )(x)


def matmul(a, b):
    def body(a_gmem, b_gmem, o_gmem, a_smem, b_smem, bar):
        plgpu.copy_gmem_to_smem(a_gmem, a_smem, bar)
        plgpu.copy_gmem_to_smem(b_gmem, b_smem, bar)
        plgpu.barrier_wait(bar)

        def compute(acc):
            plgpu.wgmma(acc, a_smem, b_smem)
            return acc[...]

        o_gmem[...] = pl.run_scoped(compute, plgpu.ACC((64, 64), jnp.float32))

    tiles = smem(64, 64, dtype=jnp.float16, transforms=TILES)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        scratch_types=[tiles, tiles, plgpu.Barrier(num_arrivals=2)],
    )(a, b)


def stored_operand_is_committed(b):
    def body(b_gmem, o_gmem, a_smem, b_smem, bar):
        plgpu.copy_gmem_to_smem(b_gmem, b_smem, bar)
        a_smem[...] = plgpu.layout_cast(jnp.ones((64, 64), jnp.float16), plgpu.Layout.WGMMA)
        plgpu.commit_smem()
        plgpu.barrier_wait(bar)

        def compute(acc):
            plgpu.wgmma(acc, a_smem, b_smem)
            return acc[...]

        o_gmem[...] = pl.run_scoped(compute, plgpu.ACC((64, 64), jnp.float32))

    tiles = smem(64, 64, dtype=jnp.float16, transforms=TILES)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        scratch_types=[tiles, tiles, plgpu.Barrier()],
    )(b)


def written_again_after_a_wait(x):
    def body(x_gmem, o_gmem, buf):
        @pl.loop(0, 4)
        def _(step):
            @pl.when(step > 0)
            def _():
                plgpu.wait_smem_to_gmem(0, wait_read_only=True)

            buf[...] = x_gmem[pl.ds(step * 64, 64), :] + 1.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(buf, o_gmem.at[pl.ds(step * 64, 64)])

        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((256, 64), jnp.float32), scratch_types=[smem(64, 64)])(x)


def buffers_in_turn(x):
    def body(x_gmem, o_gmem, bufs):
        @pl.loop(0, 4)
        def _(step):
            buf = bufs.at[step % 2]
            plgpu.wait_smem_to_gmem(1, wait_read_only=True)
            buf[...] = x_gmem[pl.ds(step * 64, 64), :] + 1.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(buf, o_gmem.at[pl.ds(step * 64, 64)])

        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((256, 64), jnp.float32), scratch_types=[smem(2, 64, 64)])(x)


def operands_loaded_again_once_the_product_is_there(a, b):
    def body(a_gmem, b_gmem, o_gmem, a_smem, b_smem, bar):
        def compute(acc):
            @pl.loop(0, 4)
            def _(_):
                plgpu.copy_gmem_to_smem(a_gmem, a_smem, bar)
                plgpu.copy_gmem_to_smem(b_gmem, b_smem, bar)
                plgpu.barrier_wait(bar)
                plgpu.wgmma(acc, a_smem, b_smem)
                plgpu.wgmma_wait(0)

            return acc[...]

        o_gmem[...] = pl.run_scoped(compute, plgpu.ACC((64, 64), jnp.float32))

    tiles = smem(64, 64, dtype=jnp.float16, transforms=TILES)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        scratch_types=[tiles, tiles, plgpu.Barrier(num_arrivals=2)],
    )(a, b)


def committed_by_a_helper(x):
    def flush(src, dst):
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(src, dst)
        plgpu.wait_smem_to_gmem(0)

    def body(x_gmem, o_gmem, buf):
        buf[...] = x_gmem[...] + 1.0
        jax.jit(flush, inline=True)(buf, o_gmem)

    return plgpu.kernel(body, out_type=OUT, scratch_types=[smem()])(x)


def read_again_by_the_same_thread(x):
    """What a thread stores itself it may load without a commit."""

    def body(x_gmem, o_gmem, buf):
        buf[...] = x_gmem[...] + 1.0
        o_gmem[...] = buf[...] * 2.0

    return plgpu.kernel(body, out_type=OUT, scratch_types=[smem()])(x)


def collective_scope_of_all_threads(x):
    def body(x_gmem, o_gmem):
        def scope(buf):
            @pl.when(jax.lax.axis_index("wg") == 0)
            def _():
                buf[...] = x_gmem[...] + 1.0
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(buf, o_gmem)
                plgpu.wait_smem_to_gmem(0)

        pl.run_scoped(scope, smem(), collective_axes="wg")

    return plgpu.kernel(body, out_type=OUT, num_threads=2, thread_name="wg")(x)


def collective_scope_in_a_branch_that_all_threads_take(x):
    def body(x_gmem, o_gmem):
        @pl.when(jax.lax.axis_index("x") == 0)
        def _():
            def scope(buf):
                @pl.when(jax.lax.axis_index("wg") == 0)
                def _():
                    buf[...] = x_gmem[...] + 1.0
                    plgpu.commit_smem()
                    plgpu.copy_smem_to_gmem(buf, o_gmem)
                    plgpu.wait_smem_to_gmem(0)

            pl.run_scoped(scope, smem(), collective_axes="wg")

    return plgpu.kernel(body, out_type=OUT, grid=(2,), grid_names=("x",), num_threads=2, thread_name="wg")(x)


def value_out_of_a_scope(x):
    def body(x_gmem, o_gmem, bar):
        def scope(buf):
            plgpu.copy_gmem_to_smem(x_gmem, buf, bar)
            plgpu.barrier_wait(bar)
            return buf[...]

        o_gmem[...] = pl.run_scoped(scope, smem()) + 1.0

    return plgpu.kernel(body, out_type=OUT, scratch_types=[plgpu.Barrier()])(x)


def pipeline(x):
    def body(x_gmem, o_gmem):
        def step(_, x_smem, o_smem):
            o_smem[...] = x_smem[...] * 2.0

        spec = plgpu.BlockSpec((64, 64), lambda i: (i, 0))
        plgpu.emit_pipeline(step, grid=(4,), in_specs=[spec], out_specs=[spec], max_concurrent_steps=2)(x_gmem, o_gmem)

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((256, 64), jnp.float32))(x)


if __name__ == "__main__":
    x = jnp.ones(SHAPE, jnp.float32)
    tall = jnp.ones((256, 64), jnp.float32)
    square = jnp.ones((64, 64), jnp.float16)
    small = jnp.ones((32, 32), jnp.float32)
    one_copy(x)
    two_copies_one_barrier(x)
    three_arrivals_for_two_waits(small)
    one_arrival_outside_the_loop(x)
    arrivals_in_a_branch(x)
    pipelined_with_slots(tall)
    fetched_ahead_in_the_loop(tall)
    producer_and_consumer(tall)
    matmul(square, square)
    stored_operand_is_committed(square)
    written_again_after_a_wait(tall)
    buffers_in_turn(tall)
    operands_loaded_again_once_the_product_is_there(square, square)
    committed_by_a_helper(x)
    read_again_by_the_same_thread(x)
    collective_scope_of_all_threads(x)
    collective_scope_in_a_branch_that_all_threads_take(x)
    value_out_of_a_scope(x)
    pipeline(tall)
