"""IR → IR: activity, reverse mode with its loop tapes, forward mode."""

from .activity import Activity, analyse
from .forward import TangentKernel, second, tangent
from .gradients import expand_gradients
from .lift import Tangents, lift
from .pattern import pattern
from .promote import promote
from .reverse import AdjointKernel, adjoint
from .split import split_loops

__all__ = [
    "Activity", "AdjointKernel", "TangentKernel", "Tangents", "adjoint", "analyse", "expand_gradients", "lift",
    "pattern", "promote", "second", "split_loops", "tangent",
]  # fmt: skip
