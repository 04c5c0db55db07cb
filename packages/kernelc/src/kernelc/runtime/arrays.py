"""Arrays: typed memory that kernels read and write, shared with NumPy, torch and DLPack, with a version and a gradient."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import types as t
from ..config import config
from ..errors import WrongDtype, WrongShape
from .recording import current

_SIGNATURES: dict[tuple[Any, ...], tuple[Any, ...]] = {}
UNINITIALISED = 0x7FA1DEAD


class Storage:
    """Identity of a piece of memory. `version` counts its writes, those of views included."""

    __slots__ = ("root", "version")

    def __init__(self, root: Array):
        self.version = 0
        self.root = root


class Array:
    """`n` elements of a kernel type in memory. Make one with kc.array, kc.zeros, …"""

    __slots__ = (
        "__weakref__", "_base", "_carries", "_data", "_derived", "_grad", "_parent", "_sig", "_source", "_storage",
        "_words", "element", "ndim", "requires_grad", "shape",
    )  # fmt: skip
    _data: np.ndarray[Any, Any]
    element: t.Type

    def __init__(self, data: np.ndarray[Any, Any], element: t.Type, *, requires_grad: bool = False, weak: bool = False):
        self._parent: tuple[Array, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] | None = None
        self._grad: Array | None = None
        self._derived: dict[Any, Array] = {}
        self._source = np.array(data, np.float64) if weak else None
        self._storage = Storage(self)
        self._carries = False
        self._set(data, element)
        if requires_grad and not t.leaves(element)[0].is_float and not isinstance(element, t.Struct):
            raise WrongDtype(f"only real arrays can require a gradient, not {element!r}")
        self.requires_grad = requires_grad

    def _set(self, data: np.ndarray[Any, Any], element: t.Type) -> None:
        """Point at memory; everything that a launch needs is computed here, once."""
        self._data, self.element = data, element
        trailing = len(t.element_dtype(element)[1])
        self.ndim = data.ndim - trailing
        self.shape: tuple[int, ...] = data.shape[: self.ndim]
        self._base = _base_of(data)
        self._words = struct.pack(f"<{5 + 3 * self.ndim}q", data.ctypes.data, 0, 0, 0, 0, *self.shape,
                                  *data.strides[: self.ndim], *([0] * self.ndim))  # fmt: skip
        key = (element, self.ndim, bool(data.flags.c_contiguous), bool(data.flags.writeable), self._source is not None)
        self._sig = _SIGNATURES.setdefault(key, key)

    # -- what it is
    @property
    def dtype(self) -> t.Type:
        """The element type."""
        return self.element

    @property
    def real(self) -> t.Scalar | None:
        """The precision of its reals, or None for integers and bools."""
        return next((s for s in t.leaves(self.element) if s.is_float), None)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def version(self) -> int:
        """How often its memory was written by launches, `assign` and `zero_`."""
        return self._storage.version

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        return f"kc.array({np.array2string(self._data, threshold=20)}, dtype={self.element!r}{grad})"

    def __float__(self) -> float:
        return float(self._one())

    def __int__(self) -> int:
        return int(self._one())

    def _one(self) -> Any:
        if self._data.size != 1:
            raise WrongShape(f"an array of shape {self.shape} is not one number")
        return self._data.reshape(-1)[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._data, dtype=dtype, copy=copy) if dtype or copy else self._data

    def __dlpack__(self, **options: Any) -> Any:
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    # -- out
    def numpy(self) -> np.ndarray[Any, Any]:
        """The memory as a NumPy array, shared. Writes through it are not seen by tapes."""
        return self._data

    def torch(self) -> Any:
        """The memory as a torch tensor, shared."""
        import torch

        return torch.from_numpy(self._data)

    # -- gradient
    @property
    def grad(self) -> Array | None:
        """The gradient that `backward` adds to; None for arrays that carry none."""
        if self._parent is not None:
            parent, view = self._parent
            above = parent.grad
            if above is None:
                return None
            if self._grad is None or self._grad._storage is not above._storage:
                self._grad = _view_of(above, view, self.element)
            return self._grad
        if self._grad is None and (self.requires_grad or self._carries):
            self._grad = Array(np.zeros(self._data.shape, self._data.dtype), self.element)
        return self._grad

    # -- writes from Python
    def zero_(self) -> Array:
        """Set every element to zero."""
        tape = current()
        if tape is None or not tape._write(self, "zero", None):
            self._data[...] = np.zeros((), self._data.dtype)
            self._storage.version += 1
        return self

    def fill_(self, value: Any) -> Array:
        """Set every element to a value."""
        return self.assign(np.broadcast_to(np.asarray(value, self._data.dtype), self._data.shape))

    def assign(self, source: Any) -> Array:
        """Copy the content of an array, or anything like one, into this one."""
        data = source if isinstance(source, Array) else np.asarray(_plain(source))
        shape = data._data.shape if isinstance(data, Array) else data.shape
        if shape != self._data.shape:
            raise WrongShape(f"assign: shape {shape} does not fit {self._data.shape}")
        tape = current()
        if tape is None or not tape._write(self, "assign", data):
            self._data[...] = data._data if isinstance(data, Array) else data
            self._storage.version += 1
        return self

    # -- views
    def __getitem__(self, key: Any) -> Array:
        """A view: slices and indices of the leading dimensions, as in NumPy."""
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, (slice, int, np.integer)) or k is Ellipsis for k in keys):
            raise TypeError("arrays are sliced by slices and integers; use .numpy() for more")
        if len(keys) > self.ndim:
            raise WrongShape(f"{len(keys)} indices for {self.ndim} dimensions")
        full = tuple(slice(k, k + 1 or None) if isinstance(k, (int, np.integer)) and len(keys) == self.ndim else k
                     for k in keys)  # fmt: skip
        return self._view(lambda data: data[full], self.element)

    def reshape(self, *shape: int) -> Array:
        """The same memory in another shape; only for contiguous arrays."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        trailing = self._data.shape[self.ndim :]
        if not self._data.flags.c_contiguous:
            raise WrongShape("reshape needs a contiguous array")
        return self._view(lambda data: data.reshape(*sizes, *trailing), self.element)

    def _view(self, view: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], element: t.Type) -> Array:
        made = _view_of(self, view, element)
        made._parent = (self, view)
        made.requires_grad = self.requires_grad
        return made

    def as_element(self, element: t.Type) -> Array | None:
        """This array of reals seen as an array of vectors or matrices: (n, 3) as n float3."""
        if element == self.element:
            return self
        dtype, trailing = t.element_dtype(element)
        fits = self._data.dtype == dtype and self._data.ndim > len(trailing) and isinstance(self.element, t.Scalar)
        if not fits or self._data.shape[-len(trailing) :] != trailing or not _dense(self._data, len(trailing)):
            return None
        if element not in self._derived:
            self._derived[element] = self._view(lambda data: data, element)
        view = self._derived[element]
        view._carries = self._carries
        return view

    @property
    def root(self) -> Array:
        """The array whose memory and gradient this is a view of."""
        return self._parent[0].root if self._parent is not None else self

    def adapt(self, real: t.Scalar) -> None:
        """A weak array takes the precision of its first launch."""
        if self._source is None:
            return
        source, self._source = self._source, None
        element = t.resolve(_unresolved(self.element), real)
        self._set(source.astype(real.numpy) if real is not self.real else self._data, element)
        if self._grad is not None and self._grad.real is not real:
            self._grad = Array(self._grad._data.astype(real.numpy), element)


def _unresolved(element: t.Type) -> t.Type:
    if isinstance(element, t.Composite):
        return element.with_scalar(t.REAL)
    return t.REAL


def _view_of(base: Array, view: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], element: t.Type) -> Array:
    made = Array(view(base._data), element)
    made._storage = base._storage
    made._base = base._base
    return made


def _dense(data: np.ndarray[Any, Any], trailing: int) -> bool:
    """Whether the components of one element lie side by side."""
    step = data.itemsize
    for axis in range(data.ndim - 1, data.ndim - 1 - trailing, -1):
        if data.shape[axis] != 1 and data.strides[axis] != step:
            return False
        step *= data.shape[axis]
    return True


def _base_of(data: np.ndarray[Any, Any]) -> int:
    """Arrays with different bases cannot overlap; 0 for memory that NumPy does not own and nobody can tell."""
    root: Any = data
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    return root.ctypes.data if isinstance(root, np.ndarray) else 0


# -- creation
def array(data: Any, dtype: Any = None, requires_grad: bool = False, *, real: Any = None, copy: bool = False) -> Array:
    """An array from NumPy, torch, DLPack (shared), or from Python lists and numbers (copied).

    dtype: an element type; `float` and `kc.float3` take the precision of the data (float32 for lists).
    """
    if isinstance(data, Array):
        data = data._data
    weak = isinstance(data, (list, tuple, int, float)) and real is None
    plain = np.array(data) if weak else np.asarray(_plain(data))
    if plain.dtype == np.float16 or plain.dtype.kind not in "biufV":
        raise WrongDtype(f"an array of {plain.dtype} is not supported")
    wanted = t.as_type(dtype) if dtype is not None else None
    element = _element_for(plain, wanted, real, weak)
    base, trailing = t.element_dtype(element)
    if trailing and (plain.ndim < len(trailing) or plain.shape[plain.ndim - len(trailing) :] != trailing):
        if plain.size == 0:
            plain = plain.reshape(*plain.shape[:1], *trailing)
        else:
            raise WrongShape(f"data of shape {plain.shape} does not end in {trailing}, as {wanted!r} needs")
    made = np.array(plain, dtype=base, copy=True) if copy else plain.astype(base, copy=False)
    if made.ndim == len(trailing):
        made = made.reshape(1, *trailing)
    if made.ndim - len(trailing) > 4:
        raise WrongShape(f"arrays have at most 4 dimensions, not {made.ndim - len(trailing)}")
    if (trailing and not _dense(made, len(trailing))) or not made.flags.aligned or not made.dtype.isnative:
        made = np.array(made, order="C")
    adapts = weak and element in (t.FLOAT32, t.resolve(wanted or t.REAL, t.FLOAT32)) and _is_polymorphic(wanted)
    return Array(made, element, requires_grad=requires_grad, weak=adapts and made.dtype.kind == "f")


def _is_polymorphic(wanted: t.Type | None) -> bool:
    return wanted is None or wanted is t.REAL or (isinstance(wanted, t.Composite) and wanted.scalar is t.REAL)


def _element_for(data: np.ndarray[Any, Any], wanted: t.Type | None, real: Any, weak: bool) -> t.Type:
    precision = t.as_type(real) if real is not None else None
    if precision is None:
        precision = t.FLOAT64 if data.dtype == np.float64 and not weak else t.FLOAT32
    assert isinstance(precision, t.Scalar)
    if wanted is not None:
        return t.resolve(wanted, precision)
    if data.dtype.kind == "f":
        return precision
    if data.dtype.kind == "V":
        raise WrongDtype("structured data needs dtype=, the @kc.struct it holds")
    if weak and data.dtype == np.int64:
        return t.INT32
    try:
        return t.as_type(data.dtype)
    except TypeError:
        raise WrongDtype(f"an array of {data.dtype} is not supported; use int32, int64, uint32, bool or reals") from None


def _plain(data: Any) -> Any:
    """A NumPy-readable view of a torch tensor or anything else."""
    if isinstance(data, Array):
        return data._data
    if type(data).__module__.split(".")[0] == "torch":
        if data.device.type != "cpu":
            from ..errors import WrongDevice

            raise WrongDevice(f"a tensor on {data.device} cannot be used on the CPU", advice="move it with .cpu()")
        return data.detach().numpy()
    return data


def from_torch(tensor: Any, dtype: Any = None, requires_grad: bool | None = None) -> Array:
    """A torch tensor's memory as an array, shared."""
    wants = bool(tensor.requires_grad) if requires_grad is None else requires_grad
    return array(tensor, dtype, wants)


def from_dlpack(source: Any, dtype: Any = None, requires_grad: bool = False) -> Array:
    """The memory of anything that speaks DLPack, shared."""
    return array(np.from_dlpack(source), dtype, requires_grad)


def _shape(shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(not isinstance(n, (int, np.integer)) or n < 0 for n in sizes):
        raise WrongShape(f"a shape is made of whole numbers, not {shape!r}")
    return tuple(int(n) for n in sizes)


def _new(make: Callable[..., np.ndarray[Any, Any]], shape: Any, dtype: Any, real: Any, requires_grad: bool) -> Array:
    precision = t.as_type(real) if real is not None else t.FLOAT32
    assert isinstance(precision, t.Scalar)
    element = t.resolve(t.as_type(dtype), precision)
    base, trailing = t.element_dtype(element)
    return Array(make(_shape(shape) + trailing, base), element, requires_grad=requires_grad)


def zeros(shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None) -> Array:
    """Zeros; float32 unless real=kc.float64 or the dtype says otherwise."""
    return _new(np.zeros, shape, dtype, real, requires_grad)


def ones(shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None) -> Array:
    """Ones in every component."""
    return _new(np.ones, shape, dtype, real, requires_grad)


def empty(shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None) -> Array:
    """Memory without content; debug mode reports reads of it."""
    made = _new(np.empty, shape, dtype, real, requires_grad)
    if config.debug and made._data.dtype.itemsize % 4 == 0:
        made._data.reshape(-1).view(np.uint32)[...] = UNINITIALISED
    return made


def full(shape: Any, value: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None) -> Array:
    """Every element the given value."""
    made = _new(np.zeros, shape, dtype, real, requires_grad)
    made._data[...] = np.asarray(value, made._data.dtype)
    return made


def zeros_like(other: Array, requires_grad: bool = False) -> Array:
    """Zeros of the same shape and type. The gradient flag is not inherited."""
    return Array(np.zeros(other._data.shape, other._data.dtype), other.element, requires_grad=requires_grad)


def empty_like(other: Array, requires_grad: bool = False) -> Array:
    """Memory of the same shape and type."""
    return empty(other.shape, other.element, requires_grad)


def scalar(value: float, requires_grad: bool = False, *, real: Any = None) -> Array:
    """One number as an array, so that it can require a gradient where a kernel takes a number."""
    return array([float(value)], float, requires_grad, real=real)


