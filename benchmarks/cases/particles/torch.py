"""torch: the step as tensor operations with autograd."""

import numpy as np
import torch

from ...harness import Entrant
from . import DT, GRAVITY, Work


def entrants(work: Work) -> dict[str, Entrant]:
    leaf = {k: torch.from_numpy(getattr(work, k)).requires_grad_() for k in ("x", "v", "f", "weight")}
    seeds, found = (torch.from_numpy(work.seed_x), torch.from_numpy(work.seed_v)), {}
    fall = torch.tensor([0.0, GRAVITY * DT, 0.0])

    def step() -> None:
        x, v, f, weight = leaf.values()
        found["v"] = torch.addcmul(v + fall, f, weight[:, None], value=DT)
        found["x"] = torch.add(x, found["v"], alpha=DT)

    def forward() -> None:
        with torch.no_grad():
            step()

    def both() -> None:
        step()
        grads = torch.autograd.grad((found["x"], found["v"]), leaf.values(), seeds)
        found.update(zip((f"grad {k}" for k in leaf), grads))

    def results() -> dict[str, np.ndarray]:
        return {k: v.detach().numpy() for k, v in found.items()}

    return {"torch": Entrant({"forward": forward, "forward + backward": both}, results)}
