"""Types of the kernel language: pure descriptions of scalars, vectors, matrices, quaternions, structs and arrays.

`REAL` is the polymorphic real: "the real type of this launch". `resolve` replaces it by float32 or float64.
Every value type is a fixed list of scalar *leaves*; the intermediate representation knows nothing but leaves.
"""

from __future__ import annotations

import types as python_types
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, Union

import numpy as np

from . import homes
from .errors import WrongType, WrongUse, public
from .records import entity, record


class Type:
    """Base of all types. Types compare by structure and may be used as dictionary keys."""

    __slots__ = ()

    @public
    def __or__(self, other: Any) -> Optional:
        """`kc.Array[float] | None`: a member or parameter that may be absent."""
        if other is not None:
            return NotImplemented
        if not has_arrays(self):
            raise WrongType(f"{self!r} | None: only arrays, and structs that hold some, may be absent",
                            advice="give it a value that stands for nothing, or put it into an array")  # fmt: skip
        return Optional(self)


@entity
class Scalar(Type):
    """One machine number. `kind` is b(ool), i(nt), u(nsigned) or f(loat); REAL has no size yet."""

    name: str
    kind: str
    size: int

    @public
    def __call__(self, value: Any = 0) -> Any:
        """Outside a kernel: the NumPy scalar of this type."""
        if self is BFLOAT16:
            raise WrongUse("NumPy has no bfloat16: there is no such number outside of arrays",
                           advice="make an array: kc.array([value], dtype=kc.bfloat16)")  # fmt: skip
        return self.numpy.type(value)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of one leaf in memory. NumPy has no bfloat16: of those it holds the bits."""
        if self is REAL:
            return np.dtype(np.float64)
        if self is BFLOAT16:
            return np.dtype(np.uint16)
        return np.dtype({"bool": "bool", "int": "int32", "float": "float64"}.get(self.name, self.name))

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def is_half(self) -> bool:
        return self is FLOAT16 or self is BFLOAT16

    @property
    def is_stored(self) -> bool:
        """Whether arrays hold such numbers, and kernels compute with wider ones: loads convert, stores round."""
        return 0 < self.size < 4 and self is not BOOL

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return _SCALAR_EXPORTS[self.name]


BOOL = Scalar("bool", "b", 1)
INT32 = Scalar("int32", "i", 4)
INT64 = Scalar("int64", "i", 8)
UINT32 = Scalar("uint32", "u", 4)
UINT64 = Scalar("uint64", "u", 8)
FLOAT32 = Scalar("float32", "f", 4)
FLOAT64 = Scalar("float64", "f", 8)
REAL = Scalar("float", "f", 0)
INT8, INT16 = Scalar("int8", "i", 1), Scalar("int16", "i", 2)
UINT8, UINT16 = Scalar("uint8", "u", 1), Scalar("uint16", "u", 2)
FLOAT16, BFLOAT16 = Scalar("float16", "f", 2), Scalar("bfloat16", "f", 2)
STORED = (INT8, INT16, UINT8, UINT16, FLOAT16, BFLOAT16)
SCALARS = (BOOL, INT32, INT64, UINT32, UINT64, FLOAT32, FLOAT64, *STORED)
_SCALAR_EXPORTS = {s.name: s.name.upper() for s in SCALARS} | {"float": "REAL"}


class Composite(Type):
    """A value made of several scalars, all of one scalar type, in a fixed order."""

    scalar: Scalar

    @property
    def shape(self) -> tuple[int, ...]:
        """The trailing NumPy dimensions of one element."""
        raise AttributeError

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    def with_scalar(self, scalar: Scalar) -> Composite:
        """The same shape over another scalar type."""
        raise AttributeError

    @public
    def __call__(self, *values: Any) -> np.ndarray[Any, Any]:
        """Outside a kernel: a NumPy array of this shape, zero without arguments."""
        if not values:
            return np.zeros(self.shape, self.scalar.numpy)
        try:
            return np.array(values, dtype=self.scalar.numpy).reshape(self.shape)
        except (RuntimeError, TypeError, ValueError):
            shown = ", ".join(map(repr, values))
            raise WrongUse(f"{self!r} is made of {self.count} numbers, not of ({shown})",
                           advice=f"give {self.count} numbers, or none for zeros") from None  # fmt: skip


@record
class Vec(Composite):
    """Column vector of `n` scalars."""

    n: int
    scalar: Scalar = REAL

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    def with_scalar(self, scalar: Scalar) -> Vec:
        return Vec(self.n, scalar)

    def __repr__(self) -> str:
        base = {"float": "float", "int32": "int"}.get(self.scalar.name)
        return f"{base}{self.n}" if base and self.n in (2, 3, 4) else f"vec({self.n}, {self.scalar})"


@record
class Mat(Composite):
    """Matrix of r rows and c columns, row by row."""

    r: int
    c: int
    scalar: Scalar = REAL

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.r, self.c)

    def with_scalar(self, scalar: Scalar) -> Mat:
        return Mat(self.r, self.c, scalar)

    def __repr__(self) -> str:
        if self.scalar is REAL and self.r == self.c and self.r in (2, 3, 4):
            return f"mat{self.r}{self.c}"
        return f"mat({self.r}, {self.c}, {self.scalar})"


@record
class Quat(Composite):
    """Quaternion (x, y, z, w)."""

    scalar: Scalar = REAL

    @property
    def shape(self) -> tuple[int, ...]:
        return (4,)

    def with_scalar(self, scalar: Scalar) -> Quat:
        return Quat(scalar)

    def __repr__(self) -> str:
        return "quat" if self.scalar is REAL else f"quat[{self.scalar}]"


@record
class Transform(Composite):
    """Rigid motion: position p, then rotation q."""

    scalar: Scalar = REAL

    @property
    def shape(self) -> tuple[int, ...]:
        return (7,)

    def with_scalar(self, scalar: Scalar) -> Transform:
        return Transform(scalar)

    def __repr__(self) -> str:
        return "transform" if self.scalar is REAL else f"transform[{self.scalar}]"


@record
class Local(Type):
    """Small array that lives in one thread: `kc.local(n, T)`."""

    n: int
    element: Type

    def __repr__(self) -> str:
        return f"local({self.n}, {self.element!r})"


@record
class Tuple(Type):
    """Several values: what a function with several results returns."""

    items: tuple[Type, ...]

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.items))})"


@entity
class Struct(Type):
    """Named fields, made by `@kc.struct`. Compared by identity of the declaration (`origin`) and the real type."""

    name: str
    fields: tuple[tuple[str, Type], ...]
    origin: object = None
    home: tuple[str, str] | None = None
    """Its module and its name there."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Of fields that have one: a number, or the numbers of a vector or matrix."""
    declared: type | None = None
    """The class that was decorated: structs may inherit from it."""

    def of(self, fields: tuple[tuple[str, Type], ...]) -> Struct:
        """The same struct over other types."""
        return Struct(self.name, fields, self.origin or self, None, self.defaults)

    def __reduce__(self) -> Any:
        """By name, where another process can import it; else as it is, which is the same to kernels."""
        if self.home is not None and homes.is_importable(self, *self.home):
            return homes.found, self.home
        return Struct, (self.name, self.fields, self.origin, None, self.defaults)

    def __copy__(self) -> Struct:
        return self

    def __deepcopy__(self, _: Any) -> Struct:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> Any:
        # Of the defaults their text: 1, True and 1.0 are three.
        return self.name, self.fields, repr(self.defaults)

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        """`class Rod(Spring):` inherits the fields of the struct Spring."""
        if self.declared is None:
            raise WrongUse(f"{self.name} cannot be inherited from", advice="write its fields out")
        return (self.declared,)

    def __instancecheck__(self, value: Any) -> bool:
        found = getattr(value, "struct", None) or getattr(value, "_struct", None)
        if not isinstance(found, Struct):
            return False
        kin = found.declared is not None and self.declared is not None and issubclass(found.declared, self.declared)
        return found == self or kin

    @public
    def __call__(self, *values: Any, **named: Any) -> Any:
        """Outside a kernel: a value with these fields, or a bundle of these arrays; what is not given has its default,
        or is zero."""
        from .structs import Bundle, StructValue

        return Bundle(self, values, named) if self.is_bundle else StructValue(self, values, named)

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @cached_property
    def is_bundle(self) -> bool:
        """Whether it holds arrays, itself or in a member: then it is no value, and kernels take it by reference."""
        return any(has_arrays(kind) for _, kind in self.fields)


@record
class ArrayType(Type):
    """`kc.Array[T, ndim]`: a kernel parameter that refers to memory."""

    element: Type
    ndim: int = 1

    def __repr__(self) -> str:
        return f"Array[{self.element!r}, {self.ndim}]"

    @public
    def __call__(self, *values: Any, **named: Any) -> Any:
        # Also because `typing` of Python 3.10 takes only what can be called for an annotation.
        raise WrongUse(f"kc.{self!r} is an annotation", advice="make an array with kc.array, kc.zeros, …")


@record
class Optional(Type):
    """`kc.Array[...] | None`: an array, or a struct that holds some, that may be absent."""

    kind: Type

    def __repr__(self) -> str:
        return f"{self.kind!r} | None"

    @public
    def __call__(self, *values: Any, **named: Any) -> Any:
        raise WrongUse(f"{self!r} is an annotation", advice="pass an array, or None")


def has_arrays(kind: Type) -> bool:
    """Whether a type refers to memory: an array, or a struct that holds one."""
    if isinstance(kind, Optional):
        kind = kind.kind
    return isinstance(kind, ArrayType) or (isinstance(kind, Struct) and kind.is_bundle)


def members(name: str, kind: Type) -> Iterator[tuple[str, Type]]:
    """A parameter as arrays and values: those of a bundle one by one, as `bodies.x`, also those that may be absent."""
    if isinstance(kind, Optional):
        kind = kind.kind
    if isinstance(kind, Struct) and kind.is_bundle:
        for field, inner in kind.fields:
            yield from members(f"{name}.{field}", inner)
    else:
        yield name, kind


class _ArrayFactory:
    """`kc.Array[T]` and `kc.Array[T, ndim]`."""

    @public
    def __getitem__(self, item: Any) -> ArrayType:
        element, ndim = item if isinstance(item, tuple) else (item, 1)
        if not isinstance(ndim, int) or not 1 <= ndim <= 4:
            raise WrongType(f"kc.Array[T, ndim] has 1 to 4 dimensions, not {ndim!r}",
                            advice="write kc.Array[float] or kc.Array[float, 2]")  # fmt: skip
        return array_of(element, ndim)


def array_of(element: Any, ndim: int) -> ArrayType:
    """The type of an array, if there are such arrays."""
    kind = as_type(element)
    if has_arrays(kind):
        advice = "pass an array of more dimensions: kc.Array[T, 2]"
        if not isinstance(kind, ArrayType):
            advice = f"pass one {kind!r}, whose arrays have a row for each"
        raise WrongType(f"kc.Array[{kind!r}]: an array holds values, not arrays or bundles of them", advice=advice)
    return ArrayType(kind, ndim)


def optional_members(name: str, kind: Type) -> Iterator[str]:
    """The names of what may be absent in a parameter, itself included."""
    if isinstance(kind, Optional):
        yield name
        kind = kind.kind
    if isinstance(kind, Struct) and kind.is_bundle:
        for field, inner in kind.fields:
            yield from optional_members(f"{name}.{field}", inner)


def as_type(annotation: Any) -> Type:
    """The type that an annotation means: Python's `float`, `int`, `bool`, a tuple of types, or one of ours."""
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, type) and annotation in _PYTHON_TYPES:
        return _PYTHON_TYPES[annotation]
    if isinstance(annotation, tuple):
        return Tuple(tuple(as_type(a) for a in annotation))
    if isinstance(annotation, python_types.UnionType) or getattr(annotation, "__origin__", None) is Union:
        kinds = [a for a in annotation.__args__ if a is not type(None)]
        if len(kinds) == 1:
            return as_type(kinds[0]) | None
    if getattr(annotation, "__origin__", None) is tuple:
        return Tuple(tuple(as_type(a) for a in annotation.__args__))
    if isinstance(annotation, np.dtype) or (isinstance(annotation, type) and issubclass(annotation, np.generic)):
        name = np.dtype(annotation).name
        for scalar in SCALARS:
            if scalar.name == name:
                return scalar
    name = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    raise WrongType(f"{name} is no type of the kernel language")


_PYTHON_TYPES: dict[Any, Scalar] = {float: REAL, int: INT32, bool: BOOL}


@cache
def resolve(type: Type, real: Scalar) -> Type:
    """`type` with the polymorphic real replaced by `real`."""
    if type is REAL:
        return real
    if isinstance(type, Composite):
        return type.with_scalar(real) if type.scalar is REAL else type
    if isinstance(type, Local):
        return Local(type.n, resolve(type.element, real))
    if isinstance(type, Tuple):
        return Tuple(tuple(resolve(t, real) for t in type.items))
    if isinstance(type, Struct):
        return type.of(tuple((n, resolve(t, real)) for n, t in type.fields))
    if isinstance(type, ArrayType):
        return ArrayType(resolve(type.element, real), type.ndim)
    if isinstance(type, Optional):
        return Optional(resolve(type.kind, real))
    return type


def _with_scalars(type: Type, change: Callable[[Scalar], Scalar]) -> Type:
    """A value type with each of its scalars replaced."""
    if isinstance(type, Scalar):
        return change(type)
    if isinstance(type, Composite):
        return type.with_scalar(change(type.scalar))
    if isinstance(type, Struct):
        fields = tuple((n, _with_scalars(t, change)) for n, t in type.fields)
        return type if fields == type.fields else type.of(fields)
    if isinstance(type, Tuple):
        return Tuple(tuple(_with_scalars(t, change) for t in type.items))
    return type


@cache
def computed(type: Type, real: Scalar) -> Type:
    """What kernels compute with where arrays hold `type`: small integers are int32, halves the reals of the launch."""
    return _with_scalars(type, lambda s: s if not s.is_stored else real if s.is_half else INT32)


def check_value(kind: Type) -> None:
    """Raise for types that only arrays hold."""
    found = next((s for s in leaves(kind) if s.is_stored), None)
    if found is not None:
        wide = "float" if found.is_half else "int"
        raise WrongType(f"{kind!r} is a type of array elements: kernels compute with {computed(kind, REAL)!r}",
                        advice=f"use {wide} for values, and kc.Array[kc.{found}] for memory")  # fmt: skip


@cache
def widened(type: Type) -> Type:
    """The type of the gradient of an array of `type`. Of halves it is float32: in theirs, small terms of a long sum
    would be lost, and the gradient be wrong."""
    return _with_scalars(type, lambda s: FLOAT32 if s.is_half else s)


_LETTERS = "xyzw"


def leaf_items(type: Type, name: str = "") -> Iterator[tuple[str, Scalar]]:
    """The scalar leaves of a value type in order, each with a readable name."""
    if isinstance(type, Scalar):
        yield name, type
    elif isinstance(type, Mat):
        for i in range(type.count):
            yield f"{name}[{i // type.c},{i % type.c}]", type.scalar
    elif isinstance(type, Transform):
        for i in range(7):
            yield f"{name}.{'p' if i < 3 else 'q'}.{_LETTERS[i if i < 3 else i - 3]}", type.scalar
    elif isinstance(type, Composite):
        for i in range(type.count):
            yield f"{name}.{_LETTERS[i]}" if type.count <= 4 else f"{name}[{i}]", type.scalar
    elif isinstance(type, Local):
        for i in range(type.n):
            yield from leaf_items(type.element, f"{name}[{i}]")
    elif isinstance(type, Tuple):
        for i, item in enumerate(type.items):
            yield from leaf_items(item, f"{name}.{i}")
    elif isinstance(type, Struct):
        for field, item in type.fields:
            yield from leaf_items(item, f"{name}.{field}")
    else:
        raise WrongType(f"{type!r} is no value: it cannot be stored, or be part of another type")


@cache
def leaves(type: Type) -> tuple[Scalar, ...]:
    """The scalar types of the leaves of a value type."""
    return tuple(scalar for _, scalar in leaf_items(type))


@cache
def element_dtype(type: Type) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """How one array element lies in memory: base dtype and trailing dimensions (the real type must be resolved)."""
    if isinstance(type, Scalar):
        return type.numpy, ()
    if isinstance(type, Composite):
        return type.scalar.numpy, type.shape
    if isinstance(type, Struct):
        fields = [(n, *element_dtype(t)) for n, t in type.fields]
        return np.dtype([(n, d, s) for n, d, s in fields], align=True), ()
    raise WrongType(f"an array cannot hold {type!r}", advice="arrays hold numbers, vectors, matrices and structs")


@cache
def leaf_offsets(type: Type) -> tuple[int, ...]:
    """Byte offset of each leaf inside one array element."""
    if isinstance(type, Struct):
        dtype, _ = element_dtype(type)
        assert dtype.fields is not None
        return tuple(dtype.fields[n][1] + o for n, t in type.fields for o in leaf_offsets(t))
    size = leaves(type)[0].size
    return tuple(size * i for i in range(len(leaves(type))))


def element_size(type: Type) -> int:
    """Bytes from one array element to the next in a contiguous array."""
    dtype, shape = element_dtype(type)
    return int(dtype.itemsize * np.prod(shape, dtype=np.int64))


def zero_value(type: Type) -> Any:
    """The Python-side zero of a value type."""
    if isinstance(type, Scalar):
        return type.numpy.type(0)
    if isinstance(type, Composite):
        return type()
    if isinstance(type, Struct):
        return type()
    raise WrongType(f"{type!r} has no value outside a kernel")


@public
def vec(n: int, scalar: Any = float) -> Vec:
    """Vector type of n scalars."""
    return Vec(_size(n), _scalar(scalar))


@public
def mat(r: int, c: int, scalar: Any = float) -> Mat:
    """Matrix type of r rows and c columns."""
    return Mat(_size(r), _size(c), _scalar(scalar))


def _size(n: int) -> int:
    if not isinstance(n, (int, np.integer)) or not 1 <= n <= 256:
        raise WrongType(f"a vector has 1 to 256 components, not {n!r}", advice="use an array for more")
    return int(n)


def _scalar(scalar: Any) -> Scalar:
    kind = as_type(scalar)
    if not isinstance(kind, Scalar):
        raise WrongType(f"a vector is made of numbers, not of {kind!r}", advice="use kc.mat(r, c), or a @kc.struct")
    return kind


@public
def tensor(element: Any) -> ArrayType:
    """The paper's spelling of `kc.Array[element]`."""
    return array_of(element, 1)


@public
def local(n: int, element: Any = float) -> Any:
    """Inside a kernel: a local array of n zeros of the given type."""
    raise WrongUse("kc.local(n, T) is for use inside kernels", advice="use kc.zeros(n, dtype=T) outside")


Array = _ArrayFactory()
float2, float3, float4 = Vec(2), Vec(3), Vec(4)
int2, int3, int4 = Vec(2, INT32), Vec(3, INT32), Vec(4, INT32)
mat22, mat33, mat44 = Mat(2, 2), Mat(3, 3), Mat(4, 4)
quat, transform = Quat(), Transform()
spatial_vector, spatial_matrix = Vec(6), Mat(6, 6)
int32, int64, uint32, uint64, float32, float64 = INT32, INT64, UINT32, UINT64, FLOAT32, FLOAT64
int8, int16, uint8, uint16, float16, bfloat16 = INT8, INT16, UINT8, UINT16, FLOAT16, BFLOAT16
