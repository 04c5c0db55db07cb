"""Smoke that forms a picture: which wind at the start makes a disc of smoke a nabla half a second later?

    python examples/smoke_pattern.py [--out out] [--cells 64] [--rounds 150]

Writes smoke_pattern.png (the start with its wind, what the smoke does, the picture wanted) and smoke_pattern.mp4 to the
folder.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from nablasim import physics as ph
from nablasim import render

DT, STEPS, SCALE = 1 / 60, 30, 6


def inside(x, y, corners):
    """How far points lie inside of a convex polygon: the distance to its nearest side, negative outside."""
    signed = []
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        length = np.hypot(bx - ax, by - ay)
        signed.append(((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / length)
    return np.min(signed, axis=0)


def pictures(n):
    """A disc, and a nabla of the same amount of smoke, both with edges one or two cells wide."""
    x, y = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 2, indexing="ij")
    edge = 1.5 / n
    outer = inside(x, y, [(0.5, 0.18), (0.84, 0.78), (0.16, 0.78)])
    inner = inside(x, y, [(0.5, 0.40), (0.65, 0.67), (0.35, 0.67)])
    nabla = 1 / (1 + np.exp(-np.minimum(outer, -inner) / edge))
    radius = np.sqrt(nabla.mean() / np.pi)  # the flow keeps areas
    disc = 1 / (1 + np.exp((np.hypot(x - 0.5, y - 0.55) - radius) / edge))
    return disc, nabla


def fit(n, rounds):
    disc, nabla = pictures(n)
    smoke = ph.Smoke(cells=(n, n), density=disc, boundary="closed")
    target = torch.tensor(nabla, dtype=torch.float32)
    wind = torch.zeros(n, n, 2, requires_grad=True)
    optimiser = torch.optim.LBFGS([wind], max_iter=rounds, history_size=20, line_search_fn="strong_wolfe")
    losses = []

    def loss():
        optimiser.zero_grad()
        frames = ph.rollout(smoke.replace(velocity=wind), dt=DT, steps=STEPS, every=STEPS)
        error = ((frames.density[-1] - target) ** 2).mean()
        error.backward()
        losses.append(error.item())
        return error

    optimiser.step(loss)
    return smoke.replace(velocity=wind.detach()), nabla, losses


def draw(smoke, nabla, losses, path):
    frames = ph.rollout(smoke, dt=DT, steps=STEPS, every=STEPS // 3).numpy()
    figure, axes = plt.subplots(1, 6, figsize=(18, 3.3))
    for axis, image, t in zip(axes[:4], frames.density, frames.times):
        axis.imshow(image.T, origin="lower", extent=(0, 1, 0, 1), cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(f"{t:.2f} s")
    k = max(1, len(nabla) // 16)
    at = (np.arange(len(nabla)) + 0.5)[::k] / len(nabla)
    u, v = np.moveaxis(frames.velocity[0, ::k, ::k], -1, 0)
    axes[0].quiver(*np.meshgrid(at, at, indexing="ij"), u, v, color="tab:blue")
    axes[4].imshow(nabla.T, origin="lower", cmap="gray_r", vmin=0, vmax=1)
    axes[4].set_title("wanted")
    axes[5].semilogy(losses)
    axes[5].set_title("mean squared error")
    for axis in axes[:5]:
        axis.set_xticks([]), axis.set_yticks([])
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def film(smoke, path):
    """Dark smoke on white, some pixels for each cell."""
    frames = ph.rollout(smoke, dt=DT, steps=STEPS).numpy()
    grey = 1 - np.clip(frames.density.swapaxes(1, 2)[:, ::-1], 0, 1)  # rows from the top
    large = np.kron(grey, np.ones((1, SCALE, SCALE)))
    return render.write_video(path, np.repeat(large[..., None], 3, axis=3), fps=15)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=150)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    smoke, nabla, losses = fit(options.cells, options.rounds)
    draw(smoke, nabla, losses, options.out / "smoke_pattern.png")
    written = film(smoke, options.out / "smoke_pattern.mp4")
    print(f"error {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} rollouts; {written}")
