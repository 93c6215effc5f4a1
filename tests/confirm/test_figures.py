"""The figures of a compiled kernel, from the reports of its compiler and the limits of its GPU."""

from __future__ import annotations

import pytest

from pallas_lsp.confirm.occupancy import occupancy
from pallas_lsp.worker import ptxas

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'body_kernel' for 'sm_90a'
ptxas info    : Function properties for body_kernel
    16 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 154 registers, used 2 barriers, 1 bytes smem
"""
PTX = """\
.version 8.6
.target sm_90a
.visible .entry body_kernel() .reqntid 128, 2, 1 { ret; }
"""
RESOURCES = "smem_scratch_bytes=73728, tmem_scratch_cols=0\n"
XLA = "001: kCustomKernel [source | sink] mm grid: [4, 4, 1] threads: [128, 1, 1]  shared_memory: 32768 bytes\n"


def test_mosaic_gpu_reports(tmp_path):
    for name, text in (
        ("k.ptxas", PTXAS),
        ("k.ptx", PTX),
        ("k.resources.txt", RESOURCES),
        ("k.log", "Used 9 registers"),
    ):
        (tmp_path / name).write_text(text)
    assert ptxas.figures(str(tmp_path)) == {
        "registers": 154,
        "hardware_barriers": 2,
        "static_smem_bytes": 1,
        "stack_bytes": 16,
        "spill_store_bytes": 24,
        "spill_load_bytes": 8,
        "smem_bytes": 73728,
        "tmem_columns": 0,
        "threads": 256,
    }


def test_how_xla_launches_a_triton_kernel(tmp_path):
    (tmp_path / "module_0001.jit_run.thunk_sequence.txt").write_text("000: kKernel fused threads: [1024, 1, 1]\n" + XLA)
    assert ptxas.figures(str(tmp_path)) == {"threads": 128, "smem_bytes": 32768}


def test_without_reports_there_are_no_figures(tmp_path):
    assert ptxas.figures(str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("figures", "blocks", "limit"),
    [
        ({"threads": 128, "registers": 90, "smem_bytes": 80 << 10}, 2, "shared memory"),
        ({"threads": 128, "registers": 154, "smem_bytes": 32 << 10}, 3, "registers"),
        ({"threads": 128, "registers": 20}, 16, "threads"),
        ({"threads": 32, "registers": 20}, 32, "blocks"),
        ({"threads": 128, "registers": 40, "tmem_columns": 256}, 2, "TMEM"),
    ],
)
def test_what_limits_the_blocks_of_a_multiprocessor(figures, blocks, limit):
    found = occupancy(figures, "9.0")
    assert found is not None
    assert (found.blocks, found.limit) == (blocks, limit)


def test_nothing_is_said_where_a_number_is_missing():
    assert occupancy({"threads": 128, "smem_bytes": 32768}, "9.0") is None
    assert occupancy({"registers": 90}, "9.0") is None
    assert occupancy({"threads": 128, "registers": 90}, "3.5") is None
