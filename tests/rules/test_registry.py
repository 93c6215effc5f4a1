from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pallas_lsp import rules
from pallas_lsp.rules import pages
from pallas_lsp.rules.base import FALLBACK, HEADINGS, Rule, registry, rule_named

DOCS = Path(__file__).parents[2] / "docs" / "rules"


def test_the_registry_is_the_folder() -> None:
    folder = Path(rules.__file__ or "").parent
    names = {rule.name for rule in registry()}
    judging = {
        path.stem.replace("_", "-")
        for path in folder.glob("*.py")
        if "\ndef judge(" in path.read_text(encoding="utf-8") and "\nSINCE = " in path.read_text(encoding="utf-8")
    }
    assert names == judging
    assert registry()[-1].name == FALLBACK


@pytest.mark.parametrize("rule", registry(), ids=lambda rule: rule.name)
def test_every_page_has_its_headings(rule: Rule) -> None:
    found = [line[3:] for line in rule.page.split("\n") if line.startswith("## ")]
    assert found == list(HEADINGS)
    assert rule.summary.endswith(".")
    assert rule.since
    assert rule.constructs
    assert rule_named(rule.name) is rule


def test_the_index_names_every_rule_under_its_constructs() -> None:
    groups = pages.by_construct()
    assert {rule.name for group in groups.values() for rule in group} == {rule.name for rule in registry()}
    assert [rule.name for rule in list(groups.values())[-1]] == [FALLBACK]
    index = pages.index()
    for construct, group in groups.items():
        _, _, section = index.partition(f"\n## {construct[0].upper()}{construct[1:]}\n")
        section = section.partition("\n## ")[0]
        assert all(f"[{rule.name}]({rule.name}.md)" in section for rule in group)


def test_an_unknown_rule() -> None:
    assert rule_named("no-such-rule") is None


def test_the_pages_are_up_to_date() -> None:
    assert pages.outdated(DOCS) == [], "run: python -m pallas_lsp.rules.pages"


def test_pages_are_written_and_cleaned_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gone.md").write_text("old", encoding="utf-8")
    assert pages.main([str(tmp_path), "--check"]) == 1
    assert "out of date" in capsys.readouterr().out
    assert pages.main([str(tmp_path)]) == 0
    assert not (tmp_path / "gone.md").exists()
    assert pages.main([str(tmp_path), "--check"]) == 0


def test_the_rules_need_no_jax() -> None:
    code = "import sys; from pallas_lsp.rules.base import registry; registry(); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
