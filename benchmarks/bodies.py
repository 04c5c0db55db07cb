"""`python -m benchmarks.bodies`: many balls poured into a box, beside MuJoCo in the same run.

Layers of balls fall onto ground within four walls and heap up. Of each number of balls: how long the scene takes to
build (every `add_rigid` included; MuJoCo: to compile its XML), and the time of a step when the heap has formed, forward
and with the gradient of where one ball ends by how fast it was. MuJoCo takes the same step, with its defaults and
sparse matrices.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

RADIUS, GAP = 0.1, 0.22


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bodies", description=__doc__)
    parser.add_argument("--balls", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--mujoco", type=int, default=1000, help="the most balls that MuJoCo is asked for")
    options = parser.parse_args()
    os.environ["KERNELC_THREADS"] = "1"
    ours(10, 10, options.dt)  # The kernels are there.
    head = f"{'balls':>7} {'build s':>9} {'step ms':>9} {'µs/ball':>9} {'+ gradient':>11} {'µs/ball':>9}"
    print(f"{head} | MuJoCo: build s, step ms")
    for count in options.balls:
        build, step, graded = ours(count, options.steps, options.dt)
        line = f"{count:7d} {build:9.3f} {step * 1e3:9.3f} {step / count * 1e6:9.2f} {graded * 1e3:11.3f}"
        line += f" {graded / count * 1e6:9.2f} |"
        if count <= options.mujoco:
            its_build, its_step = theirs(count, options.steps, options.dt)
            line += f" {its_build:8.3f} {its_step * 1e3:9.3f}"
        print(line, flush=True)


def places(count: int) -> tuple[Any, float]:
    """Where balls begin: a box three times as high as wide; and half of its width."""
    side = max(2, round((count / 3) ** (1 / 3)))
    k, rng = np.arange(count), np.random.default_rng(0)
    grid = np.stack([k % side, k // side**2, k // side % side], axis=1)
    wide = 0.5 * side * GAP
    return grid * GAP + [RADIUS - wide, RADIUS, RADIUS - wide] + rng.uniform(0, 0.02, (count, 3)), wide


def ours(count: int, steps: int, dt: float) -> tuple[float, float, float]:
    import torch

    from nablasim import physics as ph

    at, wide = places(count)
    begin = time.perf_counter()
    scene = ph.Scene().add_ground("floor", ke=None, kd=None, kf=None)
    for name, normal in (("left", (1, 0, 0)), ("right", (-1, 0, 0)), ("front", (0, 0, 1)), ("back", (0, 0, -1))):
        scene.add_plane(name, normal=normal, offset=-wide - 0.01, ke=None, kd=None, kf=None)
    for k, x in enumerate(at):
        scene.add_rigid(f"ball{k}", ph.Sphere(RADIUS), density=1000.0, pos=x)
    model = scene.build()
    build = time.perf_counter() - begin
    start = model.state0
    for _ in range(3):  # Until the heap has formed.
        start = ph.rollout(model.replace(moved(model, start)), dt=dt, steps=100, every=100).state()
    model = model.replace(moved(model, start))
    step = best(lambda: ph.rollout(model, dt=dt, steps=steps, every=steps), steps)
    first = torch.tensor(start["ball0"].v, requires_grad=True)

    def graded() -> None:
        end = ph.rollout(model.replace({"ball0.v": first}), dt=dt, steps=steps, every=steps)
        end["ball0"].x[-1].sum().backward()

    return build, step, best(graded, steps)


def moved(model: Any, state: Any) -> dict[str, Any]:
    return {f"{name}.{q}": getattr(state[name], q) for name in state for q in ("x", "rot", "v", "omega")}


def theirs(count: int, steps: int, dt: float) -> tuple[float, float]:
    import mujoco

    at, wide = places(count)
    planes = "".join(
        f'<geom type="plane" size="0 0 1" pos="{p[0]} {p[1]} {p[2]}" zaxis="{n[0]} {n[1]} {n[2]}"/>'
        for p, n in (((0, 0, 0), (0, 1, 0)), ((-wide - 0.01, 0, 0), (1, 0, 0)), ((wide + 0.01, 0, 0), (-1, 0, 0)),
                     ((0, 0, -wide - 0.01), (0, 0, 1)), ((0, 0, wide + 0.01), (0, 0, -1)))
    )  # fmt: skip
    balls = "".join(f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{RADIUS}" density="1000"/></body>'
                    for x, y, z in at)  # fmt: skip
    option = f'<option timestep="{dt}" gravity="0 -9.81 0" jacobian="sparse"/><size memory="2G"/>'
    begin = time.perf_counter()
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{planes}{balls}</worldbody></mujoco>")
    build, data = time.perf_counter() - begin, mujoco.MjData(model)
    mujoco.mj_step(model, data, 300)
    return build, best(lambda: mujoco.mj_step(model, data, steps), steps)


def best(run: Any, steps: int, rounds: int = 3) -> float:
    """Seconds a step; the first time is not counted."""
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times[1:]) / steps


if __name__ == "__main__":
    main()
