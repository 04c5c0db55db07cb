"""Expressions → values: literals, names, and conditions that are computed only where they are asked for."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .. import types as t
from ..config import config
from ..errors import MaybeUnassigned, TypeMismatch, UnknownName, Unsupported
from ..ir import Value, const
from .fence import REFUSED_CONSTANTS
from .indexing import did_you_mean
from .operators import Operators
from .source import MISSING
from .values import Maybe, TupleVal, Weak, describe, type_of


class Expressions(Operators, ABC):
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

    # -- names
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

    # -- conditions
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


def _is_cheap(node: ast.expr) -> bool:
    """Whether computing it always is harmless: names, literals and arithmetic that cannot fault."""
    allowed = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Load,
               ast.cmpop, ast.boolop, ast.unaryop, ast.Add, ast.Sub, ast.Mult)  # fmt: skip
    return all(isinstance(child, allowed) for child in ast.walk(node))
