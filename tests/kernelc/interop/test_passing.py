"""Launches with NumPy arrays and tensors of a kind that was passed before: short way and long way mean the same."""

import numpy as np
import pytest
import torch

import kernelc as kc
from kernelc.errors import CutGradient, KernelError, Overlap, ReadOnly
from kernelc.runtime import launches


@kc.kernel
def twice(x: kc.Array[float], k: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * k


@kc.kernel
def turn(x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = kc.float3(x[i][1], -x[i][0], x[i][2])


@pytest.fixture
def short(monkeypatch):
    """How often a launch took the short way."""
    taken = []
    launch = launches.launch_passed

    def counted(*args):
        found = launch(*args)
        taken.append(found)
        return found

    monkeypatch.setattr(launches, "launch_passed", counted)
    return taken


def memory(kind, n=5, real="float32"):
    made = np.arange(n, dtype=real) + 1
    return {"numpy": lambda: made, "torch": lambda: torch.from_numpy(made), "array": lambda: kc.array(made)}[kind]()


@pytest.mark.parametrize("of", ["numpy", "torch", "array"])
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_the_second_launch_goes_straight_to_the_memory(short, of, to):
    for k in (2.0, 3.0, 4.0):
        x, y = memory(of), memory(to)
        kc.launch(twice, 5, [x, k], [y])
        assert np.array_equal(np.asarray(y), k * np.arange(1, 6))
    assert len(short) >= 2 and all(short)
    many, wide = memory(of, 9, "float64"), memory(to, 9, "float64")
    for _ in range(2):  # another shape and precision
        kc.launch(twice, 9, [many, 0.5], [wide])
    assert np.array_equal(np.asarray(wide), 0.5 * np.arange(1, 10))


def test_vectors_are_rows(short):
    for _ in range(3):
        x, y = np.random.rand(4, 3).astype(np.float32), torch.zeros(4, 3)
        kc.launch(turn, 4, [x], [y])
        assert np.array_equal(y.numpy(), np.stack([x[:, 1], -x[:, 0], x[:, 2]], 1))
    assert short.count(True) >= 2


def test_what_is_out_of_the_ordinary_takes_the_long_way(short):
    x, y = memory("numpy"), memory("numpy")
    for _ in range(2):
        kc.launch(twice, 5, [x, 1.0], [y])
    with pytest.raises(Overlap):
        kc.launch(twice, 5, [x, 1.0], [x])
    with pytest.raises(Overlap):
        big = memory("numpy", 8)
        kc.launch(twice, 5, [big[:5], 1.0], [big[2:7]])
    frozen = memory("numpy")
    frozen.flags.writeable = False
    with pytest.raises(ReadOnly):
        kc.launch(twice, 5, [x, 1.0], [frozen])
    kc.launch(twice, 5, [frozen, 2.0], [y])
    assert np.array_equal(y, 2 * frozen)
    gaps = memory("numpy", 10)
    kc.launch(twice, 5, [x, 3.0], [gaps[::2]])
    assert np.array_equal(gaps, [3, 2, 6, 4, 9, 6, 12, 8, 15, 10])
    with pytest.raises(KernelError):
        kc.launch(twice, 5, [x, "2"], [y])
    with pytest.raises(KernelError):
        kc.launch(twice, (5, 1), [x, 2.0], [y])


def test_a_gradient_is_never_lost(short):
    x, y = memory("torch"), memory("torch")
    for _ in range(2):
        kc.launch(twice, 5, [x, 1.0], [y])
    with pytest.raises(CutGradient):
        kc.launch(twice, 5, [x.requires_grad_(), 1.0], [y])
    with torch.autograd.forward_ad.dual_level(), pytest.raises(CutGradient):
        kc.launch(twice, 5, [torch.autograd.forward_ad.make_dual(memory("torch"), torch.ones(5)), 1.0], [y])
    with pytest.raises(KernelError):
        torch.func.vmap(lambda a: kc.launch(twice, 5, [a, 1.0], [y]))(torch.ones(2, 5))


def test_torch_hears_of_writes(short):
    x, y = memory("torch"), memory("torch")
    for _ in range(2):
        before = y._version
        kc.launch(twice, 5, [x, 1.0], [y])
        assert y._version == before + 1
    assert short[-1]


@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_arrays_over_the_same_memory_hear_of_writes(to):
    x, plain = memory("numpy"), np.zeros(5, np.float32)
    y = plain if to == "numpy" else torch.from_numpy(plain)
    for _ in range(2):
        kc.launch(twice, 5, [x, 1.0], [y])
    looks = kc.array(plain, requires_grad=True)
    before = looks.version
    kc.launch(twice, 5, [x, 1.0], [y])
    assert looks.version > before


def test_a_tape_records_what_was_passed_before():
    x, y = memory("numpy"), np.zeros(5, np.float32)
    leaf = kc.array(np.ones(5, np.float32), requires_grad=True)
    for _ in range(2):
        kc.launch(twice, 5, [x, 1.0], [y])
        kc.launch(twice, 5, [leaf, 1.0], [y])
    out = kc.zeros(5)
    with kc.Tape() as tape:
        kc.launch(twice, 5, [leaf, 3.0], [y])
        kc.launch(twice, 5, [y, 2.0], [out])
    tape.backward(grads={out: np.ones(5, np.float32)})
    assert np.array_equal(leaf.grad.numpy(), 6 * np.ones(5))


def test_settings_hold_at_once(monkeypatch):
    x, y = memory("numpy"), np.zeros(5, np.float32)
    for _ in range(2):
        kc.launch(twice, 5, [x, 1.0], [y])
    monkeypatch.setattr(kc.config, "debug", True)
    with pytest.raises(KernelError, match="out of bounds"):
        kc.launch(twice, 6, [x, 1.0], [y])
