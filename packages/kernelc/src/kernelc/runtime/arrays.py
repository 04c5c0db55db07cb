"""Arrays: typed memory that kernels read and write, shared with NumPy, torch and DLPack. Made in creation.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any
from weakref import ref

import numpy as np

from .. import types as t
from ..errors import (
    CutGradient,
    NoCuda,
    Overlap,
    ReadOnly,
    WrongDevice,
    WrongDtype,
    WrongIndex,
    WrongShape,
    WrongUse,
    public,
)
from ..structs import moves
from .cuda import dlpack
from .cuda.data import empty as device_empty
from .cuda.data import foreign, upload
from .cuda.device import device as gpu
from .halves import bits_of, from_bfloat16, to_bfloat16
from .memory import (
    Data,
    address_of,
    array_words,
    base_of,
    check_fits,
    check_no_gradient,
    dense_copy,
    is_dense,
    is_on_gpu,
    is_tensor,
    may_share,
    numpy_of,
    overlaps_itself,
    zeros_for,
)
from .recording import current
from .storage import Members, Storage, clock

_APART = "use memory with a place for every element: np.ascontiguousarray(data), tensor.contiguous()"
_SIGNATURES: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_COUNTED = 2**31
"""How many numbers an int32 counts."""


@cache
def _facts(element: t.Type) -> tuple[int, t.Scalar | None]:
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


def _is_large(element: t.Type, data: Data, shape: tuple[int, ...]) -> bool | tuple[bool, ...]:
    """Whether 32 bits do not count the numbers of an array; if one of its axes alone is too long for them, which."""
    axes = tuple([n >= _COUNTED for n in shape])
    if True in axes:
        return axes
    return data.nbytes >= _COUNTED and prod(shape) * len(t.leaves(element)) >= _COUNTED



class Array:
    """`n` elements of a kernel type in memory. Make one with kc.array, kc.zeros, …"""

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
            _check_gradient(element)
        self.requires_grad = requires_grad

    def _set(self, data: Data, element: t.Type, address: int = 0) -> None:
        """Point at memory, whose address NumPy is slow to tell; everything that a launch needs is computed once."""
        self._data, self.element = data, element
        trailing, self.real = _facts(element)
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

    def __repr__(self) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        where = ', device="cuda"' if is_on_gpu(self._data) else ""
        return f"kc.array({np.array2string(self.numpy(), threshold=20)}, dtype={self.element!r}{where}{grad})"

    def __float__(self) -> float:
        return float(self._one())

    def __int__(self) -> int:
        return int(self._one())

    @public
    def _one(self) -> Any:
        if self._data.size != 1:
            raise WrongShape(f"an array of shape {self.shape} is not one number")
        return self.numpy().reshape(-1)[0]

    # -- out
    def numpy(self) -> Data:
        """The memory as a NumPy array, shared; of a GPU, a copy. Writes through it are not seen by tapes.

        NumPy has no bfloat16: of those it is a copy in float32, which cannot be written to.
        """
        if not holds_bfloats(self.element):
            return self._host()
        numbers = from_bfloat16(self._host())
        numbers.flags.writeable = False
        return numbers

    def _host(self) -> Data:
        """The memory as it is; of a GPU, a copy."""
        data: Any = self._data
        return data.host() if is_on_gpu(data) else self._data

    @public
    def item(self) -> Any:
        """The one number of an array of one element, as a Python number."""
        return self._one().item()

    def tolist(self) -> Any:
        """The numbers as nested lists of Python numbers; vectors and matrices are lists, structs are tuples."""
        return self.numpy().tolist()

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

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How torch, CuPy and Numba share memory of a GPU."""
        data = self._data
        if not is_on_gpu(data) or data.dtype.fields is not None:
            raise AttributeError("only arrays of numbers on a GPU have a __cuda_array_interface__")
        strides = None if data.flags.c_contiguous else data.strides
        where = (data.ctypes.data if data.size else 0, not data.flags.writeable)
        about = {"shape": data.shape, "typestr": data.dtype.str, "data": where, "strides": strides, "version": 3}
        # Launches may still be at work there; 1 stands for the default stream.
        return about | {"stream": data.device.stream or 1}

    @public
    def torch(self) -> Any:
        """The memory as a torch tensor, shared; a copy of what torch cannot refer to (read-only, negative strides)."""
        import torch

        data = self._data
        if data.dtype.fields is not None:
            raise WrongDtype(f"torch has no tensors of {self.element!r}")
        if is_on_gpu(data):
            if not (torch.version.cuda or torch.version.hip):
                raise NoCuda("this torch was built without CUDA: it has no tensors on a GPU",
                             advice='use a.to("cpu").torch(), or install a torch for CUDA')  # fmt: skip
            return torch.as_tensor(self, device=f"cuda:{gpu().ordinal}")  # not torch's current one
        if not data.flags.writeable or any(s < 0 for s in data.strides):
            data = data.copy()
        tensor = torch.from_numpy(data.view(np.int16) if holds_bfloats(self.element) else data)
        if holds_bfloats(self.element):
            tensor = tensor.view(torch.bfloat16)
        if data is self._data:
            self._storage.show(ref(tensor))
        return tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Data:
        if dtype is None and not copy:
            return self.numpy()
        return np.array(self.numpy(), dtype=dtype) if copy else np.asarray(self.numpy(), dtype=dtype)

    @public
    def __dlpack__(self, **options: Any) -> Any:
        if is_on_gpu(self._data):
            raise WrongDevice("memory on a GPU is shared by __cuda_array_interface__, not by DLPack",
                              advice="use a.torch(), or a.to(\"cpu\")")  # fmt: skip
        if holds_bfloats(self.element):
            return self.torch().__dlpack__(**options)  # NumPy knows no bfloat16
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if is_on_gpu(self._data) else (1, 0)

    def __reduce__(self) -> Any:
        """Copies and pickles have memory of their own; gradients, tapes and views stay behind. A leaf's are leaves."""
        if not self.root.requires_grad:
            check_not_carried(self)
        return _restored, (np.array(self._host()), self.element, self.requires_grad)

    # -- gradient
    @property
    def grad(self) -> Array | None:
        """The gradient that `backward` adds to; None for arrays that carry none."""
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
            _check_gradient(self.element)
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
        return self.assign(spread(value, self._data.shape, _numbers_of(self.element)))

    @public
    def assign(self, source: Any) -> Array:
        """Copy the content of an array, or anything like one, into this one."""
        data = source if isinstance(source, Array) else device_memory(source) or numbers(source)
        shape = data._data.shape if isinstance(data, Array) else data.shape
        if shape != self._data.shape:
            raise WrongShape(f"assign: shape {shape} does not fit {self._data.shape}")
        data = self._bits(data)
        held = data._data if isinstance(data, Array) else data
        _check_fields(held.dtype, self._data.dtype)
        if not is_on_gpu(held):
            check_fits(held, self._data.dtype)
        return self._write("assign", data)

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
            a._set(as_view(a, data), a.element if real is None else t.resolve(_unresolved(a.element), real))
            if a._derived:
                # A copy in another type, or the same memory in another precision.
                a._derived = None if real is not None else {e: d for e, d in a._derived.items() if e is not t.INT32}
        moves.tick()


def _restored(data: Data, element: t.Type, requires_grad: bool) -> Array:
    return Array(data, element, requires_grad=requires_grad)


def _check_gradient(element: t.Type) -> None:
    if not any(s.is_float for s in t.leaves(element)):
        raise WrongDtype(f"only real arrays can require a gradient, not {element!r}")


def _check_fields(given: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    """Whether structs are alike: NumPy would copy their fields by position, whatever they are called."""
    if given.names != wanted.names:
        raise WrongDtype(f"assign: data of {given} does not fit an array of {wanted}",
                         advice="assign data with the same fields, in the same order")  # fmt: skip
    for name in wanted.names or ():
        _check_fields(given[name], wanted[name])


def _is_index(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _unresolved(element: t.Type) -> t.Type:
    if isinstance(element, t.Composite):
        return element.with_scalar(t.REAL)
    return t.REAL


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


def offers_device_memory(data: Any) -> bool:
    """Whether this is memory of a GPU that somebody else has."""
    if is_tensor(data):
        return bool(data.is_cuda)
    return hasattr(data, "__cuda_array_interface__") or dlpack.is_offered(data)


def device_memory(data: Any) -> Any:
    """The memory of a torch tensor on a GPU, or of anything else that offers some; else None."""
    if not offers_device_memory(data):
        return None
    if is_tensor(data):
        check_no_gradient(data)
        return foreign(data.detach())
    return foreign(data) if hasattr(data, "__cuda_array_interface__") else dlpack.taken(data)


def _plain(data: Any) -> Any:
    """A NumPy-readable view of an array, a torch tensor, or anything else."""
    if isinstance(data, Array):
        return data.numpy()
    if isinstance(data, (np.ma.MaskedArray, list, tuple)):
        _check_no_mask(data)
    if is_tensor(data) and data.is_cuda:
        return device_memory(data).host()
    bits = bits_of(data)
    if bits is not None:
        return from_bfloat16(bits)
    if is_tensor(data):
        return numpy_of(data)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__") and not hasattr(data, "__array_interface__"):
        return np.from_dlpack(data)
    return data


def _check_no_mask(data: Any) -> None:
    """Kernels know no masks: to them, what is masked would be a number like others."""
    if isinstance(data, np.ma.MaskedArray):
        if np.ma.is_masked(data):
            raise WrongDtype("elements of the data are masked, and kernels do not know masks",
                             advice="say what they are: data.filled(0.0), data.filled(np.nan)")  # fmt: skip
    elif isinstance(data, (list, tuple)):
        for part in data:
            _check_no_mask(part)


def check_not_carried(data: Any) -> None:
    """While a tape records, a copy that it does not see would end the gradient of an array."""
    tape = current()
    if tape is None:
        return
    for a in data if isinstance(data, (list, tuple)) else (data,):
        if isinstance(a, Array) and tape._carries(a):
            raise CutGradient("an array that carries a gradient on this tape would be copied as a constant",
                              advice="copy it by b.assign(a), or in a kernel; a.numpy() is a constant")  # fmt: skip


def numbers(data: Any) -> Data:
    """Data of any kind as a NumPy array of numbers."""
    check_no_gradient(data)
    check_not_carried(data)
    try:
        found = np.asarray(_plain(data))
    except ValueError as error:  # lists of unequal length
        raise WrongShape(f"the data is no array: {error}") from None
    if found.dtype.kind not in "biufV":
        raise WrongDtype(f"an array of {found.dtype} is not supported; use integers, bool, float32 or float64")
    return found


def _numbers_of(element: t.Type) -> np.dtype[Any]:
    """The NumPy numbers that an array is filled with."""
    return np.dtype(np.float32) if holds_bfloats(element) else t.element_dtype(element)[0]


def spread(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Data:
    """One value as the content of every element."""
    check_no_gradient(value)
    check_not_carried(value)
    try:
        held = np.asarray(_plain(value), dtype if dtype.names is not None else None)
        if held.dtype.kind not in "biufV":  # NumPy would leave out imaginary parts, and read texts
            raise TypeError(f"{held.dtype} is no type of numbers")
        check_fits(held, dtype)
        return np.broadcast_to(held.astype(dtype, copy=False), shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise WrongShape(f"{value!r} cannot fill an array of shape {shape}: {error}") from None
