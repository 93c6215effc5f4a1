"""Random numbers that a TPU kernel cannot make."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-random-numbers"
SNIPPETS = {
    "key_in_vmem": Snippet(
        """
            def kernel(key_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] + jax.random.uniform(key_ref[...], (64, 128))
                                                            #^^^^^^^^^^^^


            def run(key, x):
                return pl.pallas_call(kernel, out_shape=OUT)(key, x)


            if __name__ == "__main__":
                run(pltpu.to_pallas_key(jax.random.key(0)), X)
        """,
        says=("`key_ref` is a random key",),
        fixes=1,
    ),
    "vector": Snippet(
        """
            def kernel(x_ref, o_ref):
                pltpu.prng_seed(0)
                o_ref[...] = x_ref[...] + pltpu.prng_random_bits((128,))
                                                                #^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.int32), I)
        """,
        says=("two dimensions",),
    ),
    "seed": Snippet(
        """
            def kernel(x_ref, o_ref):
                pltpu.prng_seed(x_ref[0])
                               #^^^^^^^^
                o_ref[...] = pltpu.prng_random_bits((64, 128))


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.int32), I)
        """,
        says=("scalar integers",),
    ),
}


def test_tpu_random_numbers(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
