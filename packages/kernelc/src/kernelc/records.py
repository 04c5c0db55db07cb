"""Records: what `@dataclass(frozen=True)` makes of a class, without compiling text when kernelc is imported.

A frozen dataclass compiles six methods; for the forty of kernelc that was a quarter of the time of its import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[T], T]:
        """For type checkers only."""
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A class whose annotations are its fields: set once, compared and hashed by value, printed with their names."""
    known = fields(cast(Any, entity(cls)))
    key = attrgetter(*(f.name for f in known)) if known else lambda self: ()

    def eq(self: Any, other: object) -> bool:
        return bool(key(self) == key(other)) if other.__class__ is self.__class__ else NotImplemented

    _add(cls, __eq__=eq, __hash__=lambda self: hash(key(self)))
    return cls


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """A record that is equal to itself alone."""
    known = fields(cast(Any, dataclass(init=False, repr=False, eq=False)(cls)))
    names = [f.name for f in known]

    def init(self: Any, *args: Any, **given: Any) -> None:
        values = dict(zip(names, args, strict=False))
        for f in known[len(args) :]:
            values[f.name] = given.pop(f.name) if f.name in given else _default(cls, f)
        if given or len(args) > len(names):
            raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}: not {args[len(names) :]} {given}")
        self.__dict__.update(values)

    def text(self: Any) -> str:
        return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    _add(cls, __init__=init, __repr__=text, __setattr__=_refuse, __delattr__=_refuse)
    return cls


def _default(cls: type, of: Field[Any]) -> Any:
    if of.default is not MISSING:
        return of.default
    if of.default_factory is MISSING:
        raise TypeError(f"{cls.__name__} misses the field {of.name!r}")
    return of.default_factory()


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"{name!r} of {type(self).__name__} cannot be changed")


def _add(cls: type, **methods: Callable[..., Any]) -> None:
    """What the class itself defines stays."""
    for name, method in methods.items():
        if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
