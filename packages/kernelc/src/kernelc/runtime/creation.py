"""Making arrays: from NumPy, torch and DLPack without a copy, from lists, and filled ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import types as t
from ..config import config
from ..errors import WrongChoice, WrongDevice, WrongDtype, WrongShape, WrongUse, public
from .arrays import Array
from .content import (
    check_copied,
    check_not_carried,
    device_memory,
    numbers,
    offers_device_memory,
    spread,
    taken_by_dlpack,
)
from .cuda import data as gpu
from .elements import check_gradient, holds_bfloats, numbers_of
from .halves import bits_of, to_bfloat16
from .memory import Data, check_fits, check_no_gradient, is_dense, is_on_gpu, is_tensor

UNINITIALISED = 0x7FA1DEAD
"""What `kc.empty` holds in debug mode."""
_MOST_DIMENSIONS = 4


@public
def array(
    data: Any, dtype: Any = None, requires_grad: bool = False, *, real: Any = None, copy: bool = False,
    device: str | None = None,
) -> Array:  # fmt: skip
    """An array from NumPy, torch, DLPack (shared), or from Python lists and numbers (copied).

    dtype: an element type; `float` and `kc.float3` take the precision of the data (float32 for lists).
    device: "cpu" or "cuda"; where the data is already, else where kc.config.device says. Memory of the host that goes
    to a GPU is copied.
    """
    if requires_grad and is_tensor(data):
        data = data.detach()  # a leaf of its own: its gradient is asked for here, not by torch
    if isinstance(data, Array) and not copy and real is None and device in (None, data.device):
        return _again(data, dtype, requires_grad)
    there: Any = data._data if isinstance(data, Array) else device_memory(data)
    if is_on_gpu(there):
        if real is None and (device is None or home(device) == "cuda"):
            return _array_on_gpu(there, dtype, requires_grad, copy)
        data, device = there.host(), device or "cuda"
    weak = isinstance(data, (list, tuple, int, float)) and real is None
    wanted = t.as_type(dtype) if dtype is not None else t.REAL if real is not None else None
    bits = _bfloats(data, wanted)
    if bits is not None:
        return _shown(_array_of_bits(bits, wanted or t.BFLOAT16, requires_grad, copy, device), data)
    plain = numbers(data)
    element = _element_for(plain, wanted, real, weak)
    made = _fitted(plain, element, copy)
    if not np.may_share_memory(made, plain):
        check_copied(data)
    adapts = weak and _is_polymorphic(wanted) and made.dtype == np.float32
    source = plain.astype(np.float64).reshape(made.shape) if adapts else None
    moved = home(device) == "cuda"
    result = Array(gpu.upload(made).as_array() if moved else made, element, requires_grad=requires_grad, source=source)
    result._storage.ours = weak or copy or moved
    return _shown(result, data)


def _shown(a: Array, data: Any) -> Array:
    """The array; where it shares the memory of a tensor, torch hears of what is written to it."""
    if is_tensor(data) and not is_on_gpu(a._data) and data.numel() and data.data_ptr() == a._data.ctypes.data:
        alias = data.detach()  # counts writes together with the tensor itself, and lives as long as the memory
        a._storage.show(lambda: alias)
    return a


def _bfloats(data: Any, wanted: t.Type | None) -> Data | None:
    """The bits of bfloat16 numbers, if such are given, and wanted."""
    if wanted is not None and not holds_bfloats(wanted):
        return None
    found = data._host() if isinstance(data, Array) and holds_bfloats(data.element) else bits_of(data)
    if found is not None:
        check_no_gradient(data)
        check_not_carried(data)
    return found


def _array_of_bits(bits: Data, element: t.Type, requires_grad: bool, copy: bool, device: str | None) -> Array:
    made = _fitted(bits, element, copy, bits=True)
    moved = home(device) == "cuda"
    result = Array(gpu.upload(made).as_array() if moved else made, element, requires_grad=requires_grad)
    result._storage.ours = copy or moved
    return result


def home(device: str | None) -> str:
    """Where an array is made: "cpu" or "cuda"."""
    where = device or config.device
    if device not in (None, "cpu", "cuda"):
        raise WrongDevice(f"an array cannot be made on {device!r}", advice='use "cpu" or "cuda"')
    return "cuda" if where == "cuda" else "cpu"


def _array_on_gpu(data: Any, dtype: Any, requires_grad: bool, copy: bool) -> Array:
    """An array of memory that is on a GPU already; shared unless a copy is asked for."""
    reals = [k for k in _scalars(data.dtype) if k.kind == "f"]
    precision = t.FLOAT64 if reals and all(k.itemsize == 8 for k in reals) else t.FLOAT32
    element = t.resolve(t.as_type(dtype), precision) if dtype is not None else _element_for(data, None, None, False)
    base, trailing = t.element_dtype(element)
    n = len(trailing)
    if data.dtype != base or (n and data.shape[data.ndim - n :] != trailing):
        raise WrongDtype(f"memory of {data.dtype} in shape {data.shape} on a GPU is no array of {element!r}",
                         advice="convert it where it comes from")  # fmt: skip
    if data.ndim == n:
        data = data.reshape(1, *trailing)
    if copy or not is_dense(data, n):
        data = data.copy()
    return Array(data, element, requires_grad=requires_grad)


def _again(data: Array, dtype: Any, requires_grad: bool) -> Array:
    """An array of an array is a view: writes are seen, and gradients arrive."""
    made: Array | None = data._view(lambda data: data, data.element)
    if dtype is not None:
        element = t.resolve(t.as_type(dtype), t.FLOAT64 if data.real is t.FLOAT64 else t.FLOAT32)
        made = data.as_element(element)
        if made is None:
            check_not_carried(data)
            bare = data._data if is_on_gpu(data._data) or not holds_bfloats(data.element) else data.numpy()
            return array(bare, dtype, requires_grad)
        made = made._view(lambda data: data, element)
    assert made is not None
    if requires_grad:
        check_gradient(made.element)
        made.requires_grad = True
    return made


def _fitted(plain: Data, element: t.Type, copy: bool, *, bits: bool = False) -> Data:
    """The data as memory of an element type; the same memory where it is one already. `bits`: it is, of bfloat16."""
    base, trailing = t.element_dtype(element)
    n = len(trailing)
    if n and (plain.ndim < n or plain.shape[plain.ndim - n :] != trailing):
        if plain.size:
            raise WrongShape(f"data of shape {plain.shape} does not end in {trailing}, as {element!r} needs")
        plain = plain.reshape(*plain.shape[:1], *trailing)
    made = plain if bits else converted(plain, element)
    if made is plain:
        # Whoever has the object may give it another shape or type in place: it is seen through one that stays.
        made = made.copy() if copy else made.view()
    if made.ndim == n:
        made = made.reshape(1, *trailing)
    if made.ndim - n > _MOST_DIMENSIONS + (2 if n == 0 else 0):
        # Two more are accepted of scalars: they may be the components of vectors and matrices to a kernel.
        raise WrongShape(f"arrays have at most {_MOST_DIMENSIONS} dimensions, not {made.ndim - n}")
    if (n and not is_dense(made, n)) or not made.flags.aligned or not made.dtype.isnative:
        made = np.array(made, order="C", dtype=base)
    return made


def converted(plain: Data, element: t.Type) -> Data:
    """Numbers as memory of an element type holds them."""
    if plain.dtype.fields is not None and not isinstance(element, t.Struct):
        raise WrongDtype(f"structured data of {plain.dtype} is no array of numbers",
                         advice="give one of its fields, data[name]; or dtype=, the @kc.struct it holds")  # fmt: skip
    return to_bfloat16(plain) if holds_bfloats(element) else _converted(plain, t.element_dtype(element)[0])


def _converted(plain: Data, base: np.dtype[Any]) -> Data:
    if plain.dtype == base:
        return plain
    if base.fields is not None:
        return _converted_struct(plain, base)
    check_fits(plain, base)
    return plain.astype(base)


def copied(a: Array, element: t.Type) -> Array:
    """A copy of an array for kernels that want another element type or layout, and only read it."""
    data = np.array(_taken(a, t.leaves(element)[0]), order="C")
    made = Array(gpu.upload(data).as_array() if is_on_gpu(a._data) else data, t.leaves(element)[0])
    made.origin = a
    return made


def refresh(a: Array) -> None:
    """Take over what the array holds now that this one is a copy of."""
    assert a.origin is not None
    a._data[...] = _taken(a.origin, a.element)


def _taken(a: Array, element: t.Type) -> Data:
    """What an array holds, as memory of another."""
    return a._host() if holds_bfloats(a.element) and holds_bfloats(element) else converted(a.numpy(), element)


def _converted_struct(plain: Data, base: np.dtype[Any]) -> Data:
    # By name: NumPy itself assigns fields by their position.
    if plain.dtype.names is None or set(plain.dtype.names) != set(base.names or ()):
        raise WrongDtype(f"the data has the fields {plain.dtype.names}, not {base.names}")
    made = np.zeros(plain.shape, base)
    for name in base.names or ():
        if made[name].dtype.fields is not None:
            made[name] = _converted_struct(plain[name], made[name].dtype)
        else:
            made[name] = plain[name]
    return made


def _is_polymorphic(wanted: t.Type | None) -> bool:
    return wanted is None or wanted is t.REAL or (isinstance(wanted, t.Composite) and wanted.scalar is t.REAL)


def _element_for(data: Data, wanted: t.Type | None, real: Any, weak: bool) -> t.Type:
    kinds = list(_scalars(data.dtype))
    if any(k.kind not in "biuf" or (k.kind == "f" and k.itemsize not in (2, 4, 8)) for k in kinds):
        raise WrongDtype(f"an array of {data.dtype} is not supported; use integers, bool, float16, float32 or float64")
    precision = _precision(real) if real is not None else None
    if precision is None:
        double = not weak and any(k.kind == "f" for k in kinds) and all(k.itemsize == 8 for k in kinds if k.kind == "f")
        precision = t.FLOAT64 if double else t.FLOAT32
    if wanted is not None:
        return t.resolve(wanted, precision)
    if data.dtype.kind == "f":
        return t.FLOAT16 if data.dtype.itemsize == 2 and real is None else precision
    if data.dtype.kind == "V":
        raise WrongDtype("structured data needs dtype=, the @kc.struct it holds")
    if weak and data.dtype == np.int64:
        return t.INT32
    try:
        return t.as_type(data.dtype)
    except TypeError:
        raise WrongDtype(f"an array of {data.dtype} is not supported; use integers, bool or reals",
                         advice="convert it: kc.array(data, dtype=int)") from None  # fmt: skip


def _precision(real: Any) -> t.Scalar:
    kind = t.as_type(real)
    if kind is not t.FLOAT32 and kind is not t.FLOAT64:
        raise WrongChoice(f"real cannot be {kind!r}", advice="choose one of kc.float32, kc.float64")
    assert isinstance(kind, t.Scalar)
    return kind


def _scalars(dtype: np.dtype[Any]) -> Any:
    """The number types that a NumPy dtype is made of."""
    if dtype.fields is not None:
        for inner, *_ in dtype.fields.values():
            yield from _scalars(inner)
    else:
        yield dtype.base


@public
def from_torch(tensor: Any, dtype: Any = None, requires_grad: bool | None = None) -> Array:
    """A torch tensor's memory as an array, shared.

    requires_grad: whether the array is a leaf, whose gradient goes to its own `.grad`; by default, as a leaf of torch.
    """
    if not is_tensor(tensor):
        raise WrongDtype(f"from_torch takes a tensor, not {type(tensor).__name__}")
    wants = bool(tensor.requires_grad and tensor.is_leaf) if requires_grad is None else requires_grad
    return array(tensor if requires_grad is None else tensor.detach(), dtype, wants)


@public
def from_dlpack(source: Any, dtype: Any = None, requires_grad: bool = False) -> Array:
    """The memory of anything that speaks DLPack, shared."""
    if is_tensor(source):
        if not requires_grad:
            check_no_gradient(source)
        source = source.detach()
    if offers_device_memory(source):
        return array(source, dtype, requires_grad)
    if is_tensor(source):
        return array(source, dtype, requires_grad)  # DLPack would leave out that it is negated, and what torch counts
    if not hasattr(source, "__dlpack__"):
        raise WrongUse(f"{type(source).__name__} does not speak DLPack", advice="use kc.array(data)")
    kind = source.__dlpack_device__()[0] if hasattr(source, "__dlpack_device__") else 1
    if kind != 1:
        raise WrongDevice(f"memory on DLPack device {int(kind)} cannot be used on the CPU")
    return array(source if bits_of(source) is not None else taken_by_dlpack(source), dtype, requires_grad)


def _shape(shape: Any) -> tuple[int, ...]:
    if shape.__class__ is int and shape >= 0:
        return (shape,)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(not isinstance(n, (int, np.integer)) or n < 0 for n in sizes):
        raise WrongShape(f"a shape is made of whole numbers, not {shape!r}")
    if not 1 <= len(sizes) <= _MOST_DIMENSIONS + 2:
        raise WrongShape(f"arrays have 1 to {_MOST_DIMENSIONS} dimensions, not {len(sizes)}")
    return tuple(int(n) for n in sizes)


def _new(
    make: Callable[..., Data], shape: Any, dtype: Any, real: Any, requires_grad: bool, device: str | None = None
) -> Array:
    try:
        element, base, trailing = _layout(dtype, real)
    except TypeError:  # raised by as_type, or dtype is not hashable: as_type says what is wrong
        element, base, trailing = _layout.__wrapped__(dtype, real)
    sizes = _shape(shape) + trailing
    if make is np.ones and holds_bfloats(element):
        make = _bfloat_ones
    if (device is not None or config.device == "cuda") and home(device) == "cuda":
        return _own(_on_gpu(make, sizes, base), element, requires_grad)
    return _own(make(sizes, base), element, requires_grad)


def _bfloat_ones(sizes: tuple[int, ...], base: np.dtype[Any]) -> Data:
    return np.full(sizes, to_bfloat16(1.0), base)


def _on_gpu(make: Callable[..., Data], sizes: tuple[int, ...], base: np.dtype[Any]) -> Any:
    known: dict[Any, Callable[..., Any]] = {np.zeros: gpu.zeros, np.empty: gpu.empty}
    return known[make](sizes, base) if make in known else gpu.upload(make(sizes, base))


@lru_cache(maxsize=256)
def _layout(dtype: Any, real: Any) -> tuple[t.Type, np.dtype[Any], tuple[int, ...]]:
    precision = _precision(real) if real is not None else t.FLOAT32
    element = t.resolve(t.as_type(dtype), precision)
    return element, *t.element_dtype(element)


def _own(data: Data, element: t.Type, requires_grad: bool) -> Array:
    made = Array(data, element, requires_grad=requires_grad)
    made._storage.ours = True
    return made


@public
def zeros(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Zeros; float32 unless real=kc.float64 or the dtype says otherwise."""
    return _new(np.zeros, shape, dtype, real, requires_grad, device)


@public
def ones(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Ones in every component."""
    return _new(np.ones, shape, dtype, real, requires_grad, device)


@public
def empty(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Memory without content; debug mode reports reads of it."""
    made = _new(np.empty, shape, dtype, real, requires_grad, device)
    if config.debug and made._data.dtype.itemsize % 4 == 0:
        marked = np.full(made._data.nbytes // 4, UNINITIALISED, np.uint32)
        made._data[...] = marked.view(made._data.dtype).reshape(made._data.shape)
    return made


@public
def full(
    shape: Any, value: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None,
    device: str | None = None,
) -> Array:  # fmt: skip
    """Every element the given value."""
    made = _new(np.zeros, shape, dtype, real, requires_grad, device)
    made._data[...] = made._bits(spread(value, made._data.shape, numbers_of(made.element)))
    return made


@public
def zeros_like(other: Any, requires_grad: bool = False) -> Array:
    """Zeros of the same shape and type. The gradient flag is not inherited."""
    like = other if isinstance(other, Array) else array(other)
    shape, dtype = like._data.shape, like._data.dtype
    made = gpu.zeros(shape, dtype).as_array() if is_on_gpu(like._data) else np.zeros(shape, dtype)
    return _own(made, like.element, requires_grad)


@public
def empty_like(other: Any, requires_grad: bool = False) -> Array:
    """Memory of the same shape and type."""
    like = other if isinstance(other, Array) else array(other)
    return empty(like.shape, like.element, requires_grad, device=like.device)


@public
def scalar(value: float, requires_grad: bool = False, *, real: Any = None, device: str | None = None) -> Array:
    """One number as an array, so that it can require a gradient where a kernel takes a number."""
    if not isinstance(value, (int, float, np.number)) and not hasattr(value, "item"):
        raise WrongDtype(f"kc.scalar takes a number, not {type(value).__name__}")
    if not requires_grad:
        check_no_gradient(value)
    return array([float(value)], float, requires_grad, real=real, device=device)
