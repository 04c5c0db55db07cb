"""Beams from soft to as stiff as wood swing and sag: one step of backward Euler for each picture of the film.

    python examples/beams.py [--out out] [--seconds 2]

Explicit steps would have to be up to four thousand times shorter. Writes beams.mp4 and beams.png, a sheet of frames.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, MODULI = 30, (1e5, 1e6, 1e8, 1e10)
COLOURS = scenery.RED, scenery.GOLD, scenery.GREEN, scenery.BLUE


def main(out: Path, seconds: float) -> None:
    scene, mesh = ph.Scene(), ph.TetMesh.box((1.0, 0.08, 0.08), cells=(16, 2, 2))
    for k, E in enumerate(MODULI):
        scene.add_soft(f"beam{k}", mesh, density=500.0, material=ph.NeoHookean(E=E, nu=0.3), pos=(-0.5, 1.0, -0.4 * k))
        scene.fix(f"beam{k}", where=lambda x: x[:, 0] < -0.5 + 1e-6)
    model = scene.build()
    moved = ph.rollout(model, dt=1 / FPS, steps=round(seconds * FPS), integrator=ph.BackwardEuler()).numpy()
    props = [scenery.Prop(moved[f"beam{k}"].x, mesh.surface.faces, colour=colour) for k, colour in enumerate(COLOURS)]
    view = scenery.View(target=(0.0, 0.55, -0.6), azimuth=25, elevation=15, width=2.6)
    path = scenery.film(props, moved.times, out / "beams", view=view, fps=FPS)
    print(f"explicit steps: {ph.stable_dt(model):.1e} s; {moved.solves}")
    for k, E in enumerate(MODULI):
        tip = moved[f"beam{k}"].x[-1, :, 1].min() - 1.0
        print(f"E = {E:.0e} Pa: the tip hangs {-np.minimum(tip, 0.0):.4f} m low")
    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    main(options.out, options.seconds)
