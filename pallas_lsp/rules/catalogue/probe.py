"""What is read from the sources of one jax, by its own Python, which knows the syntax that they are written in.

``python -m pallas_lsp.rules.catalogue.probe FOLDER [FILE ...]`` prints one JSON object.  Nothing of jax is imported.
The files that are named are read for their functions only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pallas_lsp.rules.catalogue import evidence, reach, sites
from pallas_lsp.rules.catalogue.evidence import Verdict
from pallas_lsp.rules.catalogue.sites import Site

_PROJECT = Path(__file__).resolve().parents[3]
_ASK = """
import importlib.metadata as m, json
d = m.distribution("jax")
print(json.dumps([d.version, str(d.locate_file(""))]))
"""


class Jax(NamedTuple):
    """The sites of one version, and what their sources tell of them."""

    version: str
    sites: Mapping[Site, Verdict]
    functions: frozenset[tuple[str, str]]
    """(file, qualified name) of all functions, also of those that raise nothing themselves."""


def ask(python: str, files: Iterable[str] = ()) -> Jax:
    """Read the jax that an interpreter has."""
    version, packages = json.loads(_run(python, "-c", _ASK))
    read = json.loads(_run(python, "-m", __name__, packages, *files))
    found = {Site(*site): Verdict(*verdict) for site, verdict in read["sites"]}
    return Jax(version, found, frozenset((file, name) for file, name in read["functions"]))


def _run(python: str, *arguments: str) -> str:
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False, cwd=_PROJECT)
    if done.returncode != 0:
        raise RuntimeError(f"{python} cannot read its jax: {done.stderr.strip()[-500:]}")
    return done.stdout


def main() -> None:
    packages = Path(sys.argv[1])
    trees = sites.trees(packages)
    graph = reach.Graph(trees)
    origins = graph.reached()
    found = []
    for site, each in sites.read(trees).items():
        verdict = evidence.of(each, origins.get((site.file, site.function)))
        key = (site.file, site.function, site.exception, site.text, site.number)
        found.append((key, (verdict.kind, verdict.reason)))
    others = reach.Graph(sites.parse(packages, sys.argv[2:]))
    print(json.dumps({"sites": found, "functions": [*graph.functions, *others.functions]}))


if __name__ == "__main__":
    main()
