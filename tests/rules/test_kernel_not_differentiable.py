"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "grad_grid": Snippet(
        """\


def act(x_ref, o_ref):
    o_ref[...] = jnp.tanh(x_ref[...])


s = pl.BlockSpec((128, 256), lambda i: (i, 0))


def loss(x):
    return jnp.sum(call(act, x, grid=(4,), in_specs=[s], out_specs=s))


if __name__ == "__main__":
    g = jax.grad(loss)
       #^^^^^^^^
    g(X)
""",
        ["`jax.grad` would differentiate the kernel `act`, which jax cannot do. Give the function"],
    ),
    "vjp_": Snippet(
        """\


if __name__ == "__main__":
    y, back = jax.vjp(lambda x: call(copy_kernel, x), X)
             #^^^^^^^
    back(y)
""",
        ["`jax.vjp` would differentiate the kernel `copy_kernel`, which jax cannot do. Give the"],
    ),
    "grad_jit": Snippet(
        """\


@jax.jit
def act(x):
    return call(copy_kernel, x)


@jax.jit
def step(x):
    return jax.grad(lambda v: act(v).sum())(x)
          #^^^^^^^^


if __name__ == "__main__":
    step(X)
""",
        ["`jax.grad` would differentiate a kernel, which jax cannot do. Give the function around"],
    ),
    "grad_alias": Snippet(
        """\


if __name__ == "__main__":
    jax.grad(lambda x: call(copy_kernel, x, input_output_aliases={0: 0}).sum())(X)
   #^^^^^^^^
""",
        ["`jax.grad` would differentiate the kernel `copy_kernel`, which jax cannot do. Give the"],
    ),
    "grad_gpu": Snippet(
        """\


def f(x):
    return plgpu.kernel(copy_kernel, out_type=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    jax.grad(lambda x: f(x).sum())(X)
   #^^^^^^^^
""",
        ["`jax.grad` would differentiate the kernel `copy_kernel`, which jax cannot do. Give the"],
    ),
    "grad_decor": Snippet(
        """\


@jax.grad
#^^^^^^^^
def loss(x):
    return call(copy_kernel, x).sum()


if __name__ == "__main__":
    loss(X)
""",
        ["`jax.grad` would differentiate the kernel `copy_kernel`, which jax cannot do. Give the"],
    ),
}


def test_kernel_not_differentiable(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "kernel-not-differentiable", SNIPPETS)
