from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lsp.rules.messages import clean, listed, short


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", ""),
        ("  \n ", ""),
        ("Accumulator must be a TMEM Ref.", "Accumulator must be a TMEM Ref."),
        ("unsupported TMA dtype f64", "unsupported TMA dtype f64."),
        (
            "Unimplemented primitive in Pallas Mosaic GPU lowering: cumsum for lowering semantics "
            "LoweringSemantics.Lane and user thread semantics PrimitiveSemantics.Warpgroup. Please file an issue at "
            "https://github.com/jax-ml/jax/issues/new/choose.",
            "Unimplemented primitive in Pallas Mosaic GPU lowering: cumsum.",
        ),
        (
            "Pallas encountered an internal verification error. Please file a bug at https://x/new. Error details: "
            "'mosaic_gpu.wgmma' op The accumulator's first dimension must be a multiple of 64, but got 96.\n"
            ' see current operation: %137 = "mosaic_gpu.wgmma"(%131)',
            "wgmma: The accumulator's first dimension must be a multiple of 64, but got 96.",
        ),
        (
            'Verification failed:\nerror: "set_max_registers_p:"("set_max_registers_p"("body.<locals>._"'
            "(\"bad.py\":12:8 to :55))): 'nvvm.setmaxregister' op new register size must be multiple of 8\n"
            ' note: "x"("bad.py":12:8 to :55): see current operation: "nvvm.setmaxregister"()',
            "setmaxregister: new register size must be multiple of 8.",
        ),
        (
            "Failed to infer a possible set of layouts. To dump the constraint system for debugging, use `X=1`.",
            "Failed to infer a possible set of layouts.",
        ),
        ("kernel_body.<locals>.step() takes 2 arguments", "step() takes 2 arguments."),
        (
            "Pred must be a scalar, got JitTracer(bool[8,128]) of shape (8, 128).",
            "Pred must be a scalar, got bool[8,128] of shape (8, 128).",
        ),
        ("has block shape (Blocked(block_size=64), Blocked(block_size=64))", "has block shape (64, 64)."),
        ("Invalid out_shape type: <class 'int'>", "Invalid out_shape type: int."),
        (
            "in memory space <MemorySpace.DEFAULT: 'default'>.\nSee details at https://docs.jax.dev/x",
            "in memory space MemorySpace.DEFAULT.",
        ),
        ("Expected 1 operand. op=\n  %87 = ...", "Expected 1 operand."),
        ("the kernel k at /home/me/work/bad.py:11 captures constants", "the kernel k at bad.py:11 captures constants."),
        ("shape int32[]\nThe error occurred while tracing f", "shape int32[]. The error occurred while tracing f."),
        (
            "ValueError: no\nThe preceding stack trace is the source of the JAX operation that, once transformed",
            "ValueError: no.",
        ),
        (
            "Trees differ, including:\n    * `a` is a tuple\n    * `b` is none",
            "Trees differ, including: `a` is a tuple `b` is none.",
        ),
        ("(PyTreeDef([CustomNode(F[(W(shape=(2,)), (1,))], [*])]), PyTreeDef(*))", ""),
        (
            "Loads from TMEM are asynchronous. Please use plgpu.async_load_tmem instead.",
            "Loads from TMEM are asynchronous. Please use plgpu.async_load_tmem instead.",
        ),
    ],
)
def test_messages_are_readable(message: str, expected: str) -> None:
    assert clean(message) == expected


def test_long_messages_are_cut() -> None:
    assert len(clean("word " * 500)) < 420


@given(st.text(alphabet=st.sampled_from("aZ (){}[]<>'\"\n.,:;*/\\0x=PyTreeDef"), max_size=120))
def test_any_message_can_be_cleaned(message: str) -> None:
    text = clean(message)
    assert "\n" not in text
    assert text == text.strip()


def test_short_and_listed() -> None:
    assert short("f(\n    a,  # one\n    '#b',\n)") == "f(a, '#b')"
    assert short("f( a )  # kept") == "f(a)  # kept".replace("  ", " ")
    assert short("x" * 100) == "x" * 57 + "..."
    assert listed(["a", "b"]) == "a; b"
    assert listed(["a", "b", "c", "d", "e"]) == "a; b; c and 2 more"
