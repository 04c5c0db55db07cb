"""Second derivatives on tapes: every case of the corpus, whose results are summed up with weights."""

import numpy as np
import pytest
from laws import bench
from laws.bench import CASES, MIDDLE, SMALL, Run, apart, record, spread
from laws.corpus import all as _all  # noqa: F401

import kernelc as kc
from kernelc.runtime.curvature import Curve

pytestmark = pytest.mark.usefixtures("built")
cases = pytest.mark.parametrize("case", CASES.values(), ids=repr)
STEP = 1e-5
KINKS = {"only the side that is taken is formed"}
"""Cases that stand on a kink: their gradient jumps there, and has no slope."""


def directions(recorded, seed):
    random = np.random.default_rng(seed)
    leaves = [recorded.args[name] for name in recorded.case.leaves]
    known = [a for a in leaves if a._storage in recorded.tape._versions]
    return {a: spread(a, random.uniform(-1, 1, a.shape)) for a in known}


def bent(recorded, given):
    """How the gradients of Σ weights·results change along a direction, by name."""
    tape, weights = recorded.tape, {recorded.args[n]: w for n, w in recorded.weights().items()}
    curve = Curve(tape, weights, list(given), 1)
    curve.give({a: d[None] for a, d in given.items()})
    tape._report(curve.program.run(), curve.codes)
    names = {recorded.args[n]: n for n in recorded.case.leaves}
    return {names[a]: curve.take(a)[0].copy() for a in given}


def slopes(case, given, step):
    """The gradients where the leaves are moved by a step."""
    args = case.make()
    for name, d in given.items():
        _move(args[name].numpy(), d, step)
    with kc.Tape() as tape:
        case.program(Run(), *args.values())
    recorded = bench.Recorded(case, args, tape)
    recorded.backward()
    return {n: g for n, g in recorded.gradients().items() if n in given}


def _move(content, d, step):
    if content.dtype.fields:
        for name in content.dtype.names:
            _move(content[name], d[name], step)
    elif content.dtype.kind == "f":
        content += step * d


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.differences and c.name not in KINKS], ids=repr)
def test_the_hessian_equals_differences_of_the_gradient(case):
    recorded = record(case)
    given = directions(recorded, 3)
    got = bent(recorded, given)
    names = {n: given[recorded.args[n]] for n in case.leaves if recorded.args[n] in given}
    steps = {h: slopes(case, names, h) for h in (-2 * STEP, -STEP, STEP, 2 * STEP)}
    for n in got:
        near, far = ((bench.flat(steps[h][n]) - bench.flat(steps[-h][n])) / (2 * h) for h in (STEP, 2 * STEP))
        want = (4 * near - far) / 3
        size = max(1.0, np.abs(want).max(initial=0), np.abs(bench.flat(steps[STEP][n])).max(initial=0))
        assert np.abs(bench.flat(got[n]) - want).max(initial=0) <= 1e-7 * size, n


@cases
def test_the_hessian_is_symmetric(case):
    for n in (SMALL, MIDDLE) if case.sizes else (SMALL,):
        recorded = record(case, n=n)
        v, w = directions(recorded, 3), directions(recorded, 4)
        names = {recorded.args[name]: name for name in case.leaves}
        along, across = bent(recorded, v), bent(recorded, w)
        left = [bench.flat(w[a]) * bench.flat(along[names[a]]) for a in v]
        right = [bench.flat(v[a]) * bench.flat(across[names[a]]) for a in v]
        size = max([1e-3, *(np.abs(t).sum() for t in left + right)])
        assert abs(sum(t.sum() for t in left) - sum(t.sum() for t in right)) <= 1e-12 * size


@cases
def test_weights_that_begin_at_zero_move_gradients_as_they_move(case):
    """No adjoint is nothing to start from, and no reason to stop: d/dt Jᵀ(t w) = Jᵀ w at t = 0, wherever leaves go."""
    recorded = record(case, device="python")
    weights = {recorded.args[n]: w for n, w in recorded.weights().items()}
    given, tape = directions(recorded, 3), recorded.tape
    curve = Curve(tape, {a: np.zeros_like(w) for a, w in weights.items()}, list(given), 1,
                  {a: w[None] for a, w in weights.items()})  # fmt: skip
    curve.give({a: d[None] for a, d in given.items()})
    tape._report(curve.program.run(), curve.codes)
    recorded.backward()
    names, wanted = {recorded.args[n]: n for n in case.leaves}, recorded.gradients()
    got = {names[a]: curve.take(a)[0].copy() for a in given}
    assert not apart(got, {n: wanted[n] for n in got}, 1e-12)


@cases
def test_compiled_equals_interpreted(case):
    for n in (SMALL, MIDDLE) if case.sizes else (SMALL,):
        recorded, wanted = record(case, n=n), record(case, n=n, device="python")
        assert not apart(bent(recorded, directions(recorded, 3)), bent(wanted, directions(wanted, 3)), 1e-9)


@cases
def test_single_precision_has_the_same_curvature(case):
    recorded, exact = record(case, real="f32"), record(case)
    got, want = bent(recorded, directions(recorded, 3)), bent(exact, directions(exact, 3))
    assert not apart(got, want, 10 * case.f32)


@cases
def test_gradients_and_contents_stay(case):
    recorded = record(case)
    recorded.backward()
    before, gradients = recorded.results(), recorded.gradients()
    bent(recorded, directions(recorded, 3))
    assert bench.same_bits(recorded.results(), before)
    assert bench.same_bits(recorded.gradients(), gradients)
