"""Generators with a state: a draw advances the name that it draws from, in kernels as in Python."""

import copy

import numpy as np
import pytest

import kernelc as kc

N = 41


@kc.func
def sum_of_two(state):
    return kc.randf(state) + kc.randf(state)


@kc.kernel
def draws(chosen: kc.Array[bool], out: kc.Array[float, 2]):
    i = kc.tid()
    state = kc.rng(3, i)
    out[i, 0] = kc.randf(state) if chosen[i] else 0.0
    out[i, 1] = kc.randf(state) - kc.randf(state)
    out[i, 2] = sum_of_two(state)  # of a copy: values are copied by calls
    out[i, 3] = kc.randn(state)
    count = 0
    while kc.randf(state) < 0.7:
        count += 1
    out[i, 4] = count
    for _ in range(count):
        out[i, 5] += kc.randf(state)
    if chosen[i] and kc.randf(state) > 0.5:
        out[i, 6] = 1.0
    out[i, 7] = kc.randf(state)


def in_python(i, chosen):
    state, out = kc.rng(3, i), np.zeros(8)
    out[0] = kc.randf(state) if chosen else 0
    out[1] = kc.randf(state) - kc.randf(state)
    out[2] = sum_of_two.source.function(copy.copy(state))
    out[3] = kc.randn(state)
    while kc.randf(state) < 0.7:
        out[4] += 1
    for _ in range(int(out[4])):
        out[5] += kc.randf(state)
    out[6] = chosen and kc.randf(state) > 0.5
    out[7] = kc.randf(state)
    return out


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_kernels_draw_what_python_draws(device):
    chosen = np.arange(N) % 3 == 0
    out = kc.zeros((N, 8), real=kc.float64)
    kc.launch(draws, N, [chosen], [out], device=device)
    assert np.allclose(out.numpy(), [in_python(i, c) for i, c in enumerate(chosen)], rtol=1e-14, atol=1e-14)


@kc.kernel
def walk(x: kc.Array[float], steps: int, out: kc.Array[float]):
    i = kc.tid()
    state = kc.rng(7, i)
    p = x[i]
    for _ in range(steps):
        p = kc.sin(p) + x[i] * kc.randf(state) + 0.1 * kc.randn(state)
    out[i] = p


def test_an_adjoint_draws_the_same_numbers_again():
    x = kc.array(np.linspace(0, 2, N), requires_grad=True)
    kc.testing.gradcheck(walk, N, [x, 9], [kc.zeros(N, real=kc.float64)])


def test_a_draw_names_its_state():
    draw = kc.randf

    @kc.kernel
    def alias(out: kc.Array[float]):
        state = kc.rng(1, 2)
        out[0] = draw(state)

    @kc.kernel
    def number(out: kc.Array[float]):
        seed = 3
        out[0] = kc.randn(seed)

    for kernel in (alias, number):
        with pytest.raises(kc.TypeMismatch, match=r"draws from a name that holds kc.rng\(seed, i\)"):
            kc.launch(kernel, 1, [], [kc.zeros(1)])


def test_noise_has_no_kinks_between_cells():
    x = np.concatenate([np.arange(-3, 4) - 1e-7, np.arange(-3, 4) + 1e-7])
    values = np.array([kc.noise(5, v) for v in x]).reshape(2, -1)
    assert np.allclose(values, 0, atol=1e-6)

    @kc.kernel
    def sample(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = kc.noise(5, x[i])

    a, out = kc.array(x, requires_grad=True), kc.zeros(len(x), real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(sample, len(x), [a], [out])
    tape.backward(grads={out: np.ones(len(x))})
    left, right = a.grad.numpy().reshape(2, -1)
    assert np.allclose(left, right, atol=1e-5) and np.abs(left).max() > 0.1


@kc.func
def shifted(state, by):
    return by + kc.randf(state)


@kc.kernel
def passes(out: kc.Array[float]):
    i = kc.tid()
    state = kc.rng(3, i)
    out[i] = shifted(state, kc.randf(state)) + shifted(by=kc.randf(state), state=state)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_generator_is_passed_on_as_it_is_when_the_call_begins(device):
    out = kc.zeros(N, real=kc.float64)
    kc.launch(passes, N, [], [out], device=device)
    first, second, third = (np.array([kc.rand(3, i, k) for i in range(N)]) for k in range(3))
    assert np.allclose(out.numpy(), first + second + second + third, rtol=1e-14)
