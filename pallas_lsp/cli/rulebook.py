"""The rules' pages, for people (``explain``) and for programs (SARIF)."""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.markdown import Markdown

from pallas_lsp.rules.base import Rule, registry, rule_named
from pallas_lsp.server.pages import page_text

PAGE_WIDTH = 100


def all_rules() -> tuple[Rule, ...]:
    return tuple(sorted(registry(), key=lambda rule: rule.name))


def rule_page(name: str) -> str:
    """The page as Markdown, with its title."""
    return page_text(name) or f"# {name}\n\nThis version of Pallas LSP has no page for it.\n"


def rule_summary(name: str) -> str:
    rule = rule_named(name)
    return plain(rule.summary) if rule is not None and rule.summary else name.replace("-", " ")


def plain_page(name: str) -> str:
    """The page as text for a terminal without colours, a pipe or a program."""
    return render_markdown(rule_page(name), width=PAGE_WIDTH)


def render_markdown(page: str, *, width: int, color: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
    )
    if color:
        console.print(Markdown(page, code_theme="ansi_dark"))
        return out.getvalue()
    return plain(page)


def plain(page: str) -> str:
    """Markdown that reads well as it is: only what is markup for a renderer is taken out."""
    return re.sub(r"\[([^\]]+)\]\((https?://[^)\s]+)\)", r"\1 (\2)", page)
