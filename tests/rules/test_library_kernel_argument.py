"""Library kernels with arguments that they refuse; ordinary exceptions of a program are no findings."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import Snippet, check

RULE = "library-kernel-argument"
HEAD = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

A = jnp.zeros((64, 128))
G = jnp.array([32, 32], jnp.int32)
Q = jnp.zeros((1, 4, 256, 128))


"""
SNIPPETS = {
    "rank": Snippet(
        """
            def f(a, b, g):
                return lax.ragged_dot(a, b, g)


            if __name__ == "__main__":
                f(A, jnp.zeros((128, 64)), G)
        """,
        says=(
            "rhs is f32[128,64]",
            "2 dimensions instead of 3",
        ),
    ),
    "groups": Snippet(
        """
            def f(a, b, g):
                return lax.ragged_dot(a, b, g)


            if __name__ == "__main__":
                f(A, jnp.zeros((4, 128, 64)), G)
        """,
        says=(
            "2 group sizes",
            "rhs has 4 groups",
        ),
        related=("These are 2 group sizes",),
    ),
    "offset": Snippet(
        """
            if __name__ == "__main__":
                lax.ragged_dot(A, jnp.zeros((2, 128, 64)), G, group_offset=jnp.array([0]))
                                                                          #^^^^^^^^^^^^^^
        """,
        says=("`group_offset` is not available",),
    ),
    "ragged_dot_is_fine": Snippet(
        """
            if __name__ == "__main__":
                lax.ragged_dot(A, jnp.zeros((2, 128, 64)), G)
        """,
        rule="",
    ),
    "heads": Snippet(
        """
            from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

            KV = jnp.zeros((1, 2, 256, 128))


            if __name__ == "__main__":
                flash_attention(Q, KV, KV)
        """,
        says=(
            "head count mismatch",
            "q: f32[1,4,256,128]",
        ),
    ),
    "block_size": Snippet(
        """
            from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention


            if __name__ == "__main__":
                sizes = BlockSizes(block_q=128, block_k_major=128, block_k=256, block_b=1)
                                                                          #^^^
                flash_attention(Q, Q, Q, block_sizes=sizes)
        """,
        says=(
            "block_k=256",
            "block_k_major=128",
        ),
        fixes=1,
    ),
    "splits": Snippet(
        """
            from jax.experimental.pallas.ops.gpu import decode_attention

            KV = jnp.zeros((2, 1024, 4, 64), jnp.float16)


            if __name__ == "__main__":
                decode_attention.gqa(jnp.zeros((2, 16, 64), jnp.float16), KV, KV, k_splits=24)
                                                                                          #^^
        """,
        says=(
            "k_seq_len=1024",
            "k_splits=24",
        ),
        fixes=1,
    ),
    "group_sizes_on_gpu": Snippet(
        """
            from jax.experimental.pallas.ops.gpu import ragged_dot_mgpu

            SIZES = {"block_m": 64, "block_n": 64, "block_k": 64, "max_concurrent_steps": 2, "grid_block_n": 2}
            RHS = jnp.zeros((4, 128, 128), jnp.float16)


            if __name__ == "__main__":
                ragged_dot_mgpu.ragged_dot(A.astype(jnp.float16), RHS, group_sizes=G, **SIZES)
        """,
        says=("expected group_sizes to have shape 4",),
    ),
    "own_error": Snippet(
        """
            def f(x):
                raise ValueError(f"{x} must be divisible by 2")


            if __name__ == "__main__":
                f(1)
        """,
        rule="",
    ),
    "error_of_jax": Snippet(
        """
            if __name__ == "__main__":
                jnp.dot(A, jnp.zeros((3, 3)))
        """,
        rule="",
    ),
}


def test_library_kernel_argument(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, HEAD, SNIPPETS)
