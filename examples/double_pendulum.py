"""Forty double pendula that differ by a millionth of a radian: together at first, then each its own way.

    python examples/double_pendulum.py [--out out] [--seconds 8]

Writes double_pendulum.mp4 and double_pendulum.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

COUNT, FPS, SUBSTEPS = 40, 30, 16


def swing(seconds):
    angle = np.stack([np.full(COUNT, 2.2), 2.6 + 1e-6 * np.arange(COUNT)], axis=1)
    pendula = ph.DoublePendulum(length=(1.0, 0.8), mass=(1.0, 0.6), angle=angle)
    return ph.rollout(pendula, dt=1 / FPS, steps=round(seconds * FPS), substeps=SUBSTEPS).numpy()


def draw(frames, path):
    """Each pendulum in a colour of its own, one behind the other."""
    props = []
    for k, x in enumerate(np.asarray(frames.x)):
        joints = np.zeros((len(frames), 3, 3))
        joints[:, 1:, :2] = x[..., :2]
        joints[..., 2] = -0.01 * k
        share = k / (COUNT - 1)
        colour = (0.25 + 0.6 * share, 0.2 + 0.5 * share, 0.6 - 0.4 * share)
        props.append(scenery.Prop(joints, lines=np.array([[0, 1], [1, 2]]), colour=colour, thick=0.015))
    view = scenery.View(azimuth=0, elevation=0, width=5.8)
    return scenery.film(props, frames.times, path, view=view, ground=None, fps=FPS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    frames = swing(options.seconds)
    spread = np.ptp(frames.x[:, :, 1], axis=0).max(axis=1)
    apart = frames.times[np.argmax(spread > 0.5)] if (spread > 0.5).any() else np.inf
    print(f"half a metre apart after {apart:.1f} s; {draw(frames, options.out / 'double_pendulum')}")
