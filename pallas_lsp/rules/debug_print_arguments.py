"""
## What it does
Finds `pl.debug_print` and `jax.debug.print` in kernels with arguments that the backend cannot print: placeholders where
there may be none, more or fewer values than places, formats (`{:.2f}`), keyword arguments, vectors among scalars, small
types, or an order among prints.

## Why it is wrong
A print in a kernel is an instruction of the device, not a call of Python. Triton prints a prefix and then the values;
there are no placeholders. A TPU prints either scalars of 32 bits, each at its placeholder, or one vector at the end of
the text.

## Example
```python
pl.debug_print("x = {}", x_ref[0, 0])  # in a Triton kernel
jax.debug.print("x = {x}", x=x)
```

## Use instead
```python
pl.debug_print("x = ", x_ref[0, 0])
pl.debug_print("x = {}", x)  # on a TPU
```

## Fix safety
All fixes are safe: they change what is printed around the values, not the values.

## Applies to
Kernels of all backends; jax 0.10, 0.11 and 0.12.

## Source
`debug_print_lowering_rule` in `jax/_src/pallas/triton/lowering.py`, `_debug_print_rule` in
`jax/_src/pallas/mosaic/lowering.py`, `_debug_print_lowering_rule` in `jax/_src/pallas/mosaic/sc_lowering.py`,
`check_debug_print_format` in `jax/_src/pallas/primitives.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("debugging",)

_TRITON = "jax/_src/pallas/triton/lowering.py"
_TPU = "jax/_src/pallas/mosaic/lowering.py"
_PRIMITIVES = "jax/_src/pallas/primitives.py"
_SPARSE_CORE = "jax/_src/pallas/mosaic/sc_lowering.py"
_TPU_SITE = ("_debug_print_rule",)
_FORMAT = ((0, "fmt"),)
_OPTIONS = ("ordered", "partitioned", "skip_format_check")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def _format(details: Details) -> tuple[Spot, str] | None:
    """The format, where it is written as a string."""
    spot = details.argument(0, "fmt")
    if spot is None or not isinstance(spot.node, ast.Constant) or not isinstance(spot.node.value, str):
        return None
    return spot, spot.node.value


def _with_format(details: Details, make: Callable[[str], str], title: str) -> Sequence[Fix]:
    found = _format(details)
    if found is None:
        return ()
    spot, text = found
    changed = make(text)
    quote = spot.source[-1]
    if spot.source[0] not in "\"'" or "\n" in changed or "\\" in spot.source or spot.source.startswith(quote * 3):
        return ()
    return keyword_edits.replace(spot, f"{quote}{changed}{quote}", title, Safety.SAFE)


def _no_placeholders(details: Details) -> Sequence[Fix]:
    """The placeholders go, and ``jax.debug.print`` with keyword arguments becomes ``pl.debug_print``."""
    found = _format(details)
    spot = details.spot
    if found is None or spot is None or not isinstance(spot.node, ast.Call):
        return ()
    if not spot.node.keywords:
        return _with_format(details, lambda text: _PLACEHOLDER.sub("", text), "Print the values after the text")
    given = {k.arg: spot.syntax.source(k.value) for k in spot.node.keywords if k.arg not in _OPTIONS}
    names = re.findall(r"\{(\w+)[^{}]*\}", found[1])
    editor = Editor(spot.path, spot.syntax)
    function = editor.spell("jax.experimental.pallas.debug_print", spot.node, ("jax.experimental.pallas", "pl"))
    if function is None or sorted(names) != sorted(str(name) for name in given) or len(spot.node.args) != 1:
        return ()
    text = _PLACEHOLDER.sub("", found[1])
    values = "".join(f", {given[name]}" for name in names)
    editor.replace(spot.node, f"{function}({found[0].source[-1]}{text}{found[0].source[-1]}{values})")
    return (Fix("Print the values after the text", editor.edits(), Safety.SAFE),)


def _positional(details: Details) -> Sequence[Fix]:
    """``print("x = {x}", x=x)`` -> ``print("x = {}", x)``."""
    found, spot = _format(details), details.spot
    if found is None or spot is None or not isinstance(spot.node, ast.Call) or len(spot.node.args) != 1:
        return ()
    given = {k.arg: k for k in spot.node.keywords if k.arg is not None and k.arg not in _OPTIONS}
    names = re.findall(r"\{(\w+)[^{}]*\}", found[1])
    if not given or sorted(names) != sorted(given):
        return ()
    editor = Editor(spot.path, spot.syntax)
    text = _PLACEHOLDER.sub("{}", found[1])
    editor.replace(found[0].node, f"{found[0].source[-1]}{text}{found[0].source[-1]}")
    for name, keyword in zip(names, given.values(), strict=True):
        start, end = spot.syntax.span(keyword)
        editor.change(start, end, spot.syntax.source(given[name].value))
    return (Fix("Pass the values by position", editor.edits(), Safety.SAFE),)


def _ending(details: Details) -> Sequence[Fix]:
    return _with_format(
        details, lambda text: _PLACEHOLDER.sub("", text).rstrip() + " {}", "Print the vector at the end of the text"
    )


def _counted(details: Details) -> str:
    wanted, given = int(details["wanted"]), int(details["given"])
    return (
        f"`{details.written(0, 'fmt')}` has {count_text(wanted, 'place')} for values (`{{}}`), but "
        f"{count_text(given, 'value')} {'is' if given == 1 else 'are'} given: one for each."
    )


def _plain(details: Details) -> Sequence[Fix]:
    """``{x}`` and ``{:.2f}`` as ``{}``; a number between braces says which value it is and stays."""
    found = _format(details)
    if found is None or any(name.isdigit() for name in re.findall(r"\{(\w+)", found[1])):
        return ()
    return _with_format(details, lambda text: _PLACEHOLDER.sub("{}", text), "Leave the formats out")


def _unordered(details: Details) -> Sequence[Fix]:
    return keyword_edits.remove_keyword(details.spot, "ordered", "Print in any order", Safety.SAFE)


_ORDERED = "`{source}` asks for an order among prints, which a kernel cannot keep: leave out `ordered`."
_ROWS = (
    *(
        Row(file, site, _ORDERED, "[Oo]rdered", at=((None, "ordered"),), fixes=_unordered)
        for file, site in ((_TRITON, ("debug_print_lowering_rule",)), (_TPU, _TPU_SITE))
    ),
    Row(
        _TRITON,
        ("debug_print_lowering_rule",),
        "Triton prints a text and then the values, so `{fmt}` may have no placeholders (`{{}}`).",
        "placeholders",
        at=_FORMAT,
        fixes=_no_placeholders,
    ),
    Row(
        _PRIMITIVES,
        ("check_debug_print_format",),
        _counted,
        r"expects (?P<wanted>\d+) arguments?, but got (?P<given>\d+)",
        at=_FORMAT,
    ),
    Row(
        _PRIMITIVES,
        ("check_debug_print_format",),
        "The places for values in `{fmt}` have to be plain `{{}}` here: a kernel prints values as they are, in order.",
        "should not",
        at=_FORMAT,
        fixes=_plain,
    ),
    *(
        Row(
            file,
            site,
            "A print in a kernel takes its values by position only: write `{{}}` for each and pass the values in "
            "order.",
            "positional arguments",
            fixes=_positional,
        )
        for file, site in ((_TRITON, ("debug_print_lowering_rule",)), (_TPU, _TPU_SITE))
    ),
    Row(
        _TPU,
        _TPU_SITE,
        "`{source}` prints vectors and scalars together ({a}, {b}): a TPU prints either scalars or one vector. "
        "Use a print for each.",
        "all scalars or a single vector",
    ),
    Row(
        _TPU,
        _TPU_SITE,
        "`{source}` prints several vectors: a TPU prints one at a time. Use a print for each.",
        "one vector input",
    ),
    Row(
        _TPU,
        _TPU_SITE,
        "`{source}` prints {a}: at a placeholder a TPU prints only {kinds} in this version of jax. Cast the value, or "
        "leave out the placeholder.",
        "(?P<kinds>32-bit integers(?: or floats)?) when",
        at=((1, None),),
        fixes=_no_placeholders,
    ),
    Row(
        _TPU,
        _TPU_SITE,
        "A vector ({a}) is printed at the end of the text, so `{fmt}` has to end with `{{}}`.",
        "must end with",
        at=_FORMAT,
        fixes=_ending,
    ),
    Row(
        _SPARSE_CORE,
        ("fail", "_debug_print_lowering_rule"),
        "`{source}` cannot be printed by a SparseCore: `pl.debug_print` {reason} there.",
        r"debug_print\(\) (?P<reason>.*?) when lowering",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
