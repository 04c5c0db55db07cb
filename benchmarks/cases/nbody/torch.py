"""torch: every pair at once, as tensors."""

import numpy as np
import torch

from ...harness import Entrant
from . import SOFTENING, Work


def entrants(work: Work) -> dict[str, Entrant]:
    x, mass = (torch.from_numpy(a).requires_grad_() for a in (work.x, work.mass))
    seed, found = torch.from_numpy(work.seed), {}

    def attract() -> None:
        columns = x.T.contiguous()  # axes first: sums over three neighbours in memory are slow
        d = columns[:, None] - columns[:, :, None]
        r2 = (d * d).sum(0) + SOFTENING
        found["a"] = (d * (mass / (r2 * r2.sqrt()))).sum(-1).T

    def forward() -> None:
        with torch.no_grad():
            attract()

    def both() -> None:
        attract()
        found["grad x"], found["grad mass"] = torch.autograd.grad(found["a"], (x, mass), seed)

    def results() -> dict[str, np.ndarray]:
        return {k: v.detach().numpy() for k, v in found.items()}

    return {"torch dense": Entrant({"forward": forward, "forward + backward": both}, results)}
