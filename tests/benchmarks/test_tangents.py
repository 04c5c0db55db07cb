"""The benchmark of tangents measures what it says: JAX gets the same numbers."""

import pytest

from benchmarks import tangents
from benchmarks.cases import fem


def test_tangents_and_hessian_products_are_those_of_jax():
    pytest.importorskip("jax")
    work = fem.make(40)
    tangents.check(tangents.ours(work), tangents.theirs(work))


def test_every_run_runs():
    for run in tangents.ours(fem.make(5)).values():
        run()
