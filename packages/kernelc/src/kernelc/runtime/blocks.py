"""Blocks: typed memory as launches see it: its address, shape and signature. The base of arrays (arrays.py)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import types as t
from ..errors import WrongUse, public
from .elements import check_gradient, facts
from .memory import Data, address_of, array_words, base_of, is_on_gpu, overlaps_itself
from .storage import Storage

if TYPE_CHECKING:
    from .arrays import Array

_SIGNATURES: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_COUNTED = 2**31
"""How many numbers an int32 counts."""


def _is_large(element: t.Type, data: Data, shape: tuple[int, ...]) -> bool | tuple[bool, ...]:
    """Whether 32 bits do not count the numbers of an array; if one of its axes alone is too long for them, which."""
    axes = tuple([n >= _COUNTED for n in shape])
    if True in axes:
        return axes
    return data.nbytes >= _COUNTED and prod(shape) * len(t.leaves(element)) >= _COUNTED


class Block:
    """Memory, what its elements are, and what a launch needs of both, computed once."""

    __slots__ = (
        "__weakref__", "_address", "_base", "_data", "_derived", "_grad", "_parent", "_sig", "_storage", "_words",
        "element", "ndim", "origin", "real", "requires_grad", "shape",
    )  # fmt: skip
    _data: Data
    element: t.Type
    shape: tuple[int, ...]
    real: t.Scalar | None
    """The precision of its reals, or None for integers and bools."""

    def __init__(
        self, data: Data, element: t.Type, *, requires_grad: bool = False, source: Data | None = None, address: int = 0,
        storage: Storage | None = None,
    ):  # fmt: skip
        self._parent: tuple[Array, Callable[[Data], Data]] | None = None
        self._grad: Array | None = None
        self._derived: dict[Any, Array] | None = None
        self.origin: Array | None = None
        """What this is a converted copy of, if a launch made it: tapes convert it anew when they run again."""
        self._storage = storage or Storage(source)
        self._set(data, element, address)
        if storage is None:
            self._storage.lie(data, self._address)
        if requires_grad:
            check_gradient(element)
        self.requires_grad = requires_grad

    def _set(self, data: Data, element: t.Type, address: int = 0) -> None:
        """Point at memory, whose address NumPy is slow to tell; everything that a launch needs is computed once."""
        self._data, self.element = data, element
        trailing, self.real = facts(element)
        ndim = self.ndim = data.ndim - trailing
        shape = self.shape = data.shape[:ndim]
        self._base = address or base_of(data)
        address = self._address = address or address_of(data)
        self._words = array_words(address, shape, data.strides)
        self._sign()

    def _sign(self) -> None:
        flags, weak = self._data.flags, self._storage.source is not None
        apart = flags.c_contiguous or not overlaps_itself(self._data)
        large = _is_large(self.element, self._data, self.shape)
        where = is_on_gpu(self._data)
        key = (self.element, self.ndim, flags.c_contiguous, flags.writeable, weak, where, apart, large)
        self._sig = _SIGNATURES.setdefault(key, key)

    @property
    def _counted(self) -> bool:
        """Whether its numbers follow each other without gaps, and 32 bits count them: lanes then find them faster."""
        return bool(self._sig[2] and not self._sig[-1])

    # -- what it is
    @property
    def dtype(self) -> t.Type:
        """The element type."""
        return self.element

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def device(self) -> str:
        """Where the memory is: "cpu" or "cuda"."""
        return "cuda" if is_on_gpu(self._data) else "cpu"

    @property
    def version(self) -> int:
        """When its memory was last written by a launch, `assign` or `zero_`: a number that grows, 0 at first."""
        return self._storage.version

    @property
    def _source(self) -> Data | None:
        return self._storage.source

    @property
    def _carries(self) -> bool:
        return self._storage.carries

    @_carries.setter
    def _carries(self, value: bool) -> None:
        self._storage.carries = value

    def __len__(self) -> int:
        return self.shape[0]

    # One truth for many numbers, or arrays that are equal where they are the same object: neither is what people mean.
    @public
    def __bool__(self) -> bool:
        raise WrongUse(f"an array of shape {self.shape} is neither true nor false",
                       advice="ask `a is None` or `len(a)`, or compare numbers: a.numpy().any(), float(a)")  # fmt: skip

    @public
    def _compare(self, other: Any) -> Any:
        raise WrongUse("arrays are not compared with ==, !=, <, <=, >, >= or `in`",
                       advice="compare their numbers: a.numpy() == b.numpy(); or ask `a is b`")  # fmt: skip

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _compare
    __hash__ = object.__hash__
