"""torch: the step as tensor operations, one after the other, with autograd."""

import numpy as np
import torch

from ...harness import Entrant
from . import DT, GRAVITY, STEPS, Work

NAMES = ("x", "v", "mu", "lam")


def entrants(work: Work) -> dict[str, Entrant]:
    w = {k: torch.from_numpy(a) for k, a in vars(work).items()}
    leaves, found = [w[k].requires_grad_() for k in NAMES], {}
    tets, inverse, transposed = w["tets"].long(), w["inverse"], w["inverse"].mT.contiguous()
    corners, volume, weight = tets.ravel(), w["volume"][:, None, None], w["weight"][:, None]
    fall = torch.tensor([0.0, GRAVITY, 0.0])

    def forces(x: torch.Tensor, mu: torch.Tensor, lam: torch.Tensor) -> torch.Tensor:
        corner = x[tets]
        F = (corner[:, 1:] - corner[:, :1]).mT @ inverse
        c0, c1, c2 = F.unbind(-1)
        C = torch.stack([torch.linalg.cross(c1, c2), torch.linalg.cross(c2, c0), torch.linalg.cross(c0, c1)], -1)
        J = (c0 * C[:, :, 0]).sum(-1)
        shear = mu * (1 - 1 / ((F * F).sum((1, 2)) + 1))
        P = shear[:, None, None] * F + (lam * (J - 1 - 0.75 * mu / lam))[:, None, None] * C
        H = (P @ transposed).mT * -volume
        each = torch.cat([-H.sum(1, keepdim=True), H], 1)
        return torch.zeros_like(x).index_add(0, corners, each.reshape(-1, 3))

    def rollout() -> None:
        x, v, mu, lam = leaves
        for _ in range(STEPS):
            v = v + DT * (forces(x, mu, lam) * weight + fall)
            x = x + DT * v
        found["x"] = x

    def forward() -> None:
        with torch.no_grad():
            rollout()

    def both() -> None:
        rollout()
        grads = torch.autograd.grad(found["x"], leaves, w["seed"])
        found.update(zip((f"grad {k}" for k in NAMES), grads))

    def results() -> dict[str, np.ndarray]:
        return {k: v.detach().numpy() for k, v in found.items()}

    return {"torch": Entrant({"forward": forward, "forward + backward": both}, results)}
