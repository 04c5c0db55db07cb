"""The same rollout through `nablasim.physics`: a scene, a model, tensors in, one operation of torch."""

import numpy as np
import torch

from nablasim import physics as ph

from ...harness import Entrant
from . import _CELLS, DENSITY, DT, GRAVITY, STEPS, Work, block


def entrants(work: Work, real: type = np.float32) -> dict[str, Entrant]:
    rest, _ = block(_CELLS[len(work.tets)])
    scene = ph.Scene(gravity=(0, GRAVITY, 0))
    scene.add_soft("block", (rest, work.tets), density=DENSITY, material=ph.NeoHookean.paper(work.mu, work.lam))
    model = scene.build(real=np.dtype(real).name)
    names = {"x": "block.x", "v": "block.v", "mu": "block.mu", "lam": "block.lam"}
    leaf = {k: torch.tensor(getattr(work, k).astype(real), requires_grad=True) for k in names}
    seed, last = torch.tensor(work.seed.astype(real)), {}

    def forward() -> None:
        with torch.no_grad():
            frozen = {names[k]: v.detach() for k, v in leaf.items()}
            ph.rollout(model.replace(frozen), dt=DT, steps=STEPS, every=STEPS)

    def both() -> None:
        for value in leaf.values():
            value.grad = None
        moved = model.replace({names[k]: v for k, v in leaf.items()})
        last["x"] = ph.rollout(moved, dt=DT, steps=STEPS, every=STEPS)["block"].x[-1]
        last["x"].backward(seed)

    def results() -> dict[str, np.ndarray]:
        return {"x": last["x"].detach().numpy()} | {f"grad {k}": v.grad.numpy() for k, v in leaf.items()}

    return {"physics": Entrant({"forward": forward, "forward + backward": both}, results)}

