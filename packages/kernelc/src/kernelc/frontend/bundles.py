"""Bundles while compiling: records of arrays and values, known by name. What is absent decides conditions here.

A bundle never reaches the intermediate representation. Its members are parameters of their own, `bodies.x`; a function
that takes the bundle is inlined, and refers to them.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any

from .. import types as t
from ..errors import NoOverload, TypeMismatch, UnknownName
from .convert import Convert
from .values import AbsentVal, BundleVal, Known, component_advice, describe


class Bundles(Convert):
    """Lowers members of bundles, and conditions about them."""

    @abstractmethod
    def expr(self, node: ast.expr) -> Any:
        """Lower an expression (expressions.py)."""

    @abstractmethod
    def expr_or_absent(self, node: ast.expr) -> Any:
        """As `expr`, where what is absent is no error (expressions.py)."""

    def member(self, base: BundleVal, name: str, node: ast.AST) -> Any:
        if name not in base.type.names:
            raise self.fail(UnknownName, f"{describe(base)} has no member .{name}", node,
                            advice=component_advice(base.type))  # fmt: skip
        return base.members[base.type.names.index(name)]

    def no_absent(self, value: Any, node: ast.AST) -> Any:
        """A value that is there."""
        if isinstance(value, AbsentVal):
            raise self.fail(TypeMismatch, f"{value.name} is absent in this launch", node,
                            advice=f"ask first: `if {value.name} is not None:`")  # fmt: skip
        return value

    # -- conditions that are decided while compiling
    def presence(self, node: ast.expr) -> bool | None:
        """What a condition says that only asks whether something is there; None for any other."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and right.value is None:
                value = self.expr_or_absent(node.left)
                nothing = isinstance(value, AbsentVal) or (isinstance(value, Known) and value.object is None)
                return nothing == isinstance(node.ops[0], ast.Is)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self.presence(node.operand)
            return None if found is None else not found
        if isinstance(node, ast.BoolOp):
            return self.presence_of_all(node)
        return None

    def presence_of_all(self, node: ast.BoolOp) -> bool | None:
        """`a and b`, `a or b`: one of them may decide. What stands behind it is not looked at, as in Python."""
        deciding = isinstance(node.op, ast.Or)
        known = True
        for item in node.values:
            found = self.presence(item)
            if found is deciding and known:
                return deciding
            known = known and found is not None
        return (not deciding) if known else None

    def undecided(self, node: ast.BoolOp) -> tuple[list[ast.expr], bool | None]:
        """The conditions of `and` or `or` that remain for the launch, and what the one behind them says, if one does:
        `i > 0 and b.wind is not None` is false where there is no wind, whatever i is."""
        deciding = isinstance(node.op, ast.Or)
        rest: list[ast.expr] = []
        for item in node.values:
            found = self.presence(item)
            if found is deciding:
                return rest, deciding
            if found is None:
                rest.append(item)
        return rest, None if rest else not deciding

    # -- bundles made in kernels
    def construct_bundle(self, kind: t.Struct, args: list[Any], named: dict[str, Any], node: ast.AST) -> BundleVal:
        """A record of arrays and values that are there already; nothing is copied."""
        resolved = t.resolve(kind, self.real)
        assert isinstance(resolved, t.Struct)
        given = dict(zip(resolved.names, args, strict=False)) | named
        members = []
        for name, field in resolved.fields:
            if name in given:
                members.append(self.convert(given[name], field, node, f"member {name!r}"))
            elif isinstance(field, t.Optional):
                members.append(AbsentVal(f"{kind.name}.{name}"))
            elif t.has_arrays(field):
                raise self.fail(NoOverload, f"{kind.name} misses {name!r}", node,
                                advice=f"write {kind.name}({', '.join(f'{n}=…' for n in resolved.names)})")  # fmt: skip
            else:
                members.append(self.field_default(resolved, name, field, node))
        return BundleVal(resolved, kind.name, tuple(members))

    @abstractmethod
    def field_default(self, kind: t.Struct, name: str, field: t.Type, node: ast.AST) -> Any:
        """A field that is not given (constructors.py)."""
