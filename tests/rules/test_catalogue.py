"""The catalogue of jax's raise sites: how it is read, and that nobody has left a site of a tested jax unclassified."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap

import pytest
from jax_environments import PROJECT, JaxPython

from pallas_lsp.rules.base import FALLBACK
from pallas_lsp.rules.catalogue import claims, coverage, evidence, judgements, probe, reach, record, sites
from pallas_lsp.rules.catalogue.claims import Claim
from pallas_lsp.rules.catalogue.evidence import INTERNAL, REACHABLE, UNCLASSIFIED, Verdict
from pallas_lsp.rules.catalogue.record import Row
from pallas_lsp.rules.catalogue.sites import Site

FOLDER = PROJECT / record.FOLDER
WRITE = "run: python scripts/catalogue.py --write, and read docs/catalogue.md"
FILE = "jax/_src/pallas/x.py"


def read(text: str) -> list[Site]:
    return list(sites.read({FILE: ast.parse(textwrap.dedent(text))}))


def test_a_site_is_known_by_its_words() -> None:
    text = """
    class A:
        def f(self, x):
            if x > 3:
                raise ValueError(f"{x} is "
                                 "too big")
            def inner():
                raise TypeError
            message = "cannot " + f"do {x}"
            raise NotImplementedError(message)
    """
    found = [(s.function, s.exception, s.text) for s in read(text)]
    assert found == [
        ("A.f", "ValueError", "{} is too big"),
        ("A.f.<locals>.inner", "TypeError", ""),
        ("A.f", "NotImplementedError", "cannot do {}"),
    ]


def test_a_site_without_words_is_known_by_its_condition() -> None:
    text = """
    def f(x, y):
        assert x == y
        assert x == y
        match x:
            case int():
                pass
            case _:
                raise NotImplementedError
        if x:
            pass
        else:
            raise NotImplementedError()
        try:
            pass
        except ValueError as e:
            raise e
    """
    assert [(s.exception, s.text, s.number) for s in read(text)] == [
        ("assert", "if not (x == y)", 1),
        ("assert", "if not (x == y)", 2),
        ("NotImplementedError", "if case _", 1),
        ("NotImplementedError", "if not (x)", 1),
        ("re-raise", "if except ValueError", 1),
    ]


@pytest.mark.parametrize(
    ("condition", "narrows"),
    [
        ("x is not None", True),
        ("isinstance(x, int) and y is None", True),
        ("all(isinstance(a, int) for a in x)", True),
        ("not x", True),
        ("len(x) == len(y)", False),
        ("x in (1, 2)", False),
        ("x is None or x > 3", False),
    ],
)
def test_assertions_about_kinds_of_objects(condition: str, narrows: bool) -> None:
    assert evidence.narrows(ast.parse(condition, mode="eval").body) is narrows


SOURCES = {
    "jax/experimental/pallas/__init__.py": "from jax._src.pallas.core import kernel as kernel",
    "jax/_src/pallas/core.py": """
        from jax._src.pallas import helpers
        def kernel(): return helpers.check()
        class Spec:
            def __init__(self): pass
            def method(self): pass
        def unused(): pass
    """,
    "jax/_src/pallas/helpers.py": """
        import functools
        def check(): return Thing().deep()
        class Thing:
            def deep(self): return 1
            def _never(self): return 2
        @functools.partial(register, 3)
        def lowered(): pass
        @functools.cache
        def cached(): pass
    """,
}


def test_what_a_user_reaches() -> None:
    graph = reach.Graph({file: ast.parse(textwrap.dedent(text)) for file, text in SOURCES.items()})
    reached = {name: why for (_, name), why in graph.reached().items()}
    assert reached["check"] == reached["Thing.deep"] == "jax.experimental.pallas.kernel"
    assert reached["lowered"] == "registered by @register"
    assert not {"unused", "cached", "Thing._never", "Spec"} & set(reached)


def test_what_a_claim_covers() -> None:
    site = Site(FILE, "A.f.<locals>.g", "ValueError", "Size {} of {} is wrong")
    assert Claim("r", FILE, "g").fits(site)
    assert Claim("r", FILE, "A.f.<locals>.g", r"Size (\d+)").fits(site)
    assert not Claim("r", FILE, "B.g").fits(site)
    assert not Claim("r", FILE, "g", "Rank").fits(site)
    assert claims.stale([Claim("r", FILE, "g"), Claim("r", FILE, "gone")], [site], []) == [Claim("r", FILE, "gone")]
    assert claims.stale([Claim("r", FILE, "gone")], [], [(FILE, "A.gone")]) == []


def test_what_is_decided_by_hand_counts_first() -> None:
    site = Site(FILE, "f", "assert", "if not (x == y)")
    by_hand = [judgements.Judgement(Verdict(INTERNAL, "so"), "jax/_src/*", assertions=True)]
    jax = probe.Jax("1.10", {site: Verdict(UNCLASSIFIED, "")}, frozenset())
    before = Row(Site(FILE, "gone", "ValueError", "no"), ("1.10",), Verdict(REACHABLE, "x"))
    old = Row(Site(FILE, "old", "ValueError", "no"), ("1.9",), Verdict(REACHABLE, "x"))
    rows = record.updated({row.site: row for row in (before, old)}, [jax], by_hand)
    assert rows == {site: Row(site, ("1.10",), Verdict(INTERNAL, "so")), old.site: old}


def test_a_record_is_read_as_it_was_written(tmp_path) -> None:
    row = Row(Site(FILE, "f", "ValueError", 'a, "b" {}', 2), ("1.9", "1.10"), Verdict(REACHABLE, "x"))
    path = tmp_path / "sites.csv"
    path.write_text(record.dump([row]), encoding="utf-8")
    assert record.load(path) == {row.site: row}


def test_the_counts() -> None:
    rows = [
        Row(Site(FILE, "f", "ValueError", "nobody knows this"), ("1",), Verdict(REACHABLE, "x")),
        Row(Site(FILE, "g", "ValueError", "this is claimed"), ("1",), Verdict(REACHABLE, "x")),
        Row(Site(FILE, "h", "ValueError", "internal"), ("1",), Verdict(INTERNAL, "x")),
    ]
    assigned = list(coverage.assign(rows, [Claim("some-rule", FILE, "g")]))
    assert [each.rule for each in assigned] == [FALLBACK, "some-rule"]
    counts = coverage.count(rows, assigned)
    assert counts == {FILE: coverage.Count(sites=3, reachable=2, claimed=1)}
    assert "50.0%" in coverage.table(counts)


@pytest.fixture(scope="module")
def read_jaxes(jax_pythons: list[JaxPython]) -> dict[str, probe.Jax]:
    files = {claim.file for claim in claims.claims()}
    return {each.version: probe.ask(each.python, files) for each in jax_pythons}


def test_every_site_of_a_tested_jax_is_recorded_and_classified(read_jaxes: dict[str, probe.Jax]) -> None:
    kept = record.load(FOLDER / record.SITES)
    by_hand = judgements.read(FOLDER / record.JUDGEMENTS)
    versions = {version for row in kept.values() for version in row.versions}
    known = [jax for version, jax in read_jaxes.items() if version in versions]
    rows = record.updated(kept, known, by_hand)
    changed = {site for site in {*kept, *rows} if kept.get(site) != rows.get(site)}
    assert not changed, f"{WRITE}: {sorted(changed)[:5]}"
    open_sites = [site for site, row in rows.items() if row.verdict.kind == UNCLASSIFIED]
    assert not open_sites, f"{WRITE}: {open_sites[:5]}"
    for version, jax in read_jaxes.items():
        new = [site for site in jax.sites if site not in kept]
        assert not new, f"jax {version}: {WRITE}: {new[:5]}"


def test_no_judgement_and_no_claim_is_stale(read_jaxes: dict[str, probe.Jax]) -> None:
    kept = record.load(FOLDER / record.SITES)
    by_hand = judgements.read(FOLDER / record.JUDGEMENTS)
    unused = [each for each in by_hand if not any(each.fits(site) for site in kept)]
    assert not unused, unused
    if {version for row in kept.values() for version in row.versions} - set(read_jaxes):
        pytest.skip("not all recorded versions are here")
    functions = {function for jax in read_jaxes.values() for function in jax.functions}
    stale = claims.stale(claims.claims(), kept, functions)
    assert not stale, stale


def test_the_command(jax_pythons: list[JaxPython]) -> None:
    command = [sys.executable, str(PROJECT / "scripts" / "catalogue.py"), "--python", jax_pythons[-1].python]
    done = subprocess.run([*command, "--fall-back", "triton"], capture_output=True, text=True, check=True)
    assert "in all" in done.stdout
    assert "new: " not in done.stdout
