"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "scratch_sds": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, scratch_shapes=[SDS((8, 128), jnp.float32)])
                           #^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`SDS((8, 128), jnp.float32)` is no allocation"],
        fixes=1,
    ),
    "scratch_tuple": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, scratch_shapes=[(8, 128)])
                           #^^^^^^^^
""",
        ["`(8, 128)` is no allocation"],
        fixes=1,
    ),
    "scratch_bare": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, scratch_shapes=pltpu.VMEM((8, 128), jnp.float32))
                          #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`scratch_shapes` is one allocation"],
        fixes=1,
    ),
    "scratch_noarg": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, scratch_shapes=[pltpu.VMEM])
                           #^^^^^^^^^^
""",
        ["`pltpu.VMEM` is no allocation"],
    ),
    "gpu_scratch_sds": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    plgpu.kernel(k, out_type=SDS(X.shape, X.dtype), scratch_types=[SDS((8, 128), jnp.float32)])(X)
                                                                  #^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
        ["`SDS((8, 128), jnp.float32)` is no allocation"],
        fixes=1,
    ),
}


def test_scratch_type_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "scratch-type-invalid", SNIPPETS)
