"""Operators with Python's meaning: arithmetic of numbers, vectors and matrices, bits, signs, comparisons."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from .. import types as t
from ..builtins import TABLE
from ..errors import NoOverload, TypeMismatch, Unsupported
from ..ir import Value, const
from .indexing import Indexing
from .values import Agg, ArrayVal, Weak, describe, is_number, static_int, type_of

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


class Operators(Indexing):
    """Lowers operators."""

    @abstractmethod
    def compound_call(self, row: Any, args: list[Any], node: Any) -> Any:
        """Lower a call of a built-in that is written in the kernel language (calls.py)."""

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

    # -- signs and comparisons
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
