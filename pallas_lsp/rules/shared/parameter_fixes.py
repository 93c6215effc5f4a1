"""Fixes for kernels whose parameters are not the refs that they get."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Backend, Fix
from pallas_lsp.rules.shared.arity import Arity, partial_names
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.functions import add_parameters, fresh_names, positional, remove_parameter, unused
from pallas_lsp.rules.shared.launch_refs import Refs
from pallas_lsp.rules.shared.launches import Launch
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.wording import and_list
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Function, Syntax

_OUTPUT = re.compile(r"^(o|out|output|y|dst|res|result)s?\d*(_ref|_gmem|_smem|_hbm|_vmem)?$|_out(_ref)?$|^out_")
_OUTPUT_NAMES = ("o_ref", "out_ref", "o_ref_2", "o_ref_3")
_SCRATCH_NAMES = ("scratch_ref", "scratch_ref_2", "scratch_ref_3", "scratch_ref_4")
_INPUT_NAMES = ("x_ref", "y_ref", "z_ref", "w_ref", "in_ref")
_ACCUMULATOR = re.compile(r"acc", re.IGNORECASE)
_BARRIER = re.compile(r"bar", re.IGNORECASE)

_TPU = "jax.experimental.pallas.tpu"
_MOSAIC_GPU = "jax.experimental.pallas.mosaic_gpu"
_FLOAT32 = "jax.numpy.float32"


def fixes(
    launch: Launch, arity: Arity, refs: Refs | None, found: tuple[str, Syntax, Function] | None, taken: int | None
) -> Iterator[Fix | None]:
    if arity.keywords:
        yield _renamed_keyword(launch, arity)
        return
    if refs is None or found is None or taken is None:
        return
    path, syntax, function = found
    if taken < len(refs.names):
        yield from _more_parameters(refs, path, syntax, function, taken)
        return
    spare = [p for p in positional(function) if p.arg in arity.missing]
    if not spare:
        return
    body = launch.argument("kernel", "body")
    if body is not None and unbound_method(launch, arity):
        yield _through_self(launch, body)
        return
    bare = bare_scratch(launch)
    if bare is not None:
        editor = Editor(bare.path, bare.syntax)
        start, end = editor.whole(bare.node)
        editor.insert(start, "[")
        editor.insert(end, "]")
        yield safe("Put the allocation into a list", editor)
    if bare is None and not any(_OUTPUT.search(p.arg) for p in spare):
        yield _allocation(launch, [p.arg for p in spare])
    if launch.facts.get("outputs") == [] or launch.argument(launch.output) is None:
        yield _output(launch, [p.arg for p in spare])
    gone = [p for p in positional(function) if unused(syntax, p)][-len(spare) :]
    if len(gone) == len(spare):
        editor = Editor(path, syntax)
        for parameter in gone:
            editor.delete(*remove_parameter(syntax, function, parameter))
        yield suggested(f"Remove {and_list([f'`{p.arg}`' for p in gone])}, which the kernel does not use", editor)


# -- keywords of functools.partial, and methods ----------------------------------------------------------------------


def bound_keyword(launch: Launch, arity: Arity) -> tuple[Spot, ast.keyword] | None:
    """Where ``functools.partial`` gives a kernel the keyword that it does not have."""
    body = launch.argument("kernel", "body")
    node = body.syntax.value(body.node) if body is not None else None
    while body is not None and isinstance(node, ast.Call) and body.syntax.dotted(node.func) in PARTIAL and node.args:
        found = [keyword for keyword in node.keywords if keyword.arg in arity.keywords]
        if found:
            return body, found[0]
        node = body.syntax.value(node.args[0])
    return None


def keyword_only(launch: Launch) -> list[str]:
    """The keyword-only parameters of a kernel that ``functools.partial`` does not give it."""
    found = launch.body()
    given = partial_names(launch.argument("kernel", "body"))
    return [each.arg for each in found[2].args.kwonlyargs if each.arg not in given] if found is not None else []


def _renamed_keyword(launch: Launch, arity: Arity) -> Fix | None:
    given, wanted, found = bound_keyword(launch, arity), keyword_only(launch), launch.body()
    if given is None or found is None:
        return None
    body, keyword = given
    without_default = {
        a.arg for a, d in zip(found[2].args.kwonlyargs, found[2].args.kw_defaults, strict=True) if d is None
    }
    likely = [name for name in wanted if name in without_default] or wanted
    if len(likely) != 1:
        return None
    editor = Editor(body.path, body.syntax)
    start = body.syntax.span(keyword)[0]
    editor.change(start, start + len(keyword.arg or ""), likely[0])
    return suggested(f"Give it as `{likely[0]}`", editor)


def unbound_method(launch: Launch, arity: Arity) -> bool:
    """Whether a kernel is a method that was taken from its class, so that ``self`` gets a ref."""
    found, body = launch.body(), launch.argument("kernel", "body")
    if found is None or body is None or not arity.missing or not isinstance(body.node, ast.Attribute):
        return False
    owner, names = found[1].parent(found[2]), positional(found[2])
    own = isinstance(owner, ast.ClassDef) and body.syntax.source(body.node.value).rpartition(".")[2] == owner.name
    return own and bool(names) and names[0].arg == "self"


def _through_self(launch: Launch, body: Spot) -> Fix | None:
    """Inside a method of the same class, its own object has the kernel."""
    function = body.syntax.function(launch.call)
    owner = body.syntax.parent(function) if function is not None else None
    if not isinstance(owner, ast.ClassDef) or not isinstance(body.node, ast.Attribute) or function is None:
        return None
    names = positional(function)
    if not names or body.syntax.source(body.node.value) != owner.name:
        return None
    editor = Editor(body.path, body.syntax)
    editor.replace(body.node.value, names[0].arg)
    return safe(f"Take it from `{names[0].arg}`", editor)


def bare_scratch(launch: Launch) -> Spot | None:
    """Scratch types that are one allocation without a list around it, which ``plgpu.kernel`` passes over."""
    spot = launch.argument(launch.scratch) if launch.api == "plgpu.kernel" else None
    value = spot.syntax.value(spot.node) if spot is not None else None
    if spot is None or not isinstance(value, ast.Call):
        return None
    name = spot.syntax.dotted(value.func) or ""
    return spot if name.startswith("jax.experimental.pallas.") else None


# -- parameters for refs that have none ------------------------------------------------------------------------------


def _more_parameters(refs: Refs, path: str, syntax: Syntax, function: Function, taken: int) -> Iterator[Fix | None]:
    given = positional(function)
    missing = len(refs.names) - taken
    if function.args.vararg is not None:
        return
    by_name = _by_name(refs, path, syntax, given, missing)
    if by_name is not None:
        yield by_name
        return
    outputs = [i for i, p in enumerate(given) if _OUTPUT.search(p.arg)]
    lacks_outputs = not outputs and missing >= refs.outputs > 0
    if lacks_outputs and missing == refs.outputs and taken == len(refs.inputs) + refs.scratch and refs.scratch:
        # The scratch is there; the outputs go between.
        names = fresh_names(function, _OUTPUT_NAMES, missing)
        editor = Editor(path, syntax)
        editor.insert(syntax.span(given[len(refs.inputs)])[0], ", ".join(names) + ", ")
        yield suggested(f"Add the parameter {and_list([f'`{n}`' for n in names])} for the output", editor)
        return
    wanted = [*refs.names[taken:]]
    names = []
    for name in wanted:
        pool = _OUTPUT_NAMES if "output" in name else _SCRATCH_NAMES if "scratch" in name else _INPUT_NAMES
        free = [n for n in fresh_names(function, pool, len(pool)) if n not in names]
        names.append(free[0])
    if outputs and not refs.scratch and missing and outputs[0] < refs.first_output:
        # The last parameters are outputs already: an input has none.
        fresh = fresh_names(function, _INPUT_NAMES, missing)
        editor = Editor(path, syntax)
        editor.insert(syntax.span(given[outputs[0]])[0], ", ".join(fresh) + ", ")
        yield suggested(f"Add {and_list([f'`{n}`' for n in fresh])} for the input without a parameter", editor)
        return
    edit = add_parameters(syntax, function, names)
    if edit is None:
        return
    shown = and_list([f"`{n}` for {what}" for n, what in zip(names, wanted, strict=True)])
    title = f"Add {'the parameter' if len(names) == 1 else 'parameters'} {shown}"
    if len(names) == 1 and "output" in wanted[0]:
        stores = _input_stores(syntax, function, given)
        if stores:
            editor = Editor(path, syntax)
            editor.change(*edit)
            for store in stores:
                editor.replace(store, names[0])
            yield suggested(f"{title}, and store into it", editor)
    editor = Editor(path, syntax)
    editor.change(*edit)
    yield suggested(title, editor)


def _by_name(refs: Refs, path: str, syntax: Syntax, given: list[ast.arg], missing: int) -> Fix | None:
    """Parameters for the inputs whose names no parameter has, where the other inputs have one each, in order."""
    names = [_base(name.strip("`")) for name in refs.inputs]
    have = [_base(parameter.arg) for parameter in given]
    lacking = [n for n, name in enumerate(names) if name not in have]
    if not names or len(lacking) != missing or len(set(names)) != len(names) or len(lacking) == len(names):
        return None
    rest = [name for n, name in enumerate(names) if n not in lacking]
    if have[: len(rest)] != rest or not all(names[n].isidentifier() for n in lacking):
        return None
    editor = Editor(path, syntax)
    suffix = "_ref" if any(parameter.arg.endswith("_ref") for parameter in given) else ""
    added: list[str] = []
    for n in lacking:
        before = sum(1 for each in range(n) if each not in lacking)
        if before >= len(given) or f"{names[n]}{suffix}" in have:
            return None
        added.append(f"{names[n]}{suffix}")
        editor.insert(syntax.span(given[before])[0], f"{added[-1]}, ")
    return suggested(f"Add {and_list([f'`{name}`' for name in added])} for the input without a parameter", editor)


def _base(name: str) -> str:
    return re.sub(r"_(ref|hbm|gmem|vmem|smem|any)$", "", name)


def _input_stores(syntax: Syntax, function: Function, given: list[ast.arg]) -> list[ast.Name]:
    """The refs of plain stores, where all of them go to one parameter: the output in disguise."""
    found = []
    for node in ast.walk(function):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            binding = syntax.binding(target.value)
            if binding is not None and binding.node in given:
                found.append(target.value)
    return found if len({name.id for name in found}) == 1 else []


# -- refs for parameters that get none -------------------------------------------------------------------------------


def _output(launch: Launch, names: list[str]) -> Fix | None:
    operands = [o for o in launch.operands() if isinstance(o.node, ast.Name | ast.Attribute)]
    if len(names) != 1 or not operands or operands[0].path != launch.spot.path:
        return None
    editor = Editor(launch.spot.path, launch.syntax)
    struct = editor.spell("jax.ShapeDtypeStruct", launch.call, ("jax", "jax"))
    if struct is None:
        return None
    base = operands[0].source
    editor.insert_argument(launch.call, f"{launch.output}={struct}({base}.shape, {base}.dtype)")
    return suggested(f"Launch with an output for `{names[0]}`, of the type of `{base}`", editor)


def _allocation(launch: Launch, names: list[str]) -> Fix | None:
    """Scratch for the parameters that nothing is left for."""
    editor = Editor(launch.spot.path, launch.syntax)
    entries = [_scratch(launch, editor, name) for name in names]
    if any(entry is None for entry in entries) or launch.arguments().keywords.get("grid_spec") is not None:
        return None
    text = ", ".join(str(entry) for entry in entries)
    existing = launch.argument(launch.scratch)
    if existing is None:
        editor.insert_argument(launch.call, f"{launch.scratch}=[{text}]")
    elif isinstance(existing.node, ast.List | ast.Tuple) and existing.path == launch.spot.path:
        if existing.node.elts:
            editor.insert(editor.whole(existing.node.elts[-1])[1], f", {text}")
        else:
            editor.replace(existing.node, f"[{text}]")
    else:
        return None
    return suggested(f"Allocate scratch for {and_list([f'`{n}`' for n in names])}: `{text}`", editor)


def _scratch(launch: Launch, editor: Editor, name: str) -> str | None:
    capture = launch.context.capture(launch.fault)
    backend = capture.backend if capture is not None else Backend.ANY
    gpu = launch.api == "plgpu.kernel"
    if gpu and _BARRIER.search(name):
        barrier = editor.spell(f"{_MOSAIC_GPU}.Barrier", launch.call, (_MOSAIC_GPU, "plgpu"))
        return f"{barrier}()" if barrier else None
    outputs = launch.facts.get("outputs") or []
    if len(outputs) != 1:
        return None
    shape, dtype = _block(launch), _dtype(launch, editor, name)
    if shape is None or dtype is None:
        return None
    if gpu:
        kind = "ACC" if _ACCUMULATOR.search(name) else "SMEM"
        made = editor.spell(f"{_MOSAIC_GPU}.{kind}", launch.call, (_MOSAIC_GPU, "plgpu"))
    elif launch.api == "pl.pallas_call" and backend in (Backend.TPU, Backend.ANY):
        made = editor.spell(f"{_TPU}.VMEM", launch.call, (_TPU, "pltpu"))
    else:
        return None
    return f"{made}({shape}, {dtype})" if made else None


def _block(launch: Launch) -> str | None:
    """The shape of the output's block as source."""
    spec = launch.argument("out_specs")
    if spec is not None:
        value = spec.syntax.value(spec.node)
        if isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1:
            value = spec.syntax.value(value.elts[0])
        if not isinstance(value, ast.Call):
            return None
        shape = spec.syntax.argument(value, 0, "block_shape")
        if isinstance(shape, ast.Tuple):
            entries = [
                spec.syntax.source(e) for e in shape.elts if not (isinstance(e, ast.Constant) and e.value is None)
            ]
            return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"
        return spec.syntax.source(shape) if shape is not None else None
    shape = (launch.facts.get("outputs") or [{}])[0].get("shape")
    return str(tuple(shape)) if isinstance(shape, list) else None


def _dtype(launch: Launch, editor: Editor, name: str) -> str | None:
    dtype = str((launch.facts.get("outputs") or [{}])[0].get("dtype") or "")
    if _ACCUMULATOR.search(name) and "float" in dtype:
        return editor.spell(_FLOAT32, launch.call, ("jax.numpy", "jnp"))
    return editor.spell(f"jax.numpy.{dtype}", launch.call, ("jax.numpy", "jnp")) if dtype.isidentifier() else None
