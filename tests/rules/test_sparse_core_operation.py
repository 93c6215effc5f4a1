"""Vectors and types that a SparseCore does not have."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import Snippet, check

RULE = "sparse-core-operation"
HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

NAMES = {"core_axis_name": "core", "subcore_axis_name": "subcore"}


def launch(body, mesh, *scratch):
    pl.kernel(body, out_type=jax.ShapeDtypeStruct((64,), jnp.float32), mesh=mesh, scratch_types=scratch)(
        jnp.zeros((64,))
    )


"""
SNIPPETS = {
    "gather_by_two_indices": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                v[pl.ds(0, 16)] = plsc.load_gather(v, [jnp.arange(16), jnp.arange(16)])
                                 #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("number of indices",),
    ),
    "gather_of_half": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                v[pl.ds(0, 8)] = plsc.load_gather(v, [jnp.arange(8)])
                                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("[(16,)], got (8,)",),
    ),
    "scatter": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                plsc.store_scatter(v, [jnp.arange(16)], jnp.zeros((8,)))
               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("x.shape=(8,)",),
    ),
    "pack": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                plsc.pack(v[pl.ds(0, 16)], v[pl.ds(0, 32)], format=plsc.PackFormat.INTERLEAVED)
               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("the same shape",),
    ),
    "other_type": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                plsc.addupdate(v.at[pl.ds(0, 16)], jnp.zeros((16,), jnp.int32))
               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("the same dtype",),
    ),
    "short_mask": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                plsc.store_compressed(v.at[pl.ds(0, 16)], jnp.zeros((16,)), mask=jnp.arange(8) < 4)
               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        says=("(16,), got (8,)",),
    ),
    "lanes_are_fine": Snippet(
        """
            def kernel(x_hbm, o_hbm, v):
                pltpu.sync_copy(x_hbm, v)
                v[pl.ds(0, 16)] = v[pl.ds(0, 16)] + 1
                pltpu.sync_copy(v, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES), pltpu.VMEM((64,), jnp.float32))
        """,
        rule="",
    ),
}


def test_sparse_core_operation(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, HEAD, SNIPPETS)
