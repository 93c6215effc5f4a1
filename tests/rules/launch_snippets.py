"""Kernels for the rules that hold for all backends; fixes are tried with the newest jax only, to be quick."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from jax_environments import find_jax_pythons
from snippets import Snippet, compare, run, run_with_fixes

from pallas_lsp.model import Severity

__all__ = ["HEAD", "Snippet", "check"]

HEAD = """\
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as pltriton

X = jnp.ones((512, 256))
SDS = jax.ShapeDtypeStruct


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def call(kernel, x=X, out=None, **options):
    return pl.pallas_call(kernel, out_shape=out or SDS(x.shape, x.dtype), **options)(x)
"""


def check(python: str, version: str, rule: str, snippets: Mapping[str, Snippet]) -> None:
    """Run the snippets of a rule and compare: rule, range, words, and with the newest jax the fixes."""
    jax = tuple(int(part) for part in version.split(".") if part.isdigit())
    newest = version == find_jax_pythons()[-1].version
    wanted = {name: s for name, s in snippets.items() if s.since <= jax < s.before}
    texts = {name: HEAD + textwrap.dedent(s.text) for name, s in wanted.items()}
    outcomes = (run_with_fixes if newest else run)(python, version, texts)
    for outcome in outcomes.values():
        # What only runs to wrong results was hidden behind the fault; another rule tells it.
        for title, found in outcome.fixed.items():
            outcome.fixed[title] = tuple(f for f in found if f.severity is Severity.ERROR)
    problems = []
    for name, snippet in wanted.items():
        expected = snippet if newest else Snippet(snippet.text, snippet.says, related=snippet.related)
        wanted_rule = rule if snippet.rule is None else snippet.rule
        problems += [f"{name}: {each}" for each in compare(outcomes[name], expected, wanted_rule)]
    assert not problems, "\n" + "\n".join(problems)
