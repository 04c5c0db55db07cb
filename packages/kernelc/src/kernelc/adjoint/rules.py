"""Turns the derivative rules of the built-in table into statements, and applies the policy for singular points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import ir
from ..builtins import TABLE, ScalarRow
from ..builtins.algebra import Sym
from ..types import Scalar
from .gating import gated_values
from .ties import Ties

_SINGULAR = 8


class Rules:
    """Emits derivatives into a builder, under one policy: "zero", "ieee" or "raise"."""

    def __init__(self, singular: str, block: ir.Block, ties: Ties | None = None):
        self.singular, self.ties = singular, ties
        self.gated = gated_values(block)
        self.roots = {s.out: s.args[0] for s in block.walk() if isinstance(s, ir.Op) and s.op == "sqrt"}

    def expand(
        self, b: ir.Builder, rule: Any, names: Mapping[str, ir.Value], real: Scalar, memo: dict[int, ir.Value]
    ) -> ir.Value:
        """A rule as statements; nodes that a rule shares are computed once."""
        if isinstance(rule, (int, float)):
            return ir.const(real, rule)
        if id(rule) in memo:
            return memo[id(rule)]
        assert isinstance(rule, Sym)
        if rule.op == "leaf":
            name = rule.args[0]
            return ir.const(real, name) if isinstance(name, float) else names[name]
        args = [self.expand(b, a, names, real, memo) for a in rule.args]
        memo[id(rule)] = b.op(rule.op, *args)
        return memo[id(rule)]

    def pull(
        self, b: ir.Builder, stmt: ir.Op, args: list[ir.Value], out: ir.Value, g: ir.Value, active: list[bool]
    ) -> list[ir.Value | None]:
        """What the adjoint `g` of an operation adds to the adjoints of its arguments."""
        row = TABLE.scalar(stmt.op)
        names = self.names(row, args, out, active) | {"g": g}
        if self.ties and sum(active) > 1 and any("tie" in p.names() for p in row.partials if p is not None):
            names["tie"] = self.ties.weight(b, stmt.args, g.type)
        memo: dict[int, ir.Value] = {}
        result: list[ir.Value | None] = []
        negated: set[int] = set()
        for i, (partial, wanted) in enumerate(zip(row.partials, active, strict=True)):
            if not wanted or partial is None:
                result.append(None)
            elif row.pull:
                rule = row.pull[i]
                if rule.op == "neg":
                    # Behind the guard: there, the sign costs nothing, because the next product takes it in.
                    rule = rule.args[0]
                    negated.add(i)
                result.append(self.expand(b, rule, names, g.type, memo))
            else:
                result.append(scale(b, g, self.expand(b, partial, names, g.type, memo)))
        if stmt.op in ("mul", "fma") and active[0] and active[1]:
            result[:2] = self.power(b, stmt, args, g) or result[:2]
        guarded = self.guard(b, row, stmt, names, g, result, memo)
        return [b.op("neg", p) if p is not None and i in negated else p for i, p in enumerate(guarded)]

    def power(
        self, b: ir.Builder, stmt: ir.Op, args: list[ir.Value], g: ir.Value
    ) -> tuple[ir.Value | None, ir.Value | None] | None:
        """Products of powers of one value, x x and x √x: one term, and no division by the root."""
        x, y = stmt.args[:2]
        if x is y:
            # Twice the adjoint, not twice the value: the squares of a length share it.
            return b.op("mul", b.op("add", g, g), args[0]), None
        if self.roots.get(y) is x:
            return b.op("mul", g, b.op("mul", args[1], ir.const(g.type, 1.5))), None
        if self.roots.get(x) is y:
            return None, b.op("mul", g, b.op("mul", args[0], ir.const(g.type, 1.5)))
        return None

    def names(self, row: ScalarRow, args: list[ir.Value], out: ir.Value, active: list[bool]) -> dict[str, ir.Value]:
        tie = ir.const(out.type, 0.5 if sum(active) > 1 else 1.0)
        return dict(zip(row.params, args, strict=True)) | {"y": out, "tie": tie}

    def guard(
        self, b: ir.Builder, row: ScalarRow, stmt: ir.Op, names: dict[str, ir.Value], g: ir.Value,
        parts: list[ir.Value | None], memo: dict[int, ir.Value],
    ) -> list[ir.Value | None]:  # fmt: skip
        """No adjoint comes out where none went in, nor, by default, where the derivative does not exist.

        The first is no branch: where an adjoint is zero, how it moves still counts (`guard` of `ir.Op`).
        """
        gated = stmt.out in self.gated and not all(_is_constant(p) for p in row.partials)
        if not (row.guard or gated) or self.singular == "ieee" or all(p is None for p in parts):
            return parts
        zero = ir.const(g.type, 0)
        asked = b.op("ne", g, zero)
        if row.regular is not None:
            regular = self.expand(b, row.regular, names, g.type, memo)
            if self.singular == "raise":
                fine = b.op("or", regular, b.op("not", asked))
                b.emit(ir.Check(fine, _SINGULAR, f"the derivative of {row.name} does not exist here", (), stmt.span))
            parts = [None if p is None else b.guard(asked, p) for p in parts]
            return [None if p is None else b.op("select", regular, p, zero) for p in parts]
        return [None if p is None else b.guard(asked, p) for p in parts]

    def push(
        self, b: ir.Builder, stmt: ir.Op, args: list[ir.Value], out: ir.Value, tangents: list[list[ir.Value] | None],
        shared: int,
    ) -> list[ir.Value] | None:  # fmt: skip
        """Forward mode: the tangents of a result from those of its arguments; slopes are computed once for all.

        shared: how many of the arguments carry a gradient, whether or not they have a tangent
        """
        row = TABLE.scalar(stmt.op)
        names = self.names(row, args, out, [True] * shared)
        memo: dict[int, ir.Value] = {}
        totals: list[ir.Value] | None = None
        moving = [(p, d) for p, d in zip(row.partials, tangents, strict=True) if p is not None and d is not None]
        # Plain terms first: products are then added to them one by one, each a fused operation.
        for partial, dots in sorted(moving, key=lambda term: not _is_constant(term[0])):
            slope = self.expand(b, partial, names, out.type, memo)
            terms = []
            for dot in dots:
                (term,) = self.guard(b, row, stmt, names, dot, [scale(b, dot, slope)], memo)
                assert term is not None
                terms.append(term)
            totals = terms if totals is None else [b.op("add", x, y) for x, y in zip(totals, terms, strict=True)]
        return totals


def _is_constant(partial: Sym | None) -> bool:
    return partial is None or (partial.op == "leaf" and isinstance(partial.args[0], float))


def scale(b: ir.Builder, g: ir.Value, factor: ir.Value) -> ir.Value:
    """g * factor, without a product for one and minus one."""
    if ir.is_const(factor, -1):
        return b.op("neg", g)
    return b.op("mul", g, factor)


def add(b: ir.Builder, x: ir.Value | None, y: ir.Value) -> ir.Value:
    return y if x is None else b.op("add", x, y)
