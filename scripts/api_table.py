"""Write ``pallas_lsp/data/api.json``: what the public namespaces of Pallas hold in each tested jax.

    python3 scripts/api_table.py [PYTHON ...]

Each PYTHON is an interpreter with one jax; without any, those under ``.venvs/jax-*`` are taken.  Run it again for a new
jax release.  The table holds, for each module, its names with the versions that have them, the parameters of functions
and classes, the members of enumerations, and what jax itself says of names that it deprecated or removed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
TABLE = PROJECT / "pallas_lsp" / "data" / "api.json"
MODULES = (
    "jax.experimental.pallas",
    "jax.experimental.pallas.mosaic_gpu",
    "jax.experimental.pallas.triton",
    "jax.experimental.pallas.tpu",
    "jax.experimental.pallas.tpu_sc",
    "jax.experimental.pallas.fuser",
)

# What runs in each interpreter; it prints one JSON object.
PROBE = r"""
import enum, importlib, inspect, json, pkgutil, re, sys, warnings
warnings.simplefilter("ignore")
import jax
ALIAS = re.compile(r"^\s*(\w+): A deprecated alias for ``(\w+)``", re.M)

def parameters(value):
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    found = []
    for p in signature.parameters.values():
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = {p.KEYWORD_ONLY: "k", p.POSITIONAL_ONLY: "p"}.get(p.kind, "")
        found.append(mark + p.name + ("=" if p.default is not p.empty else "") + (":" + kind if kind else ""))
    return found

def describe(value):
    entry = {}
    if isinstance(value, type) and issubclass(value, enum.Enum):
        entry["members"] = sorted(value.__members__)
        return entry
    # Instances that can be called, such as memory spaces, do not tell what they take.
    if inspect.isroutine(value) or inspect.isclass(value) or hasattr(value, "__wrapped__"):
        found = parameters(value)
        if found is not None:
            entry["parameters"] = found
        aliases = ALIAS.findall(inspect.getdoc(value) or "")
        if aliases:
            entry["aliases"] = dict(aliases)
    return entry

result = {"version": jax.__version__, "modules": {}, "submodules": []}
package = importlib.import_module("jax.experimental.pallas")
result["submodules"] = sorted("jax.experimental.pallas." + m.name for m in pkgutil.iter_modules(package.__path__))
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except ImportError:
        continue
    names, notes = {}, {}
    for attribute in dir(module):
        if attribute.startswith("_") or attribute == "annotations":
            continue
        value = getattr(module, attribute)
        if inspect.ismodule(value) and not value.__name__.startswith("jax.experimental.pallas"):
            continue
        names[attribute] = describe(value)
    for attribute, (message, value) in getattr(module, "_deprecations", {}).items():
        notes[attribute] = message
        if value is not None:
            names[attribute] = describe(value)
    result["modules"][name] = {"names": names, "notes": notes}
print(json.dumps(result))
"""


def probe(python: str) -> dict[str, Any]:
    run = subprocess.run([python, "-c", PROBE, *MODULES], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(
            f"{python} cannot tell its jax: {run.stderr.strip().splitlines()[-1:]}. Install jax there, and absl-py."
        )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def merge(probes: list[dict[str, Any]]) -> dict[str, Any]:
    """One table: each name with the versions that have it; parameters where they change, from which version on."""
    probes = sorted(probes, key=lambda p: _numbers(p["version"]))
    versions = [p["version"] for p in probes]
    table: dict[str, Any] = {"versions": versions, "submodules": {}, "modules": {}}
    for each in probes:
        for name in each["submodules"]:
            table["submodules"].setdefault(name, []).append(each["version"])
    for module in MODULES:
        names: dict[str, Any] = {}
        notes: dict[str, str] = {}
        for each in probes:
            held = each["modules"].get(module, {"names": {}, "notes": {}})
            notes.update(held["notes"])
            for name, entry in held["names"].items():
                known = names.setdefault(name, {"versions": []})
                known["versions"].append(each["version"])
                for key in ("parameters", "members"):
                    changes = known.setdefault(key, {})
                    last = list(changes.values())[-1] if changes else None
                    if key in entry and entry[key] != last:
                        changes[each["version"]] = entry[key]
                known.setdefault("aliases", {}).update(entry.get("aliases", {}))
        for entry in names.values():
            if entry["versions"] == versions:
                del entry["versions"]
            for key in ("parameters", "members", "aliases"):
                if not entry.get(key):
                    entry.pop(key, None)
        table["modules"][module] = {"names": dict(sorted(names.items())), "notes": dict(sorted(notes.items()))}
    return table


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", nargs="*", help="interpreters, each with one jax")
    parser.add_argument("--output", type=Path, default=TABLE)
    arguments = parser.parse_args()
    pythons = arguments.python or [str(p) for p in sorted(PROJECT.glob(".venvs/jax-*/bin/python"))]
    if not pythons:
        sys.exit("no Python with jax: name one, or make the environments with 'python3 scripts/run_tests.py'")
    table = merge([probe(python) for python in pythons])
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    count = sum(len(module["names"]) for module in table["modules"].values())
    print(f"{arguments.output}: {count} names of {len(MODULES)} modules in jax {', '.join(table['versions'])}")


if __name__ == "__main__":
    main()
