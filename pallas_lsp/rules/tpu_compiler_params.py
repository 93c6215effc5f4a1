"""
## What it does
Finds `pltpu.CompilerParams` that do not fit the launch: `dimension_semantics` with another number of entries than the
grid has axes or with unknown words, a `collective_id` that is missing or superfluous, a VMEM limit that is no integer,
options that only SparseCore kernels have, and a plain dictionary instead of the parameters.

## Why it is wrong
`dimension_semantics` says for each axis of the grid whether its steps may run in any order or on different cores
(`parallel`) or have to follow one another (`arbitrary`). A barrier between devices (`pltpu.get_barrier_semaphore`) is
one of a numbered set, and all devices have to name the same one with `collective_id`.

## Example
```python
pl.pallas_call(
    kernel,
    grid=(8, 2),
    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    ...
)
```

## Use instead
```python
compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))
```

## Fix safety
Adding `"arbitrary"` for the axes without an entry is safe, since it allows nothing. Leaving entries or options out, or
choosing a `collective_id`, is suggested.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`MosaicGridMapping.__init__` and `_get_dimension_semantics` in `jax/_src/pallas/mosaic/lowering.py`,
`_lowered_to_custom_call_config` in `jax/_src/tpu_custom_call.py`, `_resolve_tiling` and `_resolve_side_effect_type` in
`jax/_src/pallas/mosaic/pallas_call_registration.py`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import compiler_params, keyword_edits, site_table
from pallas_lsp.rules.shared.compiler_params import field
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "compiler parameters")

_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_REGISTRATION = "jax/_src/pallas/mosaic/pallas_call_registration.py"
_CUSTOM_CALL = "jax/_src/tpu_custom_call.py"
_CONFIG = ("_lowered_to_custom_call_config", "_lower_to_custom_call_config")
_WORDS = ("parallel", "arbitrary", "core_parallel", "subcore_parallel")
_SEMANTICS = field("dimension_semantics")


def _grid(details: Details) -> str:
    grid = (details.fault.facts.get("given") or {}).get("grid") or ()
    return f"the grid ({', '.join(str(size) for size in grid)}{',' if len(grid) == 1 else ''})" if grid else "the grid"


def _length(details: Details) -> str:
    entries = count_text(int(details["entries"]), "entry").replace("entrys", "entries")
    return (
        f"`dimension_semantics` has {entries}, but {_grid(details)} has {count_text(int(details['axes']), 'axis')}: it "
        "needs one entry for each axis of the grid."
    ).replace("axiss", "axes")


def _lengthened(details: Details) -> Sequence[Fix]:
    spot = _SEMANTICS(details)
    value = spot.syntax.value(spot.node) if spot is not None else None
    if spot is None or not isinstance(value, ast.Tuple | ast.List):
        return ()
    axes, entries = int(details["axes"]), int(details["entries"])
    editor = Editor(spot.path, spot.syntax)
    texts = [spot.syntax.source(e) for e in value.elts]
    if len(texts) != entries:
        return ()
    if axes > entries:
        word = compiler_params.arbitrary(spot.syntax.source(value.elts[0]) if value.elts else '"arbitrary"')
        title, safety = "Let the other axes run in order", Safety.SAFE
        texts += [word] * (axes - entries)
    else:
        title = "Keep the first entry" if axes == 1 else f"Keep the first {axes} entries"
        safety = Safety.SUGGESTED
        texts = texts[:axes]
    inside = ", ".join(texts) + ("," if len(texts) == 1 and isinstance(value, ast.Tuple) else "")
    brackets = "[]" if isinstance(value, ast.List) else "()"
    editor.replace(value, f"{brackets[0]}{inside}{brackets[1]}")
    return (Fix(title, editor.edits(), safety),)


def _word(details: Details) -> Spot | None:
    """The entry that is no dimension semantics, else the field."""
    spot = _SEMANTICS(details)
    for part in ast.walk(spot.syntax.value(spot.node)) if spot is not None else ():
        if spot is not None and isinstance(part, ast.Constant) and part.value == details["word"]:
            return spot.at(part)
    return spot


def _known_word(details: Details) -> Sequence[Fix]:
    spot = _word(details)
    near = difflib.get_close_matches(details["word"], _WORDS, n=1)
    if spot is None or not near or not isinstance(spot.node, ast.Constant):
        return ()
    quote = spot.source[-1]
    return keyword_edits.replace(spot, f"{quote}{near[0]}{quote}", f"Use {near[0]}", Safety.SAFE)


def _launch_here(details: Details) -> Sequence[Related]:
    launch = launch_of(details.fault, details.context)
    grid = launch.argument("grid") if launch is not None else None
    return (Related(grid.location, "This is the grid."),) if grid is not None else ()


def _choose_id(details: Details) -> Sequence[Fix]:
    return compiler_params.with_field(details, "collective_id", "0", "Use barrier 0 (no other kernel may use it)")


def _whole(details: Details) -> Sequence[Fix]:
    spot = field("vmem_limit_bytes")(details)
    return keyword_edits.wrap(spot, "int(", ")", "Make the limit an integer", Safety.SAFE)


def _as_params(details: Details) -> Sequence[Fix]:
    """``dict(mosaic=dict(a=1))`` -> ``pltpu.CompilerParams(a=1)``, and the same for Triton."""
    spot = field()(details)
    module = _module_of_dictionary(details)
    outer = _items(spot.node) if spot is not None else None
    if spot is None or not outer or module is None:
        return ()
    inner = _items(next(iter(outer.values())))
    editor = Editor(spot.path, spot.syntax)
    made = editor.spell(f"{module[0]}.CompilerParams", spot.node, module)
    if inner is None or made is None:
        return ()
    given = ", ".join(f"{name}={spot.syntax.source(value)}" for name, value in inner.items())
    editor.replace(spot.node, f"{made}({given})")
    return (Fix(f"Use {module[1]}.CompilerParams", editor.edits(), Safety.SAFE),)


def _module_of_dictionary(details: Details) -> tuple[str, str] | None:
    """The module whose parameters a dictionary of the old kind stands for, with its usual name."""
    spot = field()(details)
    outer = _items(spot.node) if spot is not None else None
    backend = next(iter(outer)) if outer and len(outer) == 1 else ""
    return {"mosaic": compiler_params.TPU, "mosaic_tpu": compiler_params.TPU, "triton": compiler_params.TRITON}.get(
        backend
    )


def _no_dictionary(details: Details) -> str:
    module = _module_of_dictionary(details) or compiler_params.TPU
    return (
        f"`compiler_params` is a dictionary, which jax does not take any more: use `{module[1]}.CompilerParams(...)`."
    )


def _items(node: ast.expr) -> dict[str, ast.expr] | None:
    """The entries of a dictionary that is written out."""
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        named = all(isinstance(key, str) for key in keys)
        return dict(zip(map(str, keys), node.values, strict=True)) if named else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return {k.arg: k.value for k in node.keywords if k.arg is not None}
    return None


_ROWS = (
    Row(
        _LOWERING,
        ("__init__",),
        _length,
        r"len\(grid\)=(?P<axes>\d+), len\(dimension_semantics\)=(?P<entries>\d+)",
        at=_SEMANTICS,
        fixes=_lengthened,
        related=_launch_here,
    ),
    Row(
        _LOWERING,
        ("_get_dimension_semantics", "_get_semantics", "get_dimension_semantics"),
        "`{word}` is no dimension semantics: there are `parallel`, `arbitrary`, `core_parallel` and "
        "`subcore_parallel`.",
        r"dimension_semantics<(?P<word>\w+)>",
        at=_word,
        fixes=_known_word,
    ),
    Row(
        _CUSTOM_CALL,
        _CONFIG,
        "`collective_id` numbers a barrier between devices, but this kernel has none: leave it out (or use "
        "`pltpu.get_barrier_semaphore`).",
        "has to be unspecified",
        at=field("collective_id"),
        fixes=compiler_params.without("collective_id", "Leave out `collective_id`", Safety.SAFE),
    ),
    Row(
        _CUSTOM_CALL,
        _CONFIG,
        "This kernel uses a barrier between devices (`pltpu.get_barrier_semaphore`), which needs a number: give it one "
        "with `pltpu.CompilerParams(collective_id=...)`.",
        "has to be specified",
        at=field("collective_id"),
        fixes=_choose_id,
    ),
    Row(
        _CUSTOM_CALL,
        _CONFIG,
        "The barrier has two numbers: `collective_id` of the compiler parameters and the tag of "
        "`pltpu.get_barrier_semaphore`. Give only one of them.",
        "Conflicting collective_id",
        at=field("collective_id"),
        fixes=compiler_params.without("collective_id", "Leave out `collective_id`"),
    ),
    Row(
        _CUSTOM_CALL,
        _CONFIG,
        "`vmem_limit_bytes` has to be an integer, but is a {type}.",
        r"vmem_limit_bytes must be an int: provided with a <class '(?P<type>\w+)'>",
        at=field("vmem_limit_bytes"),
        fixes=_whole,
    ),
    Row(
        _CUSTOM_CALL,
        _CONFIG,
        "`{option}` is there for SparseCore kernels only: leave it out.",
        r"explicit (?P<option>tiling|opt_level) is only supported",
        at=field("tiling", "opt_level", "use_tc_tiling_on_sc"),
    ),
    Row(
        _REGISTRATION,
        ("_resolve_tiling",),
        "`use_tc_tiling_on_sc` is there for SparseCore kernels only: leave it out.",
        at=field("use_tc_tiling_on_sc"),
        fixes=compiler_params.without("use_tc_tiling_on_sc", "Leave out `use_tc_tiling_on_sc`", Safety.SAFE),
    ),
    Row(
        _REGISTRATION,
        ("_resolve_side_effect_type",),
        "`has_side_effects` has to be True, False or a `pltpu.SideEffectType`.",
        at=field("has_side_effects"),
    ),
    Row(
        _REGISTRATION,
        ("mpmd_map_tpu_lowering_rule",),
        "A kernel that is launched on a mesh takes no `dimension_semantics`: leave it out.",
        "dimension_semantics= in compiler_params",
        at=_SEMANTICS,
        fixes=compiler_params.without("dimension_semantics", "Leave out `dimension_semantics`"),
    ),
    Row(
        _REGISTRATION,
        ("mpmd_map_tpu_lowering_rule", "_extract_single_barrier_semaphore_tag"),
        "The kernel uses barriers with different tags, but all have to share one: give every "
        "`pltpu.get_barrier_semaphore` the same tag.",
        "barrier semaphore tags",
        at=compiler_params.launch_name,
    ),
    Row(
        "jax/_src/interpreters/mlir.py",
        ("__new__",),
        _no_dictionary,
        "unhashable type: 'dict'",
        at=field(),
        fixes=_as_params,
    ),
)
SITES = site_table.sites([row for row in _ROWS if "pallas" in row.file or "tpu" in row.file])


def judge(fault: Fault, context: Context) -> Finding | None:
    given = (fault.facts.get("given") or {}).get("compiler_params") or {}
    rows = _ROWS if given.get("kind") == "dict" else _ROWS[:-1]
    return site_table.judge(rule_name(__name__), rows, fault, context)
