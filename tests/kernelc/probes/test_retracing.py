"""Checkpoints whose stretches launch the same: they are recorded once, and go back as if each had been recorded."""

import numpy as np
import pytest
import torch

import kernelc as kc
from kernelc.runtime import checkpoints, retracing


@kc.kernel
def bend(x: kc.Array[float], k: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] + 0.1 * kc.sin(k[0] * x[i])


@kc.kernel
def squeeze(y: kc.Array[float], c: float, x: kc.Array[float]):
    i = kc.tid()
    x[i] = y[i] - c * y[i] * y[i]


@pytest.fixture
def counted(monkeypatch):
    """How many stretches were recorded, and how many ran as another one."""
    count = {"recorded": 0, "again": 0}

    class Stretch(retracing.Stretch):
        def __init__(self, *args):
            super().__init__(*args)
            count["recorded"] += 1

    class Retraced(retracing.Retraced):
        def __exit__(self, *error):
            super().__exit__(*error)
            count["again"] += error[0] is None

    monkeypatch.setattr(checkpoints, "Stretch", Stretch)
    monkeypatch.setattr(checkpoints, "Retraced", Retraced)
    return count


def rolled(step, steps, checkpointed, every=3, repeat=1):
    """The final state, and gradients of it; `step(k, x, y, p)` launches."""
    x, p = (kc.array(v, requires_grad=True) for v in (np.linspace(0.5, 1, 4), np.array([0.7])))
    state, y = kc.zeros(4, real=kc.float64), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        state.assign(x)
        if checkpointed:
            kc.checkpoint(lambda k: step(k, state, y, p), [state], steps, every)
        else:
            for k in range(steps):
                step(k, state, y, p)
    weights = np.arange(1.0, 5)
    tape.backward(grads={state: weights})
    found = [state.numpy().copy(), x.grad.numpy().copy(), p.grad.numpy().copy()]
    for _ in range(repeat):
        x.assign(x.numpy() * 1.1)
        tape.replay()
        tape.backward(grads={state: weights}, add=False)
        found += [state.numpy().copy(), x.grad.numpy().copy(), p.grad.numpy().copy()]
    return found


def alike(k, x, y, p):
    kc.launch(bend, 4, [x, p], [y])
    kc.launch(squeeze, 4, [y, 0.05], [x])


def in_place(k, x, y, p):
    y.assign(x)
    kc.launch(bend, 4, [y, p], [x])
    y.zero_()
    kc.launch(bend, 4, [x, p], [y])
    x.assign(y)


def by_number(k, x, y, p):
    kc.launch(bend, 4, [x, p], [y])
    kc.launch(squeeze, 4, [y, 0.01 * k], [x])


def with_memory_of_its_own(k, x, y, p):
    own = kc.zeros(4, real=kc.float64)
    kc.launch(bend, 4, [x, p], [own])
    kc.launch(squeeze, 4, [own, 0.05], [x])


def longer_now_and_then(k, x, y, p):
    alike(k, x, y, p)
    if k == 4:
        alike(k, x, y, p)


def signed(k, x, y, p):
    kc.launch(bend, 4, [x, p], [y])
    kc.launch(squeeze, 4, [y, 0.0 if k < 5 else -0.0], [x])


@pytest.mark.parametrize(("step", "again"), [
    (alike, True), (in_place, True), (by_number, False), (with_memory_of_its_own, False), (longer_now_and_then, False),
    (signed, False),
])  # fmt: skip
@pytest.mark.parametrize("steps", [9, 10])
def test_stretches_that_launch_the_same_are_recorded_once(counted, step, again, steps):
    found, expected = (rolled(step, steps, checkpointed) for checkpointed in (True, False))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    rest = 2 * (steps % 3 > 0)  # the last stretch is shorter, in both sweeps
    if again:
        assert counted == {"recorded": 1 + rest, "again": 5}
    else:
        assert counted["recorded"] >= 4


def test_operations_in_steps_are_recorded(counted):
    def step(k, x, y, p):
        alike(k, x, y, p)
        if k < 3:
            x.assign(kc.scan(x))

    for a, b in zip(rolled(step, 9, True), rolled(step, 9, False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_torch_may_go_back_twice_with_gradients_of_its_own(counted):
    @kc.torch.function
    def run(x, p):
        y, state = kc.zeros_like(x), kc.zeros_like(x)
        state.assign(x)
        kc.checkpoint(lambda k: alike(k, state, y, p), [state], 9, 3)
        return state

    x, p = torch.linspace(0.5, 1, 4, dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64)
    x.requires_grad_(), p.requires_grad_()
    out = run(x, p)
    first = torch.autograd.grad(out.sum(), (x, p), retain_graph=True)
    kept = [g.clone() for g in first]
    twice = torch.autograd.grad((2 * out).sum(), (x, p))
    for a, b, c in zip(first, kept, twice, strict=True):
        assert torch.equal(a, b), "gradients that the caller has do not change"
        assert torch.allclose(2 * a, c, rtol=1e-13)
    assert counted["again"] > 0
