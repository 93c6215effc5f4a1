"""A collective allocation that only some of its threads reach: the others never arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from .kernel import Found, Kernel, places, producers


def check(kernel: Kernel) -> Iterator[Found]:
    """``run_scoped`` with ``collective_axes`` inside a branch on the index along one of those axes."""
    for equation, chain in kernel.equations():
        axes = equation.params.get("collective_axes") if equation.primitive.name == "run_scoped" else None
        names = {axes} if isinstance(axes, str) else set(axes or ())
        if not names:
            continue
        for jaxpr, outer in kernel.bodies():
            for branch in jaxpr.eqns:
                if branch.primitive.name == "cond" and any(branch is link for link in chain):
                    if all(_allocates(inner, names) for inner in compat.sub_jaxprs(branch)):
                        continue  # each thread reaches one of them
                    source = _axis_of(jaxpr, branch.invars[0], names)
                    if source is not None:
                        yield Found(
                            "collective-scope-in-branch",
                            places(chain),
                            {"axes": sorted(names)},
                            [{"frames": places((*outer, branch)), "text": f"only some threads along {source!r} enter"}],
                        )
                        return


def _allocates(jaxpr: Any, names: set[str]) -> bool:
    """Whether a program holds a collective allocation along the same axes."""
    for equation in jaxpr.eqns:
        axes = equation.params.get("collective_axes") if equation.primitive.name == "run_scoped" else None
        if axes and names == ({axes} if isinstance(axes, str) else set(axes)):
            return True
        if any(_allocates(inner, names) for inner in compat.sub_jaxprs(equation)):
            return True
    return False


def _axis_of(jaxpr: Any, variable: Any, names: set[str]) -> str | None:
    """The axis among ``names`` whose index a value is computed from."""
    for equation in producers(jaxpr, variable):
        if equation.primitive.name == "axis_index" and equation.params.get("axis_name") in names:
            return str(equation.params["axis_name"])
    return None
