"""A flag waves in gusts of wind, and a sheet falls beside it, crumples and folds on the floor.

    python examples/cloth.py [--out out] [--seconds 4]

The wind is a control: its velocity is given for every frame.
Writes cloth.mp4 and cloth.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, SUBSTEPS = 30, 160


def build() -> ph.Model:
    """A flag that hangs on a pole, and a sheet that stands on its edge in the air."""
    stuff = {"density": 0.12, "stretch": 120.0, "shear": 60.0, "damping": 0.01}
    scene = ph.Scene()
    flag = ph.TriMesh.grid((1.2, 0.8), cells=(21, 14))
    scene.add_cloth("flag", flag, **stuff, bend=2e-4, bend_damping=2e-6, lift=0.5, drag=0.25, pos=(-1.6, 1.4, 0))
    scene.fix("flag", where=lambda x: x[:, 0] < -1.59)
    sheet = ph.TriMesh.grid((0.9, 0.9), cells=(20, 20)).moved(rot=ph.quat((1, 0.5, 0.2), 0.12))
    scene.add_cloth("sheet", sheet, **stuff, bend=3e-4, bend_damping=3e-6, drag=0.02, pos=(0.1, 0.3, 0))
    scene.add_self_contact("sheet", ke=60.0, kd=0.02, kf=0.02, mu=0.5)
    scene.add_wind((0.0, 0.0, 0.0))
    scene.add_ground("floor", ke=40.0, kd=0.02, kf=0.1, mu=1.0)
    return scene.build()


def gusts(steps: int) -> np.ndarray:
    """The wind (m/s) along x, growing and falling, from slowly changing sides."""
    t = np.arange(steps) / FPS
    speed = 5.0 + 2.5 * np.sin(2.3 * t) + 1.2 * np.sin(7.1 * t)
    return np.stack([speed, 0.6 * np.sin(3.1 * t), 1.5 * np.sin(1.7 * t)], axis=1)


def main(out: Path, seconds: float) -> None:
    model, steps = build(), round(seconds * FPS)
    moved = ph.rollout(model, dt=1 / FPS, steps=steps, substeps=SUBSTEPS, control={"wind": gusts(steps)}).numpy()
    pole = np.broadcast_to([[-1.6, 0, 0], [-1.6, 2.25, 0]], (len(moved), 2, 3))
    props = [
        scenery.Prop(moved["flag"].x, model.surfaces["flag"].faces, colour=scenery.RED),
        scenery.Prop(moved["sheet"].x, model.surfaces["sheet"].faces, colour=scenery.BLUE),
        scenery.Prop(pole, lines=np.array([[0, 1]]), colour=scenery.GREY, thick=0.02),
    ]
    view = scenery.View(target=(0.2, 0.95, 0), azimuth=25, elevation=18, width=4.4)
    path = scenery.film(props, moved.times, out / "cloth", view=view, fps=FPS)
    tip, height = np.ptp(moved["flag"].x[:, 21, 2]), moved["sheet"].x[-1, :, 1].max()
    print(f"the tip of the flag swings over {tip:.2f} m, the sheet lies {height:.2f} m high; {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    main(options.out, options.seconds)
