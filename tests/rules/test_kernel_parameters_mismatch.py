"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "gpu_out_missing": Snippet(
        """\


def f(x):
    return plgpu.kernel(copy_kernel)(x)
          #^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`copy_kernel` takes 2 parameters"],
        fixes=1,
    ),
    "body_few": Snippet(
        """\


def k(x_ref):
   #^
    x_ref[...] = 1.0


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`k` takes 1 parameter"],
    ),
    "body_partial": Snippet(
        """\


def k(x_ref, o_ref, scale, *, off):
    o_ref[...] = x_ref[...] * scale + off


def f(x):
    return pl.pallas_call(functools.partial(k, scale=2.0), out_shape=SDS(x.shape, x.dtype))(x)
                         #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`k` needs `off`, which nothing gives"],
    ),
    "body_lambda": Snippet(
        """\


def f(x):
    return pl.pallas_call(lambda x_ref: None, out_shape=SDS(x.shape, x.dtype))(x)
                         #^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["The kernel takes 1 parameter"],
        fixes=1,
    ),
    "body_scratch_extra": Snippet(
        """\


def k(x_ref, o_ref):
   #^
    o_ref[...] = x_ref[...]


def f(x):
    return pl.pallas_call(
        k, out_shape=SDS(x.shape, x.dtype), scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)]
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`k` takes 2 parameters"],
        fixes=1,
    ),
    "body_scratch_missing": Snippet(
        """\


def k(x_ref, o_ref, acc_ref):
    o_ref[...] = x_ref[...]


def f(x):
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype))(x)
          #^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`k` takes 3 parameters"],
        fixes=2,
    ),
    "gpu_body_scratch_missing": Snippet(
        """\


def k(x_ref, o_ref, s_ref, bar):
    pass


def f(x):
    return plgpu.kernel(
          #^^^^^^^^^^^^
        k, out_type=SDS(x.shape, x.dtype), scratch_types=[plgpu.SMEM((8, 128), jnp.float32)]
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`k` takes 4 parameters"],
        fixes=2,
    ),
    "gpu_body_dict": Snippet(
        """\


def k(x_ref, o_ref, smem):
    pass


def f(x):
    return plgpu.kernel(
        k, out_type=SDS(x.shape, x.dtype), scratch_types=dict(s_ref=plgpu.SMEM((8, 128), jnp.float32))
       #^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`k` has no parameter `s_ref`"],
    ),
    "gpu_scratch_bare": Snippet(
        """\


def k(x_ref, o_ref, s):
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    plgpu.kernel(k, out_type=SDS(X.shape, X.dtype), scratch_types=plgpu.SMEM((8, 128), jnp.float32))(X)
   #^^^^^^^^^^^^
""",
        ["`k` takes 3 parameters"],
        fixes=2,
    ),
    "body_decorator": Snippet(
        """\


@functools.partial(pl.pallas_call, out_shape=SDS((512, 256), jnp.float32))
def f(x_ref):
   #^
    x_ref[...] = x_ref[...] * 2.0


if __name__ == "__main__":
    f(X)
""",
        ["`f` takes 1 parameter"],
        fixes=2,
    ),
    "body_nested": Snippet(
        """\


def make(scale):
    def scaled(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * scale

    return scaled


def f(x):
    return pl.pallas_call(make(2.0), out_shape=SDS(x.shape, x.dtype))(x)
          #^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`scaled` takes 3 parameters"],
        fixes=1,
    ),
    "body_partial_kw": Snippet(
        """\


def scaled(x_ref, o_ref, acc_ref, scale):
    o_ref[...] = x_ref[...] * scale


def f(x):
    return pl.pallas_call(functools.partial(scaled, scale=2.0), out_shape=SDS(x.shape, x.dtype))(x)
          #^^^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`scaled` takes 3 parameters"],
        fixes=2,
    ),
    "body_gpu_decorated": Snippet(
        """\


@functools.partial(plgpu.kernel, out_type=SDS((512, 256), jnp.float32), scratch_types=[plgpu.Barrier()])
def f(x_ref, o_ref):
   #^
    o_ref[...] = x_ref[...]


if __name__ == "__main__":
    f(X)
""",
        ["`f` takes 2 parameters"],
        fixes=1,
    ),
    "keyword_of_partial": Snippet(
        """\


def k(x_ref, o_ref, *, factor):
    o_ref[...] = x_ref[...] * factor


def f(x):
    body = functools.partial(k, scale=2.0)
                               #^^^^^^^^^
    return pl.pallas_call(body, out_shape=SDS(x.shape, x.dtype))(x)


if __name__ == "__main__":
    f(X)
""",
        ["`k` has no parameter `scale`, which `functools.partial` gives it: by keyword it takes `factor`"],
        fixes=1,
    ),
    "method_of_the_class": Snippet(
        """\


class Layer:
    def body(self, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def __call__(self, x):
        return pl.pallas_call(Layer.body, out_shape=SDS(x.shape, x.dtype))(x)
                             #^^^^^^^^^^


if __name__ == "__main__":
    Layer()(X)
""",
        ["`body` takes 3 parameters", "`Layer.body` is a method without its object: `self` gets the first ref"],
        fixes=1,
    ),
}


def test_kernel_parameters_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "kernel-parameters-mismatch", SNIPPETS)
