"""The two accumulator rules on faults made by hand: what they take, where they point, what they offer without facts."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from made import PATH, capture, context, fault, frame

from pallas_lsp.model import Fault, Finding, Frame, Stage
from pallas_lsp.rules import preinitialized_accumulator_outside_run_state as preinitialized
from pallas_lsp.rules import run_state_uninitialized_ref as uninitialized
from pallas_lsp.rules.context import Context
from pallas_lsp.source.edits import apply_edits

HEAD = """\
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

"""
DISCHARGE = "jax/_src/state/discharge.py"
LOWERING = "jax/_src/pallas/mosaic_gpu/lowering.py"
CORE = "jax/_src/pallas/mosaic_gpu/core.py"
BARE = {"kind": "WGMMAAccumulatorRef", "shape": [64, 128], "dtype": "float32", "initialized": False}
FILLED = {**BARE, "initialized": True}


def leaves(*given: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"ref_types": [{**leaf, "path": path} for path, leaf in given]}


def state_fault(*frames: Frame, facts: Mapping[str, Any] | None = None, **more: Any) -> Fault:
    site = (DISCHARGE, "_run_state_abstract_eval")
    return fault(*frames, exception="builtins.NotImplementedError", site=site, facts=facts, **more)


def scoped_fault(
    *frames: Frame, facts: Mapping[str, Any] | None = None, calls: Sequence[tuple[str, str]] = ()
) -> Fault:
    message = "Preinitialized WGMMAAccumulatorRef only supported in pl.run_state."
    site = (CORE, "WGMMAAccumulatorRef.get_ref_aval")
    calls = calls or [("jax/_src/pallas/primitives.py", "run_scoped")]
    return fault(*frames, message=message, site=site, facts=facts, calls=calls)


def source(found: Finding | None, own: Context) -> str:
    assert found is not None
    return own.source(found.location)


def fixed(found: Finding | None, text: str) -> list[str]:
    """The text after each fix."""
    assert found is not None
    results = [apply_edits(text, fix.edits) for fix in found.fixes]
    for result in results:
        ast.parse(result)
    return results


# -- run_state -------------------------------------------------------------------------------------------------------

STATE = (
    HEAD + "def body(acc):\n    plgpu.wgmma(acc, a, b)\n\nx = pl.run_state(body)(plgpu.ACC((64, 128), jnp.float32))\n"
)
CALL = "pl.run_state(body)(plgpu.ACC((64, 128), jnp.float32))"


def test_a_ref_without_a_value() -> None:
    own = context(STATE)
    found = uninitialized.judge(state_fault(frame(STATE, CALL), facts=leaves(("", BARE))), own)
    assert source(found, own) == "plgpu.ACC((64, 128), jnp.float32)"
    assert found is not None and found.rule == "run-state-uninitialized-ref"
    assert found.message.strip()
    started, scoped = fixed(found, STATE)
    assert "plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32))" in started
    assert "x = pl.run_scoped(body, plgpu.ACC((64, 128), jnp.float32))" in scoped
    assert "    plgpu.wgmma(acc, a, b)\n    return acc[...]\n" in scoped


@pytest.mark.parametrize(("jax", "cast"), [("0.10.2", True), ("0.11.0", False), ("0.12.0.1", False)])
def test_old_versions_get_a_layout(jax: str, cast: bool) -> None:
    own = context(STATE, jax)
    found = uninitialized.judge(state_fault(frame(STATE, CALL), facts=leaves(("", BARE))), own)
    assert (
        "plgpu.layout_cast(jnp.zeros((64, 128), jnp.float32), plgpu.Layout.WGMMA)" in fixed(found, STATE)[0]
    ) is cast


def test_without_facts_the_source_tells() -> None:
    own = context(STATE)
    found = uninitialized.judge(state_fault(frame(STATE, CALL)), own)
    assert source(found, own) == "plgpu.ACC((64, 128), jnp.float32)"
    assert "ACC.init(jnp.zeros(" in fixed(found, STATE)[0]


def test_without_columns_the_call_of_the_line_is_taken() -> None:
    own = context(STATE)
    found = uninitialized.judge(state_fault(frame(STATE, CALL, columns=False), facts=leaves(("", BARE))), own)
    assert source(found, own) == "plgpu.ACC((64, 128), jnp.float32)"


def test_lowering_says_it_with_words() -> None:
    own = context(STATE)
    message = "Uninitialized Refs are not supported in lowering of run_state."
    late = fault(
        frame(STATE, CALL),
        exception="builtins.NotImplementedError",
        message=message,
        site=(LOWERING, "_run_state_lowering_rule"),
        stage=Stage.LOWER,
    )
    found = uninitialized.judge(late, own)
    assert source(found, own) == "plgpu.ACC((64, 128), jnp.float32)"
    assert found is not None and found.stage is Stage.LOWER
    other = replace(late, message="Expected at least one accumulator to in run_state.")
    assert uninitialized.judge(other, own) is None


def test_other_faults_are_not_taken() -> None:
    own = context(STATE)
    taken = state_fault(frame(STATE, CALL), facts=leaves(("", BARE)))
    assert uninitialized.judge(replace(taken, exception="builtins.AssertionError"), own) is None
    elsewhere = fault(frame(STATE, CALL), exception="builtins.NotImplementedError", site=(DISCHARGE, "_other"))
    assert uninitialized.judge(elsewhere, own) is None


def test_a_function_around_run_state() -> None:
    text = HEAD + "def go(body):\n    return pl.run_state(body)\n\nx = go(body)(plgpu.ACC((64, 128)))\n"
    own = context(text)
    found = uninitialized.judge(
        state_fault(frame(text, "go(body)(plgpu.ACC((64, 128)))"), facts=leaves(("", BARE))), own
    )
    assert source(found, own) == "plgpu.ACC((64, 128))"
    assert len(fixed(found, text)) == 1


def test_a_ref_that_the_caller_gave() -> None:
    text = HEAD + (
        "def run(body, *refs, extra=None):\n"
        "    return pl.run_state(lambda r: body(*r))((extra, *refs))\n"
        "\n"
        "class K:\n"
        "    def go(self):\n"
        "        return run(self.body, plgpu.ACC.init(c), plgpu.ACC((64, 128)), extra=c)\n"
    )
    own = context(text)
    frames = [
        frame(text, "run(self.body, plgpu.ACC.init(c), plgpu.ACC((64, 128)), extra=c)"),
        frame(text, "pl.run_state(lambda r: body(*r))((extra, *refs))"),
    ]
    facts = leaves(("[0]", {"kind": "JitTracer", "initialized": True}), ("[1]", FILLED), ("[2]", BARE))
    found = uninitialized.judge(state_fault(*frames, facts=facts), own)
    assert source(found, own) == "plgpu.ACC((64, 128))"
    assert len(fixed(found, text)) == 1  # the function is shared: its run_state stays


def test_what_cannot_be_followed_is_still_found() -> None:
    text = HEAD + "x = pl.run_state(body)(unknown(*things))\n"
    own = context(text)
    whole = "pl.run_state(body)(unknown(*things))"
    found = uninitialized.judge(state_fault(frame(text, whole), facts=leaves(("[3]", BARE))), own)
    assert source(found, own) == "unknown(*things)"
    assert found is not None and found.fixes == ()
    nowhere = uninitialized.judge(state_fault(facts=leaves(("", BARE))), own)
    assert nowhere is not None and nowhere.message.startswith("This ref has no start value")


def test_the_place_where_it_was_made_serves_where_nothing_leads_there() -> None:
    text = HEAD + "made = make(plgpu.ACC((64, 128)))\nx = pl.run_state(body)(made.parts)\n"
    own = context(text)
    born = frame(text, "plgpu.ACC((64, 128))")
    leaf = {**BARE, "frames": [{n: getattr(born, n) for n in born.__slots__}]}
    found = uninitialized.judge(
        state_fault(frame(text, "pl.run_state(body)(made.parts)"), facts=leaves(("[1]", leaf))), own
    )
    assert source(found, own) == "plgpu.ACC((64, 128))"
    assert found is not None and [own.source(r.location) for r in found.related] == ["pl.run_state(body)(made.parts)"]
    assert len(found.fixes) == 1


def test_containers_are_followed() -> None:
    for written, path in [
        ("(c, [plgpu.ACC((64, 128))])", "[1][0]"),
        ("{'x': {'y': plgpu.ACC((64, 128))}}", "['x']['y']"),
        ("dict(x=(plgpu.ACC((64, 128)),))", "['x'][0]"),
        ("State(c, acc=plgpu.ACC((64, 128)))", ".acc"),
        ("State(c, plgpu.ACC((64, 128)))", ".acc"),
        ("[plgpu.ACC((64, 128)) for _ in range(3)]", "[2]"),
        ("tuple(plgpu.ACC((64, 128)) for _ in range(3))", "[2]"),
        ("[plgpu.ACC((64, 128))] * 3", "[2]"),
        ("(c,) + (plgpu.ACC((64, 128)),)", "[1]"),
        ("(*first, plgpu.ACC((64, 128)))", "[2]"),
        ("(c, *more())", "[1]"),
        ("named", "['acc']"),
    ]:
        text = HEAD + (
            "class State:\n    first: int\n    acc: int\n\n"
            "first = (c, c)\n"
            "def more():\n    return (plgpu.ACC((64, 128)),)\n\n"
            "named = {'acc': plgpu.ACC((64, 128))}\n"
            f"x = pl.run_state(body)({written})\n"
        )
        own = context(text)
        found = uninitialized.judge(
            state_fault(frame(text, f"pl.run_state(body)({written})"), facts=leaves((path, BARE))), own
        )
        assert source(found, own) == "plgpu.ACC((64, 128))", written


def test_imports_are_added_where_they_are_missing() -> None:
    text = (
        "import jax.experimental.pallas as p\n"
        "from jax.experimental.pallas.mosaic_gpu import ACC, wgmma\n\n"
        "def body(acc):\n    wgmma(acc, a, b)\n\nx = p.run_state(body)(ACC((64, 128)))\n"
    )
    own = context(text, "0.10.2")
    found = uninitialized.judge(
        state_fault(frame(text, "p.run_state(body)(ACC((64, 128)))"), facts=leaves(("", BARE))), own
    )
    started = fixed(found, text)[0]
    assert "import ACC, wgmma, layout_cast, Layout\nimport jax.numpy as jnp\n" in started
    assert "ACC.init(layout_cast(jnp.zeros((64, 128), jnp.float32), Layout.WGMMA))" in started


# -- anywhere else ---------------------------------------------------------------------------------------------------

SCOPED = HEAD + (
    "def body(acc):\n    plgpu.wgmma(acc, a, b)\n    return acc[...]\n\nx = pl.run_scoped(body, plgpu.ACC.init(c))\n"
)


def test_a_start_value_in_run_scoped() -> None:
    own = context(SCOPED)
    found = preinitialized.judge(
        scoped_fault(frame(SCOPED, "pl.run_scoped(body, plgpu.ACC.init(c))"), facts=leaves(("[0]", FILLED))), own
    )
    assert source(found, own) == "plgpu.ACC.init(c)"
    state, stored, dropped = fixed(found, SCOPED)
    assert "x = pl.run_state(body)(plgpu.ACC.init(c))" in state and "return" not in state
    assert "    acc[...] = c\n    plgpu.wgmma" in stored and "plgpu.ACC(c.shape, c.dtype)" in stored
    assert found is not None and [fix.safety for fix in found.fixes] == ["safe", "safe", "suggested"]
    assert dropped != SCOPED


def test_python_3_10_tells_the_function_without_its_class() -> None:
    own = context(SCOPED)
    plain = replace(scoped_fault(frame(SCOPED, "pl.run_scoped(body, plgpu.ACC.init(c))")), site=None)
    assert preinitialized.judge(plain, own) is None
    at = frame(SCOPED, "pl.run_scoped(body, plgpu.ACC.init(c))")
    short = fault(at, message="Preinitialized WGMMAAccumulatorRef only ...", site=(CORE, "get_ref_aval"))
    assert source(preinitialized.judge(short, own), own) == "plgpu.ACC.init(c)"
    other = fault(at, message="something else", site=(CORE, "GPUMemoryRef.get_ref_aval"))
    assert preinitialized.judge(other, own) is None


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        ("return acc[...]", True),
        ("return", True),
        ("pass", True),
        ("return acc[...].astype(jnp.float16)", True),
        ("y = f(1)\n    return acc[...] + y", False),
        ("return acc[...] + acc[...]", False),
        ("if a: return acc[...]\n    return acc[...] * 2", False),
        ("if a: return acc[...]\n    return acc[...]", True),
        ("return acc", False),
        ("return 1", False),
    ],
)
def test_run_state_only_where_the_result_stays_the_same(body: str, offered: bool) -> None:
    text = (
        HEAD + f"def body(acc):\n    plgpu.wgmma(acc, a, b)\n    {body}\n\nx = pl.run_scoped(body, plgpu.ACC.init(c))\n"
    )
    own = context(text)
    found = preinitialized.judge(
        scoped_fault(frame(text, "pl.run_scoped(body, plgpu.ACC.init(c))"), facts=leaves(("[0]", FILLED))), own
    )
    assert any("run_state(body)" in result for result in fixed(found, text)) is offered


def test_run_state_is_not_offered_for_a_body_that_others_use() -> None:
    text = SCOPED + "y = pl.run_scoped(body, plgpu.ACC((64, 128)))\n"
    own = context(text)
    found = preinitialized.judge(
        scoped_fault(frame(text, "pl.run_scoped(body, plgpu.ACC.init(c))"), facts=leaves(("[0]", FILLED))), own
    )
    assert not any("run_state(body)" in result for result in fixed(found, text))


def test_the_value_is_not_stored_where_its_names_mean_something_else() -> None:
    text = HEAD + (
        "def body(acc):\n    c = 1\n    plgpu.wgmma(acc, a, b)\n    return acc[...]\n\n"
        "def k(c):\n    return pl.run_scoped(body, plgpu.ACC.init(c))\n"
    )
    own = context(text)
    found = preinitialized.judge(
        scoped_fault(frame(text, "pl.run_scoped(body, plgpu.ACC.init(c))"), facts=leaves(("[0]", FILLED))), own
    )
    assert not any("acc[...] = c" in result for result in fixed(found, text))


def test_scratch_types_of_a_launch_elsewhere() -> None:
    text = HEAD + (
        "def kernel(x, o, tmp, acc):\n    pass\n\n"
        "f = plgpu.kernel(kernel, scratch_types=[tmp, plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32))])\n"
        "y = f(x)\n"
    )
    launch = frame(text, "plgpu.kernel(kernel, scratch_types=[tmp, plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32))])")
    own = context(text, captures=[capture(launch=launch)])
    calls = [("jax/_src/pallas/primitives.py", "run_scoped"), (CORE, "kernel.<locals>.wrapper.<locals>.kernel_body")]
    facts = leaves(("[0]", {"kind": "GPUMemoryRef", "initialized": False}), ("[1]", FILLED))
    found = preinitialized.judge(scoped_fault(frame(text, "f(x)"), facts=facts, calls=calls), own)
    assert source(found, own) == "plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32))"
    (plain,) = fixed(found, text)
    assert "scratch_types=[tmp, plgpu.ACC((64, 128), jnp.float32)]" in plain
    assert found is not None and found.fixes[0].safety == "safe"


def test_get_ref_aval_asked_directly() -> None:
    text = HEAD + "t = plgpu.ACC.init(c).get_ref_aval()\n"
    own = context(text)
    found = preinitialized.judge(scoped_fault(frame(text, "plgpu.ACC.init(c).get_ref_aval()"), calls=[("x", "y")]), own)
    assert source(found, own) == "plgpu.ACC.init(c)"
    assert "t = plgpu.ACC(c.shape, c.dtype).get_ref_aval()" in fixed(found, text)[0]


def test_no_place_at_all_is_no_crash() -> None:
    found = preinitialized.judge(scoped_fault(facts=leaves(("[0]", FILLED))), context(HEAD))
    assert found is not None and found.message.startswith("This accumulator has a start value")
    assert found.location.path in ("", PATH)
