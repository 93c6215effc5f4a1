"""What no GPU of a compute capability can do, whatever its compiler says: told from the program alone.

Source of the numbers: the CUDA programming guide, table "Technical Specifications per Compute Capability"; clusters of
more than 8 blocks are not portable, and none has more than 16.
"""

from __future__ import annotations

import math
from typing import Any

from . import backends, compat, equations

MOST_BLOCKS_OF_CLUSTER = 16
MOST_THREADS_OF_BLOCK = 1024
_THREADS_OF_WARPGROUP = 128


class DeviceLimit(Exception):  # noqa: N818 - the name says what was passed
    """A launch that asks for more than any such GPU has."""


def check(jaxpr: Any, compute_capability: str) -> None:
    """Raise DeviceLimit for a launch that the compiler takes and no device does."""
    for mesh in _meshes(jaxpr):
        cluster = tuple(int(size) for size in getattr(mesh, "cluster", ()) or ())
        blocks = math.prod(cluster)
        if blocks > MOST_BLOCKS_OF_CLUSTER:
            raise DeviceLimit(
                f"a cluster of {' x '.join(map(str, cluster))} has {blocks} blocks; "
                f"a GPU of compute capability {compute_capability} takes at most {MOST_BLOCKS_OF_CLUSTER}"
            )
        threads = int(getattr(mesh, "num_threads", None) or 1) * _THREADS_OF_WARPGROUP
        if threads > MOST_THREADS_OF_BLOCK:
            raise DeviceLimit(
                f"num_threads={threads // _THREADS_OF_WARPGROUP} warpgroups are {threads} threads a block; "
                f"a GPU of compute capability {compute_capability} takes at most {MOST_THREADS_OF_BLOCK}"
            )


def _meshes(jaxpr: Any) -> list[Any]:
    found: list[Any] = []
    for chain in equations.chains(jaxpr):
        params = chain[-1].params
        candidates = [params.get("mesh"), *(params.get("meshes") or ()), params.get("grid_mapping")]
        found += [each for each in candidates if each is not None and hasattr(each, "cluster")]
    return found


def instructions(jaxpr: Any) -> str:
    """The primitives of a program that only one generation of GPUs has, in words."""
    names = sorted(n for n in backends._primitives(jaxpr) if n.startswith((*backends._BLACKWELL, *backends._HOPPER)))
    return ", ".join(names) or "its memory spaces"


def known_figures(jaxpr: Any) -> dict[str, int]:
    """What the program alone tells of a Mosaic GPU kernel: shared memory, TMEM columns, barriers."""
    from . import know_budget

    found: dict[str, int] = {}
    entries, smem = know_budget._most(jaxpr, "smem", "")
    if entries:
        found["smem_bytes"] = smem
        barriers = sum(math.prod(each["shape"]) for each in entries if "barrier" in each["dtype"].lower())
        if barriers:
            found["barriers"] = barriers
    columns, amount = know_budget._most(jaxpr, "tmem", "")
    if columns:
        found["tmem_columns"] = amount
    for mesh in _meshes(jaxpr):
        found["threads"] = int(getattr(mesh, "num_threads", None) or 1) * _THREADS_OF_WARPGROUP
    return found


def has_memory_spaces(jaxpr: Any) -> bool:
    """Whether a program is a Mosaic GPU kernel's, whose allocations can be counted."""
    return any(compat.is_ref(var.aval) for chain in equations.chains(jaxpr) for var in chain[-1].invars) or bool(
        _meshes(jaxpr)
    )
