"""What tapes do with memory of a GPU beside launching: adding gradients up. A kernel like any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ... import types as t
from ...config import config
from ...frontend.intrinsics import tid
from ...types import Array
from .data import DeviceData, Host
from .launching import Launching, binary_of, facts

if TYPE_CHECKING:
    from ..kernels import Kernel


def add_to(into: Array[float], what: Array[float]):  # type: ignore
    i = tid()
    into[i] = into[i] + what[i]  # type: ignore


@cache
def _adder() -> Kernel:
    from ..compile import Options
    from ..kernels import Kernel

    return Kernel(add_to, Options())


def adding(into: DeviceData, what: DeviceData) -> Launching:
    """The launch that does `into += what`; both are dense reals of one type."""
    from ..arrays import Array as Memory
    from ..launches import block_of, packed

    real = t.FLOAT32 if into.dtype == np.float32 else t.FLOAT64
    flat: list[Any] = [Memory(cast("Host", data.reshape(-1)), real) for data in (into, what)]
    total, head = packed((into.size,))
    with _unchecked():
        plan, args = _adder().plan(flat)
        binary = binary_of(plan.variant, ("forward", frozenset(), plan.contiguous, False))
    block = bytearray(block_of(plan, args, head))
    return Launching(binary, block, total, facts(plan, args, (into.size,)), keep=args)


@contextmanager
def _unchecked() -> Iterator[None]:
    """No debug mode: a NaN is for the kernel to report that it comes from or goes to."""
    if not config.debug:
        yield
        return
    config.debug = False
    try:
        yield
    finally:
        config.debug = True


def add_in_place(into: Any, what: Any) -> None:
    """`into += what`, wherever they are and whatever they hold; leaves that are no reals stay."""
    sum_ = np.array(into)
    _add(sum_, np.asarray(what))
    into[...] = sum_


def _add(into: np.ndarray[Any, Any], what: np.ndarray[Any, Any]) -> None:
    if into.dtype.names is not None:
        for name in into.dtype.names:
            _add(into[name], what[name])
    elif into.dtype.kind == "f":
        into += what
