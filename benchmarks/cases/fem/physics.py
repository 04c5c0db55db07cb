"""The same rollout through `nablasim.physics`: a scene and a model, as one operation of torch, and on a tape."""

import numpy as np
import torch

import kernelc as kc
from nablasim import physics as ph

from ...harness import Entrant
from . import _CELLS, DENSITY, DT, GRAVITY, STEPS, Work, block

NAMES = {"x": "block.x", "v": "block.v", "mu": "block.mu", "lam": "block.lam"}


def entrants(work: Work, real: type = np.float32) -> dict[str, Entrant]:
    rest, _ = block(_CELLS[len(work.tets)])
    scene = ph.Scene(gravity=(0, GRAVITY, 0))
    scene.add_soft("block", (rest, work.tets), density=DENSITY, material=ph.NeoHookean.paper(work.mu, work.lam))
    model = scene.build(real=np.dtype(real).name)
    return {"physics": with_torch(model, work, real), "physics, tape": on_tape(model, work, real)}


def with_torch(model: ph.Model, work: Work, real: type) -> Entrant:
    leaf = {k: torch.tensor(getattr(work, k).astype(real), requires_grad=True) for k in NAMES}
    seed, last = torch.tensor(work.seed.astype(real)), {}

    def forward() -> None:
        with torch.no_grad():
            frozen = {NAMES[k]: v.detach() for k, v in leaf.items()}
            ph.rollout(model.replace(frozen), dt=DT, steps=STEPS, every=STEPS)

    def both() -> None:
        for value in leaf.values():
            value.grad = None
        moved = model.replace({NAMES[k]: v for k, v in leaf.items()})
        last["x"] = ph.rollout(moved, dt=DT, steps=STEPS, every=STEPS)["block"].x[-1]
        last["x"].backward(seed)

    def results() -> dict[str, np.ndarray]:
        return {"x": last["x"].detach().numpy()} | {f"grad {k}": v.grad.numpy() for k, v in leaf.items()}

    return Entrant({"forward": forward, "forward + backward": both}, results)


def on_tape(model: ph.Model, work: Work, real: type) -> Entrant:
    """Without torch: arrays of kernelc, recorded once. The tape takes what they hold, and runs again."""
    kinds = {"x": kc.float3, "v": kc.float3, "mu": float, "lam": float}
    leaf = {k: kc.array(getattr(work, k).astype(real), dtype=kinds[k], requires_grad=True) for k in NAMES}
    seed = np.zeros((2, *work.seed.shape), real)
    seed[-1] = work.seed
    moved = model.replace({NAMES[k]: v for k, v in leaf.items()})
    with kc.Tape() as tape:
        x = ph.rollout(moved, dt=DT, steps=STEPS, every=STEPS)["block"].x

    def both() -> None:
        tape.replay()
        tape.backward(grads={x: seed}, add=False)

    def results() -> dict[str, np.ndarray]:
        return {"x": x.numpy()[-1]} | {f"grad {k}": a.grad.numpy() for k, a in leaf.items()}

    return Entrant({"forward": tape.replay, "forward + backward": both}, results)

