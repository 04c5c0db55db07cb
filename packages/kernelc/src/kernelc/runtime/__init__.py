"""Library + arrays → launch: arrays, kernels, launches, the tape, the interpreter."""

from .arrays import Array
from .checkpoints import checkpoint
from .creation import (
    array,
    empty,
    empty_like,
    from_dlpack,
    from_torch,
    full,
    ones,
    scalar,
    zeros,
    zeros_like,
)
from .derivatives import jvp
from .explain import explain, inspect
from .jacobians import jacobian
from .kernels import Kernel, kernel
from .launches import launch
from .primitives import reduce, scan, sort, unique
from .tape import Tape

__all__ = [
    "Array", "Kernel", "Tape", "array", "checkpoint", "empty", "empty_like", "explain", "from_dlpack", "from_torch",
    "full", "inspect", "jacobian", "jvp", "kernel", "launch", "ones", "reduce", "scalar", "scan", "sort", "unique",
    "zeros", "zeros_like",
]  # fmt: skip
