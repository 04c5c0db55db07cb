"""Arrays on a GPU: made there, moved, viewed, shared, freed. The stand-in kills whoever reads its memory."""

import contextlib
import ctypes
import gc

import numpy as np
import pytest

import kernelc as kc
from kernelc.runtime.cuda import device as devices
from kernelc.runtime.cuda import dlpack


@kc.struct
class Body:
    position: kc.float3
    tag: int
    mass: float


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, bool])
def test_contents_go_there_and_back(driver, dtype):
    content = np.arange(12).reshape(3, 4).astype(dtype)
    a = kc.array(content, device="cuda")
    assert a.device == "cuda"
    assert a.dtype is kc.array(content).dtype
    np.testing.assert_array_equal(a.numpy(), content)
    np.testing.assert_array_equal(np.asarray(a), content)
    content[0, 0] = 1  # a copy: the array does not change with it
    assert a.numpy()[0, 0] == 0


def test_filled_arrays(driver):
    np.testing.assert_array_equal(kc.zeros((2, 3), device="cuda").numpy(), np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(kc.ones(4, dtype=kc.float3, device="cuda").numpy(), np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(kc.full(2, 7, dtype=int, device="cuda").numpy(), [7, 7])
    assert kc.scalar(2.5, device="cuda").numpy() == [2.5]
    like = kc.zeros_like(kc.ones(3, device="cuda"))
    assert like.device == "cuda" and like.numpy().sum() == 0
    assert kc.empty_like(like).device == "cuda"
    assert kc.zeros(0, device="cuda").numpy().shape == (0,)


def test_structs(driver):
    data = np.zeros(2, np.dtype(kc.zeros(2, dtype=Body).numpy().dtype))
    data["position"], data["tag"], data["mass"] = [[1, 2, 3], [4, 5, 6]], [7, 8], [0.5, 1.5]
    a = kc.array(data, dtype=Body, device="cuda")
    assert a.numpy().tobytes() == data.tobytes()


def test_views_share_the_memory(driver):
    content = np.arange(24.0).reshape(4, 6)
    a = kc.array(content, device="cuda")
    for key in (slice(1, 3), (slice(None), slice(None, None, 2)), (slice(None, None, -1), 2), (1, slice(2, 5))):
        np.testing.assert_array_equal(a[key].numpy(), content[key])
        a[key].assign(-content[key])
        content[key] *= -1
        np.testing.assert_array_equal(a.numpy(), content)
        a[key].zero_()
        content[key] = 0
        np.testing.assert_array_equal(a.numpy(), content)
    np.testing.assert_array_equal(a.reshape(24).numpy(), content.reshape(24))


def test_copies_within_an_array_have_the_right_gradient(driver):
    for part, other in ((slice(1, 4), slice(0, 3)), (slice(0, 4), slice(0, 4)), (slice(0, 4), slice(None, None, -1))):
        x = kc.array(np.arange(1.0, 5.0, dtype=np.float32), device="cuda", requires_grad=True)
        y, held, index = kc.zeros(4, device="cuda"), 2 * np.arange(1.0, 5.0), np.arange(4)
        with kc.Tape() as tape:
            kc.launch(double, 4, [x], [y])
            y[part].assign(y[other])
        held[part], index[part] = held[other].copy(), index[other].copy()
        tape.replay()
        np.testing.assert_array_equal(y.numpy(), held)
        tape.backward(grads={y: np.ones(4)})
        np.testing.assert_array_equal(x.grad.numpy(), 2.0 * np.bincount(index, minlength=4))


def test_a_write_to_shared_memory_is_seen(driver):
    a = kc.array(np.ones(3, np.float32), device="cuda", requires_grad=True)
    y = kc.zeros(3, device="cuda")
    with kc.Tape() as tape:
        kc.launch(double, 3, [a], [y])
    kc.array(_Foreign(a)).zero_()
    with pytest.raises(kc.Overwritten):
        tape.backward(grads={y: np.ones(3)})


class _Foreign:
    """Somebody else who has the memory of an array."""

    def __init__(self, a):
        self.a, self.__cuda_array_interface__ = a, a.__cuda_array_interface__


def test_rows_are_vectors(driver):
    x = kc.array(np.ones((5, 3)), device="cuda")
    assert kc.array(x, dtype=kc.float3).shape == (5,)


def test_moving_back_and_forth(driver):
    a = kc.array(np.arange(3.0), requires_grad=True)
    there = a.to("cuda")
    assert there.device == "cuda" and there.requires_grad
    assert there.to("cuda") is there
    np.testing.assert_array_equal(there.to("cpu").numpy(), a.numpy())
    np.testing.assert_array_equal(kc.array(there, device="cpu").numpy(), a.numpy())
    np.testing.assert_array_equal(kc.array(a, device="cuda").numpy(), a.numpy())
    with pytest.raises(kc.WrongDevice, match="'tpu'"):
        a.to("tpu")
    with pytest.raises(kc.WrongDevice, match="'gpu'"):
        kc.zeros(3, device="gpu")


def test_gradients_come_back_from_the_gpu(driver):
    x = kc.array(np.arange(3.0), requires_grad=True)
    with kc.Tape() as tape:
        there = x.to("cuda")
        y = kc.zeros(3, real=kc.float64, device="cuda")
        kc.launch(double, 3, [there], [y])
        here = y.to("cpu")
    tape.backward(grads={here: [1.0, 10.0, 100.0]})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 20, 200])
    x.assign([5.0, 6.0, 7.0])
    tape.replay()
    np.testing.assert_array_equal(here.numpy(), [10, 12, 14])


def test_weights_on_the_gpu_stay_there(driver):
    x, w = kc.array(np.arange(3.0), requires_grad=True, device="cuda"), kc.array(np.arange(1.0, 4.0), device="cuda")
    y, here = kc.array(np.zeros(3), device="cuda"), np.arange(1.0, 4.0)
    with kc.Tape() as tape:
        kc.launch(double, 3, [x], [y])
    narrow = kc.array(here.astype(np.float32), device="cuda")
    column = kc.array(np.stack([here, here], 1), device="cuda")[:, 0]
    for weights in (w, Other(w), here, narrow, column):
        tape.backward(grads={y: weights}, add=False)
        np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])
    if driver is not None:
        for weights in (w, Other(w)):
            driver.calls()
            tape.backward(grads={y: weights}, add=False)
            assert not [call for call in driver.calls() if "HtoD" in call or "DtoHAsync_v2(24)" in call]
    with pytest.raises(kc.WrongShape, match=r"of shape \(3,\) has shape \(2,\)"):
        tape.backward(grads={y: w[:2]})


def test_lists_take_the_precision_of_the_launch(driver):
    x, y = kc.array([0.1, 0.2], device="cuda"), kc.zeros(2, real=kc.float64, device="cuda")
    kc.launch(double, 2, [x], [y])
    np.testing.assert_array_equal(y.numpy(), 2 * np.array([0.1, 0.2]))


def test_it_prints(driver):
    assert repr(kc.array([1, 2], device="cuda")) == 'kc.array([1 2], dtype=int32, device="cuda")'
    assert float(kc.array([2.5], device="cuda")) == 2.5


# -- others' memory
class Other:
    """Memory that somebody else has on the GPU."""

    def __init__(self, array, **more):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **more}


def test_memory_of_others_is_shared(driver):
    theirs = kc.array(np.arange(6.0).reshape(2, 3), device="cuda")
    mine = kc.array(Other(theirs))
    assert mine.device == "cuda" and mine._address == theirs._address
    mine.zero_()
    assert theirs.numpy().sum() == 0
    vectors = kc.from_dlpack(Other(theirs), dtype=kc.float3)
    assert vectors.shape == (2,) and vectors._address == theirs._address
    column = Other(theirs[:, 1])
    assert column.__cuda_array_interface__["strides"] == (24,)
    kc.array(column).assign([1.0, 2.0])
    np.testing.assert_array_equal(theirs.numpy(), [[0, 1, 0], [0, 2, 0]])
    out = kc.zeros(2, real=kc.float64, device="cuda")
    kc.launch(double, 2, [column], [out])
    np.testing.assert_array_equal(out.numpy(), [2, 4])


def test_memory_of_others_may_be_read_only(driver):
    theirs = kc.zeros(3, device="cuda")
    address = theirs.__cuda_array_interface__["data"][0]
    with pytest.raises(kc.ReadOnly, match="'y'"):
        kc.launch(double, 3, [theirs], [Other(kc.zeros(3, device="cuda"), data=(address, True))])


def test_memory_of_another_gpu_is_refused(driver):
    """A kernel on this one would die of it, and take the process along."""
    if driver is None:
        pytest.skip("gives the stand-in a second GPU")
    theirs = kc.zeros(3, device="cuda")
    driver.elsewhere(theirs._address)
    try:
        with pytest.raises(kc.WrongDevice, match="the memory is on GPU 1, and kernels run on GPU 0") as caught:
            kc.array(Other(theirs))
        assert "CUDA_VISIBLE_DEVICES" in caught.value.advice
    finally:
        driver.elsewhere(0)
    assert kc.array(Other(theirs))._address == theirs._address


def test_memory_that_the_driver_does_not_know_is_refused(driver):
    theirs, here = kc.zeros(3, device="cuda"), np.zeros(3, np.float32)
    with pytest.raises(kc.CudaError, match="cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE: invalid argument"):
        kc.array(Other(theirs, data=(here.ctypes.data, False)))
    empty = kc.array(Other(theirs, shape=(0,), data=(0, False)))  # nobody asks where nothing is
    assert empty.shape == (0,)


def test_memory_of_others_may_run_backwards(driver):
    """As CuPy says it of a[::-1]: the address of the first element, and negative strides."""
    theirs = kc.array(np.arange(12.0).reshape(4, 3), device="cuda")
    address = theirs.__cuda_array_interface__["data"][0]
    for shape, strides, first, want in (
        ((4, 3), (-24, 8), 72, np.arange(12.0).reshape(4, 3)[::-1]),
        ((4, 3), (-24, -8), 88, np.arange(12.0).reshape(4, 3)[::-1, ::-1]),
        ((3,), (-8,), 16, np.arange(3.0)[::-1]),
    ):  # fmt: skip
        mine = kc.array(Other(theirs, shape=shape, strides=strides, data=(address + first, False)))
        np.testing.assert_array_equal(mine.numpy(), want)
    out = kc.array(np.zeros(3), device="cuda")
    kc.launch(double, 3, [mine], [out])
    np.testing.assert_array_equal(out.numpy(), [4, 2, 0])


def test_the_work_of_another_stream_is_waited_for(driver):
    if driver is None:
        pytest.skip("looks at the calls of the stand-in")
    theirs = kc.zeros(3, device="cuda")
    assert theirs.__cuda_array_interface__["stream"] == 1
    for stream, waits in ((driver.stream(), ["cuStreamSynchronize(other)"]), (1, []), (None, [])):
        driver.calls()
        kc.array(Other(theirs, stream=stream))
        assert [call for call in driver.calls() if "Synchronize" in call] == waits
    with kc.cuda.stream(driver.stream()):
        driver.calls()
        kc.array(Other(theirs, stream=1))
        assert "cuStreamSynchronize(default)" in driver.calls()
        assert theirs.__cuda_array_interface__["stream"] == driver.stream()


def test_tensors_on_a_gpu_are_shared(driver):
    torch = pytest.importorskip("torch")
    if driver is None and not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    if driver is None:
        tensor = torch.arange(4.0, device="cuda")
    else:
        mine = kc.array(np.arange(4, dtype=np.float32), device="cuda")

        class OnGpu(torch.Tensor):
            is_cuda = is_cpu = property(lambda self: True)
            device = "cuda:0"
            __cuda_array_interface__ = mine.__cuda_array_interface__
            detach = lambda self: self  # noqa: E731

        tensor = torch.Tensor._make_subclass(OnGpu, torch.zeros(4))
    x, y = kc.from_torch(tensor), kc.zeros(4, device="cuda")
    assert x.device == "cuda"
    assert x._address == tensor.__cuda_array_interface__["data"][0]
    kc.launch(double, 4, [tensor], [y])
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])


def test_arrays_on_a_gpu_are_tensors_there(driver, monkeypatch):
    torch = pytest.importorskip("torch")
    x = kc.zeros(4, device="cuda")
    if driver is None and torch.cuda.is_available():
        assert x.torch().data_ptr() == x._address
        return
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(kc.NoCuda, match="this torch was built without CUDA"):
        x.torch()
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "as_tensor", lambda source, device: (source, device))
    assert x.torch() == (x, "cuda:0")


def test_operations_take_tensors_on_a_real_gpu(driver):
    torch = pytest.importorskip("torch")
    if driver is not None or not torch.cuda.is_available():
        pytest.skip("test_torch.py lets tensors pass for those of the stand-in")

    def doubled(x):
        y = kc.zeros_like(x)
        kc.launch(double, len(x), [x], [y])
        return y

    x = torch.arange(4.0, device="cuda", dtype=torch.float64, requires_grad=True)
    for f in (kc.torch.function(doubled), kc.torch.op(double, 4, outputs=[4])):
        assert f(x).device == x.device
        assert torch.autograd.gradcheck(f, (x,))


class Offered:
    """Memory on the GPU that speaks DLPack only, as a producer makes it: a capsule around a DLManagedTensor."""

    def __init__(self, array, gpu=0, strides=None, code=2, bits=64):
        self.array, self.gpu, self.asked = array, gpu, []
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = (ctypes.c_int64 * array.ndim)(*strides) if strides else None
        self.tensor = dlpack.Tensor(array._address - 8, 2, gpu, array.ndim, code, bits, 1, shape, steps, 8)

    def __dlpack_device__(self):
        return (2, self.gpu)

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes, new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_memory_that_speaks_dlpack_is_shared(driver):
    theirs = kc.array(np.arange(6.0).reshape(2, 3), device="cuda")
    offered = Offered(theirs)
    mine = kc.from_dlpack(offered)
    assert offered.asked == [1]
    assert mine.device == "cuda" and mine._address == theirs._address and mine.shape == (2, 3)
    mine.zero_()
    assert theirs.numpy().sum() == 0
    turned = kc.from_dlpack(Offered(theirs, strides=(1, 2)))
    assert turned.shape == (2, 3)
    assert kc.array(Offered(kc.zeros(3, dtype=int, device="cuda"), code=0, bits=32)).dtype is kc.array([1]).dtype


def test_dlpack_of_another_gpu_or_of_other_numbers(driver):
    theirs = kc.zeros(3, device="cuda")
    with pytest.raises(kc.WrongDevice, match="on GPU 1, and kernels run on GPU 0") as caught:
        kc.from_dlpack(Offered(theirs, gpu=1))
    assert "CUDA_VISIBLE_DEVICES" in caught.value.advice
    for code, bits in ((4, 16), (2, 16), (5, 64)):  # bfloat16, half, complex
        with pytest.raises(kc.WrongDtype, match=f"of kind {code} with {bits} bits"):
            kc.array(Offered(theirs, code=code, bits=bits))


def test_host_arrays_are_not_on_a_gpu(driver):
    assert not hasattr(kc.zeros(3), "__cuda_array_interface__")
    there = kc.zeros(3, device="cuda")
    assert there.__dlpack_device__() == (2, 0)
    with pytest.raises(kc.WrongDevice, match="__cuda_array_interface__"):
        there.__dlpack__()


# -- the pool
def test_memory_goes_back_to_the_pool(driver):
    gpu = devices.device()
    a = kc.zeros(1000, device="cuda")
    address = a._address
    del a
    gc.collect()
    again = kc.zeros(1000, device="cuda")
    assert again._address == address
    assert gpu.free_bytes() > 0


@pytest.mark.parametrize("freed_inside", [True, False])
def test_memory_that_another_stream_still_uses_is_waited_for(driver, freed_inside):
    """Wherever it was freed: what is queued for it on the other stream comes first."""
    if driver is None:
        pytest.skip("a real stream does its work without being asked")
    x, other = kc.ones(54_321, device="cuda"), driver.stream()
    with kc.cuda.stream(other):
        y = kc.empty(54_321, device="cuda")
        address = y._address
        kc.launch(double, 54_321, [x], [y])
        if freed_inside:
            del y
    if not freed_inside:
        del y
    z = kc.zeros(54_321, device="cuda")
    assert z._address == address
    kc.cuda.synchronize()
    with kc.cuda.stream(other):
        kc.cuda.synchronize()
    assert z.numpy().sum() == 0


def test_on_one_stream_the_pool_waits_for_nothing(driver):
    if driver is None:
        pytest.skip("looks at the calls of the stand-in")
    x = kc.ones(1000, device="cuda")
    for use in (contextlib.nullcontext(), kc.cuda.stream(driver.stream())):
        with use:
            kc.cuda.synchronize()
            driver.calls()
            for _ in range(3):
                y = kc.zeros(1000, device="cuda")
                kc.launch(double, 1000, [x], [y])
                del y
            assert not [call for call in driver.calls() if "Synchronize" in call]
            kc.cuda.synchronize()


def test_a_full_gpu_gives_the_pool_back_first(driver):
    if driver is None:
        pytest.skip("sets the size of the stand-in")
    gpu = devices.device()
    pieces = [kc.zeros(1 << 18, device="cuda") for _ in range(4)]
    free = gpu.free_bytes()
    del pieces
    gc.collect()
    driver.limit((1 << 32) - free)
    try:
        driver.calls()
        with pytest.raises(kc.CudaError, match="CUDA_ERROR_OUT_OF_MEMORY: out of memory") as caught:
            kc.zeros(1 << 22, device="cuda")
        assert "smaller" in caught.value.advice
        assert any(call.startswith("cuMemFree") for call in driver.calls())
    finally:
        driver.limit(0)
    assert kc.zeros(1 << 22, device="cuda").numpy().sum() == 0


def test_a_stream_is_busy_until_it_was_waited_for(driver, monkeypatch):
    """Another thread may ask for memory meanwhile. What a third one adds meanwhile counts, too."""
    gpu, seen = devices.device(), []
    wait = gpu.driver.cuStreamSynchronize

    def meanwhile(stream):
        seen.append(stream in gpu._busy)
        wait(stream)
        if len(seen) == 2:
            gpu.queue()

    kc.zeros(3, device="cuda")
    monkeypatch.setattr(gpu.driver, "cuStreamSynchronize", meanwhile)
    gpu.synchronize()
    assert seen == [True] and 0 not in gpu._busy
    kc.zeros(3, device="cuda")
    gpu.synchronize()
    assert seen == [True, True] and 0 in gpu._busy
