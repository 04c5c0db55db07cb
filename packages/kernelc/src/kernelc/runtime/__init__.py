"""Library + arrays → launch: arrays, kernels, launches, the tape, the interpreter."""

from .arrays import (
    Array,
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
from .kernels import Kernel, kernel
from .launches import launch
from .tape import Tape

__all__ = [
    "Array", "Kernel", "Tape", "array", "empty", "empty_like", "from_dlpack", "from_torch", "full", "kernel", "launch",
    "ones", "scalar", "zeros", "zeros_like",
]  # fmt: skip
