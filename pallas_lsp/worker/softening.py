"""Comparisons of values never fail: the values of a kernel are not computed here, its types are."""

from __future__ import annotations

import contextlib
import math
import unittest
from typing import Any

from . import compat, faults, internals, late, module

_CHEX_VALUES = (
    "assert_tree_all_finite",
    "assert_trees_all_equal",
    "assert_trees_all_close",
    "assert_trees_all_close_ulp",
)


def soften() -> None:
    import jax

    names = [name for name in faults.CONCRETE_VALUE_NEEDED if hasattr(jax.errors, name)]
    module.ignore_in_asserts((AssertionError, *(getattr(jax.errors, name) for name in names)))
    compat.soften_tracers()
    _asserts_of(unittest.TestCase)
    expect_nothing(unittest.case._AssertRaisesContext)
    late.on_import("numpy.testing", _numpy)
    late.on_import("chex", _chex)
    late.on_import(internals.TEST_UTILITIES, _jax_tests)
    late.on_import("absl.testing.absltest", lambda absltest: _asserts_of(absltest.TestCase))
    late.on_import("jax.experimental.mosaic.gpu.profiler", _profiler)
    for meshes in (internals.MESH_UTILITIES, "jax.experimental.mesh_utils"):
        late.on_import(meshes, _meshes)
    # A driver that stops is run again, and flags are defined once.
    jax.config.config_with_absl = _nothing
    for testing in ("jax.test_util", internals.PUBLIC_TEST_UTILITIES):
        late.on_import(testing, _gradients)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for a comparison of values."""


def _asserts_of(case: type) -> None:
    for name in vars(case):
        if name.startswith("assert") and not name.startswith(("assertRaises", "assertWarns", "assertLogs", "assertNo")):
            with contextlib.suppress(AttributeError, TypeError):
                setattr(case, name, _nothing)


def expect_nothing(context: Any) -> None:
    """A block that should raise may also end: what it should raise may be a comparison's failure."""
    leave = context.__exit__

    def soft(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        return None if kind is None else leave(self, kind, error, trace)

    context.__exit__ = soft


def _numpy(testing: Any) -> None:
    for name in dir(testing):
        if name.startswith("assert_") and callable(getattr(testing, name)) and "raises" not in name:
            setattr(testing, name, _nothing)


def _chex(chex: Any) -> None:
    for name in _CHEX_VALUES:
        if hasattr(chex, name):
            setattr(chex, name, _nothing)


def _jax_tests(util: Any) -> None:
    _asserts_of(util.JaxTestCase)
    _gradients(util)


def _gradients(util: Any) -> None:
    for name in ("check_grads", "check_jvp", "check_vjp"):
        if hasattr(util, name):
            setattr(util, name, _gradient_once)


def _gradient_once(function: Any, args: Any, order: int = 1, modes: Any = ("fwd", "rev"), *_: Any, **__: Any) -> None:
    """Numerical derivatives mean nothing here; the derivative's own kernels are reached by taking it once."""
    import jax

    del order
    if "rev" in modes:
        output, pullback = jax.vjp(function, *args)
        pullback(jax.tree_util.tree_map(jax.numpy.ones_like, output))
    else:
        jax.jvp(function, tuple(args), tuple(jax.tree_util.tree_map(jax.numpy.ones_like, args)))


def _meshes(utils: Any) -> None:
    """The devices that stand for accelerators have no topology: a mesh takes them in their order."""

    def create(shape: Any, devices: Any = None, **_: Any) -> Any:
        import jax
        import numpy  # type: ignore[import-not-found]

        given = jax.devices() if devices is None else list(devices)
        return numpy.asarray(given[: math.prod(shape)]).reshape(shape)

    utils.create_device_mesh = create


def _profiler(profiler: Any) -> None:
    """Measuring calls the function once; how long that took is made up."""

    def measure(*arguments: Any, aggregate: bool = True, iterations: int = 1, **_: Any) -> Any:
        function = arguments[-1]  # the method's first argument is the profiler
        once: Any = 1.0 if aggregate else [("kernel", 1.0)]
        times = once if iterations == 1 else [once] * iterations
        return lambda *args, **kwargs: (function(*args, **kwargs), times)

    for owner in (profiler, getattr(profiler, "Cupti", None)):
        if hasattr(owner, "measure"):
            owner.measure = measure  # type: ignore[union-attr]
