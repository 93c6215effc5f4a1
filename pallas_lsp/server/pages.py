"""Where a rule's documentation page can be read.

That is beside the documentation that the package's metadata names.  While it names none, the page is written into the
user's cache directory and linked there, which also works without a network.
"""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import platformdirs

from pallas_lsp import __version__
from pallas_lsp.rules.base import rule_named

logger = logging.getLogger(__name__)


@functools.cache
def web_pages() -> str:
    """The base of the pages on the web, or an empty string."""
    with suppress(metadata.PackageNotFoundError):
        for entry in metadata.metadata("pallas-lsp").get_all("Project-URL") or []:
            label, _, url = str(entry).partition(",")
            if label.strip().lower() == "documentation" and url.strip():
                return f"{url.strip().rstrip('/')}/rules"
    return ""


@functools.cache
def page_uri(rule: str) -> str | None:
    """The address of a rule's page, or None where there is no such rule or no place for the page."""
    text = page_text(rule)
    if text is None:
        return None
    if web_pages():
        return f"{web_pages()}/{rule}.md"
    folder = Path(platformdirs.user_cache_dir("pallas-lsp", appauthor=False), "rules", __version__)
    path = folder / f"{rule}.md"
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
    except OSError as error:
        logger.warning("The page of %s cannot be written to %s (%s); diagnostics go without it.", rule, path, error)
        return None
    return path.as_uri()


def page_text(rule: str) -> str | None:
    """A rule's page as Markdown, with its name as title."""
    found = rule_named(rule)
    return f"# {found.name}\n\n{found.page}\n\nSince version {found.since}.\n" if found is not None else None


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file or nothing, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
