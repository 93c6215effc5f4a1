"""Faults of Mosaic GPU kernels that show when their threads and barriers are followed step by step."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import gpu

SMEM = "plgpu.SMEM((128, 128), jnp.float32)"
RING = "plgpu.SMEM((2, 16, 128), jnp.float32), plgpu.Barrier(num_barriers=2)"
THREADS = "\n        num_threads=2,\n        thread_name='wg',"
BLOCKS = "\n        grid=(2,),\n        grid_names=('g',),"

PRODUCER = """
def kernel(x, o, buf, full{more}):
    wg = jax.lax.axis_index("wg")

    @pl.when(wg == 0)
    def _():
        @pl.loop(0, 8)
        def _(i):
            slot = jax.lax.rem(i, 2)
            {before}
            plgpu.copy_gmem_to_smem(x.at[pl.ds(i * 16, 16)], buf.at[slot], full.at[slot])

    @pl.when(wg == 1)
    def _():
        @pl.loop(0, 8)
        def _(i):
            slot = jax.lax.rem(i, 2)
            plgpu.barrier_wait(full.at[slot])
            o[pl.ds(i * 16, 16)] = buf[slot]
"""
RELEASED = "pl.when(i >= 2)(lambda: plgpu.barrier_wait(empty.at[slot]))"

FEW = {
    "in_a_loop": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    @pl.loop(0, 4)\n    def _(i):\n"
            "        plgpu.copy_gmem_to_smem(x, buf, bar)\n        plgpu.barrier_wait(bar)\n"
            "        o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier(num_arrivals=2)",
        ),
        "plgpu.barrier_wait(bar)",
        ("`bar` waits for 2 arrivals", "only 1 comes"),
        fixes=1,
        related=2,
    ),
    "in_one_block_only": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    i = jax.lax.axis_index('g')\n\n    @pl.when(i == 0)\n    def _():\n"
            "        plgpu.copy_gmem_to_smem(x, buf, bar)\n\n    plgpu.barrier_wait(bar)\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
            more=BLOCKS,
        ),
        "plgpu.barrier_wait(bar)",
        ("none comes",),
    ),
    "another_of_several": Case(
        gpu(
            "def kernel(x, o, buf, bars):\n    plgpu.copy_gmem_to_smem(x, buf, bars.at[0])\n"
            "    plgpu.barrier_wait(bars.at[1])\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier(num_barriers=2)",
        ),
        "plgpu.barrier_wait(bars.at[1])",
        ("`bars.at[1]`", "none comes"),
    ),
    "by_another_thread": Case(
        gpu(
            "def kernel(x, o, buf, bar, done):\n    wg = jax.lax.axis_index('wg')\n\n    @pl.when(wg == 0)\n"
            "    def _():\n"
            "        plgpu.copy_gmem_to_smem(x, buf, bar)\n        plgpu.barrier_wait(done)\n\n"
            "    @pl.when(wg == 1)\n    def _():\n        plgpu.barrier_wait(bar)\n        o[...] = buf[...]\n"
            "        plgpu.barrier_arrive(done)\n",
            f"{SMEM}, plgpu.Barrier(), plgpu.Barrier(num_arrivals=2)",
            more=THREADS,
        ),
        "plgpu.barrier_wait(done)",
        fixes=1,
    ),
    "a_slot_that_is_never_released": Case(
        gpu(
            PRODUCER.format(more=", empty", before=RELEASED),
            f"{RING}, plgpu.Barrier(num_barriers=2)",
            more=THREADS,
        ),
        "plgpu.barrier_wait(empty.at[slot])",
        ("none comes",),
    ),
}

TILES = "TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))\n\n\n"
MANY = {
    "two_copies_for_one": Case(
        gpu(
            "def kernel(x, o, a, b, bar):\n    plgpu.copy_gmem_to_smem(x, a, bar)\n"
            "    plgpu.copy_gmem_to_smem(x, b, bar)\n    plgpu.barrier_wait(bar)\n    o[...] = a[...] + b[...]\n",
            f"{SMEM}, {SMEM}, plgpu.Barrier()",
        ),
        "plgpu.barrier_wait(bar)",
        ("opens after 1 arrival", "2 come"),
        fixes=1,
        related=3,
    ),
    "three_for_two": Case(
        gpu(
            "def kernel(x, o, a, b, c, bar):\n    for each in (a, b, c):\n"
            "        plgpu.copy_gmem_to_smem(x, each, bar)\n    plgpu.barrier_wait(bar)\n"
            "    o[...] = a[...] + b[...] + c[...]\n",
            f"{SMEM}, {SMEM}, {SMEM}, plgpu.Barrier(num_arrivals=2)",
        ),
        "plgpu.barrier_wait(bar)",
        fixes=1,
    ),
}

UNORDERED = {
    "a_buffer_filled_again": Case(
        gpu(
            "def kernel(x, o, buf, full, begun):\n    wg = jax.lax.axis_index('wg')\n\n    @pl.when(wg == 0)\n"
            "    def _():\n        plgpu.copy_gmem_to_smem(x, buf, full)\n        plgpu.barrier_wait(begun)\n"
            "        plgpu.barrier_wait(full)\n        plgpu.copy_gmem_to_smem(x, buf, full)\n\n"
            "    @pl.when(wg == 1)\n    def _():\n        plgpu.barrier_arrive(begun)\n"
            "        plgpu.barrier_wait(full)\n        o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier(), plgpu.Barrier()",
            more=THREADS,
        ),
        related=1,
    ),
    "what_another_thread_stored": Case(
        gpu(
            "def kernel(x, o, buf):\n    wg = jax.lax.axis_index('wg')\n    rows = pl.ds(wg * 64, 64)\n"
            "    buf[rows] = x[rows]\n    o[rows] = buf[pl.ds((1 - wg) * 64, 64)]\n",
            SMEM,
            more=THREADS,
        ),
        "buf[pl.ds((1 - wg) * 64, 64)]",
        ("is read here while another thread may still write it",),
        related=1,
    ),
}

READS = {
    "a_slot": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(x, buf.at[0], bar)\n    o[...] = buf[0]\n",
            "plgpu.SMEM((2, 128, 128), jnp.float32), plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(x, buf.at[0], bar)",
        fixes=1,
    ),
}
COMMITS = {
    "a_slot_in_a_loop": Case(
        gpu(
            "def kernel(x, o, buf):\n    @pl.loop(0, 8)\n    def _(i):\n        slot = jax.lax.rem(i, 2)\n"
            "        rows = pl.ds(i * 16, 16)\n        buf[slot] = x[rows] * 2.0\n"
            "        plgpu.copy_smem_to_gmem(buf.at[slot], o.at[rows])\n        plgpu.wait_smem_to_gmem(0)\n",
            "plgpu.SMEM((2, 16, 128), jnp.float32)",
        ),
        "plgpu.copy_smem_to_gmem(buf.at[slot], o.at[rows])",
        fixes=1,
    ),
    "then_a_copy_into_it": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    buf[...] = x[...] * 2.0\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n"
            "    plgpu.barrier_wait(bar)\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(x, buf, bar)",
        ("overwrites it here",),
        fixes=1,
    ),
}
OVERWRITES = {
    "a_slot_filled_again": Case(
        gpu(PRODUCER.format(more="", before=""), RING, more=THREADS),
        "plgpu.copy_gmem_to_smem(x.at[pl.ds(i * 16, 16)], buf.at[slot], full.at[slot])",
        ("`buf.at[slot]` is overwritten here while a copy into it may still be under way",),
        related=1,
    ),
    "one_copy_may_go_on": Case(
        gpu(
            "def kernel(x, o, buf):\n    buf[...] = x[...]\n    plgpu.commit_smem()\n"
            "    plgpu.copy_smem_to_gmem(buf, o)\n    plgpu.wait_smem_to_gmem(1)\n    buf[...] = x[...] * 2.0\n"
            "    plgpu.commit_smem()\n    plgpu.copy_smem_to_gmem(buf, o)\n    plgpu.wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "buf[...]",
        fixes=1,
    ),
}

PRODUCT = """
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def kernel(x, o, a, b, acc, tma, mma):
    plgpu.copy_gmem_to_smem(x, a, tma)
    plgpu.copy_gmem_to_smem(x, b, tma)
    plgpu.barrier_wait(tma)
{body}
    o[...] = plgpu.async_load_tmem(acc)
"""
OPERANDS = (
    "plgpu.SMEM((128, 128), jnp.float16, transforms=TILES), plgpu.SMEM((128, 128), jnp.float16, transforms=TILES), "
    "plgpu.TMEM((128, 128), jnp.float32), plgpu.Barrier(num_arrivals=2), plgpu.Barrier(orders_tensor_core=True)"
)


def product(*lines: str) -> str:
    body = PRODUCT.format(body="\n".join(f"    {line}" for line in lines))
    return gpu(body, OPERANDS, x="(128, 128), jnp.float16")


GARBAGE = {
    "added_at_once": Case(
        product("plgpu.tcgen05_mma(acc, a, b, mma)", "plgpu.barrier_wait(mma)"),
        "plgpu.tcgen05_mma(acc, a, b, mma)",
        ("is added to `acc`", "accumulate=False"),
        fixes=1,
    ),
    "added_in_a_loop": Case(
        product(
            "@pl.loop(0, 4)",
            "def _(k):",
            "    plgpu.tcgen05_mma(acc, a, b, mma, accumulate=True)",
            "    plgpu.barrier_wait(mma)",
        ),
        "plgpu.tcgen05_mma(acc, a, b, mma, accumulate=True)",
        fixes=1,
    ),
    "added_in_a_loop_of_python": Case(
        product("for k in range(2):", "    plgpu.tcgen05_mma(acc, a, b, mma)", "    plgpu.barrier_wait(mma)"),
        fixes=1,
    ),
    "a_sum_in_smem": Case(
        gpu(
            "def kernel(x, o, total):\n    @pl.loop(0, 4)\n    def _(i):\n        total[...] += x[...]\n\n"
            "    o[...] = total[...]\n",
            SMEM,
        ),
        "total[...]",
        ("`total` is read here", "nothing was written"),
    ),
}
PRODUCTS = {
    "not_waited_for": Case(
        product("plgpu.tcgen05_mma(acc, a, b, mma, accumulate=False)"),
        "plgpu.tcgen05_mma(acc, a, b, mma, accumulate=False)",
        ("this product before `acc` is read",),
        fixes=1,
    ),
}
TMEM_COMMITS = {
    "start_not_committed": Case(
        product(
            "plgpu.async_store_tmem(acc, plgpu.layout_cast(jnp.ones((128, 128), jnp.float32), plgpu.Layout.TCGEN05))",
            "plgpu.tcgen05_mma(acc, a, b, mma)",
            "plgpu.barrier_wait(mma)",
        ),
        "plgpu.tcgen05_mma(acc, a, b, mma)",
        ("`acc` was stored to", "plgpu.commit_tmem()"),
        fixes=1,
    ),
}


def test_waits_that_never_end(jax_python: JaxPython) -> None:
    check(jax_python, "too-few-arrivals", FEW)


def test_waits_that_end_too_early(jax_python: JaxPython) -> None:
    check(jax_python, "too-many-arrivals", MANY)


def test_threads_that_nothing_orders(jax_python: JaxPython) -> None:
    check(jax_python, "threads-unordered", UNORDERED)


def test_memory_without_a_value(jax_python: JaxPython) -> None:
    check(jax_python, "memory-never-written", GARBAGE)


def test_slots(jax_python: JaxPython) -> None:
    check(jax_python, "read-before-wait", {**READS, **PRODUCTS})
    check(jax_python, "store-without-commit", {**COMMITS, **TMEM_COMMITS})
    check(jax_python, "smem-overwritten-in-use", OVERWRITES)
