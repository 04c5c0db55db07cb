"""Structs outside of kernels: values of named fields, and bundles, which hold arrays and are passed as one argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

from . import types as t
from .errors import WrongUse


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
            setattr(self, name, given[name] if name in given else t.zero_value(type))

    def __repr__(self) -> str:
        return f"{self.struct.name}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.struct.names)})"


class Part(StructValue):
    """A struct as a member of a bundle: a copy that cannot change, because the bundle notes the numbers in it."""

    def __init__(self, of: StructValue):
        vars(self).update(struct=of.struct)
        vars(self).update({name: kept(kind, getattr(of, name)) for name, kind in of.struct.fields})

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
            raise WrongUse(f"{struct.name} misses {', '.join(missing)}: only numbers have a default, which is zero",
                           advice=f"give {missing[0]}=…, or declare it as `{missing[0]}: … | None`")  # fmt: skip
        for name, kind in struct.fields:
            default = None if t.has_arrays(kind) else t.zero_value(kind)
            vars(self)[name] = self._checked(name, kind, given.get(name, default))

    def __setattr__(self, name: str, value: Any) -> None:
        kind = dict(self._struct.fields).get(name)
        if kind is None:
            raise _unknown(self._struct, name)
        vars(self)[name] = self._checked(name, kind, value)
        moves.tick()

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
    return dict(zip(struct.names, values, strict=False)) | named


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
