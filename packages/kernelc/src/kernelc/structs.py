"""Structs outside of kernels: how they are declared; values of named fields; bundles, which hold arrays and are passed
as one argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from types import FunctionType
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from . import types as t
from .errors import WrongType, WrongUse, public

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform() -> Any:
        """For type checkers: what it stands above makes classes that are called with their fields."""
        return lambda decorator: decorator


# -- declarations
@dataclass_transform()
@public
def struct(cls: type) -> t.Struct:
    """Class decorator: annotated fields become a value type of the kernel language, or a bundle if some are arrays.

    A field may have a default, a number or the numbers of a vector; those that have none are zero where they are not
    given. A struct may inherit the fields of another.
    """
    fields = tuple((name, _field_type(cls, name, kind)) for name, kind in _hints(cls).items())
    if any(isinstance(kind, (t.Scalar, t.Composite)) and t.BFLOAT16 in t.leaves(kind) for _, kind in fields):
        raise WrongType(f"@kc.struct {cls.__name__} has a field of bfloat16, which NumPy has no numbers of",
                        advice="use kc.float16 or float in structs, or an array of kc.bfloat16 alone")  # fmt: skip
    if not fields:
        raise WrongType(f"@kc.struct {cls.__name__} has no annotated fields", advice="write them as `mass: float`")
    _check_no_methods(cls, {name for name, _ in fields})
    missing = object()
    given = [(name, kind, getattr(cls, name, missing)) for name, kind in fields]
    defaults = [(n, _default(f"{cls.__name__}.{n}", kind, v)) for n, kind, v in given if v is not missing]
    known = tuple((name, value) for name, value in defaults if value is not None)
    return t.Struct(cls.__name__, fields, None, (cls.__module__, cls.__qualname__), known, cls)


def _hints(cls: type) -> dict[str, Any]:
    """The annotations of a struct as objects, whether they were postponed or not."""
    try:
        return get_type_hints(cls)
    except NameError as error:
        advice = ""
        if error.name == cls.__name__:
            advice = "a struct cannot hold itself: put the others into an array, and refer to them by index"
        elif "<locals>" in cls.__qualname__:
            advice = "postponed annotations do not see names of the function around: make the type a global, or remove "
            advice += "`from __future__ import annotations`"
        raise WrongType(f"@kc.struct {cls.__name__}: a type cannot be evaluated: {error}", advice=advice) from None


def _field_type(cls: type, name: str, annotation: Any) -> t.Type:
    kind = t.as_type(annotation)
    if isinstance(kind, t.Tuple):
        raise WrongType(f"{name!r} of @kc.struct {cls.__name__} is a tuple, which no field can be",
                        advice="give each part a name of its own, or use kc.vec(n, …)")  # fmt: skip
    return kind


def _check_no_methods(cls: type, fields: set[str]) -> None:
    """What a struct cannot have: methods, and class attributes, which look like fields and are none."""
    for name, value in vars(cls).items():
        if name.startswith("__") or name in fields:
            continue
        if isinstance(value, (FunctionType, staticmethod, classmethod, property)):
            raise WrongType(f"@kc.struct {cls.__name__} has the method {name}(): structs have fields only",
                            advice=f"write a @kc.func that takes a {cls.__name__}")  # fmt: skip
        raise WrongType(f"{name!r} of @kc.struct {cls.__name__} has a value, but no type: it is no field",
                        advice=f"write `{name}: float = …`, or define a constant outside")  # fmt: skip


def _default(path: str, kind: t.Type, value: Any) -> Any:
    """The default of a field as numbers that can be compared; None for a member that may be absent."""
    if value is None and isinstance(kind, t.Optional):
        return None
    if isinstance(kind, (t.Scalar, t.Composite)):
        scalar = kind if isinstance(kind, t.Scalar) else kind.scalar
        shape = () if isinstance(kind, t.Scalar) else kind.shape
        found = np.asarray(value)
        if found.shape == shape and found.dtype.kind in {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[scalar.kind]:
            if scalar.is_float or np.array_equal(found.astype(scalar.numpy), found):
                numbers = tuple(found.ravel().tolist())
                return numbers if shape else numbers[0]
    advice = "a default is a number, or as many numbers as a vector has; give other things where the struct is made"
    if value is None:
        advice = "declare it as `… | None`, if it may be absent"
    raise WrongType(f"the default of {path} is {value!r}, which is no {kind!r}", advice=advice)


def default_value(struct: t.Struct, name: str, kind: t.Type) -> Any:
    """The Python-side value of a field that is not given."""
    known = dict(struct.defaults)
    if name not in known:
        return None if t.has_arrays(kind) else t.zero_value(kind)
    return kind(*np.ravel(known[name])) if isinstance(kind, (t.Scalar, t.Composite)) else None


class Moves:
    """Counts what can make a bundle another than it was: members replaced, memory that moved. Rare, so it is one number
    for all of them: while it stands still, what bundles have noted of their members holds."""

    def __init__(self) -> None:
        self.now, self._next = 0, count(1).__next__

    def tick(self) -> None:
        self.now = self._next()


moves = Moves()


class StructValue:
    """A Python-side instance of a struct: plain attributes, passed to kernels by value."""

    def __init__(self, struct: t.Struct, values: tuple[Any, ...], named: dict[str, Any]):
        given = _given(struct, values, named)
        self.struct = struct
        for name, type in struct.fields:
            setattr(self, name, given[name] if name in given else default_value(struct, name, type))

    def __repr__(self) -> str:
        return f"{self.struct.name}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.struct.names)})"


class Part(StructValue):
    """A struct as a member of a bundle: a copy that cannot change, because the bundle notes the numbers in it."""

    def __init__(self, of: StructValue):
        vars(self).update(struct=of.struct)
        vars(self).update({name: kept(kind, getattr(of, name)) for name, kind in of.struct.fields})

    @public
    def __setattr__(self, name: str, value: Any) -> None:
        raise WrongUse(f"this {self.struct.name} is part of a bundle: its fields cannot be set one by one",
                       advice=f"set the member of the bundle to a new {self.struct.name}(…)")  # fmt: skip


class Bundle:
    """An instance of a struct that holds arrays. Kernels take it as one argument, and refer to its members.

    A launch asks for the types, the memory and the words of all members: they are noted together (`_note`), so that it
    costs what one array costs. A member may be replaced; numbers are kept as they were given.
    """

    __slots__ = ("__dict__", "__weakref__", "_noted", "_struct")
    _noted: Note | None
    _struct: t.Struct

    def __init__(self, struct: t.Struct, values: tuple[Any, ...], named: dict[str, Any]):
        given = _given(struct, values, named)
        object.__setattr__(self, "_struct", struct)
        object.__setattr__(self, "_noted", None)
        missing = [n for n, kind in struct.fields if n not in given and t.has_arrays(kind) and not _may_be_absent(kind)]
        if missing:
            raise WrongUse(f"{struct.name} misses {', '.join(missing)}: arrays have no default",
                           advice=f"give {missing[0]}=…, or declare it as `{missing[0]}: … | None`")  # fmt: skip
        for name, kind in struct.fields:
            value = given[name] if name in given else default_value(struct, name, kind)
            vars(self)[name] = self._checked(name, kind, value)

    @public
    def __setattr__(self, name: str, value: Any) -> None:
        kind = dict(self._struct.fields).get(name)
        if kind is None:
            raise _unknown(self._struct, name)
        vars(self)[name] = self._checked(name, kind, value)
        moves.tick()

    @public
    def __delattr__(self, name: str) -> None:
        raise WrongUse(f"{name!r} of {self._struct.name} cannot be deleted", advice="set it to None, if it is optional")

    def __repr__(self) -> str:
        return f"{self._struct.name}({', '.join(f'{n}={getattr(self, n)!r}' for n in self._struct.names)})"

    def __reduce__(self) -> Any:
        return Bundle, (self._struct, (), dict(vars(self)))

    def _checked(self, name: str, kind: t.Type, value: Any) -> Any:
        if value is None and t.has_arrays(kind) and not _may_be_absent(kind):
            raise WrongUse(f"{name!r} of {self._struct.name} is None, but not optional",
                           advice=f"declare it as `{name}: {_written(kind)} | None`")  # fmt: skip
        inner = kind.kind if isinstance(kind, t.Optional) else kind
        if isinstance(inner, t.Struct) and value is not None:
            found = value.struct if isinstance(value, StructValue) else getattr(value, "_struct", None)
            if found != inner:
                raise WrongUse(f"{name!r} of {self._struct.name} is a {inner.name}, not {_shown(value, found)}",
                               advice=f"make one: {inner.name}(…)")  # fmt: skip
        return value if t.has_arrays(inner) else kept(kind, value)

    # -- what a launch asks for
    @property
    def _sig(self) -> object:
        """Stands for the types and layout of all members, as `Array._sig` for those of one; compared by identity."""
        noted = self._noted
        return noted.sign if noted is not None and noted.moment == moves.now else self._note().sign

    def _note(self) -> Note:
        noted = self._noted
        if noted is None or noted.moment != moves.now:
            noted = Note(self)
            object.__setattr__(self, "_noted", noted)
        return noted


class Note:
    """What launches need to know of a bundle, as of one moment."""

    __slots__ = ("apart", "bases", "flat", "moment", "sign", "words")

    def __init__(self, bundle: Bundle):
        self.moment = moves.now
        self.flat = [value for _, value in spread("", bundle._struct, bundle)]
        """The members in the order of `types.members`; None for those that are absent."""
        key = (bundle._struct, *[getattr(v, "_sig", v.__class__) for v in self.flat])
        self.sign = _SIGNS.setdefault(key, object())
        bases = [v._base for v in self.flat if hasattr(v, "_base")]
        self.bases = frozenset(bases)
        """Where the memory of its arrays begins, as `Array._base`, and whether no two can overlap."""
        self.apart = len(self.bases) == len(bases) and 0 not in self.bases
        self.words: dict[Any, bytes] = {}
        """Its part of the argument block, by the reals of the launch."""


_SIGNS: dict[tuple[Any, ...], object] = {}


def spread(name: str, kind: t.Type, value: Any) -> Iterator[tuple[str, Any]]:
    """The members of an argument with their names, as `types.members` has them; None where one is absent."""
    if isinstance(kind, t.Optional):
        kind = kind.kind
    if value is None and t.has_arrays(kind):
        yield from ((path, None) for path, _ in t.members(name, kind))
    elif isinstance(kind, t.Struct) and kind.is_bundle:
        for field, inner in kind.fields:
            yield from spread(f"{name}.{field}", inner, getattr(value, field))
    else:
        yield name, value


def arrays_in(values: Iterable[Any]) -> list[Any]:
    """The values with the arrays of each bundle in its place."""
    found: list[Any] = []
    for value in values:
        found.extend([v for v in value._note().flat if hasattr(v, "_base")] if isinstance(value, Bundle) else [value])
    return found


def gathered(kind: t.Type, like: Any, flat: Iterator[Any]) -> Any:
    """An argument `like` another, of other members: what `spread` took apart, put together."""
    if isinstance(kind, t.Optional):
        kind = kind.kind
    if like is None and t.has_arrays(kind):
        for _ in t.members("", kind):
            next(flat)
        return None
    if isinstance(kind, t.Struct) and kind.is_bundle:
        return Bundle(kind, tuple(gathered(inner, getattr(like, field), flat) for field, inner in kind.fields), {})
    return next(flat)


def absent(name: str, kind: t.Type, value: Any) -> Iterator[str]:
    """The names of the optional members that an argument lacks."""
    if isinstance(kind, t.Optional):
        if value is None:
            yield name
            return
        kind = kind.kind
    if isinstance(kind, t.Struct) and kind.is_bundle:
        for field, inner in kind.fields:
            yield from absent(f"{name}.{field}", inner, getattr(value, field))


# -- fields that are given
def _given(struct: t.Struct, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    unknown = [n for n in named if n not in struct.names]
    if unknown or len(values) > len(struct.fields):
        raise _unknown(struct, ", ".join(unknown) if unknown else f"{len(values)} of them")
    given = dict(zip(struct.names, values, strict=False))
    if double := [n for n in named if n in given]:
        raise WrongUse(f"{struct.name} gets {', '.join(double)} twice", advice="name each field once")
    return given | named


def _unknown(struct: t.Struct, found: str) -> WrongUse:
    return WrongUse(f"{struct.name} has the fields {', '.join(struct.names)}, not {found}",
                    advice=f"write {struct.name}({', '.join(f'{n}=…' for n in struct.names)})")  # fmt: skip


def _may_be_absent(kind: t.Type) -> bool:
    return isinstance(kind, t.Optional)


def _written(kind: t.Type) -> str:
    return f"kc.{kind!r}" if isinstance(kind, t.ArrayType) else repr(kind)


def _shown(value: Any, struct: t.Struct | None) -> str:
    return f"a {struct.name}" if struct is not None else f"a {type(value).__name__}"


def kept(kind: t.Type, value: Any) -> Any:
    """A number, vector or struct that stays as it is, whatever becomes of what was given. An array of one element
    stays what it is: it may carry a gradient. So does a tensor that does: launches refuse it."""
    if value is None or hasattr(value, "_sig") or getattr(value, "requires_grad", False):
        return value  # None: a member of what is absent
    if isinstance(value, StructValue):
        return value if isinstance(value, Part) else Part(value)
    if isinstance(kind, t.Composite):
        try:
            made = np.array(value.numpy() if hasattr(value, "numpy") else value)
        except (TypeError, ValueError):
            return value  # the launch says what is wrong with it
        made.flags.writeable = False
        return made
    return value.item() if getattr(value, "ndim", None) == 0 else value
