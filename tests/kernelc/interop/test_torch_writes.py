"""Arrays and tensors over the same memory of the host: torch counts what is written through the array."""

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")


@kc.kernel
def set_to_ten(x: kc.Array[float]):
    x[kc.tid()] = 10.0


@pytest.mark.parametrize("write", [
    lambda a, memory: a.fill_(10.0),
    lambda a, memory: a.assign([10.0, 10.0, 10.0]),
    lambda a, memory: kc.launch(set_to_ten, 3, [a]),
    lambda a, memory: kc.array(memory).fill_(10.0),
], ids=["fill", "assign", "launch", "another array"])  # fmt: skip
@pytest.mark.parametrize("shared", ["from_torch", "array", "torch"])
def test_torch_hears_of_writes_to_memory_that_it_shares(shared, write):
    """It has saved the tensor for a gradient, which would be that of other numbers."""
    memory = np.ones(3)
    if shared == "torch":
        a = kc.array(memory)
        t = a.torch()
    else:
        t = torch.from_numpy(memory)
        a = getattr(kc, shared)(t)
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    loss = (t * w).sum()
    write(a, memory)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    (t * w).sum().backward()
    assert w.grad.tolist() == [10.0, 10.0, 10.0]


def test_a_tensor_of_which_an_array_is_a_copy_hears_nothing():
    t = torch.ones(3, dtype=torch.float64)
    a = kc.array(t, copy=True)
    a.fill_(10.0)
    assert t._version == 0 and t.tolist() == [1.0, 1.0, 1.0]


def test_tensors_that_are_gone_are_forgotten():
    a = kc.zeros(3)
    for _ in range(5):
        a.torch()
    kept = a.torch()
    a.fill_(1.0)
    assert kept._version == 1 and len(a._storage.tensors) <= 2
