"""`python -m benchmarks.scenes`: different small scenes in one batch, beside the same one by one.

Each scene has a soft block of its own size on the ground, a net of springs and a ball, and a stiffness that asks for a
gradient. The first time launches are recorded, of each scene or of the batch; then each round makes new models, as an
optimiser does, and the best round counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenes", description=__doc__)
    parser.add_argument("--scenes", type=int, default=32)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ["KERNELC_THREADS"] = str(options.threads)
    import torch

    models = [scene(k) for k in range(options.scenes)]
    for run in ways([scene(0), scene(1)], torch.full((2,), 4e3, requires_grad=True), options.steps):
        run()  # The kernels are there.
    rows = sum(m.layout.rows("tets") for m in models) // len(models)
    many = f"{len(models)} scenes of about {rows} tetrahedra"
    print(f"{many}, {options.steps} steps, {options.threads} thread(s), float32")
    print(f"{'':>26} {'one by one ms':>14} {'in a batch ms':>14} {'ratio':>6}")
    for what, graded in (("forward", False), ("forward + backward", True)):
        mu = torch.full((len(models),), 4e3, requires_grad=graded)
        single, batched = ways(models, mu, options.steps)
        (first, alone), (first_batch, together) = timed(single), timed(batched)
        assert torch.equal(alone, together), "a scene of the batch does not do what it does alone"
        show(f"{what}, first", first, first_batch)
        show(what, best(single, options.rounds), best(batched, options.rounds))


def scene(k: int) -> Any:
    """Scene k: no two of the first 32 have the same counts."""
    import numpy as np

    from nablasim import physics as ph

    made = ph.Scene()
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(1 + k % 8, 1 + k // 8 % 2, 1 + k // 16))
    made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=1e4, nu=0.3), damping=1.0, vel=(0.5, -1, 0))
    points, pairs = ph.spring_grid((0.3, 0.3), (2 + k % 3, 2))
    made.add_springs("net", points + np.array([0, 0.01, 0.5]), pairs, ke=50.0, kd=0.1, mass=0.01)
    made.add_rigid("ball", ph.Sphere(0.05 + 0.001 * k), density=500.0, pos=(0, 0.1, 1.0))
    return made.add_ground("floor", ke=50.0, kd=0.5, kf=0.5, mu=0.5).build()


def ways(models: list[Any], mu: Any, steps: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """What is timed: both give where the blocks end, or the gradients by their stiffness."""
    import torch

    from nablasim import physics as ph

    settings = {"dt": 2e-4, "steps": steps, "every": steps}

    def replaced() -> list[Any]:
        return [model.replace({"block.mu": value}) for model, value in zip(models, mu)]

    def result(ends: list[Any]) -> Any:
        if not mu.requires_grad:
            return torch.cat(ends)
        mu.grad = None
        sum(((end**2).sum() for end in ends), torch.zeros(())).backward()
        return mu.grad

    def single() -> Any:
        return result([ph.rollout(model, **settings)["block"].x[-1] for model in replaced()])

    def batched() -> Any:
        return result([at["block"].x[-1] for at in ph.rollout(ph.batch(replaced()), **settings).scenes])

    return single, batched


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def best(call: Callable[[], Any], rounds: int) -> float:
    return min(timed(call)[0] for _ in range(rounds))


def show(what: str, alone: float, together: float) -> None:
    print(f"{what:>26} {1e3 * alone:14.1f} {1e3 * together:14.1f} {alone / together:6.1f}")


if __name__ == "__main__":
    main()
