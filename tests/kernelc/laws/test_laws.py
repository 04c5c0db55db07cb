"""Every case of the corpus through every law."""

import numpy as np
import pytest
from laws import bench
from laws.bench import (
    CASES,
    LARGE,
    MIDDLE,
    SMALL,
    Push,
    Run,
    apart,
    forward_and_backward,
    record,
    same_bits,
    served,
    spread,
)
from laws.corpus import all as _all  # noqa: F401

import kernelc as kc
from kernelc.runtime import Array
from kernelc.runtime.compile import Variant

pytestmark = pytest.mark.usefixtures("built")
cases = pytest.mark.parametrize("case", CASES.values(), ids=repr)
large_cases = pytest.mark.parametrize("case", [c for c in CASES.values() if c.sizes], ids=repr)


@cases
def test_compiled_equals_interpreted(case):
    results, gradients = forward_and_backward(case)
    want, want_gradients = forward_and_backward(case, device="python")
    assert not apart(results, want, 1e-12)
    assert not apart(gradients, want_gradients, 1e-10)


@pytest.mark.parametrize(("case", "width"), [
    pytest.param(c, width, id=f"{c!r}-{width}", marks=() if width == c.width else pytest.mark.nightly)
    for c in CASES.values() if c.sizes for width in (2, 4, 8, 16)
])  # fmt: skip
def test_lanes_equal_interpreted(case, width, monkeypatch):
    """In every run in the width of the case, in all of them in nightly ones."""
    monkeypatch.setattr(kc.config, "lanes", width)
    results, gradients = forward_and_backward(case, n=MIDDLE)
    want, want_gradients = forward_and_backward(case, n=MIDDLE, device="python")
    assert not apart(results, want, 1e-12)
    assert not apart(gradients, want_gradients, 1e-10)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_every_run_has_laws_in_each_width(width):
    """With more than two whole groups of threads: fewer run one by one, and test nothing of lanes."""
    assert sum(c.width == width for c in CASES.values() if c.sizes) >= 8
    assert 2 * width < MIDDLE and MIDDLE % width


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.differences], ids=repr)
def test_the_adjoint_equals_central_differences(case):
    args = case.make()
    kc.testing.gradcheck(lambda *a: case.program(Run(), *a), None, list(args.values()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("real", ["f64", "f32"])
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.slope], ids=repr)
def test_the_adjoint_is_what_was_declared(case, real, device):
    recorded = record(case, real=real, device=device)
    recorded.backward()
    weights, x = recorded.weights()["out"], recorded.args["x"].numpy()
    want = case.slope(x.astype(np.float64)) * weights.reshape(*weights.shape, *([1] * (x.ndim - weights.ndim)))
    np.testing.assert_allclose(recorded.gradients()["x"], want, rtol=1e-12 if real == "f64" else 1e-5, atol=0)


@cases
def test_single_precision_has_the_same_gradient(case):
    _, want = forward_and_backward(case)
    _, got = forward_and_backward(case, real="f32")
    assert not apart(got, want, case.f32)


@cases
def test_forward_mode_is_the_transpose(case):
    for n in (SMALL, MIDDLE) if case.sizes else (SMALL,):
        args = case.make(n)
        random = np.random.default_rng(3)
        v = {name: spread(args[name], random.uniform(-1, 1, args[name].shape)) for name in case.leaves}
        push = Push({args[name]: v[name] for name in case.leaves}, n)
        case.program(push, *args.values())

        recorded = record(case, n=n)
        w = recorded.weights()
        recorded.backward()
        pushed = sum(bench.flat(w[name]) @ bench.flat(push.tangent(args[name])) for name in w)
        pulled = sum(bench.flat(g) @ bench.flat(v[name]) for name, g in recorded.gradients().items())
        assert pushed == pytest.approx(pulled, rel=1e-9, abs=1e-9)


@cases
def test_the_other_loop_tape_gives_the_same_gradient(case):
    assert not apart(forward_and_backward(case, sqrt=True)[1], forward_and_backward(case)[1], 1e-10)


@large_cases
def test_the_number_of_threads_does_not_change_a_bit(case, monkeypatch):
    runs = []
    for threads in (1, 2):
        monkeypatch.setattr(kc.config, "threads", threads)
        runs.append(forward_and_backward(case, n=LARGE))
    for one, two in zip(*runs):
        assert same_bits(one, two)


@pytest.mark.parametrize(
    ("case", "alone"), [(c, alone) for c in CASES.values() for alone in (False, True)[: len(c.leaves)]], ids=str
)
def test_a_gradient_has_the_same_bits_whoever_else_asks(case, alone, monkeypatch):
    """The adjoint for all arrays, which comes with wheels, serves where some of them carry a gradient."""
    _, want = forward_and_backward(case, alone=alone)
    monkeypatch.setattr(Variant, "served", served)
    assert same_bits(forward_and_backward(case, alone=alone)[1], want)


@cases
def test_gradients_accumulate(case):
    recorded = record(case)
    recorded.backward()
    once = recorded.gradients()
    recorded.backward()
    assert not apart(recorded.gradients(), {n: _doubled(g) for n, g in once.items()}, 1e-12)
    recorded.tape.zero()
    recorded.backward()
    assert same_bits(recorded.gradients(), once)


def _doubled(data):
    if data.dtype.fields:
        made = data.copy()
        for name in data.dtype.names:
            made[name] = _doubled(data[name])
        return made
    return data + data


@cases
def test_a_replay_is_the_program_run_again(case):
    recorded = record(case)
    for shift in (0, 1):
        for name, content in case.make(shift=shift).items():
            if isinstance(content, Array):
                recorded.args[name].assign(content)
        recorded.tape.replay()
        recorded.tape.zero()
        again = recorded.results()
        recorded.backward()
        fresh, gradients = forward_and_backward(case, shift=shift)
        assert same_bits({n: again[n] for n in fresh}, fresh)
        assert same_bits(recorded.gradients(), gradients)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.strided], ids=repr)
def test_strided_views_are_as_good_as_dense_arrays(case):
    results, gradients = forward_and_backward(case, strided=True)
    want, want_gradients = forward_and_backward(case)
    assert not apart(results, want, 1e-12)
    assert not apart(gradients, want_gradients, 1e-12)


@kc.func
def early(a: float) -> float:
    q = 2
    for k in range(q % 3 + 1):
        if a > 0.1 or k % 2 == 0:
            if q < 3:
                q //= 2
                return kc.sin(a * a)
    return kc.sin(a)


@kc.kernel
def slope_of_early(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.grad(early)(x[i])


def test_the_gradient_of_a_loop_is_differentiated_again():
    """Only whole numbers are kept by the loop in `early`."""
    x, out = kc.array(np.ones(2), requires_grad=True), kc.array(np.zeros(2))
    with kc.Tape() as tape:
        kc.launch(slope_of_early, 2, [x], [out])
    np.testing.assert_allclose(out.numpy(), 2 * np.cos(1))
    tape.backward(grads={out: np.ones(2)})
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(1) - 4 * np.sin(1), rtol=1e-14)


@pytest.mark.nightly
@cases
def test_debug_mode_changes_nothing(case, monkeypatch):
    want, want_gradients = forward_and_backward(case)
    monkeypatch.setattr(kc.config, "debug", True)
    results, gradients = forward_and_backward(case)
    assert not apart(results, want, 1e-12)
    assert not apart(gradients, want_gradients, 1e-12)
