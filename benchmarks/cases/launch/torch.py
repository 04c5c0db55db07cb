"""torch: the sum as one writes it, which is six operations; and the C function as one operation of torch
(`torch.library.custom_op`), which is how a foreign kernel joins.
"""

import ctypes

import torch

from ...harness import Entrant
from ...native import library
from . import SOURCE, Work

by_hand = library(SOURCE)["add"]  # an object of its own: the one by attribute is shared
by_hand.argtypes = [ctypes.c_void_p] * 8 + [ctypes.c_int64]


@torch.library.custom_op("benchmarks::add", mutates_args={"out"})
def add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor, f: torch.Tensor,
        g: torch.Tensor, out: torch.Tensor) -> None:  # fmt: skip
    by_hand(*[t.data_ptr() for t in (a, b, c, d, e, f, g, out)], out.numel())


def entrants(work: Work) -> dict[str, Entrant]:
    inputs, found = [torch.tensor(a) for a in work.arrays], {}
    out = torch.zeros_like(inputs[0])

    def six() -> None:
        a, b, c, d, e, f, g = inputs
        found["sum"] = a + b + c + d + e + f + g

    return {
        "torch, six additions": Entrant({"launch": six}, lambda: {"sum": found["sum"].numpy()}),
        "torch, custom op": Entrant({"launch": lambda: add(*inputs, out)}, lambda: {"sum": out.numpy()}),
    }
