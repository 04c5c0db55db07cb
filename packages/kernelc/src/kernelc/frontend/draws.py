"""Random numbers from a state: kc.rng makes one, kc.randf and kc.randn draw from it and advance it.

The state is a value like any other, (seed, i, k): a draw is the counter-based rand(seed, i, k), followed by k += 1.
So an adjoint that replays a loop draws the same numbers.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any

from .. import types as t
from ..builtins import TABLE, CompoundRow
from ..builtins.random import RNG
from ..errors import TypeMismatch
from .launch_calls import LaunchCalls
from .source import drawn_from
from .values import describe, flatten, is_number, of_type, type_of


class Draws(LaunchCalls):
    """Lowers draws from generators."""

    def call_rng(self, args: list[Any], node: ast.Call) -> Any:
        if len(args) != 2 or not all(is_number(a) for a in args):
            shown = ", ".join(map(describe, args)) or "nothing"
            raise self.fail(TypeMismatch, f"kc.rng takes a seed and a number, usually that of the thread, not {shown}",
                            node, advice="write state = kc.rng(seed, kc.tid())")  # fmt: skip
        words = [self.construct(t.UINT32, [a], node) for a in args]
        return of_type(RNG, [*words, self.number(self.wrap(0), t.UINT32, node)])

    def call_randf(self, args: list[Any], node: ast.Call) -> Any:
        return self.draw("rand", args, node)

    def draw(self, name: str, args: list[Any], node: ast.Call) -> Any:
        state = drawn_from(node)
        if len(args) != 1 or type_of(args[0]) != RNG or state is None:
            shown = ", ".join(map(describe, args)) or "nothing"
            called = "randf" if name == "rand" else name
            raise self.fail(TypeMismatch, f"kc.{called} draws from a name that holds kc.rng(seed, i), not from {shown}",
                            node, advice=f"write state = kc.rng(seed, i), then kc.{called}(state)")  # fmt: skip
        row = TABLE.rows[name]
        assert isinstance(row, CompoundRow)
        seed, i, k = flatten(args[0]) or []
        drawn = self.compound_call(row, [seed, i, k], node)
        after = self.binary(ast.Add, k, self.wrap(1), node)
        self.assign_name(state.id, of_type(RNG, [seed, i, after]), node)
        return drawn

    @abstractmethod
    def compound_call(self, row: CompoundRow, args: list[Any], node: ast.Call) -> Any:
        """Lower a built-in that is written in the kernel language (calls.py)."""

    @abstractmethod
    def assign_name(self, name: str, value: Any, node: ast.AST) -> None:
        """Give a name a value (statements.py)."""
