"""
## What it does
Finds compiler parameters of another backend than the one that the launch is for: TPU parameters on a GPU kernel,
Triton's on a Mosaic GPU kernel, and Mosaic GPU's on `pl.pallas_call`.

## Why it is wrong
Each backend has a `CompilerParams` class of its own, and the class says which backend compiles a `pl.pallas_call`.
From jax 0.11 on `pl.pallas_call` does not launch Mosaic GPU kernels any more: they are launched with `plgpu.kernel`.

## Example
```python
pl.pallas_call(kernel, ..., compiler_params=plgpu.CompilerParams())      # jax 0.11
```

## Use instead
```python
plgpu.kernel(kernel, out_type=..., compiler_params=plgpu.CompilerParams())
pl.pallas_call(kernel, ..., compiler_params=pltriton.CompilerParams())   # a Triton kernel
```

## Fix safety
The fixes, parameters of the right class or none, are suggestions: another backend compiles another program.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`gpu_lowering` in `jax/_src/pallas/pallas_call.py` and the lowering rules of the backends: assertions without a
message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("compiler parameters",)
SPECIFICITY = 60
SITES = (
    ("jax/_src/pallas/pallas_call.py", "_pallas_call_lowering.<locals>.gpu_lowering"),
    ("jax/_src/pallas/mosaic_gpu/pallas_call_registration.py", "mpmd_map_mgpu_lowering_rule"),
    ("jax/_src/pallas/mosaic_gpu/pallas_call_registration.py", "pallas_call_lowering"),
    ("jax/_src/pallas/triton/pallas_call_registration.py", "pallas_call_lowering"),
    ("jax/_src/pallas/mosaic/pallas_call_registration.py", "pallas_call_tpu_lowering_rule"),
    ("jax/_src/pallas/mosaic/pallas_call_registration.py", "mpmd_map_tpu_lowering_rule"),
)

_PALLAS = "jax.experimental.pallas"
_BACKENDS = {
    f"{_PALLAS}.mosaic_gpu": ("plgpu", "Mosaic GPU"),
    f"{_PALLAS}.triton": ("pltriton", "Triton"),
    f"{_PALLAS}.gpu": ("plgpu", "Triton"),
    f"{_PALLAS}.tpu": ("pltpu", "TPU"),
}


def judge(fault: Fault, context: Context) -> Finding | None:
    if not any(raised_in(fault, file, function.rpartition(".")[2]) for file, function in SITES):
        return None
    launch = launch_of(fault, context)
    spot = launch.argument("compiler_params") if launch is not None else None
    if launch is None or spot is None:
        return None
    backend = _backend(spot)
    silent = fault.exception.endswith("AssertionError") and not fault.message
    if not silent and not (launch.api == "plgpu.kernel" and backend and not backend.endswith(".mosaic_gpu")):
        return None
    location = spot.location
    related: list[Related] = []
    whose = f"parameters for {_BACKENDS[backend][1]}" if backend else "parameters of another backend"
    if launch.api == "pl.pallas_call" and backend.endswith(".mosaic_gpu"):
        message = (
            "`pl.pallas_call` does not launch Mosaic GPU kernels from jax 0.11 on, but its parameters are for Mosaic "
            "GPU. Launch with `plgpu.kernel`"
        )
        if _needs_mosaic(launch):
            message += ": there the kernel gets refs in GMEM, and `plgpu.emit_pipeline` copies their blocks to SMEM."
        else:
            message += ", or give parameters for Triton."
        location, related = launch.name, [Related(spot.location, "These are the parameters.")]
    else:
        target = "Mosaic GPU" if launch.api == "plgpu.kernel" else "this platform"
        message = f"These are {whose}, but the kernel is compiled for {target}, which has parameters of its own."
    return finding(__name__, fault, context, location, message, related, _fixes(launch, spot))


def _backend(spot: Spot) -> str:
    value = spot.syntax.value(spot.node)
    name = spot.syntax.called(value) if isinstance(value, ast.Call) else None
    module = (name or "").rpartition(".")[0]
    return module if module in _BACKENDS else ""


def _needs_mosaic(launch: Launch) -> bool:
    """Whether the kernel or its specs use what Mosaic GPU alone has."""
    given = launch.arguments()
    values = [*given.positional, *(value for name, value in given.keywords.items() if name != "compiler_params")]
    parts: list[tuple[Syntax, ast.AST]] = [(launch.syntax, value) for value in values]
    if (body := launch.body()) is not None:
        parts.append(body[1:])
    for syntax, part in parts:
        for node in ast.walk(part):
            used = syntax.dotted(node) if isinstance(node, ast.Attribute | ast.Name) else None
            if used is not None and used.startswith(f"{_PALLAS}.mosaic_gpu."):
                return True
    return False


def _fixes(launch: Launch, spot: Spot) -> Iterator[Fix | None]:
    value = spot.syntax.value(spot.node)
    module = f"{_PALLAS}.mosaic_gpu" if launch.api == "plgpu.kernel" else f"{_PALLAS}.triton"
    if launch.api == "pl.pallas_call" and not launch.arguments().keywords.get("grid_spec"):
        yield _as_kernel(launch)
    if launch.api == "pl.pallas_call" and _needs_mosaic(launch):
        return
    if isinstance(value, ast.Call):
        editor = Editor(spot.path, spot.syntax)
        name = editor.spell(f"{module}.CompilerParams", spot.node, (module, _BACKENDS[module][0]))
        if name is not None:
            editor.replace(value, f"{name}()")
            yield suggested(f"Give parameters for {_BACKENDS[module][1]}: `{name}()`", editor)
    keyword = next((k for k in launch.call.keywords if k.arg == "compiler_params"), None)
    if keyword is not None:
        editor = Editor(launch.spot.path, launch.syntax)
        editor.remove_argument(launch.call, keyword)
        yield suggested("Leave the parameters out", editor)


def _as_kernel(launch: Launch) -> Fix | None:
    """``plgpu.kernel(body, out_type=...)`` for a launch without grid and specs."""
    given = launch.arguments()
    if set(given.keywords) - {"out_shape", "compiler_params", "name", "debug"} or not isinstance(
        launch.call.func, ast.Attribute | ast.Name
    ):
        return None
    editor = Editor(launch.spot.path, launch.syntax)
    kernel = editor.spell(f"{_PALLAS}.mosaic_gpu.kernel", launch.call, (f"{_PALLAS}.mosaic_gpu", "plgpu"))
    if kernel is None:
        return None
    editor.replace(launch.call.func, kernel)
    for keyword in launch.call.keywords:
        if keyword.arg == "out_shape":
            start = launch.syntax.span(keyword)[0]
            editor.change(start, start + len("out_shape"), "out_type")
        elif keyword.arg == "name":
            editor.remove_argument(launch.call, keyword)
    if len(launch.call.args) > 1:
        editor.insert(launch.syntax.span(launch.call.args[1])[0], "out_type=")
    return suggested("Launch with `plgpu.kernel`", editor)
