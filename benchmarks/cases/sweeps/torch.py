"""torch: the graph of autograd is its tape, made anew each time; with its own product, and with an operation of ours
(`torch.autograd.Function`), which is how a foreign kernel joins.
"""

from collections.abc import Callable

import numpy as np
import torch

from ...harness import Entrant
from . import FACTOR, Work


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return x * FACTOR

    @staticmethod
    def backward(ctx, y_adjoint: torch.Tensor) -> torch.Tensor:
        return y_adjoint * FACTOR


def entrants(work: Work) -> dict[str, Entrant]:
    return {"torch": entrant(work, lambda x: x * FACTOR), "torch Function": entrant(work, Scale.apply)}


def entrant(work: Work, scale: Callable[[torch.Tensor], torch.Tensor]) -> Entrant:
    x, found = torch.tensor(work.x, requires_grad=True), {}

    def record() -> None:
        y = x
        for _ in range(work.launches):
            y = scale(y)
        found["y"] = y

    def both() -> None:
        record()
        (found["grad x"],) = torch.autograd.grad(found["y"], x)

    def results() -> dict[str, np.ndarray]:
        return {k: v.detach().numpy() for k, v in found.items()}

    return Entrant({"record": record, "record + first backward": both}, results)
