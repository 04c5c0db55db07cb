"""Expressions → values: operators with Python's meaning, components, indexing, lazy conditions."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from .. import types as t
from ..builtins import TABLE
from ..config import config
from ..errors import MaybeUnassigned, NoOverload, TypeMismatch, UnknownName, Unsupported, WrongIndexCount
from ..ir import Check, Value, const
from .fence import REFUSED_CONSTANTS
from .slices import Slices, has_slice
from .source import MISSING, Capture, freeze
from .values import (
    Agg,
    ArrayVal,
    BundleVal,
    Known,
    Maybe,
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

_PYTHON_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_SIGNS: dict[Any, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[Any, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_COMPARE: dict[Any, str] = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_BITS: dict[Any, str] = {
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_FOR_INTEGERS = "it is for integers: use int(...)"
_LOGIC: dict[Any, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "ne"}


class Expressions(Slices, ABC):
    """Lowers expressions."""

    def expr(self, node: ast.expr) -> Any:
        return self.no_absent(self.expr_or_absent(node), node)

    def expr_or_absent(self, node: ast.expr) -> Any:
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            raise self.refuse(node)
        self.at(node)
        return method(node)

    @abstractmethod
    def refuse(self, node: ast.AST) -> Exception:
        """The error for what the language does not have (statements.py)."""

    @abstractmethod
    def compound_call(self, row: Any, args: list[Any], node: Any) -> Any:
        """Lower a call of a built-in that is written in the kernel language (calls.py)."""

    @abstractmethod
    def call(self, node: ast.Call) -> Any:
        """Lower a call (calls.py)."""

    @abstractmethod
    def branch(self, cond: Value, then: Callable[[], Any], orelse: Callable[[], Any], node: ast.AST) -> None:
        """Lower both sides of a condition (control.py)."""

    def expr_Call(self, node: ast.Call) -> Any:
        return self.call(node)

    def expr_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float)):
            return Weak(node.value)
        sentence, advice = REFUSED_CONSTANTS[type(node.value)]
        raise self.fail(Unsupported, sentence, node, advice=advice)

    def expr_Tuple(self, node: ast.Tuple) -> Any:
        return TupleVal(tuple(self.expr(item) for item in node.elts))

    # -- names and attributes
    def expr_Name(self, node: ast.Name) -> Any:
        env = self.frame.env
        if node.id in env:
            value = env[node.id]
            if isinstance(value, Maybe):
                text = f"{node.id!r} may have no value here: it is set only {value.reason}"
                raise self.fail(MaybeUnassigned, text, node)
            return value
        if node.id in self.frame.source.locals or "'" in node.id:
            raise self.fail(MaybeUnassigned, f"{node.id.partition(chr(39))[0]!r} has no value here yet", node)
        value, capture = self.frame.source.lookup(node.id)
        if value is MISSING:
            raise self.unknown(node.id, node)
        self.capture(capture)
        return self.wrap(value)

    def unknown(self, name: str, node: ast.AST) -> Exception:
        known = {*self.frame.env, *self.frame.source.locals, *self.frame.source.known_names()}
        hint = did_you_mean(name, sorted(n for n in known if not n.startswith("$")))
        return self.fail(UnknownName, f"unknown name {name!r}", node, advice=hint)

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

    # -- operators
    def expr_BinOp(self, node: ast.BinOp) -> Any:
        # A sum of many terms is a chain to the left: walked, so that its length does not matter.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        result = self.expr(chain[-1].left)
        for part in reversed(chain):
            right = self.expr(part.right)
            self.at(part)
            result = self.binary(type(part.op), result, right, part)
        return result

    def binary(self, kind: type, a: Any, b: Any, node: ast.AST) -> Any:
        if isinstance(a, Weak) and isinstance(b, Weak) and kind in _PYTHON_OPERATORS:
            return self.fold(kind, a.value, b.value, node)
        if is_number(a) and is_number(b):
            return self.scalar_binary(kind, a, b, node)
        result = self.vector_binary(kind, a, b, node)
        if result is None:
            raise self.fail(NoOverload, f"no {_SIGNS[kind]} for {describe(a)} and {describe(b)}", node,
                            advice=_operator_advice(kind, a, b))  # fmt: skip
        return result

    def fold(self, kind: type, a: Any, b: Any, node: ast.AST) -> Any:
        try:
            value = _PYTHON_OPERATORS[kind](a, b)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.fail(TypeMismatch, f"{a!r} {_SIGNS[kind]} {b!r}: {error}", node,
                            advice="both sides are known while compiling: change one") from None  # fmt: skip
        if isinstance(value, complex):
            raise self.fail(TypeMismatch, f"({a!r}) ** {b!r} is complex", node, advice="raise a positive number")
        return Weak(value)

    def scalar_binary(self, kind: type, a: Any, b: Any, node: ast.AST) -> Any:
        if kind is ast.Div:
            left, right = self.common(a, b, node)
            if not left.type.is_float:
                left, right = self.b.cast(self.real, left), self.b.cast(self.real, right)
            return self.b.op("div", left, right)
        if kind is ast.Pow:
            return self.power(a, b, node)
        if kind in _BITS:
            return self.bits(kind, a, b, node)
        if kind is ast.MatMult:
            raise self.fail(NoOverload, f"no @ for {describe(a)} and {describe(b)}", node, advice="write * for numbers")
        left, right = self.arithmetic(a, b, node)
        return self.b.op(_ARITHMETIC[kind], left, right)

    def bits(self, kind: type, a: Any, b: Any, node: ast.AST) -> Value:
        left, right = self.common(a, b, node)
        if left.type is t.BOOL and kind in _LOGIC:
            return self.b.op("ne" if kind is ast.BitXor else _LOGIC[kind], left, right)
        if not left.type.is_int:
            raise self.fail(NoOverload, f"no {_SIGNS[kind]} for {describe(a)} and {describe(b)}", node,
                            advice=_FOR_INTEGERS)  # fmt: skip
        return self.b.op(_BITS[kind], left, right)

    def power(self, a: Any, b: Any, node: ast.AST) -> Any:
        """Small literal powers are products (exact, and cheap to differentiate); the rest is pow."""
        exponent = static_int(b) if not (isinstance(b, Value) and b.type.is_float) else None
        if isinstance(b, Weak) and b.value in (-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0):
            if isinstance(a, Value) and a.type.is_float:
                exponent = int(b.value)
        if exponent is not None and isinstance(a, Value):
            base = self.b.cast(t.INT32, a) if a.type is t.BOOL else a
            if base.type.is_int and exponent < 0:
                base = self.b.cast(self.real, base)
            if abs(exponent) <= 4 or base.type.is_int:
                return self.small_power(base, exponent)
        left, right = self.common(a, b, node)
        if left.type.kind in "biu":
            raise self.fail(Unsupported, "an integer to an integer power is an int or a float in Python, depending on "
                            "the sign", node, advice="use a literal exponent, or float(base) ** exponent")  # fmt: skip
        return self.b.op("pow", left, right)

    def small_power(self, base: Value, exponent: int) -> Value:
        if exponent < 0:
            return self.b.op("div", const(base.type, 1), self.small_power(base, -exponent))
        result: Value | None = None
        square = base
        while exponent:
            if exponent & 1:
                result = square if result is None else self.b.op("mul", result, square)
            exponent >>= 1
            if exponent:
                square = self.b.op("mul", square, square)
        return result if result is not None else const(base.type, 1)

    # -- vectors and matrices
    def vector_binary(self, kind: type, a: Any, b: Any, node: ast.AST) -> Any:
        left, right = type_of(a), type_of(b)
        if kind in (ast.Mult, ast.MatMult) and isinstance(a, Agg) and isinstance(b, Agg):
            return self.product(kind, a, b, node)
        if kind in (ast.Add, ast.Sub) and isinstance(a, Agg) and isinstance(b, Agg):
            if isinstance(left, t.Composite) and not isinstance(left, t.Transform):
                if isinstance(right, t.Composite) and right.with_scalar(left.scalar) == left:
                    pairs = zip(a.leaves, b.leaves, strict=True)
                    return self.composite(left, [self.scalar_binary(kind, x, y, node) for x, y in pairs])
            return None
        if kind in (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod) and isinstance(a, Agg) and is_number(b):
            if isinstance(left, t.Composite) and not isinstance(left, t.Transform):
                return self.composite(left, [self.scalar_binary(kind, x, b, node) for x in a.leaves])
        if kind is ast.Div and is_number(a) and isinstance(right, t.Vec):
            return self.composite(right, [self.scalar_binary(kind, a, x, node) for x in b.leaves])
        if kind is ast.Mult and is_number(a) and isinstance(right, t.Composite) and not isinstance(right, t.Transform):
            return self.composite(right, [self.scalar_binary(kind, a, x, node) for x in b.leaves])
        return None

    def composite(self, like: t.Composite, leaves: list[Value]) -> Agg:
        return Agg(like.with_scalar(leaves[0].type), tuple(leaves))

    def product(self, kind: type, a: Agg, b: Agg, node: ast.AST) -> Any:
        left, right = a.type, b.type
        if isinstance(left, t.Mat) and isinstance(right, t.Mat) and left.c == right.r:
            rows = [
                self.inner([a.leaves[i * left.c + k] for k in range(left.c)],
                           [b.leaves[k * right.c + j] for k in range(left.c)], node)
                for i in range(left.r) for j in range(right.c)
            ]  # fmt: skip
            return Agg(t.Mat(left.r, right.c, rows[0].type), tuple(rows))
        if isinstance(left, t.Mat) and isinstance(right, t.Vec) and left.c == right.n:
            rows = [self.inner(a.leaves[i * left.c : (i + 1) * left.c], b.leaves, node) for i in range(left.r)]
            return Agg(t.Vec(left.r, rows[0].type), tuple(rows))
        if isinstance(left, t.Vec) and isinstance(right, t.Mat) and left.n == right.r:
            columns = [self.inner(a.leaves, b.leaves[j :: right.c], node) for j in range(right.c)]
            return Agg(t.Vec(right.c, columns[0].type), tuple(columns))
        if isinstance(left, t.Vec) and isinstance(right, t.Vec) and left.n == right.n and kind is ast.MatMult:
            return self.inner(a.leaves, b.leaves, node)
        if isinstance(left, t.Quat) and isinstance(right, t.Quat) and kind is ast.Mult:
            return self.hamilton(a, b, node)
        if isinstance(left, t.Transform) and isinstance(right, t.Transform) and kind is ast.Mult:
            return self.compound_call(TABLE.rows["transform_multiply"], [a, b], node)
        return None

    def inner(self, xs: Any, ys: Any, node: ast.AST) -> Value:
        total: Value | None = None
        for x, y in zip(xs, ys, strict=True):
            term = self.scalar_binary(ast.Mult, x, y, node)
            total = term if total is None else self.b.op("add", total, term)
        assert total is not None
        return total

    def hamilton(self, a: Agg, b: Agg, node: ast.AST) -> Agg:
        x, y, z, w = a.leaves
        i, j, k, r = b.leaves
        signs = [((w, i), (x, r), (y, k), (z, j)), ((w, j), (y, r), (z, i), (x, k)), ((w, k), (z, r), (x, j), (y, i))]
        leaves = []
        for p, q, s, m in signs:
            total = self.b.op("add", self.b.op("add", self.b.op("mul", *p), self.b.op("mul", *q)), self.b.op("mul", *s))
            leaves.append(self.b.op("sub", total, self.b.op("mul", *m)))
        rest = self.inner((x, y, z), (i, j, k), node)
        leaves.append(self.b.op("sub", self.b.op("mul", w, r), rest))
        return Agg(a.type, tuple(leaves))

    # -- unary, comparison, logic
    def expr_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            cond = self.truth(self.expr(node.operand), node)
            return Weak(not cond.value) if isinstance(cond, Weak) else self.b.op("not", cond)
        value = self.expr(node.operand)
        self.at(node)
        if isinstance(value, Weak):
            if isinstance(node.op, ast.Invert) and isinstance(value.value, float):
                raise self.fail(NoOverload, f"no ~ for {describe(value)}", node, advice=_FOR_INTEGERS)
            number: Any = value.value
            signs: dict[Any, Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
            return Weak(signs[type(node.op)](number))
        if isinstance(node.op, ast.UAdd) and (is_number(value) or isinstance(value, Agg)):
            return self.b.cast(t.INT32, value) if isinstance(value, Value) and value.type is t.BOOL else value
        if isinstance(node.op, ast.USub):
            if isinstance(value, Value):
                return self.b.op("neg", self.b.cast(t.INT32, value) if value.type is t.BOOL else value)
            if isinstance(value, Agg) and _is_linear(value.type):
                return Agg(value.type, tuple(self.b.op("neg", v) for v in value.leaves))
        if isinstance(node.op, ast.Invert) and isinstance(value, Value) and value.type.is_int:
            return self.b.op("invert", value)
        sign = {"USub": "-", "UAdd": "+", "Invert": "~"}[type(node.op).__name__]
        advice = _FOR_INTEGERS if sign == "~" else f"index it: {sign}{_element(value)}"
        raise self.fail(NoOverload, f"no {sign} for {describe(value)}", node, advice=advice)

    def truth(self, value: Any, node: ast.AST) -> Any:
        """A condition: a bool value, or a literal."""
        if isinstance(value, Weak):
            return Weak(bool(value.value))
        if isinstance(value, Value):
            return self.b.cast(t.BOOL, value)
        raise self.fail(TypeMismatch, f"{describe(value)} is no condition", node, advice="compare it with something")

    def expr_Compare(self, node: ast.Compare) -> Any:
        there = self.presence(node)
        if there is not None:
            return Weak(there)
        left = self.expr(node.left)
        return self.compare_chain(left, list(zip(node.ops, node.comparators, strict=True)), node)

    def compare_chain(self, left: Any, rest: list[tuple[ast.cmpop, ast.expr]], node: ast.Compare) -> Any:
        (op, comparator), more = rest[0], rest[1:]
        right = self.expr(comparator)
        self.at(node)
        first = self.compare(op, left, right, node)
        if not more:
            return first
        return self.lazy(first, False, lambda: self.compare_chain(right, more, node), [c for _, c in more], node)

    def compare(self, op: ast.cmpop, a: Any, b: Any, node: ast.AST) -> Any:
        if type(op) not in _COMPARE:
            word = {"In": "in", "NotIn": "not in", "Is": "is", "IsNot": "is not"}[type(op).__name__]
            advice = "compare with ==" if word.startswith("is") else "write x == a or x == b"
            raise self.fail(Unsupported, f"`{word}` is not part of the kernel language", node, advice=advice)
        if isinstance(a, Weak) and isinstance(b, Weak):
            return self.fold(type(op), a.value, b.value, node)
        if not (is_number(a) and is_number(b)):
            raise self.fail(NoOverload, f"{describe(a)} and {describe(b)} cannot be compared", node,
                            advice="compare components, or lengths")  # fmt: skip
        return self.b.op(_COMPARE[type(op)], *self.common(a, b, node))

    def expr_BoolOp(self, node: ast.BoolOp) -> Any:
        rest, said = self.undecided(node)
        is_or = isinstance(node.op, ast.Or)
        if not rest:
            return Weak(bool(said))
        first = self.bool_chain(rest, is_or, node)
        return first if said is None else Weak(said)

    def bool_chain(self, values: list[ast.expr], is_or: bool, node: ast.BoolOp) -> Any:
        first = self.expr(values[0])
        kind = type_of(first)
        if (kind is not None and kind is not t.BOOL) or (isinstance(first, Weak) and not isinstance(first.value, bool)):
            raise self.fail(TypeMismatch, f"`and`, `or` and `not` join conditions, not {describe(first)}", values[0],
                            advice="compare it with something, for instance `x != 0`")  # fmt: skip
        if len(values) == 1:
            return self.truth(first, values[0])
        return self.lazy(self.truth(first, values[0]), is_or, lambda: self.bool_chain(values[1:], is_or, node),
                         values[1:], node)  # fmt: skip

    def lazy(self, first: Any, is_or: bool, rest: Callable[[], Any], nodes: list[ast.expr], node: ast.AST) -> Any:
        """`first and rest` or `first or rest`: the rest is computed only where it is asked for."""
        if isinstance(first, Weak):
            return first if bool(first.value) == is_or else rest()
        if all(_is_cheap(n) for n in nodes) and not config.debug:  # debug mode looks at what is computed
            second = rest()
            if isinstance(second, Weak):
                second = const(t.BOOL, second.value)
            return self.b.op("or" if is_or else "and", first, second)
        ready, asked = const(t.BOOL, is_or), (lambda: self.number(rest(), t.BOOL, node))
        return self.conditional(first, (lambda: ready) if is_or else asked, asked if is_or else (lambda: ready), node)

    def expr_IfExp(self, node: ast.IfExp) -> Any:
        cond = self.truth(self.expr(node.test), node.test)
        if isinstance(cond, Weak):
            return self.expr(node.body if cond.value else node.orelse)
        return self.conditional(cond, lambda: self.expr(node.body), lambda: self.expr(node.orelse), node)

    def conditional(self, cond: Value, then: Callable[[], Any], orelse: Callable[[], Any], node: ast.AST) -> Any:
        """`a if cond else b`, where only one side is computed."""
        key = "$if" + "'" * sum(name.startswith("$if") for name in self.frame.env)

        def side(compute: Callable[[], Any]) -> Callable[[], None]:
            def run() -> None:
                self.frame.env[key] = compute()

            return run

        self.branch(cond, side(then), side(orelse), node)
        return self.frame.env.pop(key)


def _label(node: ast.AST) -> str:
    """How the user calls what is indexed."""
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else ""


def _operator_advice(kind: type, a: Any, b: Any) -> str:
    for value in (a, b):
        if isinstance(value, ArrayVal):
            return f"index it: {_element(value)}"
        if not (is_number(value) or isinstance(value, Agg)):
            return "operators join numbers, vectors, matrices and quaternions"
    if kind in (ast.Mult, ast.MatMult) and (isinstance(type_of(a), t.Mat) or isinstance(type_of(b), t.Mat)):
        return "a matrix has as many columns as what follows has rows; write M * v or M @ v"
    if kind is ast.Pow:
        return "raise each component"
    if kind is ast.Mult:
        return "use kc.dot, kc.cross or kc.cw_mul for vectors"
    if kind is ast.Div and isinstance(b, Agg):
        return "use kc.cw_div for vectors, kc.inverse for matrices"
    vector = type_of(a) if isinstance(a, Agg) else type_of(b)
    if kind in (ast.Add, ast.Sub) and isinstance(vector, t.Vec) and (is_number(a) or is_number(b)):
        return f"make a vector of the number: kc.{vector.with_scalar(t.REAL)!r}(number)"
    return "both sides must have the same shape"


def _element(value: Any) -> str:
    """How an element of an array is written."""
    if not isinstance(value, ArrayVal):
        return "a[i]"
    return f"{value.array.name if not value.prefix else 'row'}[{', '.join('ijkl'[: value.ndim])}]"


def _is_linear(kind: t.Type | None) -> bool:
    """Whether values of this type can be added and scaled."""
    return isinstance(kind, t.Composite) and not isinstance(kind, t.Transform)


def _is_cheap(node: ast.expr) -> bool:
    """Whether computing it always is harmless: names, literals and arithmetic that cannot fault."""
    allowed = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Load,
               ast.cmpop, ast.boolop, ast.unaryop, ast.Add, ast.Sub, ast.Mult)  # fmt: skip
    return all(isinstance(child, allowed) for child in ast.walk(node))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The hint that names what is spelled most like it, if anything is."""
    import difflib  # for errors only: it takes as long to import as a kernel to lower

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else ""
