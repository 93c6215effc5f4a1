"""What Pallas's public namespaces hold in each tested jax: ``data/api.json``, made by ``scripts/api_table.py``."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).resolve().parents[2] / "data" / "api.json"
PALLAS = "jax.experimental.pallas"
SHORT = {
    "pl": PALLAS,
    "plgpu": f"{PALLAS}.mosaic_gpu",
    "pltriton": f"{PALLAS}.triton",
    "plt": f"{PALLAS}.triton",
    "pltpu": f"{PALLAS}.tpu",
    "plsc": f"{PALLAS}.tpu_sc",
}
ALIASES = {module: short for short, module in reversed(SHORT.items())}

# What went before the oldest jax of the table, and what jax's own notes do not say.
_GONE = {
    f"{PALLAS}.load": f"{PALLAS}.triton.load",
    f"{PALLAS}.store": f"{PALLAS}.triton.store",
    f"{PALLAS}.Unblocked": f"{PALLAS}.Element",
    f"{PALLAS}.unblocked": f"{PALLAS}.Element",
    f"{PALLAS}.dot": "jax.numpy.dot",
    f"{PALLAS}.debug_checks_enabled": f"{PALLAS}.enable_debug_checks",
    f"{PALLAS}.tpu.ANY": f"{PALLAS}.ANY",
    f"{PALLAS}.mosaic_gpu.ANY": f"{PALLAS}.ANY",
}
_GONE_MODULES = {f"{PALLAS}.gpu": f"{PALLAS}.triton", f"{PALLAS}.mosaic": f"{PALLAS}.tpu"}
_PREFIXES = ("TPU", "GPU", "Triton", "Mosaic", "MosaicGPU", "MGPU")
_USE = re.compile(r"[Uu]se ((?:jax|pl|pltpu|plgpu|pltriton)\.[\w.]*\w)")
_FORWARDS = {f"{PALLAS}.mosaic_gpu.kernel": ("mesh_kwargs", f"{PALLAS}.mosaic_gpu.Mesh")}
_KEYWORDS = {"out_shape": "out_type", "scratch_shapes": "scratch_types", "out_shapes": "out_shape", "kernel": "body"}


@dataclass(frozen=True)
class Replacement:
    """``dotted``: what stands for a name today; ``certain`` where jax says so or only the name changed."""

    dotted: str
    certain: bool
    note: str = ""


@dataclass(frozen=True)
class Signature:
    """``names``: every parameter; ``positional``: those that a positional argument may give."""

    names: tuple[str, ...]
    positional: tuple[str, ...]
    required: tuple[str, ...]
    any_keyword: bool
    any_positional: bool


@functools.cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _views(jax: tuple[int, ...]) -> tuple[tuple[str, ...], bool]:
    """The versions of the table that stand for a jax, and whether one of them is this very version."""
    versions = _table()["versions"]
    if not jax or jax < _numbers(versions[0]):
        return (), False
    exact = [v for v in versions if _numbers(v) == jax]
    if exact:
        return (exact[0],), True
    below = [v for v in versions if _numbers(v) < jax]
    above = [v for v in versions if _numbers(v) > jax]
    return (*below[-1:], *above[:1]), False


def _entry(dotted: str) -> dict[str, Any] | None:
    module, _, name = dotted.rpartition(".")
    held = _table()["modules"].get(module)
    entry = held["names"].get(name) if held is not None else None
    return entry if isinstance(entry, dict) else None


def _has(dotted: str, version: str) -> bool:
    entry = _entry(dotted)
    return entry is not None and version in entry.get("versions", _table()["versions"])


def is_module(dotted: str) -> bool:
    return dotted in _table()["modules"]


def missing(dotted: str, jax: tuple[int, ...]) -> bool:
    """Whether a jax surely lacks a name of Pallas; a name that no table knows counts in a jax of the table only."""
    module = dotted.rpartition(".")[0]
    views, exact = _views(jax)
    if not views:
        return False
    if not is_module(module):
        return _missing_member(module, dotted.rpartition(".")[2], views, exact)
    if any(_has(dotted, view) for view in views) or is_module(dotted) or dotted in _table()["submodules"]:
        return False
    return exact or _entry(dotted) is not None or dotted in _GONE or _renamed(dotted, views[-1]) is not None


def _missing_member(owner: str, name: str, views: Sequence[str], exact: bool) -> bool:
    """Whether an enumeration, such as ``pltpu.MemorySpace``, surely lacks a member; members are in capitals."""
    entry = _entry(owner)
    if entry is None or "members" not in entry or not name.isupper():
        return False
    held = [_members(owner, view) for view in views]
    return all(members is not None and name not in members for members in held) and (exact or len(held) > 1)


def _members(owner: str, version: str) -> list[str] | None:
    entry = _entry(owner)
    if entry is None or not _has(owner, version):
        return None
    fitting = [v for v in entry.get("members", {}) if _numbers(v) <= _numbers(version)]
    return list(entry["members"][fitting[-1]]) if fitting else None


def was_module(dotted: str) -> bool:
    return dotted in _GONE_MODULES


def shown(owner: str) -> str:
    """A module, or a class of one, under its usual short name."""
    if owner in ALIASES:
        return ALIASES[owner]
    module, _, name = owner.rpartition(".")
    return f"{ALIASES[module]}.{name}" if module in ALIASES else owner


def is_enumeration(dotted: str) -> bool:
    entry = _entry(dotted)
    return entry is not None and "members" in entry


def missing_module(dotted: str, jax: tuple[int, ...]) -> str | None:
    """What a module of Pallas that is gone became."""
    views, _ = _views(jax)
    return _GONE_MODULES.get(dotted) if views else None


def replacement(dotted: str, jax: tuple[int, ...]) -> Replacement | None:
    """What to write for a name that a jax lacks."""
    views, _ = _views(jax)
    version = views[-1] if views else _table()["versions"][-1]
    module, _, name = dotted.rpartition(".")
    if not is_module(module):
        if _has(f"{PALLAS}.{name}", version):
            return Replacement(f"{PALLAS}.{name}", False)
        near = difflib.get_close_matches(name, _members(module, version) or [], 1, 0.6)
        return Replacement(f"{module}.{near[0]}", False) if near else None
    note = str(_table()["modules"].get(module, {}).get("notes", {}).get(name, ""))
    used = _USE.search(note)
    if dotted in _GONE:
        return Replacement(_GONE[dotted], False, note)
    if used is not None:
        head, _, rest = used.group(1).partition(".")
        target = f"{SHORT[head]}.{rest}" if head in SHORT else used.group(1)
        if not target.startswith(PALLAS) or _has(target, version):
            return Replacement(target, True, note)
    renamed = _renamed(dotted, version)
    if renamed is not None:
        return Replacement(renamed, True, note)
    elsewhere = [f"{m}.{name}" for m in _table()["modules"] if m != module and _has(f"{m}.{name}", version)]
    if len(elsewhere) == 1 or (elsewhere and elsewhere[0].rpartition(".")[0] == PALLAS):
        return Replacement(elsewhere[0], True, note)
    held = _table()["modules"].get(module, {"names": {}})["names"]
    close = difflib.get_close_matches(name, [n for n in held if _has(f"{module}.{n}", version)], 1, 0.75)
    return Replacement(f"{module}.{close[0]}", False, note) if close else None


def _renamed(dotted: str, version: str) -> str | None:
    """``TPUCompilerParams`` -> ``CompilerParams``: the backend's name in front was dropped."""
    module, _, name = dotted.rpartition(".")
    for prefix in _PREFIXES:
        rest = name.removeprefix(prefix)
        if rest != name and rest and _has(f"{module}.{rest}", version):
            return f"{module}.{rest}"
    return None


def since(dotted: str) -> tuple[str, str]:
    """The first and the last version of the table that have a name; empty where none has."""
    entry = _entry(dotted)
    if entry is None:
        return "", ""
    versions = entry.get("versions", _table()["versions"])
    return versions[0], versions[-1]


def next_version(version: str) -> str:
    """The version of the table after another one; empty after the newest."""
    versions = _table()["versions"]
    index = versions.index(version) + 1
    return str(versions[index]) if index < len(versions) else ""


# -- signatures ------------------------------------------------------------------------------------------------------


def signatures(dotted: str, jax: tuple[int, ...]) -> list[Signature]:
    """The parameters of a function or class, one for each version of the table that stands for a jax."""
    views, _ = _views(jax)
    return [s for view in views if (s := _signature(dotted, view)) is not None]


def _signature(dotted: str, version: str) -> Signature | None:
    entry = _entry(dotted)
    if entry is None or not _has(dotted, version) or "parameters" not in entry:
        return None
    fitting = [v for v in entry["parameters"] if _numbers(v) <= _numbers(version)]
    if not fitting:
        return None
    names: list[str] = []
    positional: list[str] = []
    required: list[str] = []
    any_keyword = any_positional = False
    for parameter in entry["parameters"][fitting[-1]]:
        text, _, kind = parameter.partition(":")
        optional = text.endswith("=")
        name = text.rstrip("=")
        if name.startswith("**"):
            forwarded = _FORWARDS.get(dotted)
            inner = _signature(forwarded[1], version) if forwarded and forwarded[0] == name[2:] else None
            names += inner.names if inner is not None else ()
            any_keyword = inner is None
        elif name.startswith("*"):
            any_positional = True
        else:
            names.append(name)
            if kind != "k":
                positional.append(name)
            if not optional:
                required.append(name)
    return Signature(tuple(names), tuple(positional), tuple(required), any_keyword, any_positional)


def keyword_for(dotted: str, keyword: str, jax: tuple[int, ...]) -> tuple[str, bool] | None:
    """The parameter that an unknown keyword stands for, and whether that is certain."""
    found = signatures(dotted, jax)
    names = [n for n in found[-1].names if all(n in s.names for s in found)] if found else []
    entry = _entry(dotted) or {}
    alias = entry.get("aliases", {}).get(keyword)
    if alias in names:
        return str(alias), True
    for old, new in (*_KEYWORDS.items(), *((new, old) for old, new in _KEYWORDS.items())):
        if keyword == old and new in names:
            return new, True
    close = difflib.get_close_matches(keyword, [*names, *entry.get("aliases", {})], 1, 0.6)
    if not close:
        return None
    meant = entry.get("aliases", {}).get(close[0], close[0])
    return (str(meant), False) if meant in names else None


def positional_name(dotted: str, position: int, jax: tuple[int, ...]) -> str | None:
    """The keyword for an argument that was positional in an older jax."""
    found = signatures(dotted, jax)
    entry = _entry(dotted)
    if entry is None or not found:
        return None
    for version in reversed(_table()["versions"]):
        older = _signature(dotted, version)
        if older is not None and position < len(older.positional):
            name = older.positional[position]
            name = str(entry.get("aliases", {}).get(name, name))
            return name if name in found[-1].names else None
    return None
