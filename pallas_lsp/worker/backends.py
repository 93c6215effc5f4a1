"""Which backend a launch is written for, and for which devices it is lowered."""

from __future__ import annotations

import re
import types
from typing import Any

from . import compat

_BY_MODULE = (("mosaic_gpu", "mosaic_gpu"), ("triton", "triton"), ("pallas.mosaic", "tpu"), ("pallas.tpu", "tpu"))
_BY_NAME = {"mosaic_gpu": "mosaic_gpu", "triton": "triton", "mosaic_tpu": "tpu", "mosaic": "tpu"}


def _of_module(name: str) -> str | None:
    if not name.startswith("jax"):
        return None
    return next((backend for part, backend in _BY_MODULE if part in name), None)


def of_launch(api: str, options: dict[str, Any], namespace: dict[str, Any]) -> str:
    """``mosaic_gpu``, ``triton``, ``tpu``, or ``any`` for a kernel that names no backend.

    In order: the launch function, its mesh, its compiler parameters, the memory spaces of its specs, and what the
    body's module imports.
    """
    if api.startswith("plgpu"):
        return "mosaic_gpu"
    if api.startswith("pltpu"):
        return "tpu"
    if (named := _BY_NAME.get(str(options.get("backend")))) is not None:
        return named
    for option in ("mesh", "compiler_params", "grid_spec", "scratch_shapes", "scratch_types", "in_specs", "out_specs"):
        found = {backend for value in _objects(options.get(option)) if (backend := _of_module(_module(value)))}
        if len(found) == 1:
            return found.pop()
        if option == "compiler_params" and isinstance(options.get(option), dict):
            keys = [_BY_NAME[key] for key in options[option] if key in _BY_NAME]
            if len(keys) == 1:
                return keys[0]
    imported = {
        backend
        for value in namespace.values()
        if isinstance(value, types.ModuleType) and (backend := _of_module(value.__name__))
    }
    return imported.pop() if len(imported) == 1 else "any"


def _module(value: Any) -> str:
    return str(getattr(value if isinstance(value, type) else type(value), "__module__", ""))


def _objects(tree: Any) -> list[Any]:
    """The objects of a tree of specs, and the memory spaces that they name."""
    import jax

    if tree is None:
        return []
    leaves = [tree] if hasattr(tree, "in_specs") else jax.tree_util.tree_leaves(tree)
    spaces = [space for leaf in leaves if (space := getattr(leaf, "memory_space", None)) is not None]
    if hasattr(tree, "in_specs"):
        for part in (tree.in_specs, tree.out_specs, getattr(tree, "scratch_shapes", ())):
            spaces += _objects(part)
    return [*leaves, *spaces]


# Primitives that only one generation of GPUs has.
_BLACKWELL = ("tcgen05", "tmem", "async_copy_scales", "async_copy_sparse")
_HOPPER = ("wgmma",)


# What only some TPUs have, by words in the text (matrix-unit accumulators, SparseCores), and the TPU to assume then.
_SEVENTH = re.compile(r"\bACC\b|AccMemorySpace|matmul_(?:acc|pop|push)|\btpu_sc\b|\bplsc\b|SubcoreMesh")
_TPU, _NEWEST_TPU = "TPU v5 lite", "TPU7x"


def tpu_kind(text: str, wanted: dict[str, Any]) -> str:
    """The TPU that a text is checked for: the first wanted one that has what the text uses, else one that has it."""
    kinds = [str(kind) for kind in wanted.get("tpu") or (_TPU,)]
    if _SEVENTH.search(text):
        return next((kind for kind in kinds if "7" in kind), _NEWEST_TPU)
    return kinds[0]


def targets(backend: str, program: Any, wanted: dict[str, Any], answered: str | None = None) -> list[tuple[str, str]]:
    """(platform, kind) pairs to lower a kernel for; ``wanted`` as in the ``run`` request.

    ``answered``: the kind of the TPU whose facts (lanes, cores) went into the program, None where none did.

    A kernel that uses the instructions of one GPU generation is lowered for that one alone; one that uses none of
    either, for the first wanted target.  Of several it is enough that one takes the kernel.
    """
    capabilities = list(wanted.get("mosaic_gpu") or ["9.0", "10.0"])
    if backend == "tpu":
        spaces = _memory_spaces(program)
        kind = tpu_kind(" ".join((*_primitives(program), *(space.upper() for space in spaces))), wanted)
        kind = answered if answered is not None and kind != _NEWEST_TPU else kind
        # Vectors of a SparseCore have other lengths on each TPU, and a kernel may be written for one of them.
        others = [_NEWEST_TPU] if kind != _NEWEST_TPU and _on_sparse_core(program) else []
        return [("tpu", each) for each in (kind, *others)]
    if backend == "any":
        return [("cuda", capabilities[0]), *targets("tpu", program, wanted, answered)]
    names = _primitives(program)
    if any(name.startswith(_BLACKWELL) for name in names) or "tmem" in _memory_spaces(program):
        fitting = [c for c in capabilities if float(c) >= 10] or ["10.0"]
    elif any(name.startswith(_HOPPER) for name in names):
        fitting = [c for c in capabilities if 9 <= float(c) < 10] or ["9.0"]
    else:
        fitting = capabilities[:1]
    return [("cuda", capability) for capability in fitting[:1]]


def _on_sparse_core(program: Any) -> bool:
    from . import equations

    meshes = [
        mesh
        for chain in equations.chains(program)
        for mesh in (chain[-1].params.get("mesh"), *(chain[-1].params.get("meshes") or ()))
    ]
    return any("Subcore" in type(mesh).__name__ for mesh in meshes)


def _primitives(program: Any) -> set[str]:
    from . import equations

    return {chain[-1].primitive.name for chain in equations.chains(program)}


def _memory_spaces(program: Any) -> set[str]:
    from . import equations

    found = set()
    for chain in equations.chains(program):
        for inner in compat.sub_jaxprs(chain[-1]):
            for var in inner.invars:
                space = getattr(var.aval, "memory_space", None)
                found.add(str(getattr(space, "value", space) or "").lower())
    return found
