"""The measured tables in benchmarks/README.md, each between two marks."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent / "README.md"


def write(name: str, table: str, page: Path = PAGE) -> None:
    """Put a table into the page; raises ValueError where the page has no place for it."""
    first, last = f"<!-- {name}: measured -->\n", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    start, end = text.find(first), text.find(last)
    if start < 0 or end < start:
        raise ValueError(f"{page} has no place for {name}: {first.strip()} and {last}")
    page.write_text(f"{text[: start + len(first)]}\n{table}\n\n{text[end:]}", encoding="utf-8")
