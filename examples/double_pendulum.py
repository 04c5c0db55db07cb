"""Forty double pendula that differ by a millionth of a radian: together at first, then each its own way.

    python examples/double_pendulum.py [--out out] [--seconds 12]

Writes double_pendulum.mp4 (or .gif) to the folder.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import video
from matplotlib.animation import FuncAnimation

from nablasim import physics as ph

COUNT, FPS, SUBSTEPS = 40, 30, 16


def swing(seconds):
    angle = np.stack([np.full(COUNT, 2.2), 2.6 + 1e-6 * np.arange(COUNT)], axis=1)
    pendula = ph.DoublePendulum(length=(1.0, 0.8), mass=(1.0, 0.6), angle=angle)
    return ph.rollout(pendula, dt=1 / FPS, steps=round(seconds * FPS), substeps=SUBSTEPS).numpy()


def draw(frames, path):
    figure, axis = plt.subplots(figsize=(5, 5))
    axis.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal", xticks=[], yticks=[])
    colours = plt.colormaps["viridis"](np.linspace(0, 1, COUNT))
    rods = [axis.plot([], [], "o-", color=colour, lw=1.5, ms=4)[0] for colour in colours]
    title = axis.set_title("")

    def show(k):
        for rod, x in zip(rods, frames.x[:, k]):
            rod.set_data([0, *x[:, 0]], [0, *x[:, 1]])
        title.set_text(f"{frames.times[k]:.1f} s")
        return rods

    return video.save(FuncAnimation(figure, show, frames=len(frames)), path, FPS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    frames = swing(options.seconds)
    spread = np.ptp(frames.x[:, :, 1], axis=0).max(axis=1)
    apart = frames.times[np.argmax(spread > 0.5)] if (spread > 0.5).any() else np.inf
    print(f"half a metre apart after {apart:.1f} s; {draw(frames, options.out / 'double_pendulum')}")
