"""Parts of values: members, components and elements, by name and by index; rows of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from .. import types as t
from ..config import config
from ..errors import TypeMismatch, UnknownName, Unsupported, WrongIndexCount
from ..ir import Check, Value, const
from .slices import Slices, has_slice
from .source import MISSING, Capture, freeze
from .values import (
    Agg,
    ArrayVal,
    BundleVal,
    Known,
    ShapeVal,
    TupleVal,
    Weak,
    component_advice,
    describe,
    flatten,
    is_number,
    length_of,
    of_type,
    part_of,
    rebuild,
    static_int,
    type_of,
)


class Indexing(Slices):
    """Lowers `a.x` and `a[i]`, wherever they are read."""

    def expr_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.expr(node.value), node.attr, node)

    def attribute(self, base: Any, name: str, node: ast.AST) -> Any:
        if isinstance(base, Known):
            value = getattr(base.object, name, MISSING)
            if value is MISSING:
                where = getattr(base.object, "__name__", repr(base.object))
                hint = did_you_mean(name, dir(base.object))
                raise self.fail(UnknownName, f"{where} has no {name!r}", node, advice=hint)
            if getattr(base.object, "__name__", "") != "kernelc":
                self.capture(Capture(base.object, name, value, freeze(value)))
            return self.wrap(value)
        if isinstance(base, BundleVal):
            return self.member(base, name, node)
        if isinstance(base, ArrayVal):
            if name == "shape":
                return ShapeVal(base.array, len(base.prefix))
            if name == "ndim":
                return Weak(base.ndim)
            raise self.fail(Unsupported, f"arrays have .shape and .ndim in kernels, not .{name}", node,
                            advice="use its elements; views are made outside, and passed to the launch")  # fmt: skip
        if isinstance(base, Agg):
            if name == "shape" and isinstance(base.type, t.Composite):
                return TupleVal(tuple(Weak(n) for n in base.type.shape))
            part = part_of(base.type, name)
            if part is not None:
                return self.slice(base, *part)
            raise self.fail(UnknownName, f"{describe(base)} has no component .{name}", node,
                            advice=component_advice(base.type))  # fmt: skip
        raise self.fail(UnknownName, f"{describe(base)} has no component .{name}", node,
                        advice=component_advice(type_of(base)))  # fmt: skip

    def slice(self, base: Agg, kind: t.Type, first: int) -> Any:
        return of_type(kind, base.leaves[first : first + len(t.leaves(kind))])

    # -- indexing
    def expr_Subscript(self, node: ast.Subscript) -> Any:
        base = self.expr(node.value)
        if has_slice(node):
            return self.sliced(base, node)
        return self.subscript(base, self.indices(node), node)

    def indices(self, node: ast.Subscript) -> list[Any]:
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for item in items:
            if isinstance(item, ast.Slice):
                raise self.refuse(item)
        return [self.expr(item) for item in items]

    def subscript(self, base: Any, keys: list[Any], node: ast.AST) -> Any:
        if isinstance(base, ArrayVal):
            if 0 < len(keys) < base.ndim and not isinstance(keys[0], TupleVal):
                return self.row(base, keys, node)
            index = self.array_index(base, keys, node)
            kind = self.element_of(base.array)
            types = t.leaves(kind)
            return of_type(kind, self.b.load(base.array, index, range(len(types)), types))
        if isinstance(base, ShapeVal):
            axis, ndim = static_int(keys[0]), base.ndim
            if len(keys) != 1 or axis is None or not -ndim <= axis < ndim:
                name, known = base.array.name, ", ".join(f"{base.array.name}.shape[{k}]" for k in range(ndim))
                text = (
                    f"{name} has {ndim} dimension{'s' * (ndim > 1)}"
                    if axis is not None
                    else "a shape is indexed by a literal"
                )
                raise self.fail(WrongIndexCount, text, node, advice=f"there is {known}")
            return self.b.query("shape", base.first + axis % ndim, base.array)
        if isinstance(base, TupleVal):
            return self.item(base, keys, node)
        if isinstance(base, Agg):
            return self.component(base, keys, node)
        advice = "arrays, vectors, matrices, local arrays and tuples can"
        if isinstance(base, Known) and hasattr(base.object, "__array__"):
            advice = "pass it to the launch as an argument"
        raise self.fail(TypeMismatch, f"{describe(base)} cannot be indexed", node, advice=advice)

    def item(self, base: TupleVal, keys: list[Any], node: ast.AST) -> Any:
        """An item of a tuple, or of a captured list: known while compiling, or chosen at run time if all are alike."""
        n, key = len(base.items), static_int(keys[0])
        if len(keys) != 1 or (key is not None and not -n <= key < n):
            shown = ast.unparse(node.slice) if isinstance(node, ast.Subscript) else "…"
            raise self.fail(WrongIndexCount, f"a tuple of {n} has no item [{shown}]", node,
                            advice=f"its indices are 0 to {n - 1}")  # fmt: skip
        if key is not None:
            return base.items[key]
        index, like = self.as_index(keys[0], node), self.common_item(base, node)
        self.check_bounds(index, n, _label(node) or describe(base), node)
        items = [self.convert(v, like, node, "an item of the tuple") for v in base.items]
        result = items[0]
        for k, other in enumerate(items[1:], start=1):
            result = self.select(self.b.op("eq", index, const(index.type, k)), other, result)
        return result

    def common_item(self, base: TupleVal, node: ast.AST) -> t.Type:
        """The type that all items of a tuple can take."""
        numbers = [v for v in base.items if is_number(v)]
        if len(numbers) == len(base.items) and numbers:
            kinds = {v.type if isinstance(v, Value) else self.weak_type(v) for v in numbers}
            reals = {s for s in kinds if s.is_float}
            return max(reals or kinds, key=lambda s: s.size)
        found = {type_of(self.strengthen(v)) for v in base.items}
        kind = found.pop() if len(found) == 1 else None
        if kind is None:
            raise self.fail(TypeMismatch, f"{describe(base)} with items of different types is indexed by a literal",
                            node, advice="make its items alike, or write the index out")  # fmt: skip
        return kind

    def array_index(self, base: ArrayVal, keys: list[Any], node: ast.AST) -> list[Value]:
        array = base.array
        if len(keys) == 1 and isinstance(keys[0], TupleVal):
            keys = list(keys[0].items)
        if len(keys) != base.ndim:
            ndim, found = base.ndim, f"{len(keys)} ind{'ex' if len(keys) == 1 else 'ices'}"
            name, what = (array.name, array.name) if not base.prefix else ("row", describe(base))
            raise self.fail(WrongIndexCount, f"{what} has {ndim} dimension{'s' * (ndim > 1)}, but got {found}",
                            node, advice=f"write {name}[{', '.join('ijkl'[:ndim])}]")  # fmt: skip
        return [*base.prefix, *self.indices_of(base, keys, node)]

    def row(self, base: ArrayVal, keys: list[Any], node: ast.AST) -> ArrayVal:
        """`a[i]` of an array with more dimensions: what remains of it, by reference."""
        return ArrayVal(base.array, (*base.prefix, *self.indices_of(base, keys, node)))

    def indices_of(self, base: ArrayVal, keys: list[Any], node: ast.AST) -> list[Value]:
        name = base.array.name
        for key in keys:
            number = static_int(key)
            if number is not None and number < 0:
                raise self.fail(WrongIndexCount, f"index {number}: arrays are not counted from the end", node,
                                advice=f"write {name}[{name}.shape[0] - {-number}]")  # fmt: skip
        return [self.as_index(key, node) for key in keys]

    def component(self, base: Agg, keys: list[Any], node: ast.AST) -> Any:
        """A component by index: known while compiling, or chosen at run time."""
        key = self.static_key(keys)
        if key is not None:
            part = part_of(base.type, key)
            if part is None:
                raise self.bad_component(base, keys, node)
            return self.slice(base, *part)
        if len(keys) == 2 and isinstance(base.type, t.Mat):
            return self.component(self.component(base, keys[:1], node), keys[1:], node)
        n, index = length_of(base.type), self.as_index(keys[0], node)
        if n is None or len(keys) != 1:
            raise self.bad_component(base, keys, node)
        self.check_bounds(index, n, _label(node) or describe(base), node)
        return self.choose(base, index)

    def static_key(self, keys: list[Any]) -> Any:
        numbers = [static_int(k) for k in keys]
        if any(n is None for n in numbers):
            return None
        return numbers[0] if len(numbers) == 1 else tuple(numbers)

    def bad_component(self, base: Agg, keys: list[Any], node: ast.AST) -> Exception:
        shown = ", ".join(str(static_int(k)) if static_int(k) is not None else "…" for k in keys)
        return self.fail(WrongIndexCount, f"{describe(base)} has no component [{shown}]", node,
                         advice=component_advice(base.type))  # fmt: skip

    def choose(self, base: Agg, index: Value) -> Any:
        """Component `index` at run time: a chain of selections, which lanes and gradients handle as they are."""
        parts = [part for k in range(length_of(base.type) or 0) if (part := part_of(base.type, k)) is not None]
        result = self.slice(base, *parts[0])
        for k, part in enumerate(parts[1:], start=1):
            hit = self.b.op("eq", index, const(index.type, k))
            result = self.select(hit, self.slice(base, *part), result)
        return result

    def check_bounds(self, index: Value, n: int, what: str, node: ast.AST) -> None:
        """Debug mode checks an index into a local value, as it checks those into arrays."""
        if config.debug:
            low, high = const(index.type, 0), const(index.type, n)
            inside = self.b.op("and", self.b.op("ge", index, low), self.b.op("lt", index, high))
            self.b.emit(Check(inside, 2, what, (index, const(t.INT64, n)), self.span(node)))

    def select(self, cond: Value, a: Any, b: Any) -> Any:
        left, right = flatten(a), flatten(b)
        assert left is not None and right is not None
        return rebuild(a, [self.b.op("select", cond, x, y) for x, y in zip(left, right, strict=True)])


def _label(node: ast.AST) -> str:
    """How the user calls what is indexed."""
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The hint that names what is spelled most like it, if anything is."""
    import difflib  # for errors only: it takes as long to import as a kernel to lower

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else ""
