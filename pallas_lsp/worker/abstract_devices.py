"""The abstract devices that drivers are traced and kernels are lowered for, where this machine has none of them."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from . import internals

_GPU_KINDS = {"8.0": "NVIDIA A100", "9.0": "NVIDIA H100", "10.0": "NVIDIA B200", "10.3": "NVIDIA B300"}


def abstract_device(platform: str, kind: str, mesh: Any = None) -> contextlib.AbstractContextManager[Any]:
    """A context in which jax lowers for a device that this machine lacks.

    ``platform`` is ``cuda`` (``kind``: a compute capability, ``9.0``) or ``tpu`` (``kind``: a device kind); ``mesh``:
    the mesh of such devices that the types of a program's arguments name.  Source: ``jax.sharding.use_abstract_mesh``;
    the compute capability is an attribute that ``_infer_arch`` of jax/_src/pallas/mosaic_gpu/core.py reads and the
    plain class lacks.
    """
    try:
        from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh
    except ImportError:
        return contextlib.nullcontext()

    class Device(AbstractDevice):  # type: ignore[misc]
        compute_capability = kind if platform == "cuda" else None

    if platform == "cuda":
        device = Device(_GPU_KINDS.get(kind, f"NVIDIA sm_{kind}"), 132, "cuda")
    else:
        device = Device(kind, 1, platform)
    _answer_core_count(device.num_cores)
    _answer_device(platform, device)
    context: contextlib.AbstractContextManager[Any] = use_abstract_mesh(
        AbstractMesh((), (), abstract_device=device)
        if mesh is None
        else AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=mesh.axis_types, abstract_device=device)
    )
    return context


def mesh_of(jaxpr: Any) -> Any:
    """The mesh that the types of a program's arguments or results name (``f32[512@x]``); None where they name none."""
    for var in (*jaxpr.invars, *jaxpr.outvars):
        mesh = getattr(getattr(var.aval, "sharding", None), "mesh", None)
        if getattr(mesh, "axis_names", ()):
            return mesh
    return None


def _answer_core_count(cores: int) -> None:
    """Kernels size their grid by ``jax.devices()[0].core_count``, which a CPU device lacks; it gets the target's."""
    import jax

    with contextlib.suppress(AttributeError, TypeError):
        jax.Device.core_count = property(lambda _: cores)


def _answer_device(platform: str, device: Any) -> None:
    """What a lowering asks of its device, wherever it asks.

    A jitted function inside a kernel or an index map remembers the mesh that it was traced under, and with it the
    device of another platform, where a kernel that names no backend is tried on several.
    """
    parts = ("tpu_info",) if platform == "tpu" else ("gpu_info",)
    for module in internals.modules(*parts):
        for attribute, value in (
            ("get_device_kind", device.device_kind),
            ("get_num_device_cores", device.num_cores),
        ):
            if hasattr(module, attribute):
                setattr(module, attribute, functools.partial(_same, value))
        # What is remembered of a device is kept by the mesh alone, and that may be the same.
        getattr(getattr(module, "get_tpu_info", None), "cache_clear", _nothing)()


def _nothing() -> None:
    pass


def _same(value: Any) -> Any:
    return value
