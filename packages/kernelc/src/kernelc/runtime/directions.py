"""What `jvp` is asked for: arrays with directions, one or several, from wherever the user has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TapeError, WrongShape
from .arrays import Array
from .content import plain
from .memory import Data, shown

WIDTHS = (1, 4)
"""How many tangents a kernel pushes at once: with eight, each takes longer, and so does the compiler."""


def chunks(count: int, most: int = WIDTHS[-1]) -> list[tuple[int, int, int]]:
    """A number of tangents in pieces: the first one, how many there are, how many a kernel pushes."""
    found = []
    for first in range(0, count, most):
        there = min(most, count - first)
        found.append((first, there, next(w for w in WIDTHS if w >= there)))
    return found


def read_directions(tangents: Mapping[Array, Any]) -> tuple[dict[Array, Data], int | None]:
    """Each array with its tangents along a first axis; how many, or None where none was given with that axis."""
    if not isinstance(tangents, Mapping):
        raise TapeError(f"tangents is a dictionary, not {type(tangents).__name__}", advice="write {array: direction}")
    found: dict[Array, Data] = {}
    counts: list[int | None] = []
    for a, direction in tangents.items():
        if not isinstance(a, Array):
            raise TapeError(f"a key of tangents is an array, not {a!r}", advice="write {array: direction}")
        if a.real is None:
            raise TapeError(f"an array of {a.element!r} has no tangent", advice="only reals move along a direction")
        data, count = _read(a, direction)
        found[a] = data
        counts.append(count)
    if len(set(counts)) > 1:
        said = ", ".join("one without the axis" if n is None else f"{n}" for n in counts)
        raise WrongShape(f"all arrays have as many tangents, not {said}",
                         advice="give each a first axis of the same length")  # fmt: skip
    return found, counts[0] if counts else None


def _read(a: Array, direction: Any) -> tuple[Data, int | None]:
    shape = a._data.shape
    try:
        given = np.asarray(plain(direction))
        if given.dtype.kind not in "biufV":  # NumPy would leave out imaginary parts, and read texts
            raise TypeError(given.dtype)
        data = given.astype(a._data.dtype, copy=False)
    except (TypeError, ValueError):
        raise TapeError(f"the tangent of an array is made of numbers, not {shown(direction)}",
                        advice="give one number for each of its elements") from None  # fmt: skip
    if data.shape == (len(data) if data.ndim else 0, *shape) and data.ndim == len(shape) + 1:
        return data, len(data)
    if data.size != a._data.size:
        several = ", ".join(map(str, ("k", *shape)))
        raise WrongShape(f"the tangent of an array of shape {shape} has shape {data.shape}",
                         advice=f"give one of its shape, or several of them: ({several})")  # fmt: skip
    return data.reshape(1, *shape), None


def stacked(parts: Sequence[Data], count: int | None) -> Data:
    """Tangents in memory of their own, with the axis they were asked for with."""
    return np.array(parts) if count is not None else np.array(parts[0])
