"""Meshes with more cores than a TPU has."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import Snippet, check

RULE = "tpu-mesh"
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
    "cores": Snippet(
        """
            def kernel(x_hbm, o_hbm):
                pltpu.sync_copy(x_hbm, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES, num_cores=8))
                                                                        #^
        """,
        says=(
            "8 cores",
            "only 2",
        ),
    ),
    "subcores": Snippet(
        """
            def kernel(x_hbm, o_hbm):
                pltpu.sync_copy(x_hbm, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES, num_subcores=64))
                                                                           #^^
        """,
        says=(
            "64 subcores",
            "only 16",
        ),
    ),
    "all_of_them": Snippet(
        """
            def kernel(x_hbm, o_hbm):
                pltpu.sync_copy(x_hbm, o_hbm)


            if __name__ == "__main__":
                launch(kernel, plsc.VectorSubcoreMesh(**NAMES))
        """,
        rule="",
    ),
}


def test_tpu_mesh(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, HEAD, SNIPPETS)
