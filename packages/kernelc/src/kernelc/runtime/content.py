"""What arrays are made from and filled with: data of any kind as NumPy numbers, or as memory of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from ..errors import CutGradient, WrongDtype, WrongShape
from ..structs import StructValue
from .cuda import dlpack
from .cuda.data import foreign
from .exports import Readable
from .halves import bits_of, from_bfloat16
from .memory import Data, address_of, check_fits, check_no_gradient, is_tensor, numpy_of, shares, shown, span
from .recording import current

_CARRIED = "copy it by b.assign(a), or in a kernel; a.numpy().copy() is a constant"


def numbers(data: Any) -> Data:
    """Data of any kind as a NumPy array of numbers."""
    check_no_gradient(data)
    check_not_carried(data)
    try:
        found = np.asarray(plain(data))
    except ValueError as error:  # lists of unequal length
        raise WrongShape(f"the data is no array: {error}") from None
    if found.dtype.kind not in "biufV":
        raise WrongDtype(f"an array of {found.dtype} is not supported; use integers, bool, float32 or float64")
    return found


def spread(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Data:
    """One value as the content of every element."""
    check_no_gradient(value)
    check_copied(value)
    try:
        held = np.asarray(plain(value), dtype if dtype.names is not None else None)
        if held.dtype.kind not in "biufV":  # NumPy would leave out imaginary parts, and read texts
            raise TypeError(f"{held.dtype} is no type of numbers")
        check_fits(held, dtype)
        return np.broadcast_to(held.astype(dtype, copy=False), shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise WrongShape(f"{shown(value)} cannot fill an array of shape {shape}: {error}") from None


def offers_device_memory(data: Any) -> bool:
    """Whether this is memory of a GPU that somebody else has."""
    if is_tensor(data):
        return bool(data.is_cuda)
    return hasattr(data, "__cuda_array_interface__") or dlpack.is_offered(data)


def device_memory(data: Any) -> Any:
    """The memory of a torch tensor on a GPU, or of anything else that offers some; else None."""
    if not offers_device_memory(data):
        return None
    if is_tensor(data):
        check_no_gradient(data)
        return foreign(data.detach())
    return foreign(data) if hasattr(data, "__cuda_array_interface__") else dlpack.taken(data)


def plain(data: Any) -> Any:
    """A NumPy-readable view of an array, a torch tensor, or anything else."""
    if isinstance(data, Readable):
        return data.numpy()
    if isinstance(data, (np.ma.MaskedArray, list, tuple)):
        check_no_mask(data)
    if is_tensor(data) and data.is_cuda:
        return device_memory(data).host()
    bits = bits_of(data)
    if bits is not None:
        return from_bfloat16(bits)
    if is_tensor(data):
        return numpy_of(data)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__") and not hasattr(data, "__array_interface__"):
        return taken_by_dlpack(data)
    return data


def taken_by_dlpack(data: Any) -> Data:
    """The memory of another package's array, shared."""
    try:
        found: Data = np.from_dlpack(data)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise WrongDtype(f"the memory of a {type(data).__name__} cannot be shared by DLPack: {error}",
                         advice="convert it there, or copy it to a NumPy array") from None  # fmt: skip
    return found


def check_no_mask(data: Any) -> None:
    """Kernels know no masks: to them, what is masked would be a number like others."""
    if isinstance(data, np.ma.MaskedArray):
        if np.ma.is_masked(data):
            raise WrongDtype("elements of the data are masked, and kernels do not know masks",
                             advice="say what they are: data.filled(0.0), data.filled(np.nan)")  # fmt: skip
    elif isinstance(data, (list, tuple)):
        for part in data:
            check_no_mask(part)


def check_not_carried(data: Any) -> None:
    """While a tape records, a copy that it does not see would end the gradient of an array."""
    tape = current()
    if tape is None:
        return
    for a in data if isinstance(data, (list, tuple)) else (data,):
        if isinstance(a, Readable) and tape._carries(a):
            raise CutGradient("an array that carries a gradient on this tape would be copied as a constant",
                              advice=_CARRIED)  # fmt: skip


def check_copied(data: Any) -> None:
    """The same for memory of such an array that is handed over as something else: a.numpy(), a.torch(), a buffer."""
    check_not_carried(data)
    if is_carried(data):
        raise CutGradient("memory of an array that carries a gradient on this tape would be copied as a constant",
                          advice=_CARRIED)  # fmt: skip


def is_carried(data: Any) -> bool:
    """Whether this is memory, or holds some, of an array that carries a gradient on the tape that records."""
    tape = current()
    if tape is None:
        return False
    if isinstance(data, StructValue):
        data = [getattr(data, name) for name in data.struct.names]
    if isinstance(data, (list, tuple)):
        return any(is_carried(part) for part in data if part.__class__ is not float and part.__class__ is not int)
    if isinstance(data, Readable) or not _is_memory(data):
        return False
    bits = bits_of(data)
    held = np.asarray(plain(data) if bits is None else bits)
    if not held.size:
        return False
    low, extent = span(held, address_of(held))
    known = (other() for other in _native.Place(low, low + extent, None).others())
    return any(s is not None and tape._carries_storage(s) and shares(held, s.data) for s in known)


def _is_memory(data: Any) -> bool:
    """Whether NumPy would look at its memory, instead of making some."""
    if is_tensor(data):
        return bool(data.is_cpu)
    return isinstance(data, (np.ndarray, memoryview, bytearray)) or hasattr(data, "__array_interface__")


def check_fields(given: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    """Whether structs are alike: NumPy would copy their fields by position, whatever they are called."""
    if given.names != wanted.names:
        raise WrongDtype(f"assign: data of {given} does not fit an array of {wanted}",
                         advice="assign data with the same fields, in the same order")  # fmt: skip
    for name in wanted.names or ():
        check_fields(given[name], wanted[name])
