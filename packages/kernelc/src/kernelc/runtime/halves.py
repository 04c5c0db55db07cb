"""bfloat16 outside of kernels, where NumPy has no such numbers: their bits, the upper halves of those of float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from .memory import Data, is_tensor, numpy_of


def from_bfloat16(bits: Any) -> Data:
    """The numbers that bits mean, as float32."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(numbers: Any) -> Data:
    """The bits of numbers, rounded to the nearest, halves to even."""
    given = np.asarray(numbers)
    near = np.asarray(given.astype(np.float32))
    if given.dtype == np.float64:
        near = _cut(given, near)
    bits = near.view(np.uint32)
    plain = np.where(np.isnan(near), np.uint32(0x7FC00000), bits & 0x7FFFFFFF)
    rounded = (plain + 0x7FFF + ((plain >> 16) & 1)) >> 16
    return np.asarray(rounded | ((bits >> 16) & 0x8000), np.uint32).astype(np.uint16)


def _cut(wide: Data, near: Data) -> Data:
    """float32 that round on as the float64 would: where something was cut off, the last bit is set (stored.h)."""
    with np.errstate(over="ignore"):
        bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(wide)).astype(np.uint32)
    return np.where(near.astype(np.float64) == wide, near, (bits | 1).view(np.float32))


def bits_of(data: Any) -> Data | None:
    """The memory of bfloat16 numbers that a tensor, or an array of another package, holds; None if it holds others."""
    if is_tensor(data):
        import torch

        if data.dtype != torch.bfloat16 or data.is_nested or data.layout is not torch.strided:
            return None
        return numpy_of(data.detach().view(torch.int16)).view(np.uint16)
    if isinstance(data, np.ndarray) or not hasattr(data, "__array__"):
        found = data
    else:
        found = np.asarray(data) if str(getattr(data, "dtype", "")) == "bfloat16" else None
    dtype = getattr(found, "dtype", None)
    # NumPy puts the name of a dtype together whenever it is asked for; that of others' kinds alone can be this one.
    is_bfloat16 = getattr(dtype, "kind", "") == "V" and getattr(dtype, "name", "") == "bfloat16"
    return found.view(np.uint16) if is_bfloat16 and found is not None else None
