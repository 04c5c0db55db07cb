"""Element types as memory: how many dimensions they take, their precision, and what their gradients are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .. import types as t
from ..errors import WrongDtype


@cache
def facts(element: t.Type) -> tuple[int, t.Scalar | None]:
    """How many trailing dimensions an element takes in memory, and the precision of its reals."""
    return len(t.element_dtype(element)[1]), next((s for s in t.leaves(element) if s.is_float), None)


@cache
def gradient_dtype(element: t.Type) -> np.dtype[Any]:
    """How the gradient of an array lies in memory."""
    return t.element_dtype(t.widened(element))[0]


@cache
def holds_bfloats(element: t.Type) -> bool:
    """Whether NumPy has no numbers for what an array holds."""
    return t.BFLOAT16 in t.leaves(element)


def numbers_of(element: t.Type) -> np.dtype[Any]:
    """The NumPy numbers that an array is filled with."""
    return np.dtype(np.float32) if holds_bfloats(element) else t.element_dtype(element)[0]


def unresolved(element: t.Type) -> t.Type:
    if isinstance(element, t.Composite):
        return element.with_scalar(t.REAL)
    return t.REAL


def check_gradient(element: t.Type) -> None:
    if not any(s.is_float for s in t.leaves(element)):
        raise WrongDtype(f"only real arrays can require a gradient, not {element!r}")
