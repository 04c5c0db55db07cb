"""A cube is thrown on the floor, tumbles, and comes to rest on one of its faces.

    python examples/cube.py [--out out] [--seconds 4]

Writes cube.mp4 and cube.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS = 30


def main(out: Path, seconds: float) -> None:
    scene = ph.Scene()
    scene.add_rigid("cube", ph.Box(0.5, 0.5, 0.5), density=300.0, pos=(-1.9, 1.2, 0), rot=ph.quat((1, 0.4, 0.8), 0.7),
                    vel=(2.0, 0.5, -0.3), omega=(1.0, 2.0, -5.0))  # fmt: skip
    scene.add_ground("floor", ke=2e4, kd=150.0, kf=300.0, mu=0.5)
    model = scene.build()
    moved = ph.rollout(model, dt=1 / FPS, steps=round(seconds * FPS), substeps=32).numpy()
    x, faces = moved.vertices("cube"), model.surfaces["cube"].faces
    view = scenery.View(target=(-0.3, 0.5, 0), azimuth=20, elevation=18, width=4.2)
    path = scenery.film([scenery.Prop(x, faces, colour=scenery.GOLD)], moved.times, out / "cube", view=view, fps=FPS)
    cube = moved["cube"]
    turned = np.degrees(np.linalg.norm(cube.omega, axis=1)).sum() / FPS
    print(f"rolled {cube.x[-1, 0] - cube.x[0, 0]:.2f} m and turned by {turned:.0f} degrees; it moves with "
          f"{np.linalg.norm(cube.v[-1]):.1e} m/s at the end; {path}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    main(options.out, options.seconds)
