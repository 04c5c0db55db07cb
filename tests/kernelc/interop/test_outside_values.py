"""What a user hands over and then changes, copies or loses: a gradient is right, or there is an error."""

import copy
import pickle
import subprocess
import sys
import types
from unittest import mock

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


DUPLICATES = [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_copies_have_memory_of_their_own_and_cut_no_gradient(duplicate):
    x, y = kc.array(np.ones(3), requires_grad=True), kc.zeros(3, real=kc.float64)
    duplicate(x).zero_()
    assert x.numpy().tolist() == [1.0] * 3
    with kc.Tape():
        kc.launch(doubled, 3, [x], [y])
        with pytest.raises(kc.CutGradient, match="would be copied as a constant"):
            duplicate(y)
    assert duplicate(y).numpy().tolist() == [2.0] * 3


@pytest.mark.parametrize("duplicate", DUPLICATES)
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


@kc.kernel
def doubled(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


def test_kernels_are_copied_and_pickled_by_their_name():
    """What was compiled are addresses of this process."""
    kc.launch(doubled, 3, [kc.ones(3)], [kc.zeros(3)])
    assert copy.deepcopy(doubled) is doubled and copy.copy(doubled) is doubled
    found = {"interop_kernels": types.ModuleType("interop_kernels")}
    with mock.patch.dict(sys.modules, found), mock.patch.object(doubled, "__module__", "interop_kernels"):
        found["interop_kernels"].doubled = doubled
        sent = pickle.dumps(doubled)
        assert pickle.loads(sent) is doubled
        del found["interop_kernels"].doubled
        with pytest.raises(kc.WrongUse, match="there is no doubled in a module interop_kernels here"):
            pickle.loads(sent)


PROGRAM = """
import sys
import numpy as np
import kernelc as kc

@kc.kernel
def squared(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]

def run(x):
    y = np.zeros(100)
    kc.launch(squared, 100, [np.full(100, x)], [y])
    return y[-1]

if __name__ == "__main__":
    import joblib
    run(1.0)
    print(joblib.Parallel(2)(joblib.delayed(run)(float(k)) for k in range(3)) == [0.0, 1.0, 4.0])
"""


def test_a_kernel_of_a_program_that_was_launched_goes_to_workers(tmp_path):
    """As its function, by cloudpickle: with the addresses of the first process, workers crashed."""
    pytest.importorskip("joblib")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr


UNFIT = [np.array([2**40, 0, 0]), *(np.array([0.0, x, 0.0]) for x in (np.nan, 3e9, -np.inf))]


@pytest.mark.parametrize("content", UNFIT)
@pytest.mark.parametrize("put", [
    lambda a, x: a.assign(x), lambda a, x: a.fill_(x), lambda a, x: kc.full(3, x, dtype=int),
    lambda a, x: kc.array(x, dtype=int), lambda a, x: a.assign(kc.array(x)),
])  # fmt: skip
def test_numbers_that_do_not_fit_integers_are_refused(put, content):
    """NumPy wraps them around."""
    with pytest.raises(kc.WrongDtype, match="do not fit int32"):
        put(kc.zeros(3, dtype=int), content)


def test_the_largest_numbers_fit():
    largest = np.array([2**31 - 1, -(2**31), 0])
    for content in (largest, largest.astype(float)):
        assert kc.zeros(3, dtype=int).assign(content).numpy().tolist() == largest.tolist()


@pytest.mark.parametrize("odd", [np.full(3, 1j), ["1", "2", "3"], np.full(3, None)], ids=["complex", "text", "object"])
def test_what_is_no_real_number_is_refused(odd):
    x, y = kc.array(np.ones(3), requires_grad=True), kc.zeros(3, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(doubled, 3, [x], [y])
    with pytest.raises(kc.KernelError):
        tape.backward(grads={y: odd})
    with pytest.raises(kc.KernelError):
        kc.zeros(3).fill_(odd)


def test_weights_in_another_order_are_refused():
    """As many as there are elements, but rows and columns are exchanged."""
    x, y = kc.array(np.ones((3, 2)), requires_grad=True), kc.zeros((3, 2), real=kc.float64)
    with kc.Tape() as tape:
        y.assign(x)
    with pytest.raises(kc.WrongShape, match=r"shape \(3, 2\) has shape \(2, 3\)"):
        tape.backward(grads={y: np.ones((2, 3))})
    tape.backward(grads={y: np.arange(6.0)})
    assert x.grad.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
