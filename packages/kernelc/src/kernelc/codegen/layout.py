"""The argument block: the int64 words that a kernel gets, and how Python writes them.

    0 … 3   size of the grid by axis            4  the forward record, or 0
    then for each parameter in order
    array   value pointer, grad, final and tangent pointer, shadow pointer (debug), shape…, strides in bytes…, and
            strides of the adjoint…
    value   one word per leaf

Final, tangent and shadow arrays are contiguous.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .. import ir
from ..types import Scalar

HEADER = 5
ROLES = ("value", "grad", "final", "tangent", "shadow")
_FORMATS = {"bool": "q", "int32": "q", "int64": "q", "uint32": "q", "float32": "f4x", "float64": "d"}


@dataclass(frozen=True)
class Slot:
    """Where a parameter lies in the block."""

    first: int
    ndim: int = 0

    def role(self, role: str) -> int:
        return self.first + ROLES.index(role)

    def shape(self, axis: int) -> int:
        return self.first + len(ROLES) + axis

    def stride(self, axis: int) -> int:
        return self.first + len(ROLES) + self.ndim + axis

    def grad_stride(self, axis: int) -> int:
        return self.first + len(ROLES) + 2 * self.ndim + axis


@dataclass(frozen=True)
class Layout:
    """The slots of a kernel's parameters and the number of words."""

    slots: tuple[Slot, ...]
    words: int


def layout(kernel: ir.Kernel) -> Layout:
    slots, at = [], HEADER
    for param in kernel.params:
        if param.array is not None:
            ndim = param.array.type.ndim
            slots.append(Slot(at, ndim))
            at += len(ROLES) + 3 * ndim
        else:
            slots.append(Slot(at))
            at += len(param.leaves)
    return Layout(tuple(slots), at)


def pack_scalar(kind: Scalar, value: float | int) -> bytes:
    """One word that holds a number of the given type."""
    return struct.pack(f"<{_FORMATS[kind.name]}", value)
