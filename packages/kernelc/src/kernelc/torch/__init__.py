"""Kernels as operations of torch's autograd. Imported when `kc.torch` is asked for: kernelc itself needs no torch.

    smooth = kc.torch.function(rollout)       # rollout(x, v, …) gets arrays, launches kernels, returns arrays
    loss = smooth(x, v).sum()
    loss.backward()

Tensors on the CPU are shared with the arrays, not copied. Each call has a tape of its own. What it keeps lives as long
as torch keeps the tensors that it saved for the reverse sweep.
"""

from .calls import function
from .followed import Followed, follow, followed, pulled
from .once import once
from .ops import op

__all__ = ["Followed", "follow", "followed", "function", "once", "op", "pulled"]
