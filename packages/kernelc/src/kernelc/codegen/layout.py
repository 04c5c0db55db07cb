"""The argument block: the int64 words that a kernel gets, and how Python writes them.

    0 … 3   size of the grid by axis
    4       the forward record; or, for a launch in strips, how many threads a strip has and, 32 bits higher, a part of
            which each has strips of its own; or 0
    then for each parameter in order
    array   value pointer, grad and final pointer, a word about the gradient, shadow pointer (debug; or the copies of
            strips), shape…, strides in bytes…, and strides of the adjoint…
    value   one word per leaf

Final and shadow arrays are contiguous. The word about the gradient is SPECIAL if the kernel writes this gradient
instead of adding to it, or only reads it (codegen/ownership.py: which); UNASKED if nobody asked for it; or 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import ir
from ..records import record
from ..types import Scalar

HEADER = 5
SPECIAL, UNASKED = 1, 2
ROLES = ("value", "grad", "final", "special", "shadow")
_FORMATS = {"bool": "?7x", "int32": "i4x", "int64": "q", "uint32": "I4x", "uint64": "Q", "float32": "f4x",
            "float64": "d"}  # fmt: skip


@record
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


@record
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


@cache
def packer(kind: Scalar) -> Callable[[Any], bytes]:
    """A function that makes a word of a number; an integer that does not fit the type is a struct.error."""
    pack = struct.Struct(f"<{_FORMATS[kind.name]}").pack
    if kind.name != "float32":
        return pack

    def pack_float(value: Any) -> bytes:
        try:
            return pack(value)
        except OverflowError:
            return pack(math.copysign(math.inf, value))

    return pack_float


def pack_scalar(kind: Scalar, value: float | int) -> bytes:
    """One word that holds a number of the given type."""
    return packer(kind)(value)
