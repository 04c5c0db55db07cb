"""IR → IR: activity, reverse mode with its loop tapes, forward mode."""

from .activity import Activity, analyse
from .forward import tangent
from .promote import promote
from .reverse import AdjointKernel, adjoint, expand_gradients
from .split import split_loops

__all__ = ["Activity", "AdjointKernel", "adjoint", "analyse", "expand_gradients", "promote", "split_loops", "tangent"]
