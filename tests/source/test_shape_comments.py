"""Shape comments: the call that they mean, and why one means none."""

from __future__ import annotations

import pytest

from pallas_lsp.source.shape_comments import comment_for, find_comments, translate
from pallas_lsp.source.syntax import parse


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("f(bf16[512,256])", "f(__pallas_type__('bfloat16', (512, 256)))"),
        ("f(f32[])", "f(__pallas_type__('float32', ()))"),
        ("m.f(i32[8], block=64)", "m.f(__pallas_type__('int32', (8,)), block=64)"),
        ("f((f8e4m3fn[2, 3], [u4[4]]), c=Config(x=1)[0])",
         "f((__pallas_type__('float8_e4m3fn', (2, 3)), [__pallas_type__('uint4', (4,))]), c=Config(x=1)[0])"),
        ("f(*types())", "f(*types())"),
        ("f(f32[N, 2 * N])", "f(__pallas_type__('float32', (N, 2 * N)))"),
    ],
)  # fmt: skip
def test_translation(text: str, call: str) -> None:
    assert translate(text)[0] == call


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a call is missing"),
        ("f", "is no call"),
        ("f(", "no call in Python's syntax"),
        ("f(bf17[2])", "no array type that JAX knows"),
        ("f(bfloat16[2])", "'bfloat16' is written 'bf16' here"),
        ("f()(x)", "no name of a function"),
    ],
)
def test_reasons(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        translate(text)


def test_comments_of_a_file() -> None:
    text = 'x = "# pallas: no(f32[1])"\n# pallas-lsp: ignore\n  # pallas: f(f32[2])\ny = 1  #pallas: g(i8[3])  \n'
    found = list(find_comments(parse(text.replace("  # pallas: f", "# pallas: f"))))
    assert [(c.entry, c.range.start.line, c.error) for c in found] == [("f", 2, ""), ("g", 3, "")]
    assert text.splitlines()[3][found[1].range.start.character : found[1].range.end.character] == "#pallas: g(i8[3])"


def test_round_trip() -> None:
    comment = comment_for("op(bf16[4,8], f32[], block=2)")
    assert comment == "# pallas: op(bf16[4,8], f32[], block=2)"
    (found,) = find_comments(parse(comment + "\n"))
    assert not found.error
