"""torch: every face at every pixel, as tensors; in pieces of the picture, so that it fits into memory."""

import numpy as np
import torch

from ...harness import Entrant
from . import DISTANCE, HALF_HEIGHT, LIMIT, SIGMA, Work

PIXELS = 1024


def entrants(work: Work) -> dict[str, Entrant]:
    n = work.size
    x, faces = torch.tensor(work.vertices, requires_grad=True), torch.tensor(work.faces).long()
    j, i = np.meshgrid(np.arange(n), np.arange(n))
    centres = torch.tensor(np.stack([2 * j + 1 - n, n - 1 - 2 * i], -1).reshape(-1, 2) / n, dtype=torch.float32)
    seed, image = torch.tensor(work.seed).reshape(-1), torch.zeros(n * n)

    def forward() -> None:
        with torch.no_grad():
            for k in range(0, n * n, PIXELS):
                image[k : k + PIXELS] = alpha(x, faces, centres[k : k + PIXELS])

    def both() -> None:
        x.grad = None
        for k in range(0, n * n, PIXELS):
            part = alpha(x, faces, centres[k : k + PIXELS])
            image[k : k + PIXELS] = part.detach()
            part.backward(seed[k : k + PIXELS])

    def results() -> dict[str, np.ndarray]:
        return {"image": image.reshape(n, n).numpy(), "grad vertices": x.grad.numpy()}

    return {"torch dense": Entrant({"forward": forward, "forward + backward": both}, results)}


def alpha(x: torch.Tensor, faces: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """1 - Π(1 - D) at points p (k, 2)."""
    corner = (x[:, :2] / (DISTANCE - x[:, 2:]) / HALF_HEIGHT)[faces]
    distances, sides = [], []
    for k in range(3):
        a, e = corner[:, k], corner[:, (k + 1) % 3] - corner[:, k]
        q = p[:, None] - a
        along = ((q * e).sum(-1) / (e * e).sum(-1)).clamp(0, 1)
        distances.append(((q - along[..., None] * e) ** 2).sum(-1))
        sides.append(e[:, 0] * q[..., 1] - e[:, 1] * q[..., 0])
    d2 = torch.minimum(torch.minimum(*distances[:2]), distances[2])
    side = torch.stack(sides)
    inside = (side > 0).all(0) | (side < 0).all(0)
    covers = inside | (d2 < LIMIT)
    logit = torch.where(inside, d2, -d2) / SIGMA
    return -torch.expm1(-torch.where(covers, torch.nn.functional.softplus(logit), torch.zeros(())).sum(1))
