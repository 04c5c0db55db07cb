"""Branches → nested blocks. Exits (`break`, `continue`, `return`) become flags that guard what follows them.

The variables of a function live in `frame.env`. A branch lowers its two sides on copies and merges them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .. import types as t
from ..errors import MissingReturn, SourceError, TypeMismatch, Unsupported
from ..ir import FALSE, TRUE, Block, Const, If, Value, const
from .convert import ReturnType, fits
from .source import always_exits
from .statements import Statements
from .values import Maybe, TupleVal, Weak, describe, flatten, rebuild, type_of

_FLAGS = ("$brk", "$cont", "$ret")
_LEFT = (*_FLAGS, "$else")
_MOST_ARMS = 24


class Branches(Statements):
    """Lowers blocks of statements, exits and branches."""

    # -- sequences and exits
    def body(self, stmts: list[ast.stmt]) -> None:
        for n, stmt in enumerate(stmts):
            rest = stmts[n + 1 :]
            if isinstance(stmt, ast.If):
                if self.if_statement(stmt, rest):
                    return
            else:
                self.stmt(stmt)
            exited = self.exited()
            if exited is TRUE:
                return
            if exited is not FALSE and rest:
                self.branch(exited, lambda: None, lambda rest=rest: self.body(rest), rest[0])  # type: ignore[misc]
                return

    def exited(self) -> Value:
        """Whether this thread has left the statements that follow."""
        result: Value = FALSE
        for flag in _FLAGS:
            value = self.frame.env.get(flag, FALSE)
            result = self.b.op("or", result, value)
        return canonical(result)

    def if_statement(self, node: ast.If, rest: list[ast.stmt]) -> bool:
        """Lower an `if`. True if what follows it was lowered, too: where one side always leaves, the rest belongs
        to the other side."""
        if (cut := _cut(node)) is not None:
            self.long_if(*cut, node)
            return False
        cond = self.truth(self.expr(node.test), node.test)
        if isinstance(cond, Weak):
            self.body(node.body if cond.value else node.orelse)
            return False
        then, orelse = node.body, node.orelse
        then_exits, else_exits = always_exits(then), always_exits(orelse)
        if then_exits and not else_exits:
            orelse = [*orelse, *rest]
        elif else_exits and not then_exits:
            then = [*then, *rest]
        self.branch(cond, lambda: self.body(then), lambda: self.body(orelse), node)
        return then_exits or else_exits

    def long_if(self, first: ast.If, others: ast.If, node: ast.If) -> None:
        """A chain of many `elif`: its first arms, then, where none of them was taken, the others. Not one in the other:
        a hundred blocks deep is too deep for compilers, ours included."""
        before = dict(self.frame.env)
        self.frame.env["$else"] = FALSE
        self.if_statement(first, [])
        missed = canonical(self.frame.env.pop("$else", FALSE))
        if missed is FALSE:
            return
        taken = self.frame.env

        def rest() -> None:
            self.frame.env = dict(before)  # nothing has happened yet
            self.body([others])

        def done() -> None:
            self.frame.env = dict(taken)

        self.branch(missed, rest, done, node)

    def stmt_Break(self, node: ast.Break) -> None:
        self.frame.env["$brk"] = TRUE

    def stmt__Else(self, node: _Else) -> None:
        self.frame.env["$else"] = TRUE

    def stmt_Continue(self, node: ast.Continue) -> None:
        self.frame.env["$cont"] = TRUE

    def stmt_Return(self, node: ast.Return) -> None:
        env = self.frame.env
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            if self.frame.returns is not None or "$retval" in self.frame.types:
                raise self.uneven_return("elsewhere, but not here", node)
            self.frame.bare_return = True
            env["$ret"] = TRUE
            return
        if self.frame.is_kernel:
            raise self.fail(Unsupported, "a kernel returns nothing", node, advice="write the result to an array")
        if self.frame.bare_return:
            raise self.uneven_return("here, but not elsewhere", node)
        value = self.return_value(node)
        if self.frame.trial:
            raise ReturnType(value)
        known = self.frame.types.get("$retval")
        if known is not None and known != type_of(value):
            raise self.type_change("$retval", known, type_of(value) or t.BOOL, node)
        self.frame.types["$retval"] = type_of(value) or t.BOOL
        # A conditional in the expression has replaced the environment: look it up again.
        self.frame.env["$retval"] = value
        self.frame.env["$ret"] = TRUE

    def uneven_return(self, where: str, node: ast.Return) -> SourceError:
        return self.fail(
            MissingReturn, f"a value is returned {where}", node, advice="return a value everywhere, or nowhere"
        )

    def return_value(self, node: ast.Return) -> Any:
        assert node.value is not None
        value: Any = self.expr(node.value)
        self.at(node)
        if self.frame.returns is not None:
            return self.convert(value, self.frame.returns, node, "the result")
        known = self.frame.types.get("$retval")
        value = self.strengthen(self.adapt(value, known) if known is not None else value)
        if flatten(value) is None:
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be returned", node,
                            advice="functions return numbers, vectors, other values, and tuples of them")  # fmt: skip
        return value

    # -- branches
    def branch(self, cond: Value, then: Callable[[], Any], orelse: Callable[[], Any], node: ast.AST) -> None:
        """`if cond: then() else: orelse()`, with what they assign merged."""
        span = self.span(node)
        before = self.frame.env
        then_block, then_env = self.side(before, then)
        else_block, else_env = self.side(before, orelse)
        self.b.span = span
        statement = If([], cond, then_block, else_block, span)
        merged: dict[str, Any] = {}
        for name in [*then_env, *(n for n in else_env if n not in then_env)]:
            merged[name] = self.merge(name, then_env, else_env, statement, node)
        self.frame.env = merged
        if then_block.body or else_block.body or statement.outs:
            self.simplify_if(statement)

    def side(self, before: dict[str, Any], lower: Callable[[], Any]) -> tuple[Block, dict[str, Any]]:
        outer, span = self.b.block, self.b.span
        self.frame.env = dict(before)
        self.b.block = Block()
        try:
            lower()
            return self.b.block, self.frame.env
        finally:
            self.b.block, self.b.span = outer, span

    def merge(self, name: str, left: dict[str, Any], right: dict[str, Any], statement: If, node: ast.AST) -> Any:
        missing = FALSE if name in _LEFT else None
        a, b = left.get(name, missing), right.get(name, missing)
        if a is b:
            return a
        # A side that has left does not reach what follows: what it lacks does not matter.
        if (a is None or isinstance(a, Maybe)) and flatten(b) is not None and (name == "$retval" or _has_left(left)):
            a = self.zero(_type(b))
        if (b is None or isinstance(b, Maybe)) and flatten(a) is not None and (name == "$retval" or _has_left(right)):
            b = self.zero(_type(a))
        if a is None or b is None:
            return Maybe("on one branch", statement.span)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            return a if isinstance(a, Maybe) else b
        a, b = self.join(name, a, b, node)
        if flatten(a) is None or flatten(b) is None:
            if a == b:
                return a
            what = repr(name) if not name.startswith("$") else "this"
            raise self.fail(Unsupported, f"{what} means different things on the two branches: {describe(a)} and "
                            f"{describe(b)}", node, advice="choose between values: use each on its branch")  # fmt: skip
        return rebuild(a, self.phis(name, flatten(a) or [], flatten(b) or [], statement))

    def phis(self, name: str, left: list[Value], right: list[Value], statement: If) -> list[Value]:
        merged = []
        label = "" if name.startswith("$if") else name.lstrip("$")
        for x, y in zip(left, right, strict=True):
            if x is y:
                merged.append(x)
                continue
            out = Value(x.type, y.name or x.name or label)
            statement.outs.append(out)
            statement.then.yields.append(x)
            statement.orelse.yields.append(y)
            merged.append(out)
        return merged

    def join(self, name: str, a: Any, b: Any, node: ast.AST) -> tuple[Any, Any]:
        """Two values of one name; literals take the type of the other side."""
        if isinstance(a, Weak) and isinstance(b, Weak):
            kind = self.weak_type(Weak(a.value + b.value)) if type(a.value) is not type(b.value) else self.weak_type(a)
            return const(kind, a.value), const(kind, b.value)
        if isinstance(a, Weak) and isinstance(b, Value) and fits(a, b.type):
            return const(b.type, a.value), b
        if isinstance(b, Weak) and isinstance(a, Value) and fits(b, a.type):
            return a, const(a.type, b.value)
        if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
            pairs = [self.join(name, x, y, node) for x, y in zip(a.items, b.items, strict=True)]
            return TupleVal(tuple(p[0] for p in pairs)), TupleVal(tuple(p[1] for p in pairs))
        left, right = type_of(a), type_of(b)
        if (left is None) != (right is None) or left != right:
            what = repr(name) if not name.startswith("$") else "the result"
            raise self.fail(TypeMismatch, f"{what} is {describe(a)} on one side, and {describe(b)} on the other", node,
                            advice="make both sides of one type, for instance with float(...)")  # fmt: skip
        return a, b

    def simplify_if(self, statement: If) -> None:
        """An `if` that only chooses between values is a selection."""
        if statement.then.body or statement.orelse.body:
            self.b.emit(statement)
            return
        replaced: dict[Value, Value] = {}
        for out, x, y in zip(statement.outs, statement.then.yields, statement.orelse.yields, strict=True):
            chosen = self.choose_value(statement.cond, x, y)
            chosen.name = chosen.name or out.name
            replaced[out] = chosen
        for name, value in self.frame.env.items():
            leaves = flatten(value)
            if leaves is not None and any(v in replaced for v in leaves):
                self.frame.env[name] = rebuild(value, [replaced.get(v, v) for v in leaves])

    def choose_value(self, cond: Value, x: Value, y: Value) -> Value:
        if x is TRUE and y is FALSE:
            return cond
        if x is FALSE and y is TRUE:
            return self.b.op("not", cond)
        if x.type is t.BOOL and x is TRUE:
            return self.b.op("or", cond, y)
        if x.type is t.BOOL and y is FALSE:
            return self.b.op("and", cond, x)
        return self.b.op("select", cond, x, y)


def _has_left(env: dict[str, Any]) -> bool:
    """Whether a branch ends in `break`, `continue` or `return` on all of its paths."""
    return any(env.get(flag) is TRUE for flag in _LEFT)


class _Else(ast.Pass):
    """Stands for the arms of a long chain of `elif` that are lowered apart."""


def _cut(node: ast.If) -> tuple[ast.If, ast.If] | None:
    """A long chain of `elif` as its first arms, which end in an `_Else`, and the others; None if it is not long."""
    arms = [node]
    while len(arms) <= _MOST_ARMS:
        orelse = arms[-1].orelse
        if len(orelse) != 1 or not isinstance(orelse[0], ast.If):
            return None
        arms.append(orelse[0])
    others = arms.pop()
    first: ast.stmt = ast.copy_location(_Else(), others)
    for arm in reversed(arms):
        first = ast.copy_location(ast.If(arm.test, arm.body, [first]), arm)
    assert isinstance(first, ast.If)
    return first, others


def canonical(value: Value) -> Value:
    """The constants TRUE and FALSE are compared by identity."""
    if isinstance(value, Const):
        return TRUE if value.value else FALSE
    return value


def _type(value: Any) -> t.Type:
    kind = type_of(value)
    assert kind is not None
    return kind
