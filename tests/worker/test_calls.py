"""Calls with types instead of arrays, as shape comments say them."""

from __future__ import annotations

from typing import Any

HEAD = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

class Config:
    def __init__(self, scale):
        self.scale = scale

def op(x, *, config):
    if x.ndim != 2:
        raise ValueError("two dimensions, please")
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] * config.scale
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def types():
    return (jax.ShapeDtypeStruct((64, 64), jnp.float16),)
"""
BF16 = "__pallas_type__('bfloat16', (128, 64))"


def call(name: str, number: int) -> dict[str, Any]:
    return {"id": f"comment:{number}", "kind": "call", "path": "/w/file.py", "name": name, "lines": [number]}


def test_calls(jax_python: Any, worker_run: Any) -> None:
    calls = [
        call(f"op({BF16}, config=Config(3))", 1),
        call("op(*types(), config=Config(2))", 2),
        call(f"op({BF16})", 3),
        call(f"gone({BF16})", 4),
        call("op(__pallas_type__('bfloat16', (8,)), config=Config(3))", 5),
        call("op(__pallas_type__('bfloat16', (2.5,)), config=Config(3))", 6),
        call("types()", 7),
        call("op(*types(), config=Config(2))", 8),
    ]
    events = worker_run(jax_python.python, HEAD, drivers=calls)
    reached = [(c["driver"], c["arguments"], c["stage"]) for c in events.captures]
    assert reached == [("comment:1", "bf16[128,64]", "lower"), ("comment:2", "f16[64,64]", "lower")]
    told = {fault["driver"]: fault["message"] for fault in events.faults}
    assert set(told) == {"comment:3", "comment:4", "comment:5", "comment:6", "comment:7"}
    assert "config" in told["comment:3"]
    assert "gone" in told["comment:4"]
    assert "two dimensions, please" in told["comment:5"]
    assert "whole numbers" in told["comment:6"]
    assert told["comment:7"] == "this call launches no kernel"
    assert [fault["anchors"][0]["frames"][-1]["line"] for fault in events.faults] == [3, 4, 5, 6, 7]
