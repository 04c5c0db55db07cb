"""A four-legged robot walks in a circle, by a gait that was found: the best of many tries, and tries around the best.

    python examples/ant.py [--out out] [--rounds 8] [--seconds 12]

The legs swing as waves; how far and when each does is found in batches of rollouts. Writes ant.mp4 and ant.png.
"""

import argparse
from pathlib import Path

import numpy as np
import scenery

from nablasim import physics as ph

FPS, SUBSTEPS, TRIES, BEST, TRIAL, TURN = 30, 16, 48, 8, 3.0, 0.6
DT = 1 / (FPS * SUBSTEPS)
"""A trial takes so many seconds, and the ant should turn by so many radians in each."""
LEGS = {"front_left": (1, 1), "front_right": (1, -1), "back_left": (-1, 1), "back_right": (-1, -1)}


def ant():
    """A body with four legs, each with a hip that swings it back and forth and a knee that lifts it."""
    robot = ph.Robot("ant").add_link("body", ph.Sphere(0.2), mass=2.0).add_joint("root", "free", child="body")
    for name, (x, z) in LEGS.items():
        way = np.array([x, 0, z]) / np.sqrt(2)
        thigh, shin = ph.quat((z, 0, -x), np.pi / 2), ph.quat((z, 0, -x), np.pi - 0.7)
        robot.add_link(f"{name}_thigh", ph.Capsule(0.05, 0.15), mass=0.2, pos=0.1 * way, rot=thigh)
        robot.add_joint(f"{name}_hip", "revolute", parent="body", child=f"{name}_thigh", pos=0.18 * way, axis=(0, 1, 0),
                        limits=(-0.7, 0.7), damping=0.1)  # fmt: skip
        along = np.array([np.sin(0.7) * way[0], -np.cos(0.7), np.sin(0.7) * way[2]])
        robot.add_link(f"{name}_shin", ph.Capsule(0.04, 0.3), mass=0.15, pos=0.15 * along, rot=shin)
        robot.add_joint(f"{name}_knee", "revolute", parent=f"{name}_thigh", child=f"{name}_shin", pos=0.2 * way,
                        axis=np.cross((0, 1, 0), way), limits=(-0.8, 0.8), damping=0.1)  # fmt: skip
        for joint in ("hip", "knee"):
            robot.add_motor(f"{name}_{joint}", kp=15.0, kd=0.6, limit=8.0)
    return robot


def waves(gait, steps):
    """The targets of all motors, (steps, tries): per leg how far its hip swings and when, and how far its knee lifts."""
    t, control = DT * np.arange(steps)[:, None], {}
    for k, name in enumerate(LEGS):
        swing, when, lift = np.moveaxis(gait.reshape(-1, 4, 3)[:, k], 1, 0)
        ease = np.minimum(1.0, 2.0 * t)
        control[f"ant.{name}_hip.target"] = ease * np.tanh(swing) * 0.6 * np.sin(2 * np.pi * 1.5 * t + when)
        control[f"ant.{name}_knee.target"] = ease * np.tanh(lift) * 0.6 * np.cos(2 * np.pi * 1.5 * t + when)
    return control


def walk(model, gait, seconds, **more):
    steps = round(seconds / DT)
    return ph.rollout(model, dt=DT, steps=steps, control=waves(gait, steps), **more).numpy()


def worth(q, seconds):
    """How far each try came along its own nose (m/s), less how much it missed the turn and how much it tilted."""
    x, turn = q[..., :3], q[..., 3:7]
    nose = np.stack([1 - 2 * (turn[..., 1] ** 2 + turn[..., 2] ** 2), -2 * (turn[..., 0] * turn[..., 2] - turn[..., 1] *
                     turn[..., 3])], axis=-1)  # fmt: skip
    gone = np.diff(x[..., [0, 2]], axis=-2) * nose[..., :-1, :] * (1, -1)
    heading = np.unwrap(np.arctan2(nose[..., 1], nose[..., 0]), axis=-1)
    missed = np.abs((heading[..., -1] - heading[..., 0]) / seconds - TURN)
    upright = 1 - 2 * (turn[..., 0] ** 2 + turn[..., 2] ** 2)
    return gone.sum(axis=(-1, -2)) / seconds - 0.5 * missed - (1 - upright).mean(axis=-1)


def found(model, rounds, seed=0):
    """Tries around the best ones so far (the cross-entropy method)."""
    rng, batch = np.random.default_rng(seed), model.batched(TRIES)
    middle, spread = np.zeros(12), np.tile([0.8, 2.0, 0.8], 4)
    for round in range(rounds):
        tries = middle + spread * rng.normal(size=(TRIES, 12))
        value = worth(walk(batch, tries, TRIAL, every=SUBSTEPS)["ant"].q, TRIAL)
        best = tries[np.argsort(-value)[:BEST]]
        middle, spread = best.mean(axis=0), 0.9 * best.std(axis=0) + 0.02
        print(f"round {round + 1}: {value.max():.3f}", flush=True)
    return middle[None]


def path_of(x, frames):
    """The way so far, drawn on the ground: later points wait where the ant is."""
    trail = np.repeat(x[None], frames, axis=0)
    for k in range(frames):
        trail[k, k:] = x[k]
    trail[..., 1] = 0.01
    return trail


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    robot = ant()
    q = robot.start()
    q[1] = 0.36
    model = ph.Scene().add_robot("ant", robot, q=q, self_contact=False).add_ground("floor", mu=1.0).build()
    gait = found(model, options.rounds)
    traj = walk(model, gait[0], options.seconds, every=SUBSTEPS)
    x, frames = traj["ant"].q[:, :3], len(traj)
    body = scenery.Prop(traj.vertices("ant"), model.surfaces["ant"].faces, colour=scenery.GOLD)
    lines = np.stack([np.arange(frames - 1), np.arange(1, frames)], axis=1)
    trail = scenery.Prop(path_of(x, frames), lines=lines, colour=scenery.RED, thick=0.02)
    middle = 0.5 * (x.min(axis=0) + x.max(axis=0))
    width = 1.6 + 1.5 * float(np.ptp(x, axis=0).max())
    view = scenery.View(target=(middle[0], 0.2, middle[2]), azimuth=30, elevation=40, width=width)
    film = scenery.film([body, trail], traj.times, options.out / "ant", view=view, fps=FPS)
    print(f"walked {np.linalg.norm(np.diff(x, axis=0), axis=1).sum():.1f} m; {film}")
