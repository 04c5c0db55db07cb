"""Signatures of compound rows: "vec n, vec n -> real" says what a function takes and returns.

- real, int, bool: one number; an integer may stand where a real is asked for
- vec 3, vec3, vec n: a vector of reals; a letter stands for any size, the same one in the whole signature
- mat 3 3, mat33, mat r c: a matrix of reals
- quat, transform
- real[2], vec n[2]: an array of these, of two dimensions
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from .. import types as t
from ..records import record
from .registry import CompoundRow

Size = int | str
Sizes = dict[str, int]

_ITEM = re.compile(
    r"(?P<name>real|int|bool|quat|transform|vec|mat)(?P<glued>\d*)(?P<sizes>(?: (?:\d+|[a-z]))*)(?:\[(?P<ndim>\d)\])?"
)
_SIZES = {"vec": 1, "mat": 2}
_PLAIN: dict[str, t.Type] = {
    "real": t.REAL, "int": t.INT32, "bool": t.BOOL, "quat": t.quat, "transform": t.transform,
}  # fmt: skip


@record
class Pattern:
    """One parameter or result: a kind, its sizes (numbers or letters) and, for an array, its dimensions."""

    kind: str
    sizes: tuple[Size, ...] = ()
    ndim: int = 0

    def __str__(self) -> str:
        glue = "" if all(isinstance(s, int) for s in self.sizes) else " "
        return f"{self.kind}{glue}{glue.join(map(str, self.sizes))}{f'[{self.ndim}]' if self.ndim else ''}"


@record
class Signature:
    """What one overload takes and returns."""

    params: tuple[Pattern, ...]
    results: tuple[Pattern, ...]


@cache
def parse(text: str) -> Signature:
    """The signature that a string means."""
    params, _, results = text.partition("->")
    return Signature(_patterns(params, text), _patterns(results, text))


def _patterns(text: str, whole: str) -> tuple[Pattern, ...]:
    return tuple(_pattern(item.strip(), whole) for item in text.split(",") if item.strip())


def _pattern(item: str, whole: str) -> Pattern:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise ValueError(f"{item!r} in the signature {whole!r} is no type")
    words = [*found["glued"], *found["sizes"].split()]
    sizes = tuple(int(w) if w.isdigit() else w for w in words)
    if len(sizes) != _SIZES.get(found["name"], 0):
        raise ValueError(f"{item!r} in the signature {whole!r} has {len(sizes)} sizes")
    return Pattern(found["name"], sizes, int(found["ndim"] or 0))


def match(signature: str, types: tuple[t.Type, ...]) -> bool:
    """Whether a call with arguments of these types fits the signature."""
    return bind(signature, types) is not None


def bind(signature: str, types: tuple[t.Type, ...]) -> Sizes | None:
    """The sizes that the letters of the signature stand for, None where the types do not fit."""
    params = parse(signature).params
    sizes: Sizes = {}
    if len(params) != len(types):
        return None
    return sizes if all(_fits(p, kind, sizes) for p, kind in zip(params, types, strict=True)) else None


def _fits(pattern: Pattern, kind: t.Type, sizes: Sizes) -> bool:
    if pattern.ndim:
        if not isinstance(kind, t.ArrayType) or kind.ndim != pattern.ndim:
            return False
        # Memory is not converted: an array of integers is no array of reals.
        inner = kind.element
        if isinstance(inner, t.Scalar) and pattern.kind == "real" and not inner.is_float:
            return False
        return _fits(Pattern(pattern.kind, pattern.sizes), inner, sizes)
    if isinstance(kind, t.Scalar):
        wanted = {"real": "fiu", "int": "iu", "bool": "b"}
        return kind.kind in wanted.get(pattern.kind, "")
    if not isinstance(kind, t.Composite) or not kind.scalar.is_float:
        return False
    if isinstance(kind, (t.Vec, t.Mat)):
        return pattern.kind == type(kind).__name__.lower() and _agree(pattern.sizes, kind.shape, sizes)
    return pattern.kind == type(kind).__name__.lower()


def _agree(wanted: tuple[Size, ...], found: tuple[int, ...], sizes: Sizes) -> bool:
    if len(wanted) != len(found):
        return False
    return all((sizes.setdefault(w, n) if isinstance(w, str) else w) == n for w, n in zip(wanted, found, strict=True))


def bind_values(signature: str, values: tuple[Any, ...]) -> Sizes | None:
    """As `bind`, for Python-side values, which are told apart by their shapes only."""
    params = parse(signature).params
    sizes: Sizes = {}
    if len(params) != len(values):
        return None
    shapes: dict[str, tuple[Size, ...]] = {"quat": (4,), "transform": (7,)}
    for pattern, value in zip(params, values, strict=True):
        shape = np.shape(value)[pattern.ndim :]
        if np.ndim(value) < pattern.ndim or not _agree(shapes.get(pattern.kind, pattern.sizes), shape, sizes):
            return None
    return sizes


def instantiate(pattern: Pattern, sizes: Sizes) -> t.Type:
    """The type that a pattern means when its letters have these sizes."""
    if pattern.ndim:
        return t.ArrayType(instantiate(Pattern(pattern.kind, pattern.sizes), sizes), pattern.ndim)
    numbers = [sizes[s] if isinstance(s, str) else s for s in pattern.sizes]
    if pattern.kind == "vec":
        return t.Vec(numbers[0])
    if pattern.kind == "mat":
        return t.Mat(numbers[0], numbers[1])
    return _PLAIN[pattern.kind]


def candidates(row: CompoundRow) -> tuple[str, ...]:
    """The overloads of a row as a user would read them: "dot(a: vec n, b: vec n) -> real"."""
    found = []
    for text in row.signatures:
        signature = parse(text)
        params = ", ".join(f"{name}: {p}" for name, p in zip(row.params, signature.params, strict=True))
        results = ", ".join(map(str, signature.results))
        found.append(f"{row.name}({params}) -> {results if len(signature.results) == 1 else f'({results})'}")
    return tuple(found)


def describe(row: CompoundRow) -> str:
    """All overloads of a row, one per line."""
    return "\n".join(candidates(row))
