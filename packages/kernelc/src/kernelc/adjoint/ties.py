"""The weight of one side of a minimum or maximum at a tie: a half where both sides carry a gradient, one otherwise.

Which sides do is known here, but for one case: an adjoint that was compiled ahead of time, for all arrays, also runs
where only some of them carry a gradient. So, where the sides depend on different arrays, the launch is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce

from .. import ir
from ..types import Scalar
from .activity import analyse


class Ties:
    """For the adjoint of a kernel in which the arrays at `seeds` carry gradients."""

    def __init__(self, kernel: ir.Kernel, seeds: Iterable[int]):
        self.kernel, self.seeds = kernel, sorted(seeds)

    def weight(self, b: ir.Builder, sides: Sequence[ir.Value], real: Scalar) -> ir.Value:
        """Of each side, given two that carry a gradient if all arrays do."""
        one, half = ir.const(real, 1.0), ir.const(real, 0.5)
        first, second = (frozenset(p for p in self.seeds if side in self.varied[p]) for side in sides)
        if first == second:
            return half
        # The larger set is asked for wherever the smaller one is.
        asked = [self.any_asked(b, p) for p in (first, second) if not (p > first or p > second)]
        return b.op("select", reduce(lambda x, y: b.op("and", x, y), asked), half, one)

    @cached_property
    def varied(self) -> dict[int, set[ir.Value]]:
        """The values that depend on each array."""
        return {p: analyse(self.kernel, [p]).varied for p in self.seeds}

    def any_asked(self, b: ir.Builder, positions: Iterable[int]) -> ir.Value:
        arrays = (self.kernel.params[p].array for p in sorted(positions))
        return reduce(lambda x, y: b.op("or", x, y), (b.query("asked", 0, array) for array in arrays))
