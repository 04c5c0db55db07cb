"""The same grains on the same slope, with five friction coefficients: a batch of five copies in one rollout.

    python examples/slopes.py [--out out] [--seconds 2]

Writes slopes.mp4 and slopes.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, TILT, FRICTION = 30, 0.4, np.array([0.1, 0.25, 0.4, 0.5, 0.8])


def main(out: Path, seconds: float) -> None:
    along, normal = np.array([np.cos(TILT), -np.sin(TILT), 0]), np.array([np.sin(TILT), np.cos(TILT), 0])
    place = np.random.default_rng(0).uniform(-0.15, 0.15, (40, 2))
    points = place[:, :1] * along + place[:, 1:] * [0, 0, 1] + 0.05 * normal
    scene = ph.Scene()
    scene.add_particles("grains", points, mass=0.01)
    scene.add_plane("slope", normal=normal, ke=200.0, kd=0.5, kf=1.0)
    scene.add_plane("floor", normal=(0, 1, 0), offset=-1.0, ke=200.0, kd=0.5, kf=1.0, mu=0.5)
    batch = scene.build(batch=len(FRICTION)).replace({"slope.mu": FRICTION})
    moved = ph.rollout(batch, dt=1 / FPS, steps=round(seconds * FPS), substeps=20).numpy()
    slid = (moved["grains"].x[:, -1] - moved["grains"].x[:, 0]).mean(axis=1)
    colours = np.linspace((0.3, 0.1, 0.5), (0.9, 0.8, 0.2), len(FRICTION))
    beside = [
        scenery.Prop(x + np.array([0, 0, 0.4 * k - 0.8]), colour=tuple(colours[k]), thick=0.025)
        for k, x in enumerate(moved["grains"].x)
    ]
    corners = np.array([a * along + [0, -0.02, z] for a, z in ((-0.4, -1.1), (-0.4, 1.1), (2.5, 1.1), (2.5, -1.1))])
    board = np.broadcast_to(corners, (len(moved), 4, 3))
    beside.append(scenery.Prop(board, np.array([[0, 1, 2], [0, 2, 3]]), colour=(0.75, 0.7, 0.62)))
    view = scenery.View(target=(1.2, -0.6, 0), azimuth=25, elevation=20, width=4.5)
    path = scenery.film(beside, moved.times, out / "slopes", view=view, ground=-1.0, fps=FPS)
    for mu, way in zip(FRICTION, slid):
        print(f"mu = {mu:.2f}: {np.linalg.norm(way):.2f} m")
    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    main(options.out, options.seconds)
