"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "tpucp": Snippet(
        """\


if __name__ == "__main__":
    call(copy_kernel, compiler_params=pltpu.TPUCompilerParams())
                                     #^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`pltpu.TPUCompilerParams`"],
        fixes=1,
    ),
    "pl_load_variant": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = pl.load(x_ref, (slice(None), pl.ds(0, 256)))
                #^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.load`"],
        fixes=1,
    ),
}


def test_api_name_missing(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "api-name-missing", SNIPPETS)
