"""A first kernel, traced and lowered by a child while it waits: jax's first takes much longer than the next ones.

Nothing of it may be seen by the run that follows: the caches are emptied, and no backend of jax is started, for user
code may still say which and with how many devices.  What stays is what the process has done once: functions that the
interpreter has specialised, memory that is its own, MLIR's dialects.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from . import internals

_TILE = (64, 64)


class _Device:
    """What jax asks the device that it would compile for."""

    platform = "gpu"
    device_kind = "NVIDIA H100 80GB HBM3"
    compute_capability = "9.0"
    core_count = 132
    shared_memory_per_block_optin = 227 << 10
    runtime_type = platform_version = ""
    id = process_index = 0

    @property
    def client(self) -> _Device:
        return self


class _BackendNeededError(Exception):
    """The kernel cannot be lowered without a backend in this version of jax."""


def warm() -> bool:
    """Trace and lower one kernel; False where that was not possible, which does no harm."""
    try:
        import jax

        try:
            with warnings.catch_warnings(), _no_backend():
                warnings.simplefilter("ignore")
                _lower()
        finally:
            jax.clear_caches()
    except Exception:
        return False
    return True


@contextlib.contextmanager
def _no_backend() -> Iterator[None]:
    """Have jax see a device although it has started no backend, and keep it from starting one."""
    import jax

    xla_bridge = importlib.import_module(internals.XLA_BRIDGE)
    device = _Device()

    def devices(*_: Any, **__: Any) -> list[_Device]:
        return [device]

    def backends(*_: Any) -> NoReturn:
        raise _BackendNeededError

    changes: list[tuple[Any, str, Any]] = [
        (jax, "local_devices", devices),
        (jax, "devices", devices),
        (xla_bridge, "local_devices", devices),
        (xla_bridge, "devices", devices),
        (xla_bridge, "get_device_backend", lambda *_: device),
        (xla_bridge, "backends", backends),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _lower() -> None:
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu
    from jax.sharding import AbstractDevice, AbstractMesh, NamedSharding, PartitionSpec, use_abstract_mesh

    plgpu: Any = mosaic_gpu

    def kernel(x_gmem: Any, o_gmem: Any, x_smem: Any, y_smem: Any, o_smem: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
        plgpu.copy_gmem_to_smem(x_gmem, y_smem, barrier)
        plgpu.barrier_wait(barrier)

        def multiply(acc: Any) -> Any:
            plgpu.wgmma(acc, x_smem, y_smem)
            return acc[...]

        total: Any = pl.run_scoped(multiply, plgpu.ACC(_TILE, jnp.float32))
        o_smem[...] = (total * 2.0).astype(jnp.float16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    def launch(x: Any) -> Any:
        transforms = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
        tile = plgpu.SMEM(_TILE, jnp.float16, transforms=transforms)
        scratch = [tile, tile, tile, plgpu.Barrier(num_arrivals=2)]
        result = jax.ShapeDtypeStruct(_TILE, jnp.float16)
        return plgpu.kernel(kernel, out_type=result, scratch_types=scratch)(x)

    abstract = AbstractDevice(_Device.device_kind, _Device.core_count, "gpu")
    # With a mesh that has no devices, jax asks for a backend but does not use it.
    mesh: Any = AbstractMesh((1,), ("x",), abstract_device=abstract)
    with use_abstract_mesh(mesh):
        x = jax.ShapeDtypeStruct(_TILE, jnp.float16, sharding=NamedSharding(mesh, PartitionSpec()))
        jax.jit(launch).trace(x).lower(lowering_platforms=("cuda",))
