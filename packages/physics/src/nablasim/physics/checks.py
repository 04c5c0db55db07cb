"""Checks of what users pass to `Scene`: every message names the quantity, what was found and what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shaped(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """A copy in double precision, of this shape; None is any length."""
    array = _numbers(name, value)
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape)):
        wanted = ", ".join("n" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {array.shape}; expected ({wanted})")
    return finite(name, array)


def filled(
    name: str, value: ArrayLike, shape: tuple[int, ...], *, positive: bool = False, allow_zero: bool = False
) -> NDArray[np.float64]:
    """The value in double precision, one number or one for each element."""
    array = _numbers(name, value)
    if array.shape not in ((), shape):
        raise ValueError(f"{name} has shape {array.shape}; expected one value, or shape {shape}")
    finite(name, array)
    if positive and (array < 0 if allow_zero else array <= 0).any():
        at = np.unravel_index(int(np.argmin(array)), array.shape)
        where = f" at {', '.join(map(str, at))}" if at else ""
        least = "must not be negative" if allow_zero else "must be positive"
        raise ValueError(f"{name} {least}, and is {array[at]:g}{where}")
    return array


def finite(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array, if all of it is finite."""
    if not is_finite(array):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} has an entry that is not finite, at {where}")
    return array


SMALL = 4096
"""Below so many numbers the time of a check goes into calls."""


def is_finite(array: NDArray[Any]) -> bool:
    """Whether all of it is finite."""
    # The sum of squares is finite only if all of them are: one call instead of two. It may overflow, though.
    if array.size <= SMALL and math.isfinite(np.vdot(array, array)):
        return True
    return bool(np.isfinite(array).all())


def indices(name: str, value: ArrayLike, width: int, count: int, what: str) -> NDArray[np.int32]:
    """Rows of `width` whole numbers below `count`."""
    array = np.asarray(value)
    if array.size == 0:
        return np.zeros((0, width), np.int32)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {array.dtype}; expected whole numbers")
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} has shape {array.shape}; expected (m, {width})")
    wrong = (array < 0) | (array >= count)
    if wrong.any():
        row = int(np.argwhere(wrong)[0, 0])
        raise ValueError(f"{name}: row {row} names {what} {array[wrong][0]}, but there are {count} (from 0)")
    return array.astype(np.int32)


def is_number(value: Any) -> bool:
    """Whether it is one real number: a text that looks like one is none."""
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf"


def check_counts(dt: float, steps: int, every: int, substeps: int) -> None:
    """Refuse what no rollout can do."""
    if not is_number(dt) or not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"dt must be positive, and is {dt}")
    for name, value, least in (("steps", steps, 0), ("every", every, 1), ("substeps", substeps, 1)):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} is a whole number from {least} on, not {value!r}")
    if steps % every:
        raise ValueError(
            f"steps = {steps} is not a multiple of every = {every}: the last {steps % every} steps would not be seen. "
            f"Use steps={steps - steps % every}, or an `every` that divides it"
        )


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence that offers the names most like this one."""
    known = list(names)
    close = get_close_matches(name, known, n=4, cutoff=0.4)
    if not close:
        shown = ", ".join(map(repr, known[:12])) + (", ..." if len(known) > 12 else "")
        return f"known are {shown}" if known else "there are none"
    return "did you mean " + " or ".join(map(repr, close)) + "?"


def check_numbers(name: str, value: Any) -> None:
    """Refuse what NumPy would make other numbers of: masked entries, imaginary parts, texts and dates."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries: say what they are, with value.filled(...)")
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind not in "biufO" or (hasattr(value, "is_complex") and value.is_complex()):
        raise ValueError(f"{name} is made of real numbers, not of {value.dtype}")


def _numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    if getattr(value, "requires_grad", False):
        raise ValueError(
            f"{name} requires a gradient, and a scene holds plain numbers: build the model with numbers, then "
            "model.replace({name: value}), which carries gradients"
        )
    try:
        found = np.asarray(value)
        check_numbers(name, value)
        check_numbers(name, found)
        return found.astype(np.float64)
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name} is made of numbers, not {value!r}") from None
