"""Launches with NumPy arrays and tensors as they come: what was passed before needs no array made of it.

The first launch with arguments of a kind makes arrays and checks them (kernels.py). What it found depends on types and
shapes alone: later ones go from the memory straight to the argument block. What is out of the ordinary (an open tape, a
gradient, memory that other arrays look at as well, gaps) is left to the first way.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from ..errors import KernelError
from .arrays import Array
from .memory import address_of

if TYPE_CHECKING:
    from .kernels import Kernel, Plan

at_begin: Any = c_char.from_buffer
MOST = 256
"""How many kinds of arguments a kernel remembers."""


class Outside(NamedTuple):
    """Memory that is no array, of one type and shape."""

    words: bytes
    """Those of an argument block that follow the address."""
    size: int
    align: int


class Kind(NamedTuple):
    """Arguments whose plan is known."""

    plan: Plan
    outside: tuple[Outside | None, ...]
    """By argument; None for arrays and numbers."""


class Passed(NamedTuple):
    """Arguments that are ready for a launch."""

    plan: Plan
    words: list[bytes]
    arrays: list[Any]
    """Those that are written and have a version."""
    tensors: list[Any]
    """Those that are written, of which torch must hear."""


def remember(kernel: Kernel, plan: Plan, given: Sequence[Any], args: Sequence[Any]) -> None:
    """Keep the plan of a launch that has just run, if the next one of its kind may go the short way."""
    if not plan.plain or kernel.bundles or len(given) != len(args):
        return
    outside: list[Outside | None] = []
    for i, (raw, a) in enumerate(zip(given, args, strict=True)):
        if plan.packers[i] is not None:
            if raw is not a:
                return
            outside.append(None)
        elif i not in plan.contiguous:
            return
        elif raw is a:
            outside.append(None)
        else:
            data = _memory(raw)
            if data is None or not data.size or not data.flags.c_contiguous or address_of(data) != a._address:
                return
            outside.append(Outside(a._words[8:], data.nbytes, data.dtype.alignment))
    key = _key(given)
    if key is None or not any(outside):
        return
    if len(kernel._passed) >= MOST:
        kernel._passed.clear()
    kernel._passed[key] = Kind(plan, tuple(outside))


def known(kernel: Any, args: Sequence[Any]) -> Passed | None:
    """The words of arguments whose kind was passed before; None where the checks have to look at them."""
    try:
        kind: Kind = kernel._passed[_key(args)]
        plan = kind.plan
        words: list[bytes] = []
        ranges: list[tuple[int, int]] = []
        a: Any
        for a, outside, pack in zip(args, kind.outside, plan.packers, strict=True):
            if outside is not None:
                if a.__class__ is np.ndarray:
                    low = addressof(at_begin(a))  # raises where there are gaps, or where it is read-only
                elif a.is_contiguous() and a.is_cpu and not a.is_neg():
                    low = a.data_ptr()  # raises where a transform of torch stands in for it
                else:
                    return None
                if low % outside.align:
                    return None
                words += (low.to_bytes(8, "little"), outside.words)
                ranges.append((low, low + outside.size))
            elif pack is None:
                words.append(a._words)
                ranges.append((a._address, a._address + a._data.nbytes))
            else:
                words.append(pack(a))
                ranges.append((0, 0))
        arrays: list[Any] = []
        tensors: list[Any] = []
        for i in plan.written:
            low, high = ranges[i]
            meet = 0
            for first, last in ranges:
                if first < high and low < last:
                    meet += 1
            if meet != (low < high):  # another one, beside itself
                return None
            a = args[i]
            if a.__class__ is Array:
                arrays.append(a)
                continue
            if _native.Place(low, high, None).others():
                return None  # an array looks at it, and has a version
            if a.__class__ is not np.ndarray:
                tensors.append(a)
        return Passed(plan, words, arrays, tensors)
    except (AttributeError, KeyError, TypeError, ValueError, BufferError, RuntimeError, struct.error, KernelError):
        return None  # of a new kind, or something does not fit: then the checks say what


def _key(args: Sequence[Any]) -> tuple[Any, ...] | None:
    """What a plan depends on, and the shapes of what is no array."""
    found: list[Any] = []
    tensors = False
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)  # None while torch is being imported
    for a in args:
        of = a.__class__
        if of is np.ndarray:
            found.append((a.dtype, a.shape))
        elif of is Array:
            found.append(a._sig)
        elif of is tensor:
            tensors = True
            if a.requires_grad or a.is_inference():
                return None
            found.append((of, a.dtype, a.shape))
        else:
            found.append(of)
    if tensors and torch.autograd.forward_ad._current_level >= 0:  # type: ignore[union-attr]
        return None
    return tuple(found)


def _memory(raw: Any) -> np.ndarray[Any, Any] | None:
    """What is no array, as NumPy sees it."""
    if raw.__class__ is np.ndarray:
        return raw
    torch = sys.modules.get("torch")
    if torch is None or raw.__class__ is not torch.Tensor or not raw.is_cpu:
        return None
    try:
        data: np.ndarray[Any, Any] = raw.numpy()
        return data
    except (TypeError, RuntimeError):
        return None
