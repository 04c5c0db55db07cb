"""Symbols in which the derivatives of built-ins are written: `cos(x)`, `0.5 / y`, `where(a < b, 1, 0)`.

A rule is a small expression tree. The adjoint turns it into statements, the tests evaluate it in NumPy, the
documentation prints it: the same rule, said once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..records import entity


@entity
class Sym:
    """A node: the name of a scalar operation and its arguments, or a leaf (`op == "leaf"`)."""

    op: str
    args: tuple[Any, ...] = ()

    def __add__(self, other: Any) -> Sym:
        return Sym("add", (self, other))

    def __radd__(self, other: Any) -> Sym:
        return Sym("add", (other, self))

    def __sub__(self, other: Any) -> Sym:
        return Sym("sub", (self, other))

    def __rsub__(self, other: Any) -> Sym:
        return Sym("sub", (other, self))

    def __mul__(self, other: Any) -> Sym:
        return Sym("mul", (self, other))

    def __rmul__(self, other: Any) -> Sym:
        return Sym("mul", (other, self))

    def __truediv__(self, other: Any) -> Sym:
        return Sym("div", (self, other))

    def __rtruediv__(self, other: Any) -> Sym:
        return Sym("div", (other, self))

    def __neg__(self) -> Sym:
        return Sym("neg", (self,))

    def __lt__(self, other: Any) -> Sym:
        return Sym("lt", (self, other))

    def __le__(self, other: Any) -> Sym:
        return Sym("le", (self, other))

    def __gt__(self, other: Any) -> Sym:
        return Sym("gt", (self, other))

    def __ge__(self, other: Any) -> Sym:
        return Sym("ge", (self, other))

    def __and__(self, other: Any) -> Sym:
        return Sym("and", (self, other))

    def __or__(self, other: Any) -> Sym:
        return Sym("or", (self, other))

    def names(self) -> Iterator[str]:
        """The free names in it."""
        for arg in self.args:
            if isinstance(arg, Sym):
                yield from arg.names()
            elif self.op == "leaf" and isinstance(arg, str):
                yield arg

    def __str__(self) -> str:
        if self.op == "leaf":
            return str(self.args[0])
        if self.op in _INFIX:
            return f"({self.args[0]} {_INFIX[self.op]} {self.args[1]})"
        if self.op == "neg":
            return f"-{self.args[0]}"
        return f"{'where' if self.op == 'select' else self.op}({', '.join(map(str, self.args))})"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
          "ne": "!=", "and": "and", "or": "or"}  # fmt: skip


class _Functions:
    """`fn.cos(x)` makes the node cos(x)."""

    def __getattr__(self, name: str) -> Callable[..., Sym]:
        return lambda *args: Sym(name, args)


fn = _Functions()


def where(condition: Sym, a: Any, b: Any) -> Sym:
    """The branch of a rule; both sides are formed."""
    return Sym("select", (condition, a, b))


def leaf(name: str) -> Sym:
    """A free name of a rule: an argument or the result."""
    return Sym("leaf", (name,))


TIE = leaf("tie")
"""The weight of one side at a tie: a half where both sides carry a gradient, one otherwise."""
