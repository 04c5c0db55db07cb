"""What robots cost: contact-free steps beside Pinocchio, and batches of walkers beside MuJoCo, in one run.

    OMP_NUM_THREADS=1 KERNELC_THREADS=1 python -m benchmarks.robots

One thread each, and its time on the processor. A step of ours is one of a rollout, contact left out or there; of
Pinocchio it is forward dynamics, and its derivatives, alone, called from Python; MuJoCo's is `mj_step` in a loop of its
own (`nstep`).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch

from nablasim import physics as ph

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
PREFIXES = (Path(folder) / "cmeel.prefix/share/example-robot-data/robots" for folder in sys.path)
WALKERS = ("ant", "humanoid", "hopper", "half_cheetah", "walker2d")


def best(runs: dict[str, tuple[Callable[[], Any], int]], *, rounds: int = 5) -> dict[str, float]:
    """Seconds of the processor for each of the things that runs do so many of: the best of interleaved rounds."""
    found = dict.fromkeys(runs, float("inf"))
    for run, _ in runs.values():
        run()
    for _ in range(rounds):
        for name, (run, count) in runs.items():
            start = time.process_time()
            run()
            found[name] = min(found[name], (time.process_time() - start) / count)
    return found


def model_of(robot: ph.Robot, *, ground: bool, batch: int | None, self_contact: bool) -> ph.Model:
    scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot, self_contact=self_contact)
    if ground:
        scene.add_plane("floor", normal=(0, 0, 1))
    return scene.build(real="float64", batch=batch)


def rollout(model: ph.Model, steps: int, *, gradient: bool) -> Callable[[], Any]:
    q = torch.tensor(np.array(model["it.q"]), requires_grad=gradient)

    def run() -> None:
        end = ph.rollout(model.replace({"it.q": q}), dt=2e-3, steps=steps, every=steps)["it"].q
        if gradient:
            end.sum().backward()

    return run


def arms() -> None:
    """Contact-free steps of an arm of seven joints, beside Pinocchio."""
    import pinocchio

    folder = next(f for f in PREFIXES if f.is_dir())
    for file, free in (("panda_description/urdf/panda.urdf", False), ("talos_data/robots/talos_reduced.urdf", True)):
        root = (pinocchio.JointModelFreeFlyer(),) if free else ()
        there, name = pinocchio.buildModelFromUrdf(str(folder / file), *root), Path(file).stem
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = ph.load_robot(folder / file, free=free)
        q, v = pinocchio.randomConfiguration(there), np.zeros(there.nv)
        tau, data = np.zeros(there.nv), there.createData()

        def aba(there: Any = there, data: Any = data, q: Any = q, v: Any = v, tau: Any = tau) -> None:
            for _ in range(1000):
                pinocchio.aba(there, data, q, v, tau)

        def slopes(there: Any = there, data: Any = data, q: Any = q, v: Any = v, tau: Any = tau) -> None:
            for _ in range(1000):
                pinocchio.computeABADerivatives(there, data, q, v, tau)

        batch, steps = 256, 20
        made = model_of(robot, ground=False, batch=batch, self_contact=False)
        start = time.process_time()
        rollout(made, steps, gradient=True)()
        built = time.process_time() - start
        took = best({"ABA": (aba, 1000), "slopes": (slopes, 1000),
                     "step": (rollout(made, steps, gradient=False), batch * steps),
                     "gradient": (rollout(made, steps, gradient=True), batch * steps)})  # fmt: skip
        columns = " | ".join(f"{1e6 * n:8.1f}" for n in took.values())
        ratio = took["gradient"] / took["ABA"]
        print(f"{name:>13} | {there.nv:4d} | {columns} | {ratio:8.2f} | {built:8.1f}", flush=True)


def walkers() -> None:
    """Steps with contact of 256 copies, beside MuJoCo."""
    for name in WALKERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = ph.load_robot(ASSETS / f"{name}.xml")
        start = time.process_time()
        made = model_of(robot, ground=True, batch=256, self_contact=True)
        rollout(made, 10, gradient=True)()
        built = time.process_time() - start
        mj = mujoco.MjModel.from_xml_path(str(ASSETS / f"{name}.xml"))
        mj.opt.timestep, mj.opt.integrator = 2e-3, mujoco.mjtIntegrator.mjINT_EULER
        data = mujoco.MjData(mj)
        took = best({"theirs": (lambda mj=mj, data=data: mujoco.mj_step(mj, data, 2000), 2000),
                     "ours": (rollout(made, 100, gradient=False), 256 * 100),
                     "back": (rollout(made, 100, gradient=True), 256 * 100)}, rounds=3)  # fmt: skip
        columns = " | ".join(f"{1e-3 / n:8.1f}" for n in took.values())
        print(f"{name:>13} | {built:8.1f} | {columns} | {took['theirs'] / took['ours']:8.2f}", flush=True)


if __name__ == "__main__":
    print("µs a step     | dofs | ABA      | its derivatives | our step | with gradient | that by ABA | built (s)")
    arms()
    print("with contact  | built (s) | MuJoCo, thousand steps/s | ours, 256 copies | with gradients | ours by theirs")
    walkers()
