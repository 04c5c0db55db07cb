"""What an expression means while it is lowered: scalars, aggregates of scalars, arrays, and things known to Python."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

from .. import types as t
from ..errors import Span
from ..ir import ArrayRef, Const, Value
from ..records import record


@record
class Weak:
    """A number known to the compiler, with Python's own precision: it takes the type of what it meets."""

    value: bool | int | float


@record
class Agg:
    """A vector, matrix, quaternion, transform, struct or local array: its type and its leaves."""

    type: t.Type
    leaves: tuple[Value, ...]


@record
class TupleVal:
    """A Python tuple of values."""

    items: tuple[Any, ...]


@record
class ArrayVal:
    """An array parameter, or a row of one: what remains of it at the indices `prefix`."""

    array: ArrayRef
    prefix: tuple[Value, ...] = ()

    @property
    def ndim(self) -> int:
        return self.array.type.ndim - len(self.prefix)

    @property
    def type(self) -> t.ArrayType:
        return t.ArrayType(self.array.type.element, self.ndim) if self.prefix else self.array.type


@record
class BundleVal:
    """A bundle: its members, by reference. `name` is what messages call it."""

    type: t.Struct
    name: str
    members: tuple[Any, ...]


@record
class AbsentVal:
    """An optional member, or parameter, that this launch does not have."""

    name: str


@record
class ShapeVal:
    """`a.shape`: the sizes of an array from axis `first` on."""

    array: ArrayRef
    first: int = 0

    @property
    def ndim(self) -> int:
        return self.array.type.ndim - self.first


@record
class Known:
    """A Python object: a module, a function, a type."""

    object: Any


@record
class Maybe:
    """A name that has no value on some path; reading it is an error. `reason` completes "it is set only …"."""

    reason: str
    span: Span | None


FrontValue = Value | Weak | Agg | TupleVal | ArrayVal | BundleVal | AbsentVal | ShapeVal | Known


def is_number(value: Any) -> bool:
    return isinstance(value, (Value, Weak))


def is_static(value: Any) -> bool:
    """Whether the number is known while compiling."""
    return isinstance(value, (Weak, Const))


def static_value(value: Any) -> Any:
    assert isinstance(value, (Weak, Const))
    return value.value


def static_int(value: Any) -> int | None:
    """The integer if it is known while compiling."""
    if isinstance(value, Weak) and isinstance(value.value, int):
        return int(value.value)
    if isinstance(value, Const) and value.type.kind in "biu":
        return int(value.value)
    return None


def type_of(value: Any) -> t.Type | None:
    """The type of a value; None for what only Python knows."""
    if isinstance(value, Value):
        return value.type
    if isinstance(value, (Agg, BundleVal)):
        return value.type
    if isinstance(value, ArrayVal):
        return value.type
    if isinstance(value, TupleVal):
        items = [type_of(v) for v in value.items]
        return t.Tuple(tuple(i for i in items if i is not None))
    return None


def describe(value: Any) -> str:
    """The type of a value in words, for messages."""
    if isinstance(value, Weak):
        return f"{type(value.value).__name__} literal {value.value!r}"
    if isinstance(value, Known):
        return _describe_object(value.object)
    if isinstance(value, ArrayVal):
        return f"a row of {value.array.name}" if value.prefix else f"the array {value.array.name}"
    if isinstance(value, BundleVal):
        return f"the {value.type.name} {value.name}" if value.name != value.type.name else f"a {value.name}"
    if isinstance(value, AbsentVal):
        return f"{value.name}, which is absent"
    if isinstance(value, ShapeVal):
        return f"the shape of {value.array.name}"
    if isinstance(value, TupleVal):
        return f"a tuple of {len(value.items)}"
    kind = type_of(value)
    return type_name(kind) if kind is not None else "nothing"


def _describe_object(value: Any) -> str:
    if isinstance(value, (t.Type, type)):
        return f"the type {getattr(value, '__name__', None) or repr(value)}"
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    if isinstance(value, types.ModuleType):
        return f"the module {name}"
    return f"the function {name}" if callable(value) and name else f"a Python {type(value).__name__}"


def component_advice(kind: t.Type | None) -> str:
    """Which parts a value has."""
    if isinstance(kind, t.Struct):
        return f"its {'members' if kind.is_bundle else 'fields'} are {', '.join(kind.names)}"
    if isinstance(kind, t.Transform):
        return "a transform has .p (position) and .q (rotation)"
    if isinstance(kind, t.Mat):
        return f"write m[i, j] with i < {kind.r} and j < {kind.c}"
    if isinstance(kind, t.Composite) and kind.count <= 4:
        return f"its components are {', '.join('xyzw'[: kind.count])} or [0] to [{kind.count - 1}]"
    n = length_of(kind)
    return f"its indices are 0 to {n - 1}" if n else "it is one number, and has no parts"


def type_name(kind: t.Type) -> str:
    """A type as a user would write it; a resolved real shows its precision."""
    if isinstance(kind, t.Composite) and kind.scalar.is_float and kind.scalar is not t.REAL:
        return f"{kind.with_scalar(t.REAL)!r} of {kind.scalar}"
    return repr(kind)


def flatten(value: Any) -> list[Value] | None:
    """The leaves of a data value; None where it holds something that is not data."""
    if isinstance(value, Value):
        return [value]
    if isinstance(value, Agg):
        return list(value.leaves)
    if isinstance(value, TupleVal):
        out: list[Value] = []
        for item in value.items:
            part = flatten(item)
            if part is None:
                return None
            out.extend(part)
        return out
    return None


def rebuild(like: Any, leaves: Iterable[Value]) -> Any:
    """A value of the same structure as `like` over other leaves."""
    source = iter(leaves)
    if isinstance(like, Value):
        return next(source)
    if isinstance(like, Agg):
        return Agg(like.type, tuple(next(source) for _ in like.leaves))
    assert isinstance(like, TupleVal)
    return TupleVal(tuple(rebuild(item, source) for item in like.items))


def of_type(kind: t.Type, leaves: Sequence[Value]) -> Any:
    """A value of a type from its leaves."""
    if isinstance(kind, t.Scalar):
        return leaves[0]
    if isinstance(kind, t.Tuple):
        items, at = [], 0
        for item in kind.items:
            n = len(t.leaves(item))
            items.append(of_type(item, leaves[at : at + n]))
            at += n
        return TupleVal(tuple(items))
    return Agg(kind, tuple(leaves))


def part_of(kind: t.Type, key: Any) -> tuple[t.Type, int] | None:
    """The type and first leaf of a component: by index for vectors, rows and local arrays, by name for fields."""
    if isinstance(kind, t.Mat):
        if isinstance(key, tuple) and len(key) == 2:
            i, j = _wrap(key[0], kind.r), _wrap(key[1], kind.c)
            return None if i is None or j is None else (kind.scalar, i * kind.c + j)
        if isinstance(key, int):
            row = _wrap(key, kind.r)
            return None if row is None else (t.Vec(kind.c, kind.scalar), row * kind.c)
        return None
    if isinstance(kind, t.Transform):
        if key in ("p", "q"):
            return (t.Vec(3, kind.scalar), 0) if key == "p" else (t.Quat(kind.scalar), 3)
        at = _wrap(key, 7) if isinstance(key, int) else None
        return None if at is None else (kind.scalar, at)
    if isinstance(kind, t.Composite):
        if isinstance(key, str) and len(key) == 1 and key in "xyzw"[: kind.count] and kind.count <= 4:
            return kind.scalar, "xyzw".index(key)
        at = _wrap(key, kind.count) if isinstance(key, int) else None
        return None if at is None else (kind.scalar, at)
    if isinstance(kind, t.Local):
        at = _wrap(key, kind.n) if isinstance(key, int) else None
        return None if at is None else (kind.element, at * len(t.leaves(kind.element)))
    if isinstance(kind, t.Struct) and not kind.is_bundle:
        at = 0
        for name, field in kind.fields:
            if name == key:
                return field, at
            at += len(t.leaves(field))
    return None


def length_of(kind: t.Type | None) -> int | None:
    """`len()` of a value: components, rows, or elements."""
    if isinstance(kind, t.Mat):
        return kind.r
    if isinstance(kind, t.Composite):
        return kind.count
    return kind.n if isinstance(kind, t.Local) else None


def _wrap(index: int, n: int) -> int | None:
    """Python's meaning of a literal index, negative ones included."""
    if -n <= index < n:
        return index % n
    return None


def known_type(value: Any) -> t.Type:
    """The type of a value that surely has one."""
    kind = type_of(value)
    assert kind is not None
    return kind
