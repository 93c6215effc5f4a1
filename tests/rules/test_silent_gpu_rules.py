"""The rules for what a Mosaic GPU kernel does wrong without being refused."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import gpu

SMEM = "plgpu.SMEM((128, 128), jnp.float32)"
TILED = "plgpu.SMEM((128, 128), jnp.float16, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)))"
COPY = f"{SMEM}, {SMEM}, plgpu.Barrier()"
FLUSH = """
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(out, o)
    plgpu.wait_smem_to_gmem(0)
"""

READS = {
    "right_away": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n    o[...] = buf[...] * 2.0\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(x, buf, bar)",
        ("`buf` is read on line 11", "plgpu.barrier_wait"),
        fixes=1,
        related=1,
    ),
    "keywords": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(barrier=bar, dst=buf, src=x)\n"
            "    y = buf[...]\n    o[...] = y\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(barrier=bar, dst=buf, src=x)",
        fixes=1,
    ),
    "waited_too_late": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n    y = buf[...]\n"
            "    plgpu.barrier_wait(bar)\n    o[...] = y\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        fixes=1,
    ),
    "by_a_helper": Case(
        gpu(
            "def fetch(src, dst, barrier):\n    plgpu.copy_gmem_to_smem(src, dst, barrier)\n\n\n"
            "def kernel(x, o, buf, bar):\n    fetch(x, buf, bar)\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(src, dst, barrier)",
        fixes=1,
    ),
    "two_copies": Case(
        gpu(
            "def kernel(x, o, a, b, bar):\n    plgpu.copy_gmem_to_smem(x, a, bar)\n"
            "    plgpu.copy_gmem_to_smem(x, b, bar)\n"
            "    o[...] = a[...] + b[...]\n",
            f"{SMEM}, {SMEM}, plgpu.Barrier(num_arrivals=2)",
        ),
        "plgpu.copy_gmem_to_smem(x, a, bar)",
        fixes=1,
    ),
    "one_of_several_barriers": Case(
        gpu(
            "def kernel(x, o, buf, bars):\n    plgpu.copy_gmem_to_smem(x, buf, bars.at[1])\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier(num_barriers=2)",
        ),
        fixes=1,
    ),
    "several_lines": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(\n        x,\n        buf,\n        bar,\n    )\n"
            "    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem",
        fixes=1,
    ),
    "scoped": Case(
        gpu(
            "def kernel(x, o, bar):\n    def scope(buf):\n        plgpu.copy_gmem_to_smem(x, buf, bar)\n"
            "        o[...] = buf[...]\n\n    pl.run_scoped(scope, plgpu.SMEM((128, 128), jnp.float32))\n",
            "plgpu.Barrier()",
        ),
        "plgpu.copy_gmem_to_smem(x, buf, bar)",
        fixes=1,
    ),
}

COMMITS = {
    "copied_out": Case(
        gpu(
            "def kernel(x, o, out):\n    out[...] = jnp.maximum(x[...], 0.0)\n    plgpu.copy_smem_to_gmem(out, o)\n"
            "    plgpu.wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "plgpu.copy_smem_to_gmem(out, o)",
        ("`out` was stored to", "commit_smem"),
        fixes=1,
        related=1,
    ),
    "in_a_loop": Case(
        gpu(
            "def kernel(x, o, out):\n    @pl.loop(0, 4)\n    def _(step):\n        out[...] = x[...] * 2.0\n"
            "        plgpu.copy_smem_to_gmem(out, o)\n        plgpu.wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "plgpu.copy_smem_to_gmem(out, o)",
        fixes=1,
    ),
    "on_one_line": Case(
        gpu(
            "def kernel(x, o, out):\n    out[...] = x[...]; plgpu.copy_smem_to_gmem(out, o)  # out\n"
            "    plgpu.wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "plgpu.copy_smem_to_gmem(out, o)",
        fixes=1,
    ),
    "names_imported": Case(
        gpu(
            "from jax.experimental.pallas.mosaic_gpu import copy_smem_to_gmem, wait_smem_to_gmem\n\n\n"
            "def kernel(x, o, out):\n    out[...] = x[...]\n    copy_smem_to_gmem(out, o)\n    wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "copy_smem_to_gmem(out, o)",
        fixes=1,
    ),
    "matrix_operand": Case(
        gpu(
            """
            TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


            def kernel(x, o, a, b, bar):
                plgpu.copy_gmem_to_smem(x, b, bar)
                plgpu.barrier_wait(bar)
                a[...] = plgpu.layout_cast(jnp.ones((64, 64), jnp.float16), plgpu.Layout.WGMMA)

                def scope(acc):
                    plgpu.wgmma(acc, a, b)
                    return acc[...]

                o[...] = pl.run_scoped(scope, plgpu.ACC((64, 64), jnp.float32))
            """,
            ", ".join(["plgpu.SMEM((64, 64), jnp.float16, transforms=TILES)"] * 2) + ", plgpu.Barrier()",
            out="(64, 64), jnp.float32",
        ).replace("jnp.ones((128, 128), jnp.float32)", "jnp.ones((64, 64), jnp.float16)"),
        "plgpu.wgmma(acc, a, b)",
        ("the tensor core",),
        fixes=1,
    ),
}

WAITS = {
    "to_gmem": Case(
        gpu(
            "def kernel(x, o, out):\n    out[...] = x[...]\n    plgpu.commit_smem()\n"
            "    plgpu.copy_smem_to_gmem(out, o)\n",
            SMEM,
        ),
        "plgpu.copy_smem_to_gmem(out, o)",
        ("wait_smem_to_gmem",),
        fixes=1,
    ),
    "to_gmem_in_a_loop": Case(
        gpu(
            "def kernel(x, o, out):\n    @pl.loop(0, 2)\n    def _(step):\n        out[...] = x[...]\n"
            "        plgpu.commit_smem()\n        plgpu.copy_smem_to_gmem(out, o)\n",
            SMEM,
        ),
        "plgpu.copy_smem_to_gmem(out, o)",
        fixes=1,
    ),
}

ARRIVALS = {
    "one_of_two": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n    plgpu.barrier_wait(bar)\n"
            "    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier(num_arrivals=2)",
        ),
        "plgpu.barrier_wait(bar)",
        ("`bar` waits for 2 arrivals", "only 1 comes", "hangs"),
        fixes=1,
        related=2,
    ),
    "two_of_four": Case(
        gpu(
            "def kernel(x, o, a, b, bar):\n    plgpu.copy_gmem_to_smem(x, a, bar)\n"
            "    plgpu.copy_gmem_to_smem(x, b, bar)\n"
            "    plgpu.barrier_wait(bar)\n    o[...] = a[...] + b[...]\n",
            f"{SMEM}, {SMEM}, plgpu.Barrier(num_arrivals=4)",
        ),
        "plgpu.barrier_wait(bar)",
        ("4 arrivals", "only 2 come"),
        fixes=1,
    ),
    "scoped": Case(
        gpu(
            "def kernel(x, o, buf):\n    def scope(bar):\n        plgpu.copy_gmem_to_smem(x, buf, bar)\n"
            "        plgpu.barrier_wait(bar)\n        o[...] = buf[...]\n\n"
            "    pl.run_scoped(scope, plgpu.Barrier(num_arrivals=3))\n",
            SMEM,
        ),
        "plgpu.barrier_wait(bar)",
        fixes=1,
    ),
    "waited_first": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.barrier_wait(bar)\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n"
            "    plgpu.barrier_wait(bar)\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.barrier_wait(bar)",
        ("none comes before this wait", "stand after the wait"),
    ),
    "waited_twice": Case(
        gpu(
            "def kernel(x, o, buf, bar):\n    plgpu.copy_gmem_to_smem(x, buf, bar)\n    plgpu.barrier_wait(bar)\n"
            "    plgpu.barrier_wait(bar)\n    o[...] = buf[...]\n",
            f"{SMEM}, plgpu.Barrier()",
        ),
        "plgpu.barrier_wait(bar)",
        ("and after the wait before it",),
    ),
}

BRANCH = """
def kernel(x, o{more}):
    wg = jax.lax.axis_index("wg")

    @pl.when(wg == 0)
    def _():
        def scope(buf):
            buf[...] = x[...] + 1.0
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(buf, o)
            plgpu.wait_smem_to_gmem(0)

        {call}
"""
THREADS = "\n        num_threads=2,\n        thread_name='wg',"
CALL = "pl.run_scoped(scope, plgpu.SMEM((128, 128), jnp.float32), collective_axes='wg')"
SCOPES = {
    "when": Case(gpu(BRANCH.format(call=CALL, more=""), "", more=THREADS), CALL, ("'wg'", "hangs"), fixes=1, related=1),
    "by_name": Case(
        gpu(BRANCH.format(call=CALL.replace("plgpu.SMEM", "buf=plgpu.SMEM"), more=""), "", more=THREADS), fixes=1
    ),
    "with_other_scratch": Case(
        gpu(BRANCH.format(call=CALL, more=", unused"), "plgpu.SMEM((8, 128), jnp.float32)", more=THREADS), fixes=1
    ),
    "tuple_of_axes": Case(gpu(BRANCH.format(call=CALL.replace("'wg'", "('wg',)"), more=""), "", more=THREADS), fixes=1),
}

TILES = "TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))\n\n\n"
PRODUCT = """def kernel(x, o, a, b, bar):
    plgpu.copy_gmem_to_smem(x, a, bar)
    plgpu.copy_gmem_to_smem(x, b, bar)
    plgpu.barrier_wait(bar)

    {scope}

    {use}
"""
OPERANDS = ", ".join(["plgpu.SMEM((64, 64), jnp.float16, transforms=TILES)"] * 2) + ", plgpu.Barrier(num_arrivals=2)"


def product(scope: str, use: str) -> str:
    text = gpu(
        TILES + PRODUCT.format(scope=scope, use=use), OPERANDS, out="(64, 64), jnp.float32", x="(64, 64), jnp.float32"
    )
    return text.replace("(jnp.ones((64, 64), jnp.float32))", "(jnp.ones((64, 64), jnp.float16))")


SCOPE = "def scope(acc):\n        plgpu.wgmma(acc, a, b)\n        return acc"
ACC = "plgpu.ACC((64, 64), jnp.float32)"
OUTLIVES = {
    "read_afterwards": Case(
        product(SCOPE, f"value = pl.run_scoped(scope, {ACC})\n    o[...] = value[...] * 2.0"),
        "acc",
        ("`acc` is a ref (Ref<f32[64,64]>)", "`acc[...]`"),
        fixes=1,
        related=1,
    ),
    "read_at_the_call": Case(product(SCOPE, f"o[...] = pl.run_scoped(scope, {ACC})[...] * 2.0"), "acc", fixes=1),
    "by_name": Case(
        product(
            SCOPE.replace("(acc)", "(*, acc)"),
            f"value = pl.run_scoped(scope, acc={ACC})\n    o[...] = value[:, :] + 1.0",
        ),
        "acc",
        fixes=1,
    ),
    "with_others": Case(
        product(
            SCOPE.replace("return acc", "return acc[...] * 2.0, acc"),
            f"factor, value = pl.run_scoped(scope, {ACC})\n    o[...] = value[...] + factor",
        ),
        "acc",
        fixes=1,
    ),
}

OUTLIVES |= {
    "a_buffer": Case(
        gpu(
            "def kernel(x, o):\n    def load(tile):\n        tile[...] = x[...]\n        return tile\n\n"
            f"    tile = pl.run_scoped(load, {SMEM})\n    o[...] = tile[...]\n",
            "",
        ),
        "tile",
        ("return its value",),
        fixes=1,
        related=1,
    ),
    "a_lambda": Case(
        gpu(f"def kernel(x, o):\n    o[...] = pl.run_scoped(lambda tile: tile, {SMEM})[...]\n", ""), "tile", fixes=1
    ),
}


OVERWRITES = {
    "in_a_row": Case(
        gpu(
            f"def kernel(x, o, out):\n    out[...] = x[...]{FLUSH.replace('plgpu.wait_smem_to_gmem(0)', '').rstrip()}\n"
            f"    out[...] = x[...] * 2.0{FLUSH}",
            SMEM,
        ),
        "out[...]",
        ("`out` is overwritten here", "the copy engine", "`plgpu.wait_smem_to_gmem(0)`"),
        fixes=1,
        related=1,
    ),
    "from_one_iteration_to_the_next": Case(
        gpu(
            "def kernel(x, o, out):\n    def step(i, carry):\n        out[...] = x[...] * i\n"
            "        plgpu.commit_smem()\n        plgpu.copy_smem_to_gmem(out, o)\n        return carry\n\n"
            "    jax.lax.fori_loop(0, 4, step, None)\n    plgpu.wait_smem_to_gmem(0)\n",
            SMEM,
        ),
        "out[...]",
        fixes=1,
        related=1,
    ),
    "operand_of_wgmma": Case(
        gpu(
            "def kernel(x, o, a, b, bar):\n    plgpu.copy_gmem_to_smem(x, a, bar)\n    plgpu.barrier_wait(bar)\n"
            "    plgpu.copy_gmem_to_smem(x, b, bar)\n    plgpu.barrier_wait(bar)\n\n"
            "    def scope(acc):\n        plgpu.wgmma(acc, a, b)\n        plgpu.copy_gmem_to_smem(x, a, bar)\n"
            "        plgpu.barrier_wait(bar)\n        plgpu.wgmma(acc, a, b)\n        return acc[...]\n\n"
            "    o[...] = pl.run_scoped(scope, plgpu.ACC((128, 128)))\n",
            f"{TILED}, {TILED}, plgpu.Barrier()",
            x="(128, 128), jnp.float16",
        ),
        "plgpu.copy_gmem_to_smem(x, a, bar)",
        ("`a` is overwritten here", "the tensor core", "`plgpu.wgmma_wait(0)`"),
        fixes=1,
        related=1,
    ),
}


def test_shared_memory_overwritten_in_use(jax_python: JaxPython) -> None:
    check(jax_python, "smem-overwritten-in-use", OVERWRITES)


def test_reads_before_the_wait(jax_python: JaxPython) -> None:
    check(jax_python, "read-before-wait", READS)


def test_stores_without_commit(jax_python: JaxPython) -> None:
    check(jax_python, "store-without-commit", COMMITS)


def test_copies_never_waited_for(jax_python: JaxPython) -> None:
    check(jax_python, "copy-never-waited", WAITS)


def test_too_few_arrivals(jax_python: JaxPython) -> None:
    check(jax_python, "too-few-arrivals", ARRIVALS)


def test_collective_scopes_in_branches(jax_python: JaxPython) -> None:
    check(jax_python, "collective-scope-in-branch", SCOPES)


def test_refs_that_outlive_their_scope(jax_python: JaxPython) -> None:
    check(jax_python, "ref-outlives-scope", OUTLIVES)
