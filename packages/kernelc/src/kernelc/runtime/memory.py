"""Memory, seen from below: where it lies, how it is packed into an argument block, how a tensor's is reached.

It is a NumPy array, or memory of a GPU that has the same shapes and views (cuda/data.py).
"""

from __future__ import annotations

import struct
import sys
from ctypes import addressof, c_char
from typing import Any, TypeGuard

import numpy as np

from ..errors import CutGradient, WrongDevice, WrongDtype
from .cuda.data import DeviceData
from .cuda.data import zeros as device_zeros

Data = np.ndarray[Any, Any]
_MOST_WORK = 100_000
"""Questions about strides can be as hard as one likes; this takes about a millisecond."""
_ZEROS = [(0,) * ndim for ndim in range(7)]
PACKERS = [struct.Struct(f"<{5 + 3 * ndim}q").pack for ndim in range(7)]
"""By the number of dimensions: what makes the words of an array in an argument block (codegen/layout.py)."""


def address_of(data: Data) -> int:
    """Where an array begins. NumPy's own `ctypes.data` takes four times as long."""
    if data.flags.writeable:
        try:
            buffer: Any = data  # NumPy's arrays are buffers, which its annotations do not say
            return addressof(c_char.from_buffer(buffer))
        except (BufferError, TypeError, ValueError):  # not contiguous, or empty
            pass
    return int(data.ctypes.data)


def array_words(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], grad: Data | None = None, final: int = 0,
    *, special: int = 0, grad_at: int = 0,
) -> bytes:  # fmt: skip
    """The words of an array in an argument block (codegen/layout.py). grad_at: the address of `grad`, if known."""
    n = len(shape)
    if grad is None:
        return PACKERS[n](address, 0, final, 0, 0, *shape, *strides[:n], *_ZEROS[n])
    return PACKERS[n](address, grad_at or address_of(grad), final, special, 0, *shape, *strides[:n], *grad.strides[:n])


def base_of(data: Data) -> int:
    """Where the memory begins that a view is part of; 0: somebody else's, of which nothing is known."""
    root: Any = data
    if is_on_gpu(data):
        return int(getattr(root.owner, "address", 0))
    while isinstance(root, np.ndarray):
        if root.base is None:
            return address_of(root)
        root = root.base
    return 0


def is_dense(data: Data, trailing: int) -> bool:
    """Whether the components of one element lie side by side."""
    if not data.size:
        return True
    step = data.itemsize
    for axis in range(data.ndim - 1, data.ndim - 1 - trailing, -1):
        if data.shape[axis] != 1 and data.strides[axis] != step:
            return False
        step *= data.shape[axis]
    return True


def is_on_gpu(data: Any) -> TypeGuard[DeviceData]:
    return data.__class__ is DeviceData


def may_share(a: Any, b: Any) -> bool:
    """Whether two pieces of memory might overlap, by their bounds."""
    if is_on_gpu(a) or is_on_gpu(b):
        return is_on_gpu(a) and is_on_gpu(b) and bool(a.may_share(b))
    return bool(np.may_share_memory(a, b))


def shares(a: Any, b: Any) -> bool:
    """Whether two pieces of memory have a byte in common; also where that is too hard to tell."""
    if is_on_gpu(a) or is_on_gpu(b):
        return is_on_gpu(a) and is_on_gpu(b) and bool(shares(a.ghost, b.ghost))
    most: Any = _MOST_WORK  # NumPy's annotations know two of its meanings only
    try:
        return bool(np.shares_memory(a, b, max_work=most))
    except np.exceptions.TooHardError:
        return True


def span(data: Data, address: int) -> tuple[int, int]:
    """The lowest address of memory that begins at one, and how many bytes lie between it and the end."""
    if data.flags.c_contiguous:
        return address, data.nbytes
    steps = [(n - 1) * s for n, s in zip(data.shape, data.strides, strict=True)]
    return address + sum(s for s in steps if s < 0), sum(map(abs, steps)) + data.itemsize


def overlaps_itself(data: Data) -> bool:
    """Whether two elements have a byte in common: stride 0, windows; also where that is too hard to tell."""
    if data.flags.c_contiguous or not data.size:
        return False
    axes = sorted((abs(s), n) for n, s in zip(data.shape, data.strides, strict=True) if n > 1)
    reach = data.itemsize
    for step, n in axes:
        if step < reach:
            break
        reach += (n - 1) * step
    else:
        return False  # each axis steps over all that the shorter ones reach
    if data.size > _MOST_WORK or any(step == 0 for step, _ in axes):
        return True
    begins = np.zeros(1, np.int64)
    for step, n in axes:
        begins = np.add.outer(begins, step * np.arange(n)).reshape(-1)
    return bool(np.diff(np.sort(begins)).min() < data.itemsize)


def dense_copy(data: Any) -> Any:
    """The content in memory of its own, without gaps, on the same device."""
    return data.copy() if is_on_gpu(data) else np.ascontiguousarray(data).copy()


def add_copy(program: Any, into: Any, source: Any) -> None:
    """Add the step `into[...] = source` to a program."""
    program.keep((into, source))
    if not is_on_gpu(into) and into.flags.c_contiguous and source.flags.c_contiguous and into.dtype == source.dtype:
        program.add_copy(into.ctypes.data, source.ctypes.data, into.nbytes)
    else:
        program.add_call(lambda: into.__setitem__(..., source))


def add_zero(program: Any, data: Any) -> None:
    """Add the step `data[...] = 0` to a program."""
    program.keep(data)
    if is_on_gpu(data):
        program.add_call(data.zero)
    elif data.flags.c_contiguous:
        program.add_zero(data.ctypes.data, data.nbytes)
    else:
        program.add_call(lambda: np.copyto(data, np.zeros((), data.dtype)))


def zeros_for(data: Data, dtype: np.dtype[Any] | None = None) -> Data:
    """Zeros in the shape and the order of the data: what is a view there is a view here."""
    kind = data.dtype if dtype is None else dtype
    if is_on_gpu(data):
        return device_zeros(data.shape, kind, data.device).as_array()
    return np.zeros(data.shape, kind) if data.flags.c_contiguous else np.zeros_like(data, kind)


def check_fits(data: Data, dtype: np.dtype[Any]) -> None:
    """Numbers that become integers must fit them: NumPy would wrap around, and make anything of NaN."""
    if dtype.kind not in "iu" or data.dtype == dtype or data.dtype.kind not in "iuf" or not data.size:
        return
    limits, low, high = np.iinfo(dtype), data.min().item(), data.max().item()
    if not (limits.min - 1 < low and high < limits.max + 1):  # nor do they where one is NaN
        wider = "kc.int64" if dtype.itemsize < 8 else "kc.uint64" if low >= 0 else "float"
        raise WrongDtype(f"the data holds numbers that do not fit {dtype}", advice=f"use dtype={wider}")


def is_tensor(data: Any) -> bool:
    """Whether it is a tensor of torch, without importing torch."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(data, kind)


def shown(value: Any) -> str:
    """A value in a message. Not the numbers of a tensor: torch ends the process where the memory of one is gone."""
    return f"a tensor of {value.dtype} in shape {tuple(value.shape)}" if is_tensor(value) else repr(value)[:60]


def check_no_gradient(data: Any) -> None:
    """A tensor whose gradient torch will ask for is no plain memory: what is computed from it would be a constant."""
    if isinstance(data, (list, tuple)):
        for item in data:
            if item.__class__ is not float and item.__class__ is not int:  # lists of numbers are long
                check_no_gradient(item)
    elif is_tensor(data) and _has_tangent(data):
        raise CutGradient(
            f"a tensor of shape {tuple(data.shape)} that has a tangent of forward mode would be a constant here",
            advice="t.detach() says that it is a constant; kc.jvp pushes tangents through a kernel",
        )
    elif is_tensor(data) and data.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise CutGradient(
            f"a tensor of shape {tuple(data.shape)} that requires a gradient would be a constant here",
            advice="kc.torch.op(kernel, …)(t) and kc.torch.function(fn)(t) carry its gradient where t is an argument "
            "of theirs; t.detach(), or torch.no_grad(), says that it is a constant",
        )


def _has_tangent(tensor: Any) -> bool:
    """Whether torch pushes a tangent through it (forward mode)."""
    mode = sys.modules["torch"].autograd.forward_ad
    return mode._current_level >= 0 and mode.unpack_dual(tensor).tangent is not None


def numpy_of(tensor: Any) -> Data:
    """The memory of a torch tensor on the CPU."""
    if not tensor.is_cpu:
        raise WrongDevice(f"a tensor on {tensor.device} cannot be used on the CPU", advice="move it with .cpu()")
    check_no_gradient(tensor)
    if tensor.requires_grad:
        tensor = tensor.detach()
    try:
        whole = tensor.is_nested or not tensor.numel() or _is_backed(tensor)
        data: Data = tensor.numpy()
    except (TypeError, RuntimeError) as error:
        advice = "convert it: .float(), .double(), .to_dense(), .resolve_neg()"
        raise WrongDtype(f"a tensor of {tensor.dtype} cannot be used: {error}", advice=advice) from None
    if not whole:
        # NumPy would show whatever lies there.
        raise WrongDtype(f"a tensor of shape {tuple(tensor.shape)} has no memory for all of its elements",
                         advice="its storage was freed or shrunk, or it stands for another tensor: "
                         "use one with memory of its own")  # fmt: skip
    return data


def _is_backed(tensor: Any) -> bool:
    """Whether all elements lie within the storage. That may be resized to nothing while the tensor lives."""
    if tensor.layout is not sys.modules["torch"].strided:
        return True  # `numpy` refuses it
    last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return bool(tensor.data_ptr() != 0 and (last + 1) * tensor.itemsize <= tensor.untyped_storage().nbytes())


def same_bits(a: Data, b: Data) -> bool:
    """Whether two pieces of memory hold the same, bit by bit. What lies between fields of structs does not count."""
    if a.dtype.names is None:
        return a.tobytes() == b.tobytes()
    left, right = (x.host() if is_on_gpu(x) else x for x in (a, b))
    return all(same_bits(left[name], right[name]) for name in a.dtype.names)
