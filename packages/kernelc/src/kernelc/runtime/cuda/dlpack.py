"""Memory of a GPU that somebody offers by DLPack: read from the capsule, shared."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any

import numpy as np

from ...errors import NoCuda, WrongDevice, WrongDtype
from .data import DeviceData, at
from .device import device

CUDA = 2
"""kDLCUDA."""
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
"""kDLInt, kDLUInt, kDLFloat, kDLBool."""


class Tensor(ctypes.Structure):
    """DLTensor: the first member of what a capsule holds."""

    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )  # fmt: skip


def is_offered(source: Any) -> bool:
    """Whether this is memory of a GPU that speaks DLPack."""
    ask = getattr(source, "__dlpack_device__", None)
    return ask is not None and ask()[0] == CUDA


def taken(source: Any) -> DeviceData:
    """The memory, which lives as long as its capsule does."""
    try:
        gpu = device()
    except NoCuda as error:
        raise WrongDevice(f"memory on a GPU cannot be used: {error.message}", advice="move it to the CPU") from None
    gpu.check_number(source.__dlpack_device__()[1])
    capsule = source.__dlpack__(stream=gpu.stream or 1)  # its producer waits for what it has queued elsewhere
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (py_object, c_char_p), c_void_p
    tensor = Tensor.from_address(pointer(capsule, b"dltensor") or 0)
    if tensor.code not in _KINDS or tensor.lanes != 1 or (tensor.code == 2 and tensor.bits not in (32, 64)):
        raise WrongDtype(f"DLPack offers numbers of kind {tensor.code} with {tensor.bits} bits, which no kernel has",
                         advice="convert it where it comes from")  # fmt: skip
    dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim]) if tensor.strides else None
    return at((tensor.data or 1) + tensor.offset, shape, dtype, strides, capsule, gpu)
