"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "captured_array": Snippet(
        """\


ORDER = jnp.array([3, 2, 1, 0])


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (ORDER[i], j))],
                                                        #^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`ORDER` is an array, int32[4], from outside"],
    ),
    "captured_tracer": Snippet(
        """\


@jax.jit
def f(x, off):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i + off, j))],
                                                            #^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X, 0)
""",
        ["`off` is a traced value, int32[], of the function around it"],
    ),
    "cap_jnp": Snippet(
        """\


W = jnp.arange(256.0)


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * W
                             #^


if __name__ == "__main__":
    call(k)
""",
        ["`W` is an array, float32[256], from outside"],
    ),
    "cap_scalar_jnp": Snippet(
        """\


W = jnp.float32(3.0)


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * W
                             #^


if __name__ == "__main__":
    call(k)
""",
        ["`W` is an array, float32[], from outside"],
        fixes=1,
    ),
    "cap_closure": Snippet(
        """\


def f(x, w):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...] * w
                                 #^

    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X, jnp.ones(256))
""",
        ["`w` is a traced value, float32[256], of the function around it"],
    ),
    "cap_partial": Snippet(
        """\


def k(x_ref, o_ref, w):
    o_ref[...] = x_ref[...] * w
                             #^


def f(x, w):
    return pl.pallas_call(functools.partial(k, w=w), out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X, jnp.ones(256))
""",
        ["`w` is a traced value, float32[256], of the function around it"],
    ),
    "cap_traced_jit": Snippet(
        """\


@jax.jit
def f(x, w):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...] * w
                                 #^

    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X, 2.0)
""",
        ["`w` is a traced value, float32[], of the function around it"],
    ),
    "cap_helper": Snippet(
        """\


W = jnp.arange(256.0)


def scale(x):
    return x * W
              #^


def k(x_ref, o_ref):
    o_ref[...] = scale(x_ref[...])


if __name__ == "__main__":
    call(k)
""",
        ["`W` is an array, float32[256], from outside"],
    ),
    "cap_attr": Snippet(
        """\


class C:
    w = jnp.arange(256.0)


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * C.w
                             #^^^


if __name__ == "__main__":
    call(k)
""",
        ["`C.w` is an array, float32[256], from outside"],
    ),
    "cap_list": Snippet(
        """\


W = [jnp.arange(256.0), jnp.ones(256)]


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * W[0] + W[1]
                             #^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`W[0]` is an array, float32[256], from outside"],
    ),
    "cap_expr": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * jnp.array([1.0, 2.0] * 128)
                             #^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`jnp.array([1.0, 2.0] * 128)` is an array, float32[256], that Python makes while it traces"],
    ),
    "cap_gpu": Snippet(
        """\


W = jnp.arange(256.0)


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * W
                             #^


if __name__ == "__main__":
    plgpu.kernel(k, out_type=SDS((512, 256), jnp.float32))(X)
""",
        ["`W` is an array, float32[256], from outside"],
        fixes=1,
    ),
    "cap_in_loop": Snippet(
        """\


TABLE = jnp.linspace(0.0, 1.0, 256)


def k(x_ref, o_ref):
    def step(i, acc):
        return acc + x_ref[...] * TABLE
                                 #^^^^^

    o_ref[...] = lax.fori_loop(0, 4, step, jnp.zeros((512, 256)))


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype))(X)
""",
        ["`TABLE` is an array, float32[256], from outside"],
    ),
    "cap_when": Snippet(
        """\


TABLE = jnp.linspace(0.0, 1.0, 256)


def k(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = x_ref[...] * TABLE
                                 #^^^^^


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, X.dtype), grid=(2,))(X)
""",
        ["`TABLE` is an array, float32[256], from outside"],
    ),
    "partial_of_a_method": Snippet(
        """\


class Layer:
    def body(self, scale, x_ref, o_ref):
        o_ref[...] = x_ref[...] * scale
                                 #^^^^^

    def __call__(self, scale, x):
        return call(functools.partial(self.body, scale), x)


if __name__ == "__main__":
    jax.jit(Layer())(jnp.float32(2), X)
""",
        ["`scale` is a traced value, float32[], of the function around it"],
    ),
    "partial_of_a_key": Snippet(
        """\


def body(key, x_ref, o_ref):
    o_ref[...] = x_ref[...] + jax.random.normal(key, x_ref.shape)


def f(key, x):
    return call(functools.partial(body, key), x)
                                       #^^^


if __name__ == "__main__":
    f(jax.random.key(0), X)
""",
        ["`key` is", "a kernel sees only what it is given"],
    ),
}


def test_captured_array(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "captured-array", SNIPPETS)
