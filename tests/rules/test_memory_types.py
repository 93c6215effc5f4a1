"""Descriptions of memory used as memory, written with their arguments in another order, or handed on wrongly."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel, wgmma_kernel
from jax_environments import JaxPython


def _body(text: str, scratch: str = "[plgpu.SMEM((128, 128), jnp.float32), plgpu.Barrier()]") -> str:
    return gpu_kernel(f"def body(x, o, x_s, bar):\n{text}", scratch=scratch)


def _products(text: str) -> str:
    """A kernel with the operands of wgmma in SMEM, and ``text`` for what it does with them."""
    start, rest = wgmma_kernel().split("    def scope(acc):")
    return start + text + "\n\n\ndef run" + rest.partition("def run")[2]


NOT_MADE = cases(
    "allocation-not-made",
    {
        "stored_to": Case(
            _body("    tmp = plgpu.SMEM((128, 128), jnp.float32)\n    tmp[...] = x[...]\n    o[...] = tmp[...]\n"),
            "tmp",
            ("`tmp` only says what to allocate", "plgpu.SMEM((128, 128), jnp.float32)"),
            fixes=1,
            related=1,
        ),
        "view_of_it": Case(
            _body(
                "    tmp = plgpu.SMEM((128, 128), jnp.float32)\n"
                "    plgpu.copy_gmem_to_smem(x, tmp.at[...], bar)\n"
                "    plgpu.barrier_wait(bar)\n"
                "    o[...] = tmp[...]\n"
            ),
            "tmp",
            fixes=1,
            related=1,
        ),
        "barrier": Case(
            _body(
                "    # One for each copy.\n"
                "    mine = plgpu.Barrier()\n"
                "    plgpu.copy_gmem_to_smem(x, x_s, mine)\n"
                "    plgpu.barrier_wait(mine)\n"
                "    o[...] = x_s[...]\n"
            ),
            "mine",
            fixes=1,
            related=1,
        ),
        "accumulator": Case(
            _products("    acc = plgpu.ACC((64, 128))\n    plgpu.wgmma(acc, a_s, b_s)\n    o[...] = acc[...]"),
            "acc",
            ("`plgpu.ACC((64, 128))` is no memory",),
            fixes=1,
            related=1,
        ),
        "returned_at_the_end": Case(
            _products(
                "    def product():\n"
                "        acc = plgpu.ACC((64, 128))\n"
                "        plgpu.wgmma(acc, a_s, b_s)\n"
                "        return acc[...]\n\n"
                "    o[...] = product()"
            ),
            "acc",
            fixes=1,
            related=1,
        ),
        "body_called": Case(
            _products(
                "    def scope(acc):\n"
                "        plgpu.wgmma(acc, a_s, b_s)\n"
                "        return acc[...]\n\n"
                "    o[...] = pl.run_scoped(scope(plgpu.ACC((64, 128))))"
            ),
            "scope(plgpu.ACC((64, 128)))",
            ("`pl.run_scoped` calls it itself",),
            fixes=1,
            related=1,
        ),
    },
)
SWAPPED = cases(
    "type-arguments-swapped",
    {
        "accumulator": Case(
            wgmma_kernel(acc="plgpu.ACC(jnp.float32, (64, 128))"),
            "plgpu.ACC(jnp.float32, (64, 128))",
            ("the shape first",),
            fixes=1,
        ),
        "sizes_one_by_one": Case(
            wgmma_kernel(acc="plgpu.ACC(64, 128)"), "plgpu.ACC(64, 128)", ("as one tuple",), fixes=1
        ),
        "scratch": Case(
            _body("    o[...] = x[...]\n", "[plgpu.SMEM(jnp.float32, [128, 128]), plgpu.Barrier()]"),
            "plgpu.SMEM(jnp.float32, [128, 128])",
            fixes=1,
        ),
    },
)
SEVERAL = cases(
    "run-state-several-arguments",
    {
        "two_values": Case(
            _products(
                "    def scope(acc, other):\n"
                "        plgpu.wgmma(acc, a_s, b_s)\n"
                "        plgpu.wgmma(other, a_s, b_s)\n\n"
                "    zeros = plgpu.layout_cast(jnp.zeros((64, 128), jnp.float32), plgpu.Layout.WGMMA)\n"
                "    one, two = pl.run_state(scope)(plgpu.ACC.init(zeros), plgpu.ACC.init(zeros + 1))\n"
                "    o[...] = one + two"
            ),
            "plgpu.ACC.init(zeros + 1)",
            ("takes one tree of start values, but gets 2 arguments",),
            fixes=1,
        ),
        "none": Case(
            _products("    o[...] = pl.run_state(lambda acc: plgpu.wgmma(acc, a_s, b_s))()"),
            "pl.run_state(lambda acc: plgpu.wgmma(acc, a_s, b_s))()",
            ("needs the start values",),
        ),
    },
)
NOTHING = cases(
    "nothing-returned",
    {
        "scope": Case(
            _products(
                "    def scope(acc):\n        plgpu.wgmma(acc, a_s, b_s)\n\n"
                "    o[...] = pl.run_scoped(scope, plgpu.ACC((64, 128)))"
            ),
            "pl.run_scoped(scope, plgpu.ACC((64, 128)))",
            ("`scope` returns nothing",),
            fixes=1,
            related=1,
        ),
        "decorated": Case(
            _products(
                "    @functools.partial(pl.run_scoped, acc=plgpu.ACC((64, 128)))\n    def result(acc):\n"
                "        plgpu.wgmma(acc, a_s, b_s)\n\n    o[...] = result"
            ),
            "result",
            fixes=1,
            related=1,
        ),
        "helper": Case(
            _body("    def double(v):\n        v * 2\n\n    o[...] = double(x[...]) + 1.0\n"),
            "double(x[...])",
            ("`double` returns nothing.",),
            related=1,
        ),
    },
)


def test_memory_that_was_not_allocated(jax_python: JaxPython) -> None:
    check(jax_python, NOT_MADE)


def test_arguments_in_another_order(jax_python: JaxPython) -> None:
    check(jax_python, SWAPPED)


def test_run_state_with_several_arguments(jax_python: JaxPython) -> None:
    check(jax_python, SEVERAL)


def test_functions_without_a_value(jax_python: JaxPython) -> None:
    check(jax_python, NOTHING)
