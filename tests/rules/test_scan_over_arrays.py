"""Scans and maps over arrays, as loops that read and store rows."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "scan-over-arrays"
SNIPPETS = {
    "inputs": Snippet(
        """
            def kernel(x_ref, o_ref):
                def step(total, row):
                    return total + row, None

                total, _ = lax.scan(step, jnp.zeros((128,)), x_ref[...])
                          #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                o_ref[0] = total


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=(
            "`x_ref[...]` one by one",
            "TPU kernel",
        ),
        fixes=1,
    ),
    "outputs_and_inputs": Snippet(
        """
            def kernel(x_ref, o_ref):
                x = x_ref[...]

                def step(h, row):
                    h = 0.9 * h + row
                    return h, h

                _, hs = jax.lax.scan(step, jnp.zeros((128,), jnp.float32), x)
                o_ref[...] = hs


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("stacks its outputs to f32[64,128]",),
        fixes=1,
    ),
    "backwards": Snippet(
        """
            def kernel(x_ref, o_ref):
                def step(h, row):
                    return h + row, h

                h, hs = lax.scan(step, jnp.zeros((128,)), x_ref[...], reverse=True)
                                                                             #^^^^
                o_ref[...] = hs


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("backwards",),
        fixes=1,
    ),
    "several_inputs": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                def step(h, xy):
                    x, y = xy
                    return h * x + y, None

                h = jax.lax.scan(step, jnp.zeros((128,)), (x_ref[...], y_ref[...].astype(jnp.float32)))[0]
                o_ref[0] = h


            if __name__ == "__main__":
                launch(kernel, OUT, X, X)
        """,
        fixes=1,
    ),
    "map": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = lax.map(lambda row: row * 2, x_ref[...])


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("stacks its outputs",),
        fixes=1,
    ),
    "stored_to_in_between": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

                def step(h, row):
                    return h + row, None

                h, _ = lax.scan(step, jnp.zeros((128,)), o_ref[...] * 2)
                o_ref[0] = h


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("takes the rows of",),
    ),
}


def test_scan_over_arrays(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
