"""Python source → IR: what is allowed, lowering with inference, and functions that kernels call."""

from .function import Func, func
from .lower import Lowered, lower, signature
from .source import Capture, Source

__all__ = ["Capture", "Func", "Lowered", "Source", "func", "lower", "signature"]
