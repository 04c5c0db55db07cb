"""A crawler of actuated springs learns to walk: gradients go through a rollout with contact and friction.

    python examples/crawler.py [--out out] [--iterations 40]

Every spring contracts as a sine; its amplitude and phase are found by gradient ascent on how far the crawler comes.
Writes crawler.mp4 and crawler.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery
import torch

from nablasim import physics as ph

FPS, SECONDS, SUBSTEPS = 30, 3.0, 20
STEPS = round(FPS * SECONDS)


def build() -> tuple[ph.Model, np.ndarray, np.ndarray]:
    """A bar of four cells on the floor: edges and diagonals are springs."""
    x, y, z = np.meshgrid(np.arange(5), np.arange(2), np.arange(2), indexing="ij")
    points = 0.2 * np.stack([x, y, z], axis=-1).reshape(-1, 3) + [0, 0.001, -0.1]
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    pairs = np.argwhere(np.triu(gaps < 0.36, 1)).astype(np.int32)
    scene = ph.Scene()
    scene.add_springs("crawler", points, pairs, ke=300.0, kd=1.0, mass=0.05, actuation=True)
    scene.add_ground("floor", ke=500.0, kd=3.0, kf=10.0, mu=0.8)
    return scene.build(), points, pairs


def main(out: Path, iterations: int) -> None:
    model, _, pairs = build()
    t = torch.arange(STEPS)[:, None] / FPS
    random = torch.Generator().manual_seed(0)
    gait = torch.nn.Parameter(0.02 * torch.randn(2, len(pairs), generator=random))
    optimiser = torch.optim.Adam([gait], lr=0.01)
    best = None
    for iteration in range(iterations + 1):
        wave = gait[0] * torch.sin(2 * torch.pi * 2.0 * t) + gait[1] * torch.cos(2 * torch.pi * 2.0 * t)
        control = {"crawler.actuation": 0.25 * torch.tanh(4 * wave)}
        moved = ph.rollout(model, dt=1 / FPS, steps=STEPS, substeps=SUBSTEPS, control=control)
        distance = (moved["crawler"].x[-1] - moved["crawler"].x[0])[:, 0].mean()
        if best is None or distance > best[0]:
            best = distance.item(), moved.numpy()
        if iteration % 10 == 0:
            print(f"iteration {iteration}: {distance.item():+.2f} m, best {best[0]:.2f} m", flush=True)
        optimiser.zero_grad()
        (-distance).backward()
        # Contact makes some slopes steep: a step is never longer than this.
        torch.nn.utils.clip_grad_norm_([gait], 1.0)
        optimiser.step()
    shown = best[1]
    prop = scenery.Prop(shown["crawler"].x, lines=pairs, colour=scenery.RED)
    view = scenery.View(target=(1.5, 0.3, 0), azimuth=15, width=4.0)
    print(scenery.film([prop], shown.times, out / "crawler", view=view, fps=FPS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--iterations", type=int, default=40)
    options = parser.parse_args()
    main(options.out, options.iterations)
