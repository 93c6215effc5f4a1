"""Builds the text of small Mosaic GPU kernels, for tests that want many that differ in one place."""

from __future__ import annotations

from collections.abc import Sequence

HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

T = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
"""

LAUNCH = """

def run(*arrays):
    return plgpu.kernel(
        {body},
        out_type=jax.ShapeDtypeStruct({out}),
        {options}
    )(*arrays)


if __name__ == "__main__":
    run({arrays})
"""


def gpu_kernel(
    body: str,
    *,
    inputs: Sequence[str] = ("(128, 128), jnp.float32",),
    out: str = "(128, 128), jnp.float32",
    scratch: Sequence[str] | str = (),
    options: Sequence[str] = (),
    head: str = "",
    name: str = "body",
) -> str:
    """A file with the kernel ``body`` (the text of a function of that name) and a main block that launches it.

    ``scratch``: expressions, one a line in ``scratch_types``, or the whole expression.  ``options``: more keyword
    arguments, each a line.
    """
    lines = list(options)
    if isinstance(scratch, str):
        lines.append(f"scratch_types={scratch},")
    elif scratch:
        lines += ["scratch_types=[", *(f"    {each}," for each in scratch), "],"]
    launch = LAUNCH.format(
        body=name,
        out=out,
        options="\n        ".join(lines),
        arrays=", ".join(f"jnp.ones({each})" for each in inputs),
    )
    return f"{HEAD}{head}\n\n{body.strip()}\n{launch}"


LANE = "compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane),"


def wgmma_kernel(
    call: str = "plgpu.wgmma(acc, a_s, b_s)",
    *,
    a: str = "(64, 64), jnp.float16",
    b: str = "(64, 128), jnp.float16",
    acc: str = "plgpu.ACC((64, 128), jnp.float32)",
    out: str = "(64, 128), jnp.float32",
    a_scratch: str | None = None,
    b_scratch: str | None = None,
    options: Sequence[str] = (),
    head: str = "",
) -> str:
    """A kernel that copies two operands into SMEM and multiplies them with ``call``."""
    body = f"""
def body(a, b, o, a_s, b_s, bar):
    plgpu.copy_gmem_to_smem(a, a_s, bar)
    plgpu.copy_gmem_to_smem(b, b_s, bar)
    plgpu.barrier_wait(bar)

    def scope(acc):
        {call}
        return acc[...]

    o[...] = pl.run_scoped(scope, {acc})
"""
    return gpu_kernel(
        body,
        inputs=(a, b),
        out=out,
        scratch=(
            a_scratch or f"plgpu.SMEM({a}, transforms=T)",
            b_scratch or f"plgpu.SMEM({b}, transforms=T)",
            "plgpu.Barrier(num_arrivals=2)",
        ),
        options=options,
        head=head,
    )


def product_kernel(code: str, *, options: Sequence[str] = ()) -> str:
    """A kernel with two operands of wgmma in SMEM and a third input ``c``, of the product's type; then ``code``."""
    body = f"""
def body(a, b, c, o, a_s, b_s, bar):
    plgpu.copy_gmem_to_smem(a, a_s, bar)
    plgpu.copy_gmem_to_smem(b, b_s, bar)
    plgpu.barrier_wait(bar)

{code}
"""
    return gpu_kernel(
        body,
        inputs=("(64, 64), jnp.float16", "(64, 128), jnp.float16", "(64, 128), jnp.float32"),
        out="(64, 128), jnp.float32",
        scratch=(
            "plgpu.SMEM((64, 64), jnp.float16, transforms=T)",
            "plgpu.SMEM((64, 128), jnp.float16, transforms=T)",
            "plgpu.Barrier(num_arrivals=2)",
        ),
        options=options,
    )


def tcgen05_kernel(
    call: str = "plgpu.tcgen05_mma(acc, a_s, b_s, mma_bar, accumulate=False)",
    *,
    a: str = "(128, 64), jnp.float16",
    b: str = "(64, 128), jnp.float16",
    acc: str = "plgpu.TMEM((128, 128), jnp.float32)",
    mma_bar: str = "plgpu.Barrier(orders_tensor_core=True)",
    out: str = "(128, 128), jnp.float32",
    read: str = "o[...] = plgpu.async_load_tmem(acc)",
    a_scratch: str | None = None,
    b_scratch: str | None = None,
    more_scratch: Sequence[str] = (),
    options: Sequence[str] = (),
    head: str = "",
) -> str:
    """A Blackwell kernel that copies two operands into SMEM and multiplies them with ``call``."""
    more = "".join(f", more{index}" for index in range(len(more_scratch)))
    body = f"""
def body(a, b, o, a_s, b_s, acc, bar, mma_bar{more}):
    plgpu.copy_gmem_to_smem(a, a_s, bar)
    plgpu.copy_gmem_to_smem(b, b_s, bar)
    plgpu.barrier_wait(bar)
    {call}
    plgpu.barrier_wait(mma_bar)
    {read}
"""
    return gpu_kernel(
        body,
        inputs=(a, b),
        out=out,
        scratch=(
            a_scratch or f"plgpu.SMEM({a}, transforms=T)",
            b_scratch or f"plgpu.SMEM({b}, transforms=T)",
            acc,
            "plgpu.Barrier(num_arrivals=2)",
            mma_bar,
            *more_scratch,
        ),
        options=options,
        head=head,
    )


def copy_kernel(
    copy: str = "plgpu.copy_gmem_to_smem(x, s, bar)",
    *,
    x: str = "(128, 128), jnp.float32",
    smem: str | None = None,
    barrier: str = "plgpu.Barrier()",
    wait: str = "plgpu.barrier_wait(bar)",
    use: str = "o[...] = s[...]",
    out: str | None = None,
    options: Sequence[str] = (),
    head: str = "",
) -> str:
    """A kernel that copies ``x`` into SMEM with ``copy`` and from there to its output."""
    body = f"""
def body(x, o, s, bar):
    {copy}
    {wait}
    {use}
"""
    scratch = (smem or f"plgpu.SMEM({x})", barrier)
    return gpu_kernel(body, inputs=(x,), out=out or x, scratch=scratch, options=options, head=head)


def value_kernel(
    expression: str,
    *,
    x: str = "(128, 128), jnp.float32",
    y: str | None = None,
    out: str | None = None,
    before: str = "pass",
    options: Sequence[str] = (),
    head: str = "",
) -> str:
    """A kernel that computes ``expression`` of ``x`` (and ``y``) and stores it."""
    body = f"""
def body({"x, y" if y else "x"}, o):
    {before}
    o[...] = {expression}
"""
    return gpu_kernel(body, inputs=(x, y) if y else (x,), out=out or x, options=options, head=head)


def statement_kernel(
    statement: str = "pass", *, scratch: Sequence[str] | str = (), options: Sequence[str] = (), head: str = ""
) -> str:
    """A kernel that copies its input, after ``statement``, with ``scratch`` as ``s``."""
    body = f"""
def body(x, o{", s" if scratch else ""}):
    {statement}
    o[...] = x[...]
"""
    return gpu_kernel(body, scratch=scratch, options=options, head=head)


PIPELINE_SPEC = "plgpu.BlockSpec((64, 128), lambda i: (i, 0))"
WARPGROUPS = ["num_threads=2,", 'thread_name="wg",']


def pipeline_kernel(
    *,
    in_specs: str = f"[{PIPELINE_SPEC}]",
    out_specs: str = f"[{PIPELINE_SPEC}]",
    grid: str = "(4,)",
    more: str = "",
    step: str = "def step(idx, x_s, o_s):\n        o_s[...] = x_s[...]",
    call: str = "(x, o)",
    specialized: str = "",
    head: str = "",
) -> str:
    """A kernel with one pipeline.  ``specialized``: the options of ``emit_pipeline_warp_specialized``, if it is one."""
    name = "emit_pipeline_warp_specialized" if specialized else "emit_pipeline"
    body = f"""
def body(x, o):
    {step}

    pipeline = plgpu.{name}(
        step,
        grid={grid},
        in_specs={in_specs},
        out_specs={out_specs},
        {specialized + "," if specialized else ""}
        {more}
    )
    pipeline{call}
"""
    shape = "(256, 128), jnp.float32"
    return gpu_kernel(body, inputs=(shape,), out=shape, options=WARPGROUPS if specialized else (), head=head)
