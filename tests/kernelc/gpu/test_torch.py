"""kc.torch with tensors on a GPU: what holds of tensors on the CPU (interop/test_torch.py) holds there.

The torch of these tests may know no CUDA: its tensors of the CPU pass for tensors of the stand-in, which shares all
memory with the host.
"""

import numpy as np
import pytest
from gpu import standin
from gpu.conftest import REAL

import kernelc as kc
from kernelc.runtime.cuda import data
from kernelc.runtime.cuda import device as devices

torch = pytest.importorskip("torch")
from interop import test_torch as on_cpu  # noqa: E402
from interop.test_torch import *  # noqa: E402
from interop.test_torch_state import *  # noqa: E402

from kernelc.torch import calls, kept, ops, sharing  # noqa: E402

pytestmark = pytest.mark.skipif(REAL, reason="makes tensors pass for those of the stand-in")
here = set()
"""Where the tensors begin that are on the CPU."""


class Held(np.ndarray):
    """Memory of the stand-in as torch gets it."""


def is_there(tensor):
    return tensor.untyped_storage().data_ptr() not in here


def shared(tensor):
    kind = tensor.detach().numpy().dtype
    strides = tuple(s * kind.itemsize for s in tensor.stride())
    return data.at(tensor.data_ptr() or 1, tuple(tensor.shape), kind, strides, tensor, devices.device())


def tensor_of(a):
    if a.device == "cpu":
        return torch.from_numpy(a._data)
    held = a._data._ghost.view(Held)
    held.owner = a._data.owner
    return torch.from_numpy(held)


@pytest.fixture(autouse=True)
def as_on_a_gpu(driver, monkeypatch):
    driver.unify(True, opened=True)
    for module in (sharing, calls, kept):
        monkeypatch.setattr(module, "is_there", is_there)
    for module in (calls, kept):
        monkeypatch.setattr(module, "tensor_of", tensor_of)
    monkeypatch.setattr(sharing, "device_memory", shared)
    # A way to the CPU only.
    monkeypatch.setattr(ops, "launch_direct", lambda *args: None)
    with standin.default_device():
        yield
    here.clear()
    driver.unify(False)


# They look at memory of the host, or pass some to launches; what they say is said below.
for name in (
    "test_inputs_share_their_memory", "test_numpy_views_of_inputs_cannot_be_written",
    "test_large_operations_give_the_bits_of_launches", "test_tensors_on_other_devices_are_refused",
    "test_what_a_call_keeps_is_freed_after_backward", "test_what_a_call_keeps_is_freed_with_its_graph",
    "test_what_a_call_keeps_stays_as_long_as_the_graph_is_retained",
    "test_graphs_that_refer_to_a_changed_input_are_freed",
    "test_gradcheck_of_a_function_that_makes_its_buffers_in_its_first_call",
    # Here torch itself would have to know CUDA, or nobody copies to the CPU.
    "test_a_torch_module_on_a_tape", "test_hooks_that_copy_saved_tensors_work_or_say_why_not",
):  # fmt: skip
    del globals()[name]


def test_nothing_goes_over_the_host(driver):
    """Inputs, results, weights and gradients stay where they are; what is read are reports of launches."""
    seen = []

    def look(x):
        seen.append((x.device, x._address))
        return on_cpu.squared(x)

    x = on_cpu.leaf(5)
    calls = []
    for f in (kc.torch.function(look), on_cpu.square_op):
        f(x).sum().backward()
        driver.calls()
        y = f(x)
        calls += driver.calls()
        (x.grad,) = torch.autograd.grad(y, x, torch.linspace(1.0, 2.0, 5, dtype=torch.float64))
        calls += driver.calls()
        torch.testing.assert_close(x.grad, 2 * x.detach() * torch.linspace(1.0, 2.0, 5, dtype=torch.float64))
    assert set(seen) == {("cuda", x.data_ptr())}
    assert sum(call.startswith("cuLaunchKernel(kc_square,") for call in calls) == 2
    assert sum(call.startswith("cuLaunchKernel(kc_square_adjoint,") for call in calls) == 2
    copies = [call for call in calls if "HtoD" in call or "DtoH" in call]
    assert set(copies) <= {"cuMemcpyDtoHAsync_v2(56)"}


@pytest.mark.parametrize("retained", [False, True])
def test_what_a_call_keeps_is_freed_after_its_reverse_sweep(retained):
    """Without Python's collector of cycles: it does not know how much memory waits for it."""
    gpu, used = devices.device(), []

    def fourth_powers(x):
        y = on_cpu.squared(x)
        used.append(y._address)
        return on_cpu.squared(y)

    def free():
        gpu._collect()
        return {address for pieces in gpu._pool.values() for address in pieces}

    y = kc.torch.function(fourth_powers)(on_cpu.leaf(4096))
    assert not free() & set(used)
    y.sum().backward(retain_graph=retained)
    assert (set(used) <= free()) == (not retained)
    del y
    assert set(used) <= free()


def test_tensors_of_two_devices_do_not_meet():
    x, w = on_cpu.leaf(4), on_cpu.leaf(4, seed=1)
    here.add(w.data_ptr())
    for f in (kc.torch.op(on_cpu.combine, 4, outputs=[4]), kc.torch.function(on_cpu.rollout)):
        with pytest.raises(kc.WrongDevice, match="'w' is on 'cpu'"):
            f(x, w, 1)


def test_work_goes_to_the_stream_that_torch_works_on(driver, monkeypatch):
    class Stream:
        cuda_stream = driver.stream()

    gpu, seen = devices.device(), []

    def look(x):
        seen.append(gpu.stream)
        return on_cpu.squared(x)

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    x = on_cpu.leaf(5)
    y = kc.torch.function(look)(x)
    with torch.no_grad():
        kc.torch.function(look)(x)
    assert seen == [driver.stream()] * 2 and gpu.stream == 0
    driver.calls()
    y.sum().backward()
    assert "cuStreamSynchronize(other)" in driver.calls() and gpu.stream == 0
    torch.testing.assert_close(x.grad, 2 * x.detach())
