"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "arr_store": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    x[...] = 1.0
   #^^^^^^
    o_ref[...] = x


if __name__ == "__main__":
    call(k)
""",
        ["`x` is an array (float32[512, 256]), not a ref"],
        fixes=1,
    ),
    "arr_store_idx": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    x[0, :] = 1.0
   #^^^^^^^
    o_ref[...] = x


if __name__ == "__main__":
    call(k)
""",
        ["`x` is an array (float32[512, 256]), not a ref"],
    ),
    "arr_aug": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    x[0] += 1.0
   #^^^^
    o_ref[...] = x


if __name__ == "__main__":
    call(k)
""",
        ["`x` is an array (float32[512, 256]), not a ref"],
        fixes=1,
    ),
    "arr_zeros": Snippet(
        """\


def k(x_ref, o_ref):
    acc = jnp.zeros((512, 256))
    acc[...] += x_ref[...]
   #^^^^^^^^
    o_ref[...] = acc


if __name__ == "__main__":
    call(k)
""",
        ["`acc` is an array (float32[512, 256]), not a ref"],
        fixes=1,
    ),
    "arr_copy": Snippet(
        """\


def k(x_ref, o_ref):
    plgpu.copy_smem_to_gmem(x_ref[...], o_ref)
                           #^^^^^^^^^^


if __name__ == "__main__":
    plgpu.kernel(k, out_type=SDS((512, 256), jnp.float32))(X)
""",
        ["`x_ref[...]` is a value"],
    ),
    "arr_get": Snippet(
        """\


def k(x_ref, o_ref):
    pltpu.sync_copy(x_ref[...], o_ref)
                   #^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref[...]` is a value"],
    ),
    "arr_swap": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    plgpu.store(x, x_ref[...])
               #^


if __name__ == "__main__":
    call(k)
""",
        ["`x` is a value (float32[512, 256])"],
        since=(0, 12, 0, 1),
    ),
    "all_of_an_array": Snippet(
        """\


def k(x_ref, o_ref):
    acc = jnp.zeros(x_ref.shape, x_ref.dtype)
    for _ in range(2):
        acc[:, :] += x_ref[...]
       #^^^^^^^^^
    o_ref[...] = acc


if __name__ == "__main__":
    call(k)
""",
        ["`acc` is an array"],
        fixes=1,
    ),
    "ref_rebind": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref = x_ref[...]
    o_ref[...] = o_ref
   #^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`o_ref` is an array (float32[512, 256]), not a ref"],
    ),
}


def test_array_used_as_ref(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "array-used-as-ref", SNIPPETS)
