"""Making arrays: from NumPy, torch and DLPack without a copy, from lists, and filled ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import types as t
from ..config import config
from ..errors import WrongChoice, WrongDevice, WrongDtype, WrongShape, WrongUse
from .arrays import Array, _check_gradient, check_not_carried, device_memory, numbers, offers_device_memory, spread
from .cuda import data as gpu
from .memory import Data, check_no_gradient, is_dense, is_on_gpu, is_tensor

UNINITIALISED = 0x7FA1DEAD
"""What `kc.empty` holds in debug mode."""
_MOST_DIMENSIONS = 4


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
    plain = numbers(data)
    wanted = t.as_type(dtype) if dtype is not None else t.REAL if real is not None else None
    element = _element_for(plain, wanted, real, weak)
    made = _fitted(plain, element, copy)
    adapts = weak and _is_polymorphic(wanted) and made.dtype == np.float32
    source = plain.astype(np.float64).reshape(made.shape) if adapts else None
    moved = home(device) == "cuda"
    result = Array(gpu.upload(made).as_array() if moved else made, element, requires_grad=requires_grad, source=source)
    result._storage.ours = weak or copy or moved
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
        element = t.resolve(t.as_type(dtype), data.real or t.FLOAT32)
        made = data.as_element(element)
        if made is None:
            check_not_carried(data)
            return array(data._data, dtype, requires_grad)
        made = made._view(lambda data: data, element)
    assert made is not None
    if requires_grad:
        _check_gradient(made.element)
        made.requires_grad = True
    return made


def _fitted(plain: Data, element: t.Type, copy: bool) -> Data:
    """The data as memory of an element type; the same memory where it is one already."""
    base, trailing = t.element_dtype(element)
    n = len(trailing)
    if n and (plain.ndim < n or plain.shape[plain.ndim - n :] != trailing):
        if plain.size:
            raise WrongShape(f"data of shape {plain.shape} does not end in {trailing}, as {element!r} needs")
        plain = plain.reshape(*plain.shape[:1], *trailing)
    made = _converted(plain, base)
    if copy and made is plain:
        made = made.copy()
    if made.ndim == n:
        made = made.reshape(1, *trailing)
    if made.ndim - n > _MOST_DIMENSIONS + (2 if n == 0 else 0):
        # Two more are accepted of scalars: they may be the components of vectors and matrices to a kernel.
        raise WrongShape(f"arrays have at most {_MOST_DIMENSIONS} dimensions, not {made.ndim - n}")
    if (n and not is_dense(made, n)) or not made.flags.aligned or not made.dtype.isnative:
        made = np.array(made, order="C", dtype=base)
    return made


def _converted(plain: Data, base: np.dtype[Any]) -> Data:
    if plain.dtype == base:
        return plain
    if base.fields is not None:
        return _converted_struct(plain, base)
    if base.kind in "iu" and plain.dtype.kind in "iu" and plain.size:
        limits = np.iinfo(base)
        if plain.min() < limits.min or plain.max() > limits.max:
            raise WrongDtype(f"the data holds numbers that do not fit {base}", advice="use dtype=kc.int64")
    return plain.astype(base)


def copied(a: Array, element: t.Type) -> Array:
    """A copy of an array for kernels that want another element type or layout, and only read it."""
    data = np.array(_converted(a.numpy(), t.element_dtype(element)[0]), order="C")
    made = Array(gpu.upload(data).as_array() if is_on_gpu(a._data) else data, t.leaves(element)[0])
    made.origin = a
    return made


def refresh(a: Array) -> None:
    """Take over what the array holds now that this one is a copy of."""
    assert a.origin is not None
    a._data[...] = _converted(a.origin.numpy(), a._data.dtype)


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
    if any(k.kind not in "biuf" or (k.kind == "f" and k.itemsize not in (4, 8)) for k in kinds):
        raise WrongDtype(f"an array of {data.dtype} is not supported; use integers, bool, float32 or float64")
    precision = _precision(real) if real is not None else None
    if precision is None:
        double = not weak and any(k.kind == "f" for k in kinds) and all(k.itemsize == 8 for k in kinds if k.kind == "f")
        precision = t.FLOAT64 if double else t.FLOAT32
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
        raise WrongDtype(f"an array of {data.dtype} is not supported; use int32, int64, uint32, bool or reals",
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


def from_torch(tensor: Any, dtype: Any = None, requires_grad: bool | None = None) -> Array:
    """A torch tensor's memory as an array, shared.

    requires_grad: whether the array is a leaf, whose gradient goes to its own `.grad`; by default, as a leaf of torch.
    """
    if not is_tensor(tensor):
        raise WrongDtype(f"from_torch takes a tensor, not {type(tensor).__name__}")
    wants = bool(tensor.requires_grad and tensor.is_leaf) if requires_grad is None else requires_grad
    return array(tensor if requires_grad is None else tensor.detach(), dtype, wants)


def from_dlpack(source: Any, dtype: Any = None, requires_grad: bool = False) -> Array:
    """The memory of anything that speaks DLPack, shared."""
    if is_tensor(source):
        if not requires_grad:
            check_no_gradient(source)
        source = source.detach()
    if offers_device_memory(source):
        return array(source, dtype, requires_grad)
    if not hasattr(source, "__dlpack__"):
        raise WrongUse(f"{type(source).__name__} does not speak DLPack", advice="use kc.array(data)")
    kind = source.__dlpack_device__()[0] if hasattr(source, "__dlpack_device__") else 1
    if kind != 1:
        raise WrongDevice(f"memory on DLPack device {int(kind)} cannot be used on the CPU")
    return array(np.from_dlpack(source), dtype, requires_grad)


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
    if (device is not None or config.device == "cuda") and home(device) == "cuda":
        return _own(_on_gpu(make, sizes, base), element, requires_grad)
    return _own(make(sizes, base), element, requires_grad)


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


def zeros(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Zeros; float32 unless real=kc.float64 or the dtype says otherwise."""
    return _new(np.zeros, shape, dtype, real, requires_grad, device)


def ones(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Ones in every component."""
    return _new(np.ones, shape, dtype, real, requires_grad, device)


def empty(
    shape: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None, device: str | None = None
) -> Array:
    """Memory without content; debug mode reports reads of it."""
    made = _new(np.empty, shape, dtype, real, requires_grad, device)
    if config.debug and made._data.dtype.itemsize % 4 == 0:
        marked = np.full(made._data.nbytes // 4, UNINITIALISED, np.uint32)
        made._data[...] = marked.view(made._data.dtype).reshape(made._data.shape)
    return made


def full(
    shape: Any, value: Any, dtype: Any = float, requires_grad: bool = False, *, real: Any = None,
    device: str | None = None,
) -> Array:  # fmt: skip
    """Every element the given value."""
    made = _new(np.zeros, shape, dtype, real, requires_grad, device)
    made._data[...] = spread(value, made._data)
    return made


def zeros_like(other: Any, requires_grad: bool = False) -> Array:
    """Zeros of the same shape and type. The gradient flag is not inherited."""
    like = other if isinstance(other, Array) else array(other)
    shape, dtype = like._data.shape, like._data.dtype
    made = gpu.zeros(shape, dtype).as_array() if is_on_gpu(like._data) else np.zeros(shape, dtype)
    return _own(made, like.element, requires_grad)


def empty_like(other: Any, requires_grad: bool = False) -> Array:
    """Memory of the same shape and type."""
    like = other if isinstance(other, Array) else array(other)
    return empty(like.shape, like.element, requires_grad, device=like.device)


def scalar(value: float, requires_grad: bool = False, *, real: Any = None, device: str | None = None) -> Array:
    """One number as an array, so that it can require a gradient where a kernel takes a number."""
    if not isinstance(value, (int, float, np.number)) and not hasattr(value, "item"):
        raise WrongDtype(f"kc.scalar takes a number, not {type(value).__name__}")
    if not requires_grad:
        check_no_gradient(value)
    return array([float(value)], float, requires_grad, real=real, device=device)
