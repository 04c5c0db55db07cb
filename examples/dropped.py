"""A figure of capsules that is dropped on the ground, or a humanoid of a file, until it lies still.

    python examples/dropped.py [--out out] [--file humanoid.xml] [--seconds 4]

Without a file it is a small figure of capsules, which this script describes itself. Writes dropped.mp4 and dropped.png.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, SUBSTEPS = 30, 20


def figure():
    """A torso with a head, two arms and two legs, each of two links; y is up."""
    robot = ph.Robot("figure").add_link("torso", ph.Capsule(0.11, 0.3), density=900, pos=(0, 0.0, 0))
    robot.add_shape("torso", ph.Sphere(0.1), pos=(0, 0.42, 0)).add_joint("root", "free", child="torso")
    for side, x in (("left", -1), ("right", 1)):
        for limb, at, radius, long in (("arm", (0.2 * x, 0.2, 0), 0.04, 0.22), ("leg", (0.09 * x, -0.3, 0), 0.06, 0.3)):
            upper, lower = f"{side}_{limb}", f"{side}_lower_{limb}"
            robot.add_link(upper, ph.Capsule(radius, long), density=900, pos=(0, -long / 2 - radius, 0))
            robot.add_joint(f"{upper}_ball", "universal", parent="torso", child=upper, pos=at, limits=(-1.2, 1.2),
                            axis=((1, 0, 0), (0, 0, 1)), damping=0.5)  # fmt: skip
            robot.add_link(lower, ph.Capsule(0.8 * radius, long), density=900, pos=(0, -long / 2 - radius, 0))
            bend = (-2.0, 0.0) if limb == "arm" else (0.0, 2.0)
            robot.add_joint(f"{lower}_hinge", "revolute", parent=upper, child=lower, pos=(0, -long - 2 * radius, 0),
                            axis=(1, 0, 0), limits=bend, damping=0.3)  # fmt: skip
    return robot


def drop(file, seconds):
    """The film's trajectory, and how fast the joints still are in the end."""
    if file is None:
        robot, scene = figure(), ph.Scene()
        q = robot.start()
        q[:7] = [0, 1.6, 0, *ph.quat((1, 0.3, 0.6), 0.7)]
        scene.add_robot("figure", robot, q=q)
    else:  # Files have z up: turned, they stand on our ground.
        scene = ph.Scene().add_robot("figure", ph.load_robot(file), rot=ph.quat((1, 0, 0), -math.pi / 2))
    model = scene.add_ground("floor").build(real="float64")
    traj = ph.rollout(model, dt=1 / FPS, steps=round(seconds * FPS), substeps=SUBSTEPS).numpy()
    return model, traj, float(np.abs(traj["figure"].qd[-1]).max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--file", type=Path)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    model, traj, left = drop(options.file, options.seconds)
    corners = traj.vertices("figure")
    prop = scenery.Prop(corners, model.surfaces["figure"].faces, colour=scenery.BLUE)
    view = scenery.View(azimuth=30, elevation=15, width=3.0)
    film = scenery.film([prop], traj.times, options.out / "dropped", view=view, fps=FPS)
    print(f"joints still move at {left:.2g} rad/s; {film}")
