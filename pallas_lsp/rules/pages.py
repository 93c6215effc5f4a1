"""Writes the documentation pages of the rules: ``python -m pallas_lsp.rules.pages [FOLDER]``, ``docs/rules`` if none.

A page is the docstring of the rule's module; the index lists the rules.  ``--check`` writes nothing and fails when a
page is not what it should be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pallas_lsp.rules.base import FALLBACK, Rule, registry

INDEX = "index.md"
_GENERATED = "<!-- Written by python -m pallas_lsp.rules.pages from the rule's module; edit it there. -->"


def page(rule: Rule) -> str:
    """One rule's page."""
    return f"{_GENERATED}\n\n# {rule.name}\n\nSince version {rule.since}.\n\n{rule.page}\n"


def index() -> str:
    """The rules by what they are about, the fall-back last."""
    groups = by_construct()
    lines = [
        _GENERATED,
        "",
        "# Rules",
        "",
        "`# pallas-lsp: ignore[rule]` on a line silences a rule there, `# pallas-lsp: ignore` all of them.",
        "",
        *(f"- [{construct}](#{_anchor(construct)}) ({len(rules)})" for construct, rules in groups.items()),
    ]
    for construct, rules in groups.items():
        lines += [
            "",
            f"## {construct[0].upper()}{construct[1:]}",
            "",
            "| rule | what it does | since |",
            "|---|---|---|",
        ]
        lines += [f"| [{rule.name}]({rule.name}.md) | {rule.summary} | {rule.since} |" for rule in rules]
    return "\n".join(lines) + "\n"


def by_construct() -> Mapping[str, Sequence[Rule]]:
    """The rules under each of their headings, by name."""
    groups: dict[str, list[Rule]] = {}
    for rule in sorted(registry(), key=lambda rule: rule.name):
        for construct in rule.constructs:
            groups.setdefault(construct, []).append(rule)
    order = sorted(groups, key=lambda each: (_is_fallback(groups[each]), each.lower()))
    return {construct: groups[construct] for construct in order}


def _is_fallback(rules: Sequence[Rule]) -> bool:
    return [rule.name for rule in rules] == [FALLBACK]


def _anchor(heading: str) -> str:
    """The part of an address that Markdown's renderers make of a heading."""
    return heading.lower().replace(" ", "-")


def pages() -> Mapping[str, str]:
    """All files of the folder by name."""
    return {INDEX: index(), **{f"{rule.name}.md": page(rule) for rule in registry()}}


def outdated(folder: Path) -> list[str]:
    """The names of pages that are missing, differ, or belong to no rule."""
    wanted = pages()
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in {*wanted, *present} if wanted.get(name) != present.get(name))


def write(folder: Path) -> list[str]:
    """Bring a folder up to date; the names of what changed."""
    changed = outdated(folder)
    wanted = pages()
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8", newline="\n")
        else:
            (folder / name).unlink()
    return changed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pallas_lsp.rules.pages", description="Write the rules' pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/rules"))
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is out of date")
    options = parser.parse_args(arguments)
    changed = outdated(options.folder) if options.check else write(options.folder)
    for name in changed:
        print(f"{options.folder / name} {'is out of date' if options.check else 'written'}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
