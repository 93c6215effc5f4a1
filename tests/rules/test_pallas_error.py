from __future__ import annotations

from dataclasses import replace

from made import PATH, capture, context, fault, frame

from pallas_lsp.model import Anchor, Driver, Equation, Frame, Link, Snapshot, Stage
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.pallas_error import judge

KERNEL = """\
from jax.experimental import pallas as pl
import helpers

def kernel(x_ref, o_ref):
    o_ref[...] = helpers.scaled(x_ref[...])

def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=x,
    )(x)
"""
HELPERS = "def scaled(x):\n    return x * pick(x)\n"
HELPER_PATH = "/project/helpers.py"


def test_the_innermost_place_with_the_cleaned_message() -> None:
    at = frame(KERNEL, "helpers.scaled(x_ref[...])")
    found = judge(
        fault(frame(KERNEL, "pl.pallas_call(\n        kernel,\n        out_shape=x,\n    )(x)"), at, message="no\nway"),
        context(KERNEL),
    )
    assert context(KERNEL).source(found.location) == "helpers.scaled(x_ref[...])"
    assert (found.rule, found.message, found.stage) == ("pallas-error", "no way.", Stage.TRACE)
    assert (found.kernel, found.arguments) == ("kernel", ("f32[64]",))
    assert found.related == ()


def test_a_helper_in_another_file_has_its_call_as_related_information() -> None:
    texts = {PATH: KERNEL, HELPER_PATH: HELPERS}
    outer = frame(KERNEL, "helpers.scaled(x_ref[...])")
    found = judge(fault(outer, frame(HELPERS, "pick(x)", HELPER_PATH), message="no"), context(texts))
    assert found.location.path == HELPER_PATH
    assert [context(texts).source(r.location) for r in found.related] == ["helpers.scaled(x_ref[...])"]


def test_library_frames_are_skipped_in_favour_of_the_users_call() -> None:
    inside = Frame("/site-packages/jax/experimental/pallas/ops/gpu/softmax.py", 9, 0, 9, 4, "k", "library")
    found = judge(fault(frame(KERNEL, "helpers.scaled(x_ref[...])"), inside, message="no"), context(KERNEL))
    assert found.location.path == PATH
    assert found.location.range.start.line == 4


def test_the_first_anchor_with_a_place_of_the_users_counts() -> None:
    inside = Frame("/site-packages/x.py", 9, 0, 9, 4, "k", "library")
    good = frame(KERNEL, "x_ref[...]")
    own = replace(
        fault(frame(KERNEL, "kernel"), message="no"), anchors=(Anchor("mlir", (inside,)), Anchor("cause", (good,)))
    )
    assert context(KERNEL).source(judge(own, context(KERNEL)).location) == "x_ref[...]"


def test_a_call_over_many_lines_is_marked_at_its_name() -> None:
    whole = frame(KERNEL, "pl.pallas_call(\n        kernel,\n        out_shape=x,\n    )(x)")
    found = judge(fault(whole, exception="builtins.AssertionError"), context(KERNEL))
    assert context(KERNEL).source(found.location) == "pl.pallas_call"
    assert found.message.startswith("`pl.pallas_call(...)` breaks a condition")


def test_the_condition_of_an_assertion_is_told_with_its_values() -> None:
    asserted = {"condition": "rank == len(sizes)", "values": {"rank": "2", "sizes": "(8,)"}}
    given = fault(frame(KERNEL, "x_ref[...]"), exception="builtins.AssertionError", facts={"asserted": asserted})
    message = judge(given, context(KERNEL)).message
    assert message.startswith(
        "`x_ref[...]` breaks a condition that jax asserts: `rank == len(sizes)`, but rank is 2 and sizes is (8,)."
    )


def test_without_columns_the_statement_is_marked() -> None:
    found = judge(fault(frame(KERNEL, "x_ref[...]", columns=False), message="no"), context(KERNEL))
    assert context(KERNEL).source(found.location) == "o_ref[...] = helpers.scaled(x_ref[...])"


def test_an_empty_message_never_reaches_the_user() -> None:
    at = frame(KERNEL, "x_ref[...]")
    for exception, words in [
        ("builtins.NotImplementedError", "asks for something that jax does not implement"),
        ("builtins.AssertionError", "breaks a condition that jax asserts"),
        ("builtins.RuntimeError", "is refused by jax"),
    ]:
        pointer = Link(
            "jax._src.source_info_util.JaxStackTraceBeforeTransformation", f"{exception}\n\nThe preceding ..."
        )
        found = judge(
            fault(at, exception=exception, site=("jax/_src/a.py", "f.<locals>.g"), chain=[pointer]), context(KERNEL)
        )
        assert found.message == (
            f"`x_ref[...]` {words}: jax raises {exception[9:]} without a message in `f.g` (jax/_src/a.py)."
        )


def test_the_message_of_a_cause_stands_in_for_an_empty_one() -> None:
    found = judge(
        fault(frame(KERNEL, "x_ref[...]"), chain=[Link("builtins.ValueError", "the real reason")]), context(KERNEL)
    )
    assert found.message == "the real reason."


def test_the_primitive_is_named_where_the_source_does_not_name_it() -> None:
    own = replace(fault(frame(KERNEL, "x_ref[...]"), exception="builtins.RuntimeError"), equation=Equation("get"))
    assert judge(own, context(KERNEL)).message.startswith("`x_ref[...]` (`get`) is refused")


def test_no_place_at_all() -> None:
    own = fault(message="no", capture=None)
    driver = Driver("main", "main", PATH)
    found = judge(own, Context(Snapshot(), None, (), [driver]))
    assert (found.location.path, found.location.range.start.line) == (PATH, 0)
    launched = judge(fault(message="no"), context(KERNEL, captures=[capture(launch=frame(KERNEL, "kernel"))]))
    assert context(KERNEL).source(launched.location) == "kernel"


def test_a_file_that_changed_or_went_away() -> None:
    gone = Frame("/project/gone.py", 7, 0, 7, 3)
    assert judge(fault(gone, message="no"), context(KERNEL)).location.range.start.line == 6
    beyond = Frame(PATH, 500, 0, 500, 3)
    judge(fault(beyond, message="no"), context(KERNEL))


def test_sites_are_told_by_file_and_function_not_by_line() -> None:
    own = fault(site=("jax/a.py", "C.<locals>.f"), calls=[("jax/b.py", "g")])
    assert raised_in(own, "jax/a.py", "f") and raised_in(own, "jax/a.py")
    assert not raised_in(own, "jax/b.py", "g")
    assert passed_through(own, "jax/b.py", "g") and not passed_through(own, "jax/b.py", "h")


def test_jax_versions() -> None:
    assert context("", "0.12.0.1").jax == (0, 12, 0, 1)
    assert context("", "0.13.0.dev20260101").jax == (0, 13, 0)
    assert Context(Snapshot()).jax == ()
