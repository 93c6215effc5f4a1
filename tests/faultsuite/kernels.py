"""The texts of the suite: a kernel that is right, the same with one fault, and what is added to them."""

from __future__ import annotations

import itertools
import re

_salts = itertools.count(2)
_salt = 1

RULE = "index-map-arity"
"""The rule whose finding a faulty text must bring, on the line of ``FAULT``."""
FAULT = "lambda i, j: (i,)"

_TEXT = """\
{top}import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

{body}
def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...] * {salt}


def add(x, y):
    {before}block = pl.BlockSpec((128,), {index_map})
    return pl.pallas_call(
        add_kernel,
        grid=(4,),
        in_specs=[block, block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((512,), jnp.float32),
    )(x, y)


if __name__ == "__main__":
{main}    add(jnp.ones(512), jnp.ones(512))
"""


def renew() -> None:
    """From now on the texts have another kernel, of which the server has kept no result."""
    global _salt
    _salt = next(_salts)


def good(*, top: str = "", body: str = "", main: str = "", before: str = "") -> str:
    """A file without a finding.

    ``top``: its first lines; ``body``: before the kernel; ``main``: before the launch; ``before``: on the fault's line.
    """
    return _text(top, body, main, before, "lambda i: (i,)")


def faulty(*, top: str = "", body: str = "", main: str = "", before: str = "") -> str:
    return _text(top, body, main, before, FAULT)


def _text(top: str, body: str, main: str, before: str, index_map: str) -> str:
    lines = "".join(f"    {line}\n" for line in main.splitlines())
    return _TEXT.format(top=top, body=body, main=lines, before=before, index_map=index_map, salt=_salt)


def fault_place(text: str) -> dict[str, int]:
    """Where the fault begins, as LSP counts: lines by their ends alone, columns in UTF-16."""
    lines = re.split("\r\n|\r|\n", text[: text.index(FAULT)])
    return {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}
