"""A soft gear is thrown on the floor, rolls, deforms and comes to rest.

    python examples/soft_gear.py [--out out] [--seconds 4]

Writes soft_gear.mp4 and soft_gear.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, TEETH, RADIUS = 30, 8, 0.5


def gear() -> ph.TetMesh:
    """A gear about the z axis, from the tets of a box."""
    box = ph.TetMesh.box((2 * RADIUS, 2 * RADIUS, 0.2), cells=(24, 24, 4)).moved(pos=(-RADIUS, -RADIUS, -0.1))
    x, y, _ = box.vertices[box.tets].mean(axis=1).T
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    inside = (r > 0.15) & (r < RADIUS * (0.86 + 0.14 * np.sign(np.sin(TEETH * angle))))
    used, tets = np.unique(box.tets[inside], return_inverse=True)
    return ph.TetMesh(box.vertices[used], tets.reshape(-1, 4))


def main(out: Path, seconds: float) -> None:
    mesh = gear()
    v = np.cross([0, 0, -4.0], mesh.vertices) + np.array([1.0, 0, 0])
    scene = ph.Scene()
    scene.add_soft("gear", mesh, density=200.0, material=ph.NeoHookean(E=3e4, nu=0.35), damping=8.0, pos=(-1.1, 0.9, 0),
                   vel=v)  # fmt: skip
    scene.add_ground("floor", ke=300.0, kd=0.5, kf=2.0, mu=0.8)
    model = scene.build()
    steps = round(seconds * FPS)
    moved = ph.rollout(model, dt=1 / FPS, steps=steps, substeps=160).numpy()
    x, faces = moved["gear"].x, mesh.surface.faces
    path = scenery.film([scenery.Prop(x, faces, colour=scenery.GOLD)], moved.times, out / "soft_gear",
                        view=scenery.View(target=(0, 0.5, 0), azimuth=20, width=3.6), fps=FPS)  # fmt: skip
    print(f"{len(mesh.tets)} tets; rolled {x[-1].mean(axis=0)[0] - x[0].mean(axis=0)[0]:.2f} m; {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    main(options.out, options.seconds)
