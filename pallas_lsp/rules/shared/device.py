"""What only a GPU says: faults of its compiler and of a launch, and the places of a launch that they concern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Location, Stage
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.launches import born, launch_of
from pallas_lsp.rules.shared.site_table import narrowed

COMPILER = ("jax/_src/compiler.py", "backend_compile_and_load")


def on_device(fault: Fault) -> bool:
    """Whether a GPU's compiler or a launch on it said so."""
    return fault.stage is Stage.CONFIRM and not fault.silent


def of_launch(fault: Fault, context: Context, *names: str) -> Location:
    """The first of some arguments of the launch that is given, else the name of what launches."""
    launch = launch_of(fault, context)
    if launch is None:
        return narrowed(context.locate(fault), context)
    spot = launch.argument(*names) if names else None
    return narrowed(spot.location, context) if spot is not None else launch.name


def allocated_in(fault: Fault, context: Context, space: str) -> Iterator[Location]:
    """The scratch types of the launch that are of one memory space."""
    given = fault.facts.get("given")
    for entry in given.get("scratch", ()) if isinstance(given, Mapping) else ():
        if isinstance(entry, Mapping) and entry.get("memory_space") == space:
            spot = born(context, entry.get("frames"))
            if spot is not None:
                yield narrowed(spot.location, context)
