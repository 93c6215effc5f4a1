"""
## What it does
Finds launches of `plgpu.kernel` whose grid, cluster or threads and their names do not go together: another number of
names than dimensions, `num_threads` without `thread_name`, too many threads, a cluster of more than three dimensions.

## Why it is wrong
Each dimension of `grid=` and `cluster=` has a name, by which the body asks for its index (`jax.lax.axis_index("m")`).
`num_threads=` and `thread_name=` come together; a thread is a warpgroup of 128 CUDA threads, and a block has at most
1024 of those, 8 threads. CUDA's clusters have up to three dimensions.

## Example
```python
plgpu.kernel(body, out_type=..., grid=(4, 2))
```

## Use instead
```python
plgpu.kernel(body, out_type=..., grid=(4, 2), grid_names=("m", "n"))
```

## Fix safety
Names are added safely where the body asks for exactly those; else the fixes are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`Mesh.__post_init__` in `jax/_src/pallas/mosaic_gpu/core.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.gpu_mesh import axis_names_used, mesh_of, names_text
from pallas_lsp.rules.shared.gpu_operands import CORE
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("meshes and devices", "threads and grids")
SITES = ((CORE, "Mesh.__post_init__"),)
_SPARE = ("i", "j", "k", "l")
_PAIRS = (("grid", "grid_names", "grid_names must"), ("cluster", "cluster_names", "cluster_names must"))
_MOST_THREADS = 8


def judge(fault: Fault, context: Context) -> Finding | None:
    if (
        not raised_in(fault, CORE, "__post_init__")
        or fault.site is None
        or "Mesh" not in fault.site.function + _hint(fault)
    ):
        return None
    launch = launch_of(fault, context)
    if launch is None:
        return None
    mesh = mesh_of(fault)
    message = fault.message
    for sizes, names, words in _PAIRS:
        if words in message or (fault.exception.endswith("TypeError") and _no_sequence(mesh, sizes, names)):
            return _names(fault, context, launch, mesh, sizes, names)
    if "num_threads and thread_name" in message:
        return _thread(fault, context, launch, mesh)
    if "too many CUDA threads" in message:
        spot = launch.argument("num_threads")
        count = mesh.get("num_threads")
        text = (
            f"`num_threads={count}` asks for {int(count) * 128 if isinstance(count, int) else 'too many'} CUDA "
            f"threads in a block (128 for each thread), but a block has at most 1024: {_MOST_THREADS} threads."
        )
        fixes = []
        if spot is not None:
            edits = Editor(spot.path, spot.syntax)
            edits.replace(spot.node, str(_MOST_THREADS))
            fixes.append(suggested(f"Ask for {_MOST_THREADS} threads", edits))
        return finding(__name__, fault, context, spot.location if spot else launch.name, text, (), fixes)
    if "at most 3D" in message:
        spot = launch.argument("cluster")
        text = f"This cluster has {len(mesh.get('cluster') or ())} dimensions, but CUDA's clusters have at most three."
        return finding(__name__, fault, context, spot.location if spot else launch.name, text)
    return None


def _hint(fault: Fault) -> str:
    """Python 3.10 does not tell the class of a function: what the message says instead."""
    return "Mesh" if "got Mesh(" in fault.message or "has no len()" in fault.message else ""


def _no_sequence(mesh: Mapping[str, Any], sizes: str, names: str) -> bool:
    return isinstance(mesh.get(sizes), int) or isinstance(mesh.get(names), int)


def _names(
    fault: Fault, context: Context, launch: Launch, mesh: Mapping[str, Any], sizes: str, names: str
) -> Finding | None:
    given, named = launch.argument(sizes), launch.argument(names)
    size, name = mesh.get(sizes), mesh.get(names)
    if isinstance(size, int):
        text = f"`{sizes}={size}` is no tuple: a {sizes} of one dimension is `({size},)`."
        fixes: list[Fix | None] = []
        if given is not None:
            edits = Editor(given.path, given.syntax)
            edits.replace(given.node, f"({given.source},)")
            fixes.append(safe("Make it a tuple", edits))
        return finding(__name__, fault, context, given.location if given else launch.name, text, (), fixes)
    dimensions = len(size) if isinstance(size, Sequence) else 0
    count = len(name) if isinstance(name, Sequence) else 0
    if count == 0:
        text = f"The {sizes} has {_dimensions(dimensions)} but no names: `{names}` has to name each of them."
    elif dimensions == 0:
        text = f"`{names}` has {_count(count)}, but there is no `{sizes}`."
    else:
        text = f"The {sizes} has {_dimensions(dimensions)}, but `{names}` has {_count(count)}."
    place = (named if count else given) or given or named
    known = [str(n) for n in name] if isinstance(name, Sequence) and not isinstance(name, str) else []
    fixes = list(_name_fixes(launch, mesh, names, dimensions, known))
    return finding(__name__, fault, context, place.location if place is not None else launch.name, text, (), fixes)


def _dimensions(count: int) -> str:
    return f"{count} dimension{'s' if count != 1 else ''}"


def _count(count: int) -> str:
    return f"{count} name{'s' if count != 1 else ''}"


def _name_fixes(
    launch: Launch, mesh: Mapping[str, Any], names: str, dimensions: int, known: list[str]
) -> Iterator[Fix | None]:
    named = launch.argument(names)
    used = [n for n in axis_names_used(launch) if n not in _taken(mesh, names)]
    if dimensions == 0:
        if named is not None:
            edits = Editor(launch.spot.path, launch.syntax)
            keyword = next((k for k in launch.call.keywords if k.arg == names), None)
            if keyword is not None:
                edits.remove_argument(launch.call, keyword)
                yield suggested(f"Leave `{names}` out", edits)
        return
    missing = dimensions - len(known)
    fitting = [n for n in used if n not in known]
    if missing > 0:
        spare = [n for n in _SPARE if n not in {*known, *used, *_taken(mesh, names)}]
        new = [*known, *fitting[:missing]]
        new += spare[: dimensions - len(new)]
    else:
        new = [n for n in known if n in used][:dimensions]
        new += [n for n in known if n not in new][: dimensions - len(new)]
        new.sort(key=known.index)
    if len(new) != dimensions:
        return
    edits = Editor(launch.spot.path, launch.syntax)
    if named is not None and named.path == launch.spot.path:
        edits.replace(named.node, names_text(new))
    else:
        edits.insert_argument(launch.call, f"{names}={names_text(new)}")
    sure = missing > 0 and not known and sorted(fitting) == sorted(new) and missing == 1
    make = safe if sure else suggested
    yield make(f"Name the dimensions: `{names}={names_text(new)}`", edits)


def _taken(mesh: Mapping[str, Any], names: str) -> set[str]:
    """Names that the launch gives to something else."""
    taken = set()
    for key in ("grid_names", "cluster_names", "thread_name"):
        value = mesh.get(key)
        if key != names and value is not None:
            taken |= {value} if isinstance(value, str) else {str(v) for v in value}
    return taken


def _thread(fault: Fault, context: Context, launch: Launch, mesh: Mapping[str, Any]) -> Finding:
    edits = Editor(launch.spot.path, launch.syntax)
    fixes: list[Fix | None] = []
    if mesh.get("num_threads") is not None:
        spot = launch.argument("num_threads")
        used = [n for n in axis_names_used(launch) if n not in _taken(mesh, "thread_name")]
        name = used[0] if len(used) == 1 else "wg"
        text = (
            f"`num_threads={mesh['num_threads']}` needs a name by which the body asks for its thread: `thread_name=`."
        )
        edits.insert_argument(launch.call, f'thread_name="{name}"')
        fixes.append(suggested(f'Name the threads: `thread_name="{name}"`', edits))
    else:
        spot = launch.argument("thread_name")
        text = f"`thread_name={mesh.get('thread_name')!r}` names threads, but `num_threads=` does not say how many."
        edits.insert_argument(launch.call, "num_threads=1")
        fixes.append(suggested("Ask for one thread", edits))
        keyword = next((k for k in launch.call.keywords if k.arg == "thread_name"), None)
        if keyword is not None:
            without = Editor(launch.spot.path, launch.syntax)
            without.remove_argument(launch.call, keyword)
            fixes.append(suggested("Leave `thread_name` out", without))
    return finding(__name__, fault, context, spot.location if spot is not None else launch.name, text, (), fixes)
