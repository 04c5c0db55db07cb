"""DLPack: the memory of others as arrays, and arrays as memory for others."""

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


class Capsule:
    """Speaks DLPack and nothing else."""

    def __init__(self, data, device=(1, 0)):
        self.data, self.device = data, device

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("wrap", [lambda a: a, torch.from_numpy, Capsule])
def test_from_dlpack_shares(wrap):
    data = np.arange(4.0)
    x, y = kc.from_dlpack(wrap(data)), kc.zeros(4, real=kc.float64)
    assert np.shares_memory(x.numpy(), data) and x.real is kc.float64
    data[0] = 5.0
    kc.launch(double, 4, [x], [y])
    np.testing.assert_array_equal(y.numpy(), 2 * data)


def test_from_dlpack_of_vectors_with_a_gradient():
    x = kc.from_dlpack(torch.ones(4, 3, requires_grad=True), dtype=kc.float3, requires_grad=True)
    assert x.shape == (4,) and x.requires_grad and x.real is kc.float32


def test_from_dlpack_of_an_array():
    a = kc.ones(3)
    assert np.shares_memory(kc.from_dlpack(a).numpy(), a.numpy())


def test_array_takes_what_speaks_dlpack():
    data = np.arange(3.0, dtype=np.float32)
    assert np.shares_memory(kc.array(Capsule(data)).numpy(), data)
    out = kc.zeros(3)
    kc.launch(double, 3, [Capsule(data)], [out])
    np.testing.assert_array_equal(out.numpy(), 2 * data)


@pytest.mark.parametrize("module", [np, torch])
@pytest.mark.parametrize("dtype", [float, kc.float3, kc.mat33, int, kc.int64])
def test_arrays_speak_dlpack(module, dtype):
    a = kc.ones((2, 3), dtype=dtype)
    other = module.from_dlpack(a)
    assert tuple(other.shape) == a.numpy().shape and np.shares_memory(np.asarray(other), a.numpy())
    a.numpy()[0] = 7
    assert (np.asarray(other)[0] == 7).all()


def test_strided_views_speak_dlpack():
    a = kc.array(np.arange(12.0).reshape(3, 4))[:, 1:3]
    np.testing.assert_array_equal(torch.from_dlpack(a).numpy(), a.numpy())
    np.testing.assert_array_equal(np.from_dlpack(a), a.numpy())


def test_memory_of_other_devices_is_refused():
    with pytest.raises(kc.WrongDevice):
        kc.from_dlpack(Capsule(np.zeros(3), device=(2, 0)))


def test_torch_tensors_are_shared():
    tensor = torch.arange(4.0)
    a = kc.array(tensor)
    a.assign([1, 2, 3, 4])
    assert tensor.tolist() == [1, 2, 3, 4]
    back = a.torch()
    assert back.data_ptr() == tensor.data_ptr()
    out = torch.zeros(4)
    kc.launch(double, 4, [tensor], [out])
    assert out.tolist() == [2, 4, 6, 8]


def test_from_torch_takes_the_gradient_flag():
    x = torch.ones(3, requires_grad=True)
    assert kc.from_torch(x).requires_grad and not kc.from_torch(x, requires_grad=False).requires_grad
    assert not kc.from_torch(torch.ones(3)).requires_grad
    with pytest.raises(kc.WrongDtype):
        kc.from_torch(np.ones(3))


@pytest.mark.parametrize("tensor", [
    torch.zeros(3, dtype=torch.complex64), torch.zeros(3, dtype=torch.complex128), torch.zeros(3, 3).to_sparse(),
])  # fmt: skip
def test_tensors_that_kernels_cannot_hold_are_refused(tensor):
    with pytest.raises(kc.WrongDtype):
        kc.array(tensor)


def test_tensors_on_other_devices_are_refused():
    with pytest.raises(kc.WrongDevice, match="meta"):
        kc.array(torch.zeros(3, device="meta"))


def test_the_same_tensor_twice_overlaps():
    x = torch.zeros(8)
    with pytest.raises(kc.Overlap):
        kc.launch(double, 8, [x], [x])
    with pytest.raises(kc.Overlap):
        kc.launch(double, 4, [x[:4]], [x[2:6]])
    with pytest.raises(kc.Overlap):
        kc.launch(double, 4, [x[:4].numpy()], [x[2:6]])
    kc.launch(double, 4, [x[:4]], [x[4:]])


def test_read_only_and_reversed_memory_reaches_torch_as_a_copy(recwarn):
    data = np.arange(3.0)
    data.flags.writeable = False
    kc.array(data).torch()[0] = 5.0
    assert data[0] == 0.0
    assert kc.array(np.arange(3.0)[::-1]).torch().tolist() == [2, 1, 0]
    assert not recwarn.list
