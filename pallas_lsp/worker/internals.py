"""What is used of jax beyond its public API: every such name stands here, and nowhere else.

``missing`` says which of them a jax lacks, so that a new release breaks nothing silently.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

Name = tuple[str, str]
"""Module and attribute."""

_CORE = "jax._src.core"
_STATE = "jax._src.state.types"
_PALLAS = "jax._src.pallas.core"
_MOSAIC_GPU = "jax._src.pallas.mosaic_gpu.core"
_TPU = "jax._src.pallas.mosaic.core"

TRACER: Name = (_CORE, "Tracer")
ABSTRACT_REF: Name = (_STATE, "AbstractRef")
TRANSFORMED_REF: Name = (_STATE, "TransformedRef")
UNINITIALIZED: Name = (_STATE, "uninitialized")
PALLAS_CALL: Name = ("jax._src.pallas.pallas_call", "pallas_call")
FULL_LIKE_AVAL: Name = ("jax._src.interpreters.mlir", "full_like_aval")
REGISTER_LOWERING: Name = ("jax._src.interpreters.mlir", "register_lowering")
KERNEL_PRIMITIVES: tuple[Name, ...] = (
    ("jax._src.pallas.pallas_call", "pallas_call_p"),
    ("jax._src.pallas.mpmd", "mpmd_map_p"),
)
BACKENDS: Name = ("jax._src.xla_bridge", "_backends")
_OF_BACKENDS: tuple[Name, ...] = tuple(
    ("jax._src.xla_bridge", name) for name in ("backends", "devices", "get_device_backend", "local_devices")
)

ALLOCATIONS: tuple[Name, ...] = (
    (_PALLAS, "MemoryRef"),
    (_MOSAIC_GPU, "GPUMemoryRef"),
    (_MOSAIC_GPU, "RefUnion"),
    (_MOSAIC_GPU, "WGMMAAccumulatorRef"),
    (_MOSAIC_GPU, "Barrier"),
    (_MOSAIC_GPU, "ClusterBarrier"),
)
"""The classes of what a kernel allocates, by which a ref's type is made (``get_ref_aval``)."""
SPECS: tuple[Name, ...] = (
    (_PALLAS, "BlockSpec"),
    (_PALLAS, "GridSpec"),
    *ALLOCATIONS,
    (_MOSAIC_GPU, "BlockSpec"),
    (_MOSAIC_GPU, "TilingTransform"),
    (_MOSAIC_GPU, "SwizzleTransform"),
    (_MOSAIC_GPU, "Mesh"),
    (_MOSAIC_GPU, "CompilerParams"),
    (_TPU, "PrefetchScalarGridSpec"),
    (_TPU, "CompilerParams"),
    (_TPU, "TensorCoreMesh"),
    ("jax._src.pallas.triton.core", "CompilerParams"),
    (_CORE, "ShapeDtypeStruct"),
)
"""The classes of what a user makes for a launch, whose places are recorded."""

LIBRARY = "jax._src.lib"
CUDNN = "jax._src.cudnn.fused_attention_stablehlo"
XLA_BRIDGE = "jax._src.xla_bridge"
TEST_UTILITIES = "jax._src.test_util"
PUBLIC_TEST_UTILITIES = "jax._src.public_test_util"
MESH_UTILITIES = "jax._src.mesh_utils"
_ANY = "jax._src."

_ITEMSIZE_BITS: Name = ("jax._src.dtypes", "itemsize_bits")
_NAMES: tuple[Name, ...] = (
    TRACER,
    ABSTRACT_REF,
    TRANSFORMED_REF,
    UNINITIALIZED,
    PALLAS_CALL,
    FULL_LIKE_AVAL,
    REGISTER_LOWERING,
    *KERNEL_PRIMITIVES,
    BACKENDS,
    *_OF_BACKENDS,
    *SPECS,
    _ITEMSIZE_BITS,
    (_CORE, "Jaxpr"),
    (_CORE, "JaxprEqn"),
    ("jax._src.source_info_util", "JaxStackTraceBeforeTransformation"),
    (_STATE, "_ref_type_aval_mappings"),
)


def missing() -> list[str]:
    """The names that this jax does not have."""
    found = []
    for module, attribute in dict.fromkeys(_NAMES):
        try:
            getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            found.append(f"{module}.{attribute}")
    modules = (LIBRARY, CUDNN, XLA_BRIDGE, TEST_UTILITIES, PUBLIC_TEST_UTILITIES, MESH_UTILITIES)
    return found + [module for module in modules if importlib.util.find_spec(module) is None]


def get(name: Name) -> Any:
    """Raises ImportError or AttributeError where this jax has no such name."""
    return getattr(importlib.import_module(name[0]), name[1])


def loaded(name: Name) -> Any:
    """None where the module was not imported or has no such name."""
    return getattr(sys.modules.get(name[0]), name[1], None)


def itemsize_bits(dtype: Any) -> int:
    """Raises whatever jax does where it has no such function."""
    return int(get(_ITEMSIZE_BITS)(dtype))


def modules(*endings: str) -> list[Any]:
    """The private modules of jax that were imported and whose names end in one of these."""
    return [module for name, module in list(sys.modules.items()) if name.startswith(_ANY) and name.endswith(endings)]
