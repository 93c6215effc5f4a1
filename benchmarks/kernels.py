"""The kernels that are measured: an example, its entry, and how each edit changes it.

Edit ``n`` replaces one expression of the kernel's body, so that no edit gives a text that was there before.  Every
second edit puts in a fault (an operation without a lowering), the others take it out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_MAIN = 'if __name__ == "__main__":'
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@dataclass(frozen=True)
class Kernel:
    name: str
    platform: str
    device: tuple[str, int, str]
    entry: str
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    expression: str
    correct: str
    faulty: str
    driver: str = "own"
    """What gives it its argument types: the file's ``own`` main block or test, or a ``test`` in another file."""

    @property
    def path(self) -> Path:
        return EXAMPLES / f"{self.name}.py"

    @property
    def text(self) -> str:
        """The file as it is opened; without what another file does in its place."""
        text = self.path.read_text(encoding="utf-8")
        return text if self.driver == "own" else text[: text.index(_own_driver(text))].rstrip() + "\n"

    @property
    def test(self) -> str:
        """The test file that does what the file itself did."""
        text = self.path.read_text(encoding="utf-8")
        imports = [each for each in ast.parse(text).body if isinstance(each, ast.Import | ast.ImportFrom)]
        head = "".join(f"{ast.unparse(each)}\n" for each in imports)
        driver = _own_driver(text).replace(_MAIN, "def test_main():")
        return f"{head}from {self.name} import {self.entry}\n\n\n{driver}"

    def request(self, text: str) -> dict[str, Any]:
        """What ``bare.py`` is asked for."""
        return {
            "modules": [{"name": self.name, "path": str(self.path), "text": text}], "entry": self.entry,
            "arguments": self.arguments, "platform": self.platform, "device": self.device,
        }  # fmt: skip

    def edits(self, count: int) -> Iterator[tuple[str, bool]]:
        """``count`` texts, each with whether it is faulty."""
        text = self.text
        if text.count(self.expression) != 1:
            raise ValueError(f"{self.path} must hold {self.expression!r} once")
        for n in range(count):
            faulty = n % 2 == 0
            expression = (self.faulty if faulty else self.correct).replace("N", f"{n + 2}.0")
            yield text.replace(self.expression, expression), faulty


def _own_driver(text: str) -> str:
    """The last statement of a file: its main block or its test."""
    line = ast.parse(text).body[-1].lineno
    return "".join(text.splitlines(keepends=True)[line - 1 :])


HOPPER = ("NVIDIA H100 80GB HBM3", 132, "gpu")
TPU = ("TPU v6e", 1, "tpu")

_KERNELS = (
    Kernel(
        "hopper_matmul", "cuda", HOPPER, "matmul", (("bfloat16", (1024, 512)), ("bfloat16", (512, 1024))),
        expression="return acc[...]",
        correct="return acc[...] * N",
        faulty="return jnp.cumsum(acc[...], axis=1) * N",
    ),
    Kernel(
        "triton_softmax", "cuda", HOPPER, "softmax", (("float16", (256, 1000)),),
        expression="e = jnp.exp(x - jnp.max(x))",
        correct="e = jnp.exp(x - jnp.max(x)) * N",
        faulty="e = jnp.sort(x) * N",
    ),
    Kernel(
        "tpu_matmul", "tpu", TPU, "matmul", (("bfloat16", (1024, 2048)), ("bfloat16", (2048, 1024))),
        expression="o_ref[...] = acc_ref[...].astype(o_ref.dtype)",
        correct="o_ref[...] = (acc_ref[...] * N).astype(o_ref.dtype)",
        faulty="o_ref[...] = (jnp.sort(acc_ref[...], axis=-1) * N).astype(o_ref.dtype)",
    ),
)  # fmt: skip

KERNELS = tuple(replace(kernel, driver=driver) for kernel in _KERNELS for driver in ("own", "test"))
