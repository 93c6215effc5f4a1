"""jax's messages, made readable: without requests to file issues, internal representations and dumps of programs."""

from __future__ import annotations

import re

_LIMIT = 400

# What starts a part that says nothing to a kernel writer: dumps, debugging aids, invitations to file issues.
_CUTS = (
    r"\n?\s*see current operation:",
    r"\n\s*note: ",
    r"\n\s*Jaxpr: ?\{",
    r"\n\s*Equation: ",
    r"\n\s*Effects: \{",
    r",? ?op=\n",
    r"\n?\s*The MLIR operation involved:",
    r"\n?\s*Full traceback",
    r"\n-{5,}",
    r"\n?This value became a tracer due to JAX operations",
    r"\n?\s*The preceding stack trace is the source of the JAX operation",
)
_CUT = re.compile("|".join(_CUTS))

_REWRITES: tuple[tuple[str, str], ...] = (
    (r"^Pallas encountered an internal verification error\..*?Error details:\s*", ""),
    (r"^Verification failed:\s*", ""),
    # MLIR's own prefix: error: <location>: 'op' op message
    (r'^error:\s*(?:loc\()?(?:[\w.:<>-]*"[^"\n]*"(?::\d+:\d+(?: to (?:\d+)?:\d+)?)?[:()]*)+\)?:?\s*', ""),
    (
        r"\s*(?:Please|please|Consider|If you (?:need|want|see))[^.\n]*\b(?:fil(?:e|ing)|open|report)[^.\n]*"
        r"\b(?:issue|bug|feature request|report)[^\n]*",
        "",
    ),
    (r"\s*This (?:is|might be|may be|looks like) a (?:JAX|Pallas|Mosaic)? ?bug[^\n]*", ""),
    (r"\s*To dump the constraint system for debugging[^\n]*", ""),
    (r"\s*(?:See(?: details)?(?: at)?|For more information,? see) https?://\S+", ""),
    (r" for lowering semantics LoweringSemantics\.\w+(?: and user thread semantics PrimitiveSemantics\.\w+)?", ""),
    (r"\b(?:pl\.)?Blocked\((?:block_size=)?([^()]*)\)", r"\1"),
    (r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1"),
    (r"<(\w+\.\w+): [^<>]*>", r"\1"),
    (r"\b(?:Jit|Dynamic\w*|JVP|Batch)?Tracer\(((?:[^()]|\([^()]*\))*)\)", r"\1"),
    (r"Traced<(?:ShapedArray\()?([^<>()]*)\)?>(?:with<[^>]*>)?", r"\1"),
    (r"<?([\w.]+) object at 0x[0-9a-f]+>?", r"\1"),
    (r"\bVar\(id=\d+\):?", ""),
    (r"[\w.]+\.<locals>\.", ""),
    (r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:]+)+[\\/]([\w.-]+\.py)\b", r"\1"),
    (r"\bShapedArray\(([^()]*)\)", r"\1"),
    (r"\bdtype\('?(\w+)'?\)", r"\1"),
    (r"^'(?:\w+\.)*(\w+)' op ", r"\1: "),
)
_COMMENT = re.compile(r"""^((?:[^#'"]|'[^']*'|"[^"]*")*)#.*$""")
_COMPILED = tuple((re.compile(pattern, re.MULTILINE), new) for pattern, new in _REWRITES)


def clean(message: str) -> str:
    """A message as one to three sentences on one line; empty where nothing is left."""
    text = message.strip()
    for pattern, new in _COMPILED[:3]:
        text = pattern.sub(new, text)
    cut = _CUT.search(text)
    if cut is not None:
        text = text[: cut.start()]
    for pattern, new in _COMPILED[3:]:
        text = pattern.sub(new, text)
    text = _without_trees(text)
    text = re.sub(r"\s*\n\s*[*-]\s+", " ", text)
    text = re.sub(r"(?<=[\w)\]])[ \t]*\n\s*(?=[A-Z])", ". ", text)
    text = " ".join(text.split())
    text = re.sub(r"\s+([.,;:])(?=\s|$)", r"\1", text).strip(" ;,:-")
    if not re.search(r"\w", text):
        return ""
    if len(text) > _LIMIT:
        text = text[:_LIMIT].rsplit(" ", 1)[0] + " ..."
    if text[-1].isalnum() or text[-1] in ")]`'\"}>":
        text += "."
    return text


def _without_trees(text: str) -> str:
    """``PyTreeDef(...)`` and what is inside, taken out."""
    while (start := text.find("PyTreeDef(")) >= 0:
        depth = 0
        for index in range(start, len(text)):
            depth += (text[index] == "(") - (text[index] == ")")
            if depth == 0 and text[index] == ")":
                break
        text = text[:start] + text[index + 1 :]
    return text


def short(source: str, limit: int = 60) -> str:
    """An expression on one line and without comments, to be quoted in a message."""
    lines = [_COMMENT.sub(r"\1", line) for line in source.splitlines()] if "\n" in source else [source]
    line = re.sub(r"(?<=[([{]) | (?=[)\]}])|,? (?=[)\]])", "", " ".join(" ".join(lines).split()))
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def listed(items: list[str], limit: int = 3) -> str:
    """``a; b; c and 2 more``."""
    shown = "; ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
