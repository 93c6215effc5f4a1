"""Sizes that no GPU takes, whatever jax says: clusters and blocks that are too large, registers of a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .kernel import Found, Kernel, places

LARGEST_CLUSTER = 16
MOST_THREADS = 1024
THREADS_OF_WARPGROUP = 128
REGISTERS = range(24, 257)


def check(kernel: Kernel) -> Iterator[Found]:
    """The sizes of a Mosaic GPU kernel against the limits of all GPUs that have clusters (PTX: ``setmaxnreg``)."""
    if kernel.backend != "mosaic_gpu":
        return
    for mesh in kernel.equation.params.get("meshes") or (kernel.equation.params.get("mesh"),):
        cluster = [size for size in getattr(mesh, "cluster", None) or () if isinstance(size, int)]
        blocks = math.prod(cluster)
        if blocks > LARGEST_CLUSTER:
            yield Found("cluster-too-large", places(kernel.chain), {"cluster": cluster})
        threads = getattr(mesh, "num_threads", None) or 1
        if isinstance(threads, int) and threads * THREADS_OF_WARPGROUP > MOST_THREADS:
            yield Found("too-many-threads", places(kernel.chain), {"num_threads": threads})
    for equation, chain in kernel.equations():
        if equation.primitive.name.removesuffix("_p") != "set_max_registers":
            continue
        given = equation.params.get("n", getattr(next(iter(equation.invars), None), "val", None))
        if isinstance(given, int) and given not in REGISTERS:
            yield Found("register-count", places(chain), {"registers": given})
        elif equation.params.get("action") not in ("increase", "decrease"):
            yield Found("register-action", places(chain))
