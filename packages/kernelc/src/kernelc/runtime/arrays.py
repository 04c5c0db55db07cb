"""Arrays: typed memory that kernels read and write, and its gradient. Made in creation.py, read out in exports.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import types as t
from ..errors import Overlap, ReadOnly, WrongDevice, WrongDtype, WrongIndex, WrongShape, WrongUse, public
from ..structs import moves
from .content import check_copied, check_fields, check_not_carried, device_memory, is_carried, numbers, spread
from .cuda.data import empty as device_empty
from .cuda.data import upload
from .elements import check_gradient, gradient_dtype, holds_bfloats, numbers_of, unresolved
from .exports import Readable
from .halves import to_bfloat16
from .memory import (
    Data,
    address_of,
    check_fits,
    dense_copy,
    is_dense,
    is_on_gpu,
    may_share,
    overlaps_itself,
    zeros_for,
)
from .recording import current
from .storage import Members, clock

_APART = "use memory with a place for every element: np.ascontiguousarray(data), tensor.contiguous()"


class Array(Readable):
    """`n` elements of a kernel type in memory. Make one with kc.array, kc.zeros, …"""

    __slots__ = ()

    # -- copies
    @public
    def copy(self) -> Array:
        """The content in memory of its own. While a tape records, gradients come back, as by `assign`."""
        return self._fresh(self.device)

    @public
    def to(self, device: str) -> Array:
        """This array, if it is on the device; else a copy there. While a tape records, gradients come back."""
        if device not in ("cpu", "cuda"):
            raise WrongDevice(f"an array cannot be moved to {device!r}", advice='use "cpu" or "cuda"')
        return self if device == self.device else self._fresh(device)

    def _fresh(self, device: str) -> Array:
        """A copy on a device."""
        make: Any = device_empty if device == "cuda" else np.empty
        made = Array(make(self._data.shape, self._data.dtype), self.element)
        made._storage.ours = True
        made.requires_grad = self.requires_grad and current() is None
        return made.assign(self)

    def __reduce__(self) -> Any:
        """Copies and pickles have memory of their own; gradients, tapes and views stay behind. A leaf's are leaves."""
        if not self.root.requires_grad:
            check_not_carried(self)
        return _restored, (np.array(self._host()), self.element, self.requires_grad)

    # -- gradient
    @property
    def grad(self) -> Array | Any:
        """The gradient that `backward` adds to; None for arrays that carry none."""
        # To type checkers it is there: only who asked for a gradient reads it.
        if self._parent is not None:
            return self._grad_in_parent(*self._parent)
        memory = self._grad_memory()
        if memory is not None and (self._grad is None or self._grad._data is not memory):
            self._grad = Array(memory, t.widened(self.element))
        return None if memory is None else self._grad

    def _grad_memory(self) -> Data | None:
        """The memory of `grad`, made when it is asked for first."""
        if self._parent is not None:
            grad = self.grad
            return None if grad is None else grad._data
        storage = self._storage
        if storage.grad is None and (self.requires_grad or storage.carries):
            check_gradient(self.element)
            storage.grad = zeros_for(self._data, gradient_dtype(self.element))
        return storage.grad

    def _grad_in_parent(self, parent: Array, view: Callable[[Data], Data]) -> Array | None:
        above = parent.grad
        if above is None:
            return None
        if self._grad is None or self._grad._storage is not above._storage:
            made = _view_of(above, view, t.widened(self.element))
            if made._data.size and not may_share(made._data, above._data):
                raise WrongShape("the gradient of this view cannot be seen in that of its parent",
                                 advice="make the parent contiguous: kc.array(np.ascontiguousarray(data))")  # fmt: skip
            self._grad = made
        return self._grad

    # -- writes from Python
    def zero_(self) -> Array:
        """Set every element to zero."""
        return self._write("zero", None)

    @public
    def fill_(self, value: Any) -> Array:
        """Set every element to a value."""
        return self.assign(spread(value, self._data.shape, numbers_of(self.element)))

    @public
    def assign(self, source: Any) -> Array:
        """Copy the content of an array, or anything like one, into this one. A number goes to every element."""
        if isinstance(source, (int, float, np.generic)):
            return self.fill_(source)
        data = source if isinstance(source, Array) else device_memory(source) or self._carried(source)
        shape = data._data.shape if isinstance(data, Array) else data.shape
        if shape != self._data.shape:
            raise WrongShape(f"assign: shape {shape} does not fit {self._data.shape}")
        data = self._bits(data)
        held = data._data if isinstance(data, Array) else data
        check_fields(held.dtype, self._data.dtype)
        if not is_on_gpu(held):
            check_fits(held, self._data.dtype)
        return self._write("assign", data)

    def _carried(self, source: Any) -> Any:
        """Numbers; or an array, where they are the memory of one whose gradient the tape follows."""
        data = numbers(source)
        if not is_carried(source):
            return data
        dtype, trailing = t.element_dtype(self.element)
        if data.dtype != dtype or holds_bfloats(self.element) or not is_dense(data, len(trailing)):
            check_copied(source)
        return Array(data, self.element)

    def _bits(self, data: Any) -> Any:
        """What is assigned, as this memory holds it: numbers of bfloat16 are converted here, not by NumPy."""
        mine = holds_bfloats(self.element)
        if isinstance(data, Array):
            if mine != holds_bfloats(data.element):
                raise WrongDtype(f"assign: an array of {data.element!r} is not copied to one of {self.element!r}",
                                 advice="convert it in a kernel, which rounds; or assign a.numpy()")  # fmt: skip
            return data
        if not mine or is_on_gpu(data):
            return data
        return to_bfloat16(data)

    @public
    def _write(self, kind: str, source: Any) -> Array:
        if not self._data.flags.writeable and not self.own():
            raise ReadOnly("the memory of this array is read-only")
        if overlaps_itself(self._data):
            raise Overlap("the array is written, but its elements overlap each other", advice=_APART)
        tape = current()
        if tape is None or not tape._write(self, kind, source):
            self._put(source)
            self._storage.wrote(clock.tick())
        return self

    def _put(self, content: Any) -> None:
        """Write an array, or zeros for None."""
        if content is None:
            content = np.zeros((), self._data.dtype)
            if is_on_gpu(self._data):
                self._data.zero()
                return
        elif isinstance(content, Array):
            if content._storage is self._storage and self._storage.source is not None:
                source = self._storage.source
                as_view(self, source)[...] = as_view(content, source)
                self._data[...] = content._data
                return
            content = content._data
        if self._storage.source is not None:
            as_view(self, self._storage.source)[...] = content
        self._data[...] = content

    # -- views
    @public
    def __getitem__(self, key: Any) -> Array:
        """A view, by slices and integers as in NumPy; the result has at least one dimension."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if not all(_is_index(k) or isinstance(k, slice) or k is Ellipsis for k in keys):
            raise WrongUse(f"arrays are sliced by slices and integers, not by {key!r}",
                           advice="use a.numpy() for other ways of indexing")  # fmt: skip
        if len(keys) - keys.count(Ellipsis) > self.ndim or keys.count(Ellipsis) > 1:
            raise WrongShape(f"{len(keys)} indices for {self.ndim} dimensions")
        if Ellipsis in keys:
            # Spelled out: to NumPy, the components of an element would be dimensions, too.
            at = keys.index(Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        for k, n in zip(keys, self.shape, strict=False):
            if _is_index(k) and not -n <= k < n:
                raise WrongIndex(f"index {k} is out of bounds for an array of shape {self.shape}")
        if len(keys) == self.ndim and all(_is_index(k) for k in keys):
            keys = [slice(k, k + 1 or None) for k in keys[:1]] + keys[1:]
        full = tuple(keys)
        return self._view(lambda data: data[full], self.element)

    @public
    def __setitem__(self, key: Any, value: Any) -> None:
        raise WrongUse("elements of arrays are written by kernels, not from Python",
                       advice="a[…].assign(data) writes a part, a.numpy()[…] = data what tapes do not see")  # fmt: skip

    @public
    def reshape(self, *shape: int) -> Array:
        """The same memory in another shape; only for contiguous arrays."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        trailing = self._data.shape[self.ndim :]
        if not all(_is_index(n) for n in sizes):
            raise WrongShape(f"a shape is made of whole numbers, not {shape!r}")
        if not self._data.flags.c_contiguous:
            raise WrongShape("reshape needs a contiguous array")
        if not sizes or (-1 not in sizes and np.prod(sizes) != self.size) or (-1 in sizes and not self.size):
            raise WrongShape(f"an array of shape {self.shape} has no shape {sizes}")
        try:
            return self._view(lambda data: data.reshape(*sizes, *trailing), self.element)
        except ValueError:
            raise WrongShape(f"an array of shape {self.shape} has no shape {sizes}") from None

    @public
    def reals(self) -> Array:
        """The same memory as an array of numbers: n vectors of three as shape (n, 3)."""
        kinds = set(t.leaves(self.element))
        if isinstance(self.element, t.Struct) or len(kinds) != 1:
            raise WrongDtype(f"an array of {self.element!r} is not made of numbers of one kind",
                             advice="use a.numpy()[name] for the fields of structs")  # fmt: skip
        return self._view(lambda data: data, kinds.pop())

    def _view(self, view: Callable[[Data], Data], element: t.Type) -> Array:
        made = _view_of(self, view, element)
        made._parent = (self, view)
        made.requires_grad = self.requires_grad
        self._join(made)
        return made

    def _join(self, other: Array) -> None:
        """Remember that another array looks at this memory: they move together."""
        if self._storage.members is None:
            self._storage.members = Members(self)
        self._storage.members.add(other)

    def as_element(self, element: t.Type) -> Array | None:
        """This array of reals seen as an array of vectors or matrices: (n, 3) as n float3."""
        if element == self.element:
            return self
        if self._derived is None or element not in self._derived:
            dtype, trailing = t.element_dtype(element)
            data, n = self._data, len(trailing)
            fits = data.dtype == dtype and data.ndim > n and isinstance(self.element, t.Scalar)
            if not fits or data.shape[data.ndim - n :] != trailing or not is_dense(data, n):
                return self._narrow() if element is t.INT32 and self.element is t.INT64 else None
            # No reference back to this array: a cycle would keep the memory until Python's next collection.
            made = _view_of(self, lambda data: data, element)
            made._parent, made.origin = self._parent, self.origin
            self._join(made)
            self._derived = {**(self._derived or {}), element: made}
        view = self._derived[element]
        view.requires_grad = self.requires_grad
        return view

    def _narrow(self) -> Array | None:
        """A copy of borrowed int64 numbers as int32, if they fit: torch's default integers, and nobody changes them."""
        if not self._storage.borrowed:
            return None
        data, limits = self.numpy(), np.iinfo(np.int32)
        if data.size and (data.min() < limits.min or data.max() > limits.max):
            return None
        made = Array(_beside(self._data, data.astype(np.int32)), t.INT32)
        made._data.flags.writeable = False
        made._sign()
        self._derived = {**(self._derived or {}), t.INT32: made}
        return made

    @property
    def root(self) -> Array:
        """The array whose memory and gradient this is a view of."""
        return self._parent[0].root if self._parent is not None else self

    # -- memory that moves
    def adapt(self, real: t.Scalar) -> None:
        """A weak array takes the precision of its first launch."""
        storage, data = self._storage, self.root._data
        source, storage.source = storage.source, None
        if source is None:
            return
        if data.dtype != real.numpy:
            written = not np.array_equal(source.astype(data.dtype), self.root.numpy(), equal_nan=True)
            changed = (self.root.numpy() if written else source).astype(real.numpy)
            if storage.grad is not None:
                storage.grad = _beside(data, np.asarray(storage.grad).astype(real.numpy))
            data = _beside(data, changed)
        self._move(data, real)

    def own(self) -> bool:
        """Leave borrowed memory for a copy, with every array that looks at it; False if it is not borrowed."""
        if not self._storage.borrowed:
            return False
        self._storage.borrowed, self._storage.ours = False, True
        self._move(dense_copy(self.root._data), None)
        return True

    def lend(self) -> None:
        """From here on the memory is shared with somebody who must not see our writes."""
        self._storage.borrowed = True
        for a in self._all():
            a._data.flags.writeable = False
            a._sign()
        moves.tick()

    def _all(self) -> list[Array]:
        """The arrays that look at this memory."""
        return list(self._storage.members or ()) or [self]

    def _move(self, data: Data, real: t.Scalar | None) -> None:
        self._storage.lie(data, address_of(data))
        for a in self._all():
            a._set(as_view(a, data), a.element if real is None else t.resolve(unresolved(a.element), real))
            if a._derived:
                # A copy in another type, or the same memory in another precision.
                a._derived = None if real is not None else {e: d for e, d in a._derived.items() if e is not t.INT32}
        moves.tick()


def _restored(data: Data, element: t.Type, requires_grad: bool) -> Array:
    return Array(data, element, requires_grad=requires_grad)


def _is_index(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _view_of(base: Array, view: Callable[[Data], Data], element: t.Type) -> Array:
    made = Array(view(base._data), element, storage=base._storage)
    made._base = base._base
    return made


def as_view(a: Array, data: Data) -> Data:
    """`data` holds what the root of `a` holds: the part of it that `a` shows."""
    if a._parent is None:
        return data
    parent, view = a._parent
    return view(as_view(parent, data))


def _beside(place: Data, data: Data) -> Any:
    """Host memory, moved to where another piece of memory is."""
    return upload(data) if is_on_gpu(place) else data
