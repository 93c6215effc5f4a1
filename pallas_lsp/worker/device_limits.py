"""What the program of a kernel alone tells of its needs of a GPU."""

from __future__ import annotations

import math
from typing import Any

from . import backends, equations

THREADS_OF_WARPGROUP = 128


def meshes(jaxpr: Any) -> list[Any]:
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
    for mesh in meshes(jaxpr):
        found["threads"] = int(getattr(mesh, "num_threads", None) or 1) * THREADS_OF_WARPGROUP
    return found
