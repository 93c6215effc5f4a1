"""What every finding has in common."""

from __future__ import annotations

from collections.abc import Iterable

from pallas_lsp.model import Fault, Finding, Fix, Location, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.source.edits import Editor


def finding(
    module: str,
    fault: Fault,
    context: Context,
    location: Location,
    message: str,
    related: Iterable[Related] = (),
    fixes: Iterable[Fix | None] = (),
) -> Finding:
    """A finding of the rule in ``module`` (its ``__name__``), with the fault's kernel and arguments."""
    return Finding(
        rule=rule_name(module),
        location=location,
        message=message,
        stage=fault.stage,
        related=(*related, *context.related(fault, location)),
        fixes=tuple(fix for fix in fixes if fix is not None),
        kernel=context.kernel(fault),
        arguments=context.arguments(fault),
    )


def suggested(title: str, *editors: Editor) -> Fix | None:
    """A fix that may change what the kernel does; None where there is nothing to edit."""
    return _fix(title, editors, Safety.SUGGESTED)


def safe(title: str, *editors: Editor) -> Fix | None:
    """A fix after which the kernel does what was surely meant."""
    return _fix(title, editors, Safety.SAFE)


def _fix(title: str, editors: Iterable[Editor], safety: Safety) -> Fix | None:
    edits = tuple(edit for editor in editors for edit in editor.edits())
    return Fix(title, edits, safety) if edits else None
