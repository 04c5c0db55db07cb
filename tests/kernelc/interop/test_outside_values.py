"""What a user hands over and then changes, copies or loses: a gradient is right, or there is an error."""

import copy
import pickle

import numpy as np
import pytest
import torch

import kernelc as kc


@kc.struct
class Law:
    k: float
    v: kc.float3


@kc.kernel
def scaled(x: kc.Array[float], law: Law, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * law.k + law.v.x


@kc.kernel
def shifted(x: kc.Array[float], v: kc.float3, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * v.y


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


@kc.kernel
def half_done(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]
    assert i < 2


def leaf():
    return kc.array(np.arange(1.0, 5.0), requires_grad=True)


def zeros(n=4):
    return kc.zeros(n, real=kc.float64)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_struct_that_changes_after_its_launch(device):
    x, y, w, law = leaf(), zeros(), zeros(), Law(k=2.0)
    with kc.Tape() as tape:
        kc.launch(scaled, 4, [x, law], [y], device=device)
        law.k = 3.0
        kc.launch(scaled, 4, [y, law], [w], device=device)
    law.k = 100.0
    tape.replay()
    tape.backward(grads={w: np.ones(4)})
    assert np.array_equal(w.numpy(), 6 * x.numpy())
    assert np.array_equal(x.grad.numpy(), np.full(4, 6.0))


@pytest.mark.parametrize("make", [np.array, list, torch.tensor])
def test_a_vector_that_changes_after_its_launch(make):
    x, y, v = leaf(), zeros(), make([0.0, 7.0, 0.0])
    with kc.Tape() as tape:
        kc.launch(shifted, 4, [x, v], [y])
    v[1] = 100.0
    tape.backward(grads={y: np.ones(4)})
    assert np.array_equal(x.grad.numpy(), np.full(4, 7.0))


def test_a_vector_of_a_torch_operation_that_changes():
    v = np.array([0.0, 7.0, 0.0])
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    y = kc.torch.op(shifted, 4, outputs=[(4,)])(x, v)
    v[1] = 100.0
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((4,), 7.0, dtype=torch.float64))


@pytest.mark.parametrize("make", [
    lambda: Law(k=kc.scalar(3.0, requires_grad=True)),
    lambda: Law(k=torch.tensor(3.0, requires_grad=True)),
    lambda: Law(v=torch.ones(3, requires_grad=True)),
])  # fmt: skip
def test_a_gradient_in_a_struct_is_no_constant(make):
    with pytest.raises(kc.CutGradient):
        kc.launch(scaled, 4, [leaf(), make()], [zeros()])


def test_what_a_failed_launch_wrote_has_no_gradient():
    x, y, w = leaf(), zeros(), zeros()
    with kc.Tape():
        with pytest.raises(kc.KernelError, match="assert"):
            kc.launch(half_done, 4, [x], [y])
        with pytest.raises(kc.TapeError, match=r"written by launch 0 \(half_done\), which failed"):
            kc.launch(double, 4, [y], [w])


@pytest.mark.parametrize("copied", [
    lambda y: zeros().fill_(y[1]),
    lambda y: kc.full(4, y[1]),
    lambda y: kc.array([y[0], y[1]]),
    lambda y: kc.array(y, copy=True),
    lambda y: kc.array(y, dtype=kc.float32),
])  # fmt: skip
def test_copies_that_a_tape_does_not_see_are_refused(copied):
    x, y = leaf(), zeros()
    with kc.Tape():
        kc.launch(double, 4, [x], [y])
        with pytest.raises(kc.CutGradient, match="would be copied as a constant"):
            copied(y)


def test_torch_sees_that_a_launch_wrote_a_tensor():
    p, q = (torch.ones(4, dtype=torch.float64, requires_grad=grad) for grad in (True, False))
    loss = (p * q).sum()
    kc.launch(double, 4, [np.ones(4)], [q])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_an_operation_sees_that_a_launch_wrote_its_input():
    u = torch.ones(4, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        memory = u.detach()
    y = kc.torch.op(scaled, 4, outputs=[(4,)])(u, Law(k=2.0))
    kc.launch(double, 4, [np.ones(4)], [memory])
    y.sum().backward()  # linear in u: nothing of u is needed
    assert torch.equal(u.grad, torch.full((4,), 2.0, dtype=torch.float64))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_arrays_can_be_copied_and_pickled(duplicate):
    a = kc.array(np.arange(6.0).reshape(2, 3), dtype=kc.float3, requires_grad=True)
    b = duplicate(a)
    b.zero_()
    assert (b.shape, b.dtype, b.requires_grad) == (a.shape, a.dtype, True)
    assert np.array_equal(a.numpy(), np.arange(6.0).reshape(2, 3))


def test_nan_is_one_number_that_comes_last():
    values, counts = kc.unique(np.array([1.0, 2.0, np.nan, np.nan]))
    assert np.array_equal(values.numpy(), [1, 2, np.nan], equal_nan=True)
    assert np.array_equal(counts.numpy(), [1, 1, 2])
    with pytest.raises(kc.KernelError, match="element 2 is smaller"):
        kc.unique(np.array([2.0, np.nan, 1.0]))
