"""Correct Mosaic GPU kernels whose order shows only step by step: rings of slots, threads that meet, TMEM."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

SHAPE = (128, 128)
OUT = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
RING = plgpu.SMEM((2, 16, 128), jnp.float32)


def rows(i):
    return pl.ds(i * 16, 16)


def ring_of_one_thread(x):
    def body(x_gmem, o_gmem, buf, full):
        for slot in range(2):
            plgpu.copy_gmem_to_smem(x_gmem.at[rows(slot)], buf.at[slot], full.at[slot])

        @pl.loop(0, 8)
        def _(i):
            slot = jax.lax.rem(i, 2)
            plgpu.barrier_wait(full.at[slot])
            o_gmem[rows(i)] = buf[slot]

            @pl.when(i + 2 < 8)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem.at[rows(i + 2)], buf.at[slot], full.at[slot])

    return plgpu.kernel(body, out_type=OUT, scratch_types=[RING, plgpu.Barrier(num_barriers=2)])(x)


def ring_of_two_threads(x):
    def body(x_gmem, o_gmem, buf, full, empty):
        thread = jax.lax.axis_index("t")

        @pl.when(thread == 0)
        def _():
            @pl.loop(0, 8)
            def _(i):
                slot = jax.lax.rem(i, 2)

                @pl.when(i >= 2)
                def _():
                    plgpu.barrier_wait(empty.at[slot])

                plgpu.copy_gmem_to_smem(x_gmem.at[rows(i)], buf.at[slot], full.at[slot])

        @pl.when(thread == 1)
        def _():
            @pl.loop(0, 8)
            def _(i):
                slot = jax.lax.rem(i, 2)
                plgpu.barrier_wait(full.at[slot])
                o_gmem[rows(i)] = buf[slot]
                plgpu.barrier_arrive(empty.at[slot])

    scratch = [RING, plgpu.Barrier(num_barriers=2), plgpu.Barrier(num_barriers=2)]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch, num_threads=2, thread_name="t")(x)


def slots_on_their_way_out(x):
    def body(x_gmem, o_gmem, buf):
        @pl.loop(0, 8)
        def _(i):
            slot = jax.lax.rem(i, 2)

            @pl.when(i >= 2)
            def _():
                plgpu.wait_smem_to_gmem(1, wait_read_only=True)

            buf[slot] = x_gmem[rows(i)] * 2.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(buf.at[slot], o_gmem.at[rows(i)])

        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(body, out_type=OUT, scratch_types=[RING])(x)


def threads_that_meet(x):
    """Each thread reads what the other stored, after both arrived."""

    def body(x_gmem, o_gmem, buf, met):
        thread = jax.lax.axis_index("t")
        own, other = pl.ds(thread * 64, 64), pl.ds((1 - thread) * 64, 64)
        buf[own] = x_gmem[own] * 2.0
        plgpu.barrier_arrive(met)
        plgpu.barrier_wait(met)
        o_gmem[own] = buf[other]

    scratch = [plgpu.SMEM(SHAPE, jnp.float32), plgpu.Barrier(num_arrivals=2)]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch, num_threads=2, thread_name="t")(x)


def threads_that_do_the_same(x):
    def body(x_gmem, o_gmem, out):
        out[...] = x_gmem[...] * 2.0
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(SHAPE, jnp.float32)]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch, num_threads=2, thread_name="t")(x)


def copies_that_only_some_steps_wait_for(x):
    def body(x_gmem, o_gmem, buf, bar):
        @pl.loop(0, 4)
        def _(i):
            @pl.when(i % 2 == 0)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem, buf, bar)
                plgpu.barrier_wait(bar)
                o_gmem[...] = buf[...]

    return plgpu.kernel(body, out_type=OUT, scratch_types=[plgpu.SMEM(SHAPE, jnp.float32), plgpu.Barrier()])(x)


def value_kept_while_scopes_come_and_go(x):
    """Refs in a dictionary are fine as long as their scope lasts."""

    def body(x_gmem, o_gmem):
        refs = {}

        def scope(first, second):
            refs["first"], refs["second"] = first, second
            refs["first"][...] = x_gmem[...]
            refs["second"][...] = refs["first"][...] + 1.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(refs["second"], o_gmem)
            plgpu.wait_smem_to_gmem(0)

        pl.run_scoped(scope, plgpu.SMEM(SHAPE, jnp.float32), plgpu.SMEM(SHAPE, jnp.float32))

    return plgpu.kernel(body, out_type=OUT)(x)


def made_by_a_function(x):
    def scaled(factor):
        def body(x_gmem, o_gmem):
            o_gmem[...] = x_gmem[...] * factor

        return body

    return plgpu.kernel(scaled(2.0), out_type=OUT)(x)


PRODUCT = [
    plgpu.SMEM(SHAPE, jnp.float16, transforms=TILES),
    plgpu.SMEM(SHAPE, jnp.float16, transforms=TILES),
    plgpu.TMEM(SHAPE, jnp.float32),
    plgpu.Barrier(num_arrivals=2),
    plgpu.Barrier(orders_tensor_core=True),
]


def sum_of_products(a):
    def body(a_gmem, o_gmem, x, y, acc, tma, mma):
        plgpu.copy_gmem_to_smem(a_gmem, x, tma)
        plgpu.copy_gmem_to_smem(a_gmem, y, tma)
        plgpu.barrier_wait(tma)

        @pl.loop(0, 4)
        def _(k):
            plgpu.tcgen05_mma(acc, x, y, mma, accumulate=k > 0)
            plgpu.barrier_wait(mma)

        o_gmem[...] = plgpu.async_load_tmem(acc)

    return plgpu.kernel(body, out_type=OUT, scratch_types=PRODUCT)(a)


def products_that_one_arrival_ends(a):
    def body(a_gmem, o_gmem, x, y, acc, tma, mma):
        plgpu.copy_gmem_to_smem(a_gmem, x, tma)
        plgpu.copy_gmem_to_smem(a_gmem, y, tma)
        plgpu.barrier_wait(tma)
        plgpu.tcgen05_mma(acc, x, y, accumulate=False)
        plgpu.tcgen05_mma(acc, x, y)
        plgpu.tcgen05_commit_arrive(mma)
        plgpu.barrier_wait(mma)
        o_gmem[...] = plgpu.async_load_tmem(acc)

    return plgpu.kernel(body, out_type=OUT, scratch_types=PRODUCT)(a)


def product_added_to_a_stored_value(a):
    def body(a_gmem, o_gmem, x, y, acc, tma, mma):
        plgpu.copy_gmem_to_smem(a_gmem, x, tma)
        plgpu.copy_gmem_to_smem(a_gmem, y, tma)
        plgpu.barrier_wait(tma)
        plgpu.async_store_tmem(acc, plgpu.layout_cast(jnp.ones(SHAPE, jnp.float32), plgpu.Layout.TCGEN05))
        plgpu.commit_tmem()
        plgpu.tcgen05_mma(acc, x, y, mma)
        plgpu.barrier_wait(mma)
        o_gmem[...] = plgpu.async_load_tmem(acc)

    return plgpu.kernel(body, out_type=OUT, scratch_types=PRODUCT)(a)


def rows_that_are_still_to_come(a):
    """The first rows are on their way when all are read: who asks for the result leaves these out."""

    def body(a_gmem, o_gmem, x, first, rest):
        plgpu.copy_gmem_to_smem(a_gmem.at[pl.ds(8, 120)], x.at[pl.ds(8, 120)], rest)
        plgpu.copy_gmem_to_smem(a_gmem.at[pl.ds(0, 8)], x.at[pl.ds(0, 8)], first)
        plgpu.barrier_wait(rest)
        o_gmem[...] = x[...]
        plgpu.barrier_wait(first)

    scratch = [plgpu.SMEM(SHAPE, jnp.float32), plgpu.Barrier(), plgpu.Barrier()]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch)(a)


def block_past_the_end(a):
    """The last block copies nothing, and does nothing with what it reads."""

    def body(a_gmem, o_gmem, x, bar):
        inside = jax.lax.axis_index("g") < 1

        @pl.when(inside)
        def _():
            plgpu.copy_gmem_to_smem(a_gmem, x, bar)
            plgpu.barrier_wait(bar)

        value = x[...]

        @pl.when(inside)
        def _():
            o_gmem[...] = value

    scratch = [plgpu.SMEM(SHAPE, jnp.float32), plgpu.Barrier()]
    return plgpu.kernel(body, out_type=OUT, scratch_types=scratch, grid=(2,), grid_names=("g",))(a)


if __name__ == "__main__":
    array = jnp.ones(SHAPE, jnp.float32)
    ring_of_one_thread(array)
    ring_of_two_threads(array)
    slots_on_their_way_out(array)
    threads_that_meet(array)
    threads_that_do_the_same(array)
    copies_that_only_some_steps_wait_for(array)
    value_kept_while_scopes_come_and_go(array)
    made_by_a_function(array)
    rows_that_are_still_to_come(array)
    block_past_the_end(array)
    half = jnp.ones(SHAPE, jnp.float16)
    sum_of_products(half)
    products_that_one_arrival_ends(half)
    product_added_to_a_stored_value(half)
