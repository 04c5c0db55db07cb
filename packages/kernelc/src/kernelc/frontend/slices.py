"""Slices of vectors, matrices and tuples: parts whose bounds are known while compiling."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any

from .. import types as t
from ..errors import TypeMismatch, WrongIndexCount
from .bundles import Bundles
from .values import Agg, TupleVal, Weak, static_int

Key = tuple[Any, ...]
"""The indices of one component: a `Weak` number each, or a value that is known at run time only."""


def has_slice(node: ast.Subscript) -> bool:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(item, ast.Slice) for item in items)


class Slices(Bundles):
    """Lowers `v[0:2]`, `M[i, :]`, `M[:, j]`, `M[0:2, 0:2]`."""

    @abstractmethod
    def refuse(self, node: ast.AST) -> Exception:
        """The error for what the language does not have (statements.py)."""

    @abstractmethod
    def component(self, base: Agg, keys: list[Any], node: ast.AST) -> Any:
        """A component by index (indexing.py)."""

    def sliced(self, base: Any, node: ast.Subscript) -> Any:
        if isinstance(base, TupleVal) and isinstance(node.slice, ast.Slice):
            return TupleVal(tuple(base.items[k] for k in self.bounds(node.slice, len(base.items))))
        if not (isinstance(base, Agg) and isinstance(base.type, (t.Vec, t.Mat))):
            raise self.refuse(next(n for n in ast.walk(node.slice) if isinstance(n, ast.Slice)))
        kind, keys = self.slice_keys(base.type, node)
        return Agg(kind, tuple(self.component(base, list(key), node) for key in keys))

    def slice_keys(self, kind: t.Type, node: ast.Subscript) -> tuple[Any, list[Key]]:
        """The type of a slice, and the components that it is made of."""
        if not isinstance(kind, (t.Vec, t.Mat)):
            raise self.fail(TypeMismatch, f"{kind!r} has no slices", node, advice="vectors and matrices have")
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) > len(kind.shape):
            raise self.fail(WrongIndexCount, f"{kind!r} has {len(kind.shape)} dimensions, but got {len(items)} indices",
                            node, advice="leave one out")  # fmt: skip
        items += [ast.Slice()] * (len(kind.shape) - len(items))
        axes: list[list[Any]] = []
        sizes: list[int] = []
        for item, n in zip(items, kind.shape, strict=True):
            if isinstance(item, ast.Slice):
                axes.append([Weak(k) for k in self.bounds(item, n)])
                sizes.append(len(axes[-1]))
            else:
                axes.append([self.expr(item)])
        made = t.Vec(sizes[0], kind.scalar) if len(sizes) == 1 else t.Mat(sizes[0], sizes[1], kind.scalar)
        keys: list[Key] = [(a,) for a in axes[0]]
        if len(axes) == 2:
            keys = [(a, b) for a in axes[0] for b in axes[1]]
        return made, keys

    def bounds(self, node: ast.Slice, n: int) -> range:
        """The indices that a slice means, as in Python."""
        numbers: list[int | None] = []
        for part in (node.lower, node.upper, node.step):
            number = None if part is None else static_int(self.expr(part))
            if part is not None and number is None:
                raise self.fail(TypeMismatch, "the bounds of a slice are known while compiling", part,
                                advice="write them as numbers, or choose components with a loop")  # fmt: skip
            numbers.append(number)
        if numbers[2] == 0:
            raise self.fail(TypeMismatch, "the step of a slice is 0", node, advice="count up or down")
        found = range(n)[slice(*numbers)]
        if not found:
            raise self.fail(WrongIndexCount, f"an empty slice of {n} components", node,
                            advice=f"the indices are 0 to {n - 1}")  # fmt: skip
        return found
