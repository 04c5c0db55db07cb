"""Tests for kernels of your own: gradients against differences, Jacobians, and inputs of every type from Hypothesis.

@given(x=kc.testing.arrays(kc.float3, 5), q=kc.testing.arrays(kc.quat, 5))
def test_turn(x, q):
    kc.testing.gradcheck(turn, dim=5, inputs=[x, q], outputs=[kc.zeros_like(x)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import KernelError
from .gradients import GradientMismatch, gradcheck, jacobian

if TYPE_CHECKING:
    from .strategies import arrays, matrices, quaternions, scalars, structs, transforms, values, vectors

__all__ = [
    "GradientMismatch", "NoHypothesis", "arrays", "gradcheck", "jacobian", "matrices", "quaternions", "scalars",
    "structs", "transforms", "values", "vectors",
]  # fmt: skip


class NoHypothesis(KernelError, ImportError):
    """The strategies were asked for, but Hypothesis is not installed."""

    code = "KC602"
    hint = "pip install hypothesis"


def __getattr__(name: str) -> Any:
    """The strategies are imported when they are asked for: the rest works without Hypothesis."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import strategies
    except ImportError as error:
        raise NoHypothesis(f"kc.testing.{name} needs Hypothesis, which is not installed") from error
    return getattr(strategies, name)
