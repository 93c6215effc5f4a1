"""
## What it does
Finds loads and stores of tensor memory (TMEM) in a layout that its instructions do not have.

## Why it is wrong
A load of TMEM gives each thread what lies in its row: the value has one of few layouts, `plgpu.Layout.TCGEN05` and
`plgpu.Layout.TCGEN05_TMEM_NATIVE` for 128 rows. A value that is stored to TMEM has to be in such a layout too. From
jax 0.11 on it is inferred where nothing else asks for another one.

## Example
```python
x = plgpu.async_load_tmem(acc_tmem, layout=plgpu.Layout.WGMMA)
```

## Use instead
```python
x = plgpu.async_load_tmem(acc_tmem)
```

## Fix safety
Leaving the layout out, or asking for the one that TMEM has, is a suggestion: later operations may need another one.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`TMEMRef.load`, `TMEMRef.store`, `_load_32xcols` and others in `jax/experimental/mosaic/gpu/tcgen05.py`; layout
inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_layouts import conflict, inferred
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import MGPU, PLGPU, call_spot, operands
from pallas_lsp.rules.shared.gpu_rewrites import in_tmem_layout
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM", "layouts")
SPECIFICITY = 33
_FILE = f"{MGPU}tcgen05.py"
_FUNCTIONS = (
    "TMEMRef.load",
    "TMEMRef.store",
    "_infer_tmem_load_registers_layout",
    "_store_32xcols",
    "_store_32xcols_native",
    "_load_32xcols",
    "_load_32xcols_native",
    "_tmem_load",
    "_tmem_access_helper",
)
SITES = tuple((_FILE, name) for name in _FUNCTIONS)
_OPERATIONS = ("async_load_tmem", "async_store_tmem")


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    parts = conflict(fault, context) if inferred(fault) else []
    by_layout = bool(parts) and parts[-1].operation in _OPERATIONS
    last = site.function.rpartition(".")[2] if site is not None else ""
    raised = site is not None and site.file == _FILE and last in {f.rpartition(".")[2] for f in _FUNCTIONS}
    if not raised and not by_layout:
        return None
    call = call_spot(context, fault, *_OPERATIONS)
    place = call.location if call is not None else context.locate(fault)
    source = short(context.source(place), 50)
    asked = next((p for p in parts if p.layout), None)
    loads = "load" in (parts[-1].operation if parts else last)
    if "reduc" in fault.message:
        text = f"`{source}` reduces while it loads, which TMEM can only for some layouts, element types and operations."
    elif asked is not None:
        text = (
            f"`{source}` {'gives' if loads else 'takes'} a value in a layout of tensor memory, but {asked.what} asks "
            f"for {asked.layout}{asked.line}."
        )
    else:
        does = "asks for" if loads else "stores a value that lies in"
        text = (
            f"`{source}` {does} a layout in which tensor memory cannot be {'loaded' if loads else 'stored'}: 128 rows "
            "are `plgpu.Layout.TCGEN05` or `plgpu.Layout.TCGEN05_TMEM_NATIVE`."
        )
    location = narrowed(place, context)
    fixes: list[Fix] = []
    if call is not None and isinstance(call.node, ast.Call):
        layout = next((k for k in call.node.keywords if k.arg == "layout"), None)
        if layout is not None:
            location = call.at(layout.value).location
            fixes = list(_fixes(call.path, Editor(call.path, call.syntax), call.node, layout))
        value = call.syntax.arguments(call.node).get(1, "source") if not loads else None
        if value is not None:
            location = call.at(value).location
            edits = Editor(call.path, call.syntax)
            cast = in_tmem_layout(edits, value)
            if cast is not None:
                edits.replace(value, cast)
                fixes += [f for f in [suggested("Cast it to `plgpu.Layout.TCGEN05`", edits)] if f is not None]
    ref = next((o for o in operands(fault).values() if o.space == "tmem"), None)
    related = ref.related(context, "The ref in TMEM is allocated here.") if ref is not None else ()
    return finding(__name__, fault, context, location, text, related, fixes)


def _fixes(path: str, edits: Editor, call: ast.Call, layout: ast.keyword) -> Iterator[Fix]:
    edits.remove_argument(call, layout)
    fix = suggested("Leave the layout out: that of the tensor memory is taken", edits)
    if fix is not None:
        yield fix
    for name in ("TCGEN05", "TCGEN05_TMEM_NATIVE"):
        other = Editor(path, edits.syntax)
        spelled = other.spell(f"{PLGPU}.Layout", call, ALIAS)
        if spelled is not None:
            other.replace(layout.value, f"{spelled}.{name}")
            fix = suggested(f"Ask for `{spelled}.{name}`", other)
            if fix is not None:
                yield fix
