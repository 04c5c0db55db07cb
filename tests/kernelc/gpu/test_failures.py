"""What goes wrong with drivers and GPUs: each call refused in turn, drivers that are old, damaged, or not there.

Every failure is an exception with the driver's own words, and leaves the rest of the process usable.
"""

import ctypes
import functools
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from gpu import standin
from gpu.conftest import REAL
from gpu.test_memory import Other

import kernelc as kc
from kernelc.runtime.cuda import device as devices
from kernelc.runtime.cuda import driver as drivers
from kernelc.runtime.cuda import launching
from kernelc.toolchain import compiler

pytestmark = pytest.mark.skipif(REAL, reason="lets the stand-in fail")


@kc.kernel
def moved(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] + 1.0


@kc.kernel
def stored(at: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[at[i]] = 1.0


@kc.kernel
def drawn(counts: kc.Array[int], n: kc.Array[int], x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    for _ in range(n[i]):
        slot = kc.atomic_add(counts, 0, 1)
        y[slot] = 2.0 * x[i]


def launched():
    x, y = kc.ones(3, device="cuda"), kc.zeros(3, device="cuda")
    kc.launch(moved, 3, [x], [y])
    return y.numpy()


@functools.cache
def image():
    """The fat binary of an earlier launch."""
    return Path(next(iter(devices.device()._modules)))


def anew():
    """Load it once more."""
    devices.device()._modules.pop(str(image()), None)
    devices.device().function(image(), "kc_moved")


def in_a_new_thread(action):
    """The exception of an action in a thread that has not used the GPU yet."""
    raised = []

    def run():
        try:
            action()
        except kc.KernelError as error:
            raised.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def opened():
    return devices.Device(drivers.load())


def copied():
    a = kc.ones(1000, device="cuda")
    kc.zeros(1000, device="cuda").assign(a)


def released():
    """What the pool holds goes back to the driver."""
    gpu = devices.device()
    a = kc.zeros(12_345, device="cuda")
    del a
    gpu._collect()
    gpu._release()


def of_another_stream(driver):
    with kc.cuda.stream(driver.stream()):
        a = kc.zeros(777_000, device="cuda")
        del a
    kc.zeros(777_000, device="cuda")


def a_new_stream():
    devices.device()._idle_streams.clear()
    kc.cuda.Stream()


def of_another_gpu(driver):
    with driver.context_of_another():
        kc.zeros(3, device="cuda")


ACTIONS = {
    "cuInit": lambda d: opened(),
    "cuDeviceGetCount": lambda d: opened(),
    "cuDeviceGet": lambda d: opened(),
    "cuDeviceGetName": lambda d: opened(),
    "cuDeviceGetAttribute": lambda d: opened(),
    "cuDevicePrimaryCtxRetain": lambda d: opened(),
    "cuDriverGetVersion": lambda d: kc.cuda.describe(),
    "cuCtxGetCurrent": lambda d: kc.zeros(3, device="cuda"),
    "cuCtxSetCurrent": lambda d: in_a_new_thread(lambda: kc.zeros(3, device="cuda")),
    "cuCtxPushCurrent_v2": lambda d: of_another_gpu(d),
    "cuCtxPopCurrent_v2": lambda d: of_another_gpu(d),
    "cuCtxSynchronize": of_another_stream,
    "cuModuleLoadData": lambda d: anew(),
    "cuModuleGetFunction": lambda d: devices.device().function(image(), "kc_moved"),
    "cuMemAlloc_v2": lambda d: devices.device()._new(1 << 20),
    "cuMemFree_v2": lambda d: released(),
    "cuPointerGetAttribute": lambda d: kc.array(Other(kc.zeros(3, device="cuda"))),
    "cuMemGetInfo_v2": lambda d: devices.device().free_bytes(),
    "cuMemcpyHtoDAsync_v2": lambda d: kc.array(np.ones(3), device="cuda"),
    "cuMemcpyDtoHAsync_v2": lambda d: kc.zeros(3, device="cuda").numpy(),
    "cuMemcpyDtoDAsync_v2": lambda d: copied(),
    "cuMemsetD8Async": lambda d: kc.zeros(3, device="cuda"),
    "cuStreamCreate": lambda d: a_new_stream(),
    "cuStreamSynchronize": lambda d: kc.cuda.synchronize(),
    "cuLaunchKernel": lambda d: launched(),
}
WITHOUT_A_GPU = ("cuInit", "cuDeviceGetCount")
"""Where a failure means that there is no GPU to use."""


def test_every_call_is_tried():
    assert ACTIONS.keys() == drivers._FUNCTIONS.keys()


@pytest.mark.parametrize("name", ACTIONS)
def test_a_call_that_is_refused(driver, name):
    launched()
    driver.fail(name, 999)
    with pytest.raises(kc.NoCuda if name in WITHOUT_A_GPU else kc.CudaError) as caught:
        ACTIONS[name](driver)
    assert f"{name.removesuffix('_v2')}: CUDA_ERROR_UNKNOWN: unknown error" in str(caught.value)
    assert any(call.startswith(f"{name}(") for call in driver.calls())
    np.testing.assert_array_equal(launched(), [2, 2, 2])  # and it goes on


def test_a_status_that_the_driver_does_not_know(driver):
    driver.fail("cuMemsetD8Async", 31415)
    with pytest.raises(kc.CudaError, match="cuMemsetD8Async: error 31415: error 31415") as caught:
        kc.zeros(3, device="cuda")
    assert caught.value.status == 31415


# -- drivers that are no use
@pytest.fixture
def no_gpu(monkeypatch, tmp_path):
    """A machine without a driver."""
    monkeypatch.setattr(devices, "_device", None)
    monkeypatch.setenv("KERNELC_CUDA_DRIVER", str(tmp_path / "libcuda.so"))
    return tmp_path


def library_of(folder, text):
    source, made = folder / "driver.c", folder / "libcuda.so"
    source.write_text(text)
    subprocess.run([*compiler().command, "-x", "c", "-shared", "-fPIC", source, "-o", made], check=True)
    return made


@pytest.mark.parametrize("ask", [
    lambda: kc.array([1.0], device="cuda"), lambda: kc.zeros(3, device="cuda"), lambda: kc.zeros(3).to("cuda"),
    lambda: kc.launch(moved, 3, [kc.ones(3)], [kc.zeros(3)], device="cuda"), lambda: kc.cuda.synchronize(),
    lambda: kc.jvp(moved, 3, [x := kc.ones(3)], [kc.zeros(3)], tangents={x: np.ones(3)}, device="cuda"),
])  # fmt: skip
def test_no_driver(no_gpu, ask):
    with pytest.raises(kc.NoCuda, match="no CUDA device is available: the driver cannot be loaded") as caught:
        ask()
    assert 'device="cpu"' in caught.value.advice


def test_without_a_driver_everything_else_works(no_gpu):
    assert not kc.cuda.is_available()
    assert "GPU: none" in kc.cuda.describe()
    assert "__global__" in kc.inspect(moved, "cuda")
    y = kc.zeros(3)
    kc.launch(moved, 3, [kc.ones(3)], [y])
    assert y.numpy().sum() == 6


def test_a_driver_that_is_no_library(no_gpu):
    (no_gpu / "libcuda.so").write_text("not a library")
    with pytest.raises(kc.NoCuda, match=r"the driver cannot be loaded \(.*libcuda.so"):
        kc.zeros(3, device="cuda")


def test_a_driver_that_is_too_old(no_gpu):
    library_of(no_gpu, "int cuInit(unsigned flags) { return (int)flags; }")
    with pytest.raises(kc.NoCuda, match="has no function cuDriverGetVersion: it is too old") as caught:
        kc.zeros(3, device="cuda")
    assert "newer driver" in caught.value.advice


def test_a_driver_that_knows_no_gpu(driver):
    driver.devices(0)
    try:
        with pytest.raises(kc.NoCuda, match="no CUDA device is available: the driver knows none"):
            opened()
    finally:
        driver.devices(1)


# -- images and kernels
def test_an_image_that_the_driver_does_not_take(driver, tmp_path):
    (tmp_path / "kernel.fatbin").write_bytes(b"nothing that a driver knows, and long enough")
    with pytest.raises(kc.CudaError, match="cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE: device kernel image"):
        devices.device().function(tmp_path / "kernel.fatbin", "kc_moved")


def test_a_kernel_that_is_not_in_its_image(driver):
    launched()
    with pytest.raises(kc.CudaError, match="cuModuleGetFunction: CUDA_ERROR_NOT_FOUND: named symbol not found"):
        devices.device().function(image(), "kc_nobody")


def test_a_launch_that_the_driver_refuses_leaves_the_arrays_alone(driver):
    x, y = kc.ones(3, device="cuda"), kc.zeros(3, device="cuda")
    kc.launch(moved, 3, [x], [y])
    version = y.version
    driver.fail("cuLaunchKernel", 1)
    with pytest.raises(kc.CudaError, match="cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: invalid argument"):
        kc.launch(moved, 3, [x], [y])
    assert y.version == version


def test_a_refused_launch_is_not_recorded(driver):
    x, y = kc.array(np.ones(3), requires_grad=True, device="cuda"), kc.array(np.zeros(3), device="cuda")
    with kc.Tape() as tape:
        driver.fail("cuLaunchKernel", 2)
        with pytest.raises(kc.CudaError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            kc.launch(moved, 3, [x], [y])
        kc.launch(moved, 3, [x], [y])
    assert len(tape.entries) == 1
    tape.backward(grads={y: np.ones(3)})
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 1])


def test_a_refused_reverse_sweep_can_be_tried_again(driver):
    x, y = kc.array(np.ones(3), requires_grad=True, device="cuda"), kc.array(np.zeros(3), device="cuda")
    with kc.Tape() as tape:
        kc.launch(moved, 3, [x], [y])
    driver.fail("cuLaunchKernel", 719)
    with pytest.raises(kc.CudaError, match="cuLaunchKernel: error 719"):
        tape.backward(grads={y: np.ones(3)}, add=False)
    tape.backward(grads={y: np.ones(3)}, add=False)
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 1])


# -- memory
def test_no_memory_for_a_loop_tape(driver, monkeypatch):
    @kc.kernel
    def powers(x: kc.Array[float], n: int, y: kc.Array[float]):
        i = kc.tid()
        p = 1.0
        for _ in range(n):
            p *= x[i]
        y[i] = p

    monkeypatch.setattr(kc.config, "tape_limit", 1 << 40)
    x, y = kc.array(np.ones(4), requires_grad=True, device="cuda"), kc.array(np.zeros(4), device="cuda")
    with kc.Tape() as tape:
        kc.launch(powers, 4, [x, 3], [y])
    gpu = devices.device()
    gpu._scratch.clear()
    driver.fail("cuMemAlloc_v2", 2)
    gpu._collect()
    gpu._release()
    with pytest.raises(kc.CudaError, match="cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"):
        tape.backward(grads={y: np.ones(4)})


def test_more_atomic_results_than_the_limit_allows(driver, monkeypatch):
    monkeypatch.setattr(kc.config, "tape_limit", 8 * 2 * 4)
    for draws, fits in ((3, True), (9, False)):
        x = kc.array(np.ones(2), requires_grad=True, device="cuda")
        counts, n = kc.zeros(1, dtype=int, device="cuda"), kc.full(2, draws, dtype=int, device="cuda")
        y = kc.array(np.zeros(20), device="cuda")
        with kc.Tape() as tape:
            if not fits:
                with pytest.raises(kc.TapeFull, match=r"drawn, thread [01]: "):
                    kc.launch(drawn, 2, [counts, n, x], [y])
                continue
            kc.launch(drawn, 2, [counts, n, x], [y])
        tape.backward(grads={y: np.ones(20)})
        np.testing.assert_array_equal(x.grad.numpy(), [2 * draws, 2 * draws])


# -- a kernel that writes where it must not: last, because the GPU is lost after that
def test_an_illegal_address_is_said_with_advice():
    """In a process of its own."""
    program = """
import numpy as np
import kernelc as kc
from gpu import standin
from gpu.test_failures import stored

with standin.installed():
    at, y = kc.array(np.array([128], np.int32), device="cuda"), kc.zeros(128, device="cuda")
    kc.launch(stored, 1, [at], [y])
    for ask in (y.numpy, lambda: kc.zeros(3, device="cuda")):
        try:
            ask()
        except kc.CudaError as error:
            assert error.status == 700 and "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
            assert "kc.config.debug" in error.advice
        else:
            raise SystemExit("nothing was said")
    here = kc.zeros(128)
    kc.launch(stored, 1, [np.array([5], np.int32)], [here])  # the CPU is well
    assert here.numpy().sum() == 1
    print("well")
"""
    path = os.pathsep.join([str(standin.HERE.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout == "well\n", done.stderr


def test_the_report_of_a_launch_is_as_the_header_says():
    """Python unpacks what kernels write: the sizes of both sides are the same."""
    assert launching._REPORT.size == 4 * 4 + 3 * 8 + 2 * 8
    assert launching._LAUNCH.size == 12 * ctypes.sizeof(ctypes.c_int64)
