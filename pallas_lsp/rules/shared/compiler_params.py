"""``compiler_params`` of a launch in the source, and edits of its fields."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared import keyword_edits
from pallas_lsp.rules.shared.launches import Launch, born, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor

TPU = ("jax.experimental.pallas.tpu", "pltpu")
TRITON = ("jax.experimental.pallas.triton", "pltriton")


def params_of(details: Details) -> Spot | None:
    """The call that made the launch's compiler parameters, else the argument."""
    given = (details.fault.facts.get("given") or {}).get("compiler_params") or {}
    made = born(details.context, given.get("frames"))
    if made is not None and isinstance(made.node, ast.Call):
        return made
    launch = launch_of(details.fault, details.context)
    spot = launch.argument("compiler_params") if launch is not None else None
    value = spot.syntax.value(spot.node) if spot is not None else None
    return spot.at(value) if spot is not None and isinstance(value, ast.expr) else spot


def field(*names: str) -> Callable[[Details], Spot | None]:
    """The place of a field of the compiler parameters, else of the parameters, else of the launch's name."""

    def place(details: Details) -> Spot | None:
        params = params_of(details)
        if params is None:
            return launch_name(details)
        if isinstance(params.node, ast.Call):
            for name in names:
                found = params.syntax.argument(params.node, None, name)
                if found is not None:
                    return params.at(found)
        return params

    return place


def launch_name(details: Details) -> Spot | None:
    """The name of what launches."""
    launch = launch_of(details.fault, details.context)
    return named(launch) if launch is not None else None


def named(launch: Launch) -> Spot:
    node = launch.syntax.node_at(launch.name.range)
    return launch.spot.at(node) if isinstance(node, ast.expr) else launch.spot


def without(name: str, title: str, safety: Safety = Safety.SUGGESTED) -> Callable[[Details], Sequence[Fix]]:
    """Leave out a field."""
    return lambda details: keyword_edits.remove_keyword(params_of(details), name, title, safety)


def with_field(details: Details, name: str, value: str, title: str) -> Sequence[Fix]:
    """Set a field, in parameters that are given or in new ones."""
    params = params_of(details)
    if params is not None:
        return keyword_edits.set_keyword(params, name, value, title)
    launch = launch_of(details.fault, details.context)
    if launch is None or not launch.arguments().complete:
        return ()
    editor = Editor(launch.spot.path, launch.syntax)
    made = editor.spell(f"{TPU[0]}.CompilerParams", launch.call, TPU)
    if made is None:
        return ()
    editor.insert_argument(launch.call, f"compiler_params={made}({name}={value})")
    return (Fix(title, editor.edits(), Safety.SUGGESTED),)


def arbitrary(like: str) -> str:
    """``arbitrary`` in the form in which another entry is written."""
    if like[-1:] in "\"'":
        return f"{like[-1]}arbitrary{like[-1]}"
    stem, dot, name = like.rpartition(".")
    return f"{stem}{dot}{'ARBITRARY' if name.isupper() else 'arbitrary'}" if dot else '"arbitrary"'
