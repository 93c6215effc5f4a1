"""The devices that user code asks about: those that the kernels are written for, not the CPU that runs the worker.

Only what is read is changed (``platform``, ``device_kind``, ...), on the class of the real devices: arrays, meshes and
placement go on working with them.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import unittest
from collections.abc import Callable
from typing import Any

from . import abstract_devices, internals, late, skips

_answered: list[tuple[str, str]] = []

_FACTS: dict[str, dict[str, Any]] = {
    "8.0": {"device_kind": "NVIDIA A100-SXM4-80GB", "core_count": 108},
    "9.0": {"device_kind": "NVIDIA H100 80GB HBM3", "core_count": 132},
    "10.0": {"device_kind": "NVIDIA B200", "core_count": 148},
    "10.3": {"device_kind": "NVIDIA B300", "core_count": 148},
}


def pretend(platform: str, kind: str) -> None:
    """Answer for a GPU (``cuda`` and a compute capability) or a TPU (``tpu`` and a device kind)."""
    import jax

    _answered[:] = [(platform, kind)]
    if platform == "cuda":
        shown = "gpu"
        known = _FACTS.get(kind, {"device_kind": f"NVIDIA sm_{kind}", "core_count": 132})
        facts = {"platform": "gpu", "compute_capability": kind, **known}
    else:
        shown = "tpu"
        facts = {"platform": "tpu", "device_kind": kind, "num_cores": 1, "core_on_chip": 0, "coords": (0, 0, 0)}
    device_class: Any = jax.Device
    for name, value in facts.items():
        with contextlib.suppress(TypeError, AttributeError):
            setattr(device_class, name, property(functools.partial(_fact, value)))
    jax.default_backend = lambda: shown
    for name in ("devices", "local_devices"):
        setattr(jax, name, _any_backend(getattr(jax, name)))
    for module_name in ("jax.extend.backend", internals.LIBRARY):
        _patch_readers(sys.modules.get(module_name), shown)
    _pretend_in_tests(shown, kind)


def answered_tpu() -> str | None:
    """The kind of the TPU that answers at present; None where a GPU does."""
    return next((kind for platform, kind in _answered if platform == "tpu"), None)


def answering(kind: str) -> contextlib.AbstractContextManager[Any]:
    """From now on this GPU (a compute capability) or TPU answers, also to jax inside the context; empty: as before."""
    if not kind:
        return contextlib.nullcontext()
    platform = "cuda" if kind[0].isdigit() else "tpu"
    pretend(platform, kind)
    return abstract_devices.abstract_device(platform, kind)


def _fact(value: Any, _: Any) -> Any:
    return value


def _any_backend(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def devices(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except RuntimeError:  # the backend that was asked for is not there
            return original()

    return devices


def _patch_readers(module: Any, shown: str) -> None:
    if module is not None and hasattr(module, "default_backend"):
        module.default_backend = lambda: shown


def _pretend_in_tests(shown: str, kind: str) -> None:
    """Tests that skip without an accelerator run: the reason for the skip is not there."""
    for name in ("skip", "skipIf", "skipUnless"):
        setattr(unittest, name, _decorator(getattr(unittest, name)))
    unittest.TestCase.skipTest = _skip_test  # type: ignore[method-assign,assignment]

    def answer(util: Any) -> None:
        gpu = shown == "gpu"
        capability = tuple(map(int, kind.split("."))) if gpu else (0, 0)
        answers: dict[str, Callable[..., Any]] = {
            "device_under_test": lambda: shown,
            "is_device_cuda": lambda: gpu,
            "is_device_rocm": lambda: False,
            "is_cuda_compute_capability_at_least": lambda c: gpu and capability >= tuple(map(int, c.split("."))),
            "is_cuda_compute_capability_equal": lambda c: gpu and capability == tuple(map(int, c.split("."))),
            "is_device_tpu": lambda *_, **__: not gpu,
            "is_device_tpu_at_least": lambda *_, **__: not gpu,
            "is_cuda_version_at_least": lambda *_, **__: gpu,
            "is_cloud_tpu": lambda: False,
            "test_device_matches": lambda types: bool({shown, "cuda" if gpu else shown} & set(types)),
        }
        for name, answered in answers.items():
            if hasattr(util, name):
                setattr(util, name, answered)

    late.on_import(internals.TEST_UTILITIES, answer)


def _decorator(original: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(original, "__wrapped__"):
        return original  # another device answered before

    @functools.wraps(original)
    def decorator(*args: Any, **kwargs: Any) -> Any:
        if skips.obeyed(kwargs.get("reason", args[-1] if args else None)):
            return original(*args, **kwargs)
        return args[0] if len(args) == 1 and callable(args[0]) else lambda function: function

    return decorator


def _skip_test(self: Any, reason: Any = None) -> None:
    del self
    if skips.obeyed(reason):
        raise unittest.SkipTest(reason)
