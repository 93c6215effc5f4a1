"""How many blocks of a kernel one multiprocessor holds at once, and what keeps it from holding more.

Source of the numbers: the CUDA programming guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WARP = 32
_REGISTERS_PER_WARP_UNIT = 256
_RESERVED_SMEM = 1024
"""Shared memory that the system takes for each block, from compute capability 8.0 on."""
TMEM_COLUMNS = 512


@dataclass(frozen=True)
class Multiprocessor:
    threads: int
    blocks: int
    smem_bytes: int
    block_smem_bytes: int
    registers: int = 65536
    block_threads: int = 1024
    thread_registers: int = 255


_KIB = 1024
_BY_CAPABILITY = {
    "7.5": Multiprocessor(1024, 16, 64 * _KIB, 64 * _KIB),
    "8.0": Multiprocessor(2048, 32, 164 * _KIB, 163 * _KIB),
    "8.6": Multiprocessor(1536, 16, 100 * _KIB, 99 * _KIB),
    "8.7": Multiprocessor(1536, 16, 164 * _KIB, 163 * _KIB),
    "8.9": Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
    "9.0": Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    "10.0": Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    "10.3": Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    "12.0": Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
    "12.1": Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
}


@dataclass(frozen=True)
class Occupancy:
    blocks: int
    limit: str
    """What keeps a multiprocessor from more: registers, shared memory, threads, TMEM or blocks."""
    warps: int
    most_warps: int

    def as_data(self) -> dict[str, Any]:
        return {
            "blocksPerSm": self.blocks,
            "limitedBy": self.limit,
            "warps": self.warps,
            "mostWarps": self.most_warps,
        }


def multiprocessor(compute_capability: str) -> Multiprocessor | None:
    return _BY_CAPABILITY.get(compute_capability)


def occupancy(figures: Mapping[str, Any], compute_capability: str) -> Occupancy | None:
    """From ``threads``, ``registers`` (a thread) and shared memory; None where a number is missing."""
    sm = multiprocessor(compute_capability)
    threads, registers = (int(figures.get(name) or 0) for name in ("threads", "registers"))
    if sm is None or not threads or not registers:
        return None
    warps = -(-threads // _WARP)
    bounds = {"threads": sm.threads // (warps * _WARP), "blocks": sm.blocks}
    of_warp = -(-registers * _WARP // _REGISTERS_PER_WARP_UNIT) * _REGISTERS_PER_WARP_UNIT
    # Each of the four partitions holds a quarter of the registers and of the warps.
    bounds["registers"] = 4 * (sm.registers // 4 // of_warp) // warps
    smem = int(figures.get("smem_bytes") or 0) + int(figures.get("static_smem_bytes") or 0)
    if smem:
        bounds["shared memory"] = sm.smem_bytes // (smem + _RESERVED_SMEM)
    if columns := int(figures.get("tmem_columns") or 0):
        bounds["TMEM"] = TMEM_COLUMNS // columns
    order = ("registers", "shared memory", "TMEM", "threads", "blocks")
    limit = min((name for name in order if name in bounds), key=lambda name: bounds[name])
    blocks = max(bounds[limit], 0)
    return Occupancy(blocks, limit, blocks * warps, sm.threads // _WARP)
