"""Hypothesis strategies for every type of the kernel language: numbers, vectors, rotations, structs, arrays of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.extra.numpy as numpy
import hypothesis.strategies as st
import numpy as np
from hypothesis.strategies import SearchStrategy

from .. import types as t
from ..errors import WrongType, public
from ..runtime.arrays import Array

Data = np.ndarray[Any, Any]


def scalars(
    dtype: Any = float, *, min_value: float | None = None, max_value: float | None = None,
    resolution: float | None = 2**-10,
) -> SearchStrategy[Any]:  # fmt: skip
    """Numbers of a scalar type: reals in [-2, 2], integers from 0 to 9, unless said otherwise.

    resolution: reals are multiples of it (None: any real). So there is zero, but nothing so close to it that
    differences cannot tell it from zero.
    """
    kind = t.as_type(dtype)
    if not isinstance(kind, t.Scalar):
        raise WrongType(f"{dtype!r} is not a scalar type", advice="kc.testing.values makes values of every type")
    if kind is t.BOOL:
        return st.booleans()
    low, high = _range(kind, min_value, max_value)
    if kind.is_int:
        return st.integers(int(np.ceil(low)), int(np.floor(high)))
    if resolution is None or high - low < resolution:
        if kind is t.FLOAT32:
            return st.floats(*_inside(low, high), width=32, allow_subnormal=False)
        return st.floats(low, high, allow_subnormal=False)
    steps = st.integers(int(np.ceil(low / resolution)), int(np.floor(high / resolution)))
    return steps.map(lambda k: float(kind.numpy.type(k * resolution)))


def _range(kind: t.Scalar, min_value: float | None, max_value: float | None) -> tuple[float, float]:
    """The bounds, where only one is given the other stays, or keeps its distance."""
    low, high = (-2.0, 2.0) if kind.is_float else (0.0, 9.0)
    width = high - low
    if min_value is not None and max_value is not None:
        return min_value, max_value
    if min_value is not None:
        return min_value, high if high > min_value else min_value + width
    if max_value is not None:
        return low if low < max_value else max_value - width, max_value
    return low, high


def _inside(low: float, high: float) -> tuple[float, float]:
    """The float32 numbers next to the bounds, on their inner side."""
    a, b = np.float32(low), np.float32(high)
    a = a if a >= low else np.nextafter(a, np.float32(np.inf))
    b = b if b <= high else np.nextafter(b, np.float32(-np.inf))
    return float(a), float(b)


def vectors(n: int = 3, scalar: Any = float, **options: Any) -> SearchStrategy[Data]:
    """Vectors as NumPy arrays; the options are those of `scalars`."""
    return values(t.vec(n, scalar), **options)


def matrices(r: int = 3, c: int | None = None, scalar: Any = float, **options: Any) -> SearchStrategy[Data]:
    """Matrices as NumPy arrays; the options are those of `scalars`."""
    return values(t.mat(r, r if c is None else c, scalar), **options)


def quaternions(**options: Any) -> SearchStrategy[Data]:
    """Unit quaternions (x, y, z, w): every rotation, the identity first; `unit=False`: any, as vectors of four."""
    return values(t.quat, **options)


def transforms(**options: Any) -> SearchStrategy[Data]:
    """Rigid motions: a position with the options of `scalars`, and a unit quaternion."""
    return values(t.transform, **options)


def structs(struct: t.Struct, **options: Any) -> SearchStrategy[Any]:
    """Values of a @kc.struct; `fields={"mass": {"min_value": 0.1}}` sets the options of single fields."""
    return values(struct, **options)


@public
def values(dtype: Any, **options: Any) -> SearchStrategy[Any]:
    """One value of any type, as a kernel takes it by value. The options are those of `scalars`, `structs` …"""
    kind = t.as_type(dtype)
    if isinstance(kind, t.Scalar):
        options.pop("unit", None)
        return scalars(kind, **options)
    if isinstance(kind, t.Struct):
        parts = {name: values(field, **_of_field(name, options)) for name, field in kind.fields}
        return st.fixed_dictionaries(parts).map(lambda drawn: kind(**drawn))
    return _data(kind, (), **options)


@public
def arrays(
    dtype: Any, shape: Any, *, real: Any = t.FLOAT64, requires_grad: bool = False, **options: Any
) -> SearchStrategy[Array]:
    """Arrays of any element type, float64 unless `real` says otherwise; quaternions have unit length.

    shape: a number, a tuple, or a strategy for one of them. The options are those of `scalars`, `structs` …; indices
    need a `max_value`.
    """
    precision = t.as_type(real)
    assert isinstance(precision, t.Scalar)
    element = t.resolve(t.as_type(dtype), precision)
    shapes = shape if isinstance(shape, SearchStrategy) else st.just(shape)
    sizes = shapes.map(lambda s: tuple(s) if isinstance(s, Sequence) else (int(s),))
    contents = sizes.flatmap(lambda s: _data(element, s, **options))
    return contents.map(lambda data: Array(np.array(data, order="C"), element, requires_grad=requires_grad))


def _data(kind: t.Type, shape: tuple[int, ...], **options: Any) -> SearchStrategy[Data]:
    """The memory of an array of some element type."""
    dtype, trailing = t.element_dtype(kind)
    if isinstance(kind, t.Struct):
        parts = {name: _data(field, shape, **_of_field(name, options)) for name, field in kind.fields}
        return st.fixed_dictionaries(parts).map(lambda drawn: _packed(np.zeros(shape, dtype), drawn))
    unit = options.pop("unit", True)
    if isinstance(kind, t.Quat) and unit:
        angles = scalars(min_value=-np.pi, max_value=np.pi)
        turns = numpy.arrays(np.float64, (*shape, 3), elements=angles, fill=st.nothing())
        return turns.map(lambda v: _rotation(v).astype(dtype))
    if isinstance(kind, t.Transform):
        pair = st.tuples(_data(t.Vec(3, kind.scalar), shape, **options), _data(t.Quat(kind.scalar), shape))
        return pair.map(lambda pq: np.concatenate(pq, axis=-1))
    scalar = kind.scalar if isinstance(kind, t.Composite) else kind
    return numpy.arrays(dtype, (*shape, *trailing), elements=scalars(scalar, **options), fill=st.nothing())


def _rotation(v: Data) -> Data:
    """The unit quaternions of rotation vectors."""
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(angle / (2 * np.pi)) * v, np.cos(0.5 * angle)], axis=-1)


def _packed(made: Data, fields: Mapping[str, Data]) -> Data:
    for name, content in fields.items():
        made[name] = content
    return made


def _of_field(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options for one field of a struct."""
    fields = options.get("fields", {})
    return {k: v for k, v in options.items() if k != "fields"} | dict(fields.get(name, {}))
