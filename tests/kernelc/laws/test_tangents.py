"""Tangents on tapes: every case of the corpus, pushed through the tape that its gradient goes back through."""

import numpy as np
import pytest
from laws import bench
from laws.bench import CASES, MIDDLE, SMALL, apart, record, spread
from laws.corpus import all as _all  # noqa: F401

import kernelc as kc
from kernelc.runtime import Array

pytestmark = pytest.mark.usefixtures("built")
cases = pytest.mark.parametrize("case", CASES.values(), ids=repr)
COUNT = 3
"""Tangents at once: as many as leave one of four places empty."""


def directions(recorded, count=COUNT):
    """Random tangents of all leaves, with the axis in front."""
    random = np.random.default_rng(3)
    leaves = [recorded.args[name] for name in recorded.case.leaves]
    return {a: np.array([spread(a, random.uniform(-1, 1, a.shape)) for _ in range(count)]) for a in leaves}


def outputs(recorded):
    return {name: recorded.args[name] for name in recorded.weights()}


def pushed(recorded, given):
    """The tangents of everything that carries a gradient, by name."""
    found = recorded.tape.jvp(_on_tape(recorded, given), list(outputs(recorded).values()))
    return {name: found[a].numpy() for name, a in outputs(recorded).items()}


def _on_tape(recorded, given):
    return {a: d for a, d in given.items() if a._storage in recorded.tape._versions}


def products(recorded, given, dots):
    """⟨Jv, w⟩ and ⟨v, Jᵀw⟩ of each tangent, and how large their terms are."""
    w, leaves = recorded.weights(), {recorded.args[n]: n for n in recorded.case.leaves}
    recorded.backward()
    g = recorded.gradients()
    for k in range(COUNT):
        terms = [bench.flat(w[n]) * bench.flat(dots[n][k]) for n in w]
        back = [bench.flat(g[leaves[a]]) * bench.flat(given[a][k]) for a in _on_tape(recorded, given)]
        yield sum(t.sum() for t in terms), sum(t.sum() for t in back), sum(np.abs(t).sum() for t in terms + back)


@cases
def test_the_dot_product_law(case):
    for n in (SMALL, MIDDLE) if case.sizes else (SMALL,):
        recorded = record(case, n=n)
        given = directions(recorded)
        dots = pushed(recorded, given)
        for forward, back, size in products(recorded, given, dots):
            assert abs(forward - back) <= 1e-12 * max(size, 1e-3)


@cases
def test_single_precision_has_the_same_tangents(case):
    recorded, exact = record(case, real="f32"), record(case)
    got, want = pushed(recorded, directions(recorded)), pushed(exact, directions(exact))
    assert not apart(got, want, case.f32)


@cases
def test_compiled_equals_interpreted(case):
    for n in (SMALL, MIDDLE) if case.sizes else (SMALL,):
        recorded, wanted = record(case, n=n), record(case, n=n, device="python")
        assert not apart(pushed(recorded, directions(recorded)), pushed(wanted, directions(wanted)), 1e-10)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.strided], ids=repr)
def test_strided_views_are_as_good_as_dense_arrays(case):
    recorded, wanted = record(case, strided=True), record(case)
    assert not apart(pushed(recorded, directions(recorded)), pushed(wanted, directions(wanted)), 1e-12)


@cases
def test_nothing_else_changes(case):
    recorded = record(case)
    before = recorded.results()
    first = pushed(recorded, directions(recorded))
    assert bench.same_bits(recorded.results(), before)
    assert bench.same_bits(pushed(recorded, directions(recorded)), first)
    for name, content in case.make().items():
        if isinstance(content, Array):
            recorded.args[name].assign(content)
    recorded.tape.replay()
    assert bench.same_bits(pushed(recorded, directions(recorded)), first)


@cases
def test_tangents_together_are_tangents_one_by_one(case):
    recorded = record(case)
    given = directions(recorded)
    together = pushed(recorded, given)
    for k in range(COUNT):
        alone = pushed(recorded, {a: d[k] for a, d in given.items()})
        assert not apart(alone, {n: d[k] for n, d in together.items()}, 1e-13)


@cases
def test_one_leaf_alone_is_the_same_column(case):
    """Which leaves have a tangent changes nothing, at ties neither."""
    recorded = record(case)
    given = directions(recorded)
    parts = [pushed(recorded, {a: d}) for a, d in _on_tape(recorded, given).items()]
    if parts:
        whole = pushed(recorded, given)
        total = {n: sum(bench.flat(p[n]) for p in parts) for n in whole}
        assert not apart({n: bench.flat(d) for n, d in whole.items()}, total, 1e-12)


def test_debug_mode_finds_nothing(monkeypatch):
    monkeypatch.setattr(kc.config, "debug", True)
    for case in list(CASES.values())[::17]:
        recorded = record(case)
        pushed(recorded, directions(recorded))
