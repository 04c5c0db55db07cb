"""`python -m benchmarks.long_rollout`: memory and time of a long rollout of a soft block with its gradient.

For each way to keep states, a process of its own: 10,000 steps of 10,000 tetrahedra by default. Memory is the largest
resident size, less what the process had before the rollout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_rollout", description=__doc__)
    parser.add_argument("--tets", type=int, default=10_000, choices=(100, 1000, 10_000, 100_000))
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoints", default="forward,auto,sqrt,50", help="forward, auto, all, sqrt, states, bytes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["KERNELC_THREADS"] = str(options.threads)
    if options.one:
        print(one(options.tets, options.steps, options.one))
        return
    print(f"{options.tets:,} tetrahedra, {options.steps:,} steps, {options.threads} thread(s), float32")
    print(f"{'kept':>10} {'forward s':>10} {'backward s':>11} {'memory MB':>10}")
    for checkpoint in options.checkpoints.split(","):
        again = [sys.executable, "-m", "benchmarks.long_rollout", "--one", checkpoint]
        for name in ("tets", "steps", "threads"):
            again += [f"--{name}", str(getattr(options, name))]
        print(f"{checkpoint:>10} {subprocess.run(again, check=True, capture_output=True, text=True).stdout.strip()}")


def one(tets: int, steps: int, checkpoint: str) -> str:
    import resource

    import torch

    from nablasim import physics as ph

    from .cases.fem import _CELLS, DENSITY, block

    rest, cells = block(_CELLS[tets])
    scene = ph.Scene()
    scene.add_soft("block", (rest, cells), density=DENSITY, material=ph.NeoHookean(E=2e4, nu=0.3), damping=2.0,
                   pos=(0, 0.01, 0))  # fmt: skip
    scene.add_ground("floor", ke=500.0, kd=1.0, kf=1.0, mu=0.5)
    model = scene.build()
    graded = checkpoint != "forward"
    mu = torch.tensor(1e4, requires_grad=graded)
    wish = int(checkpoint) if checkpoint.isdigit() else checkpoint if graded else "auto"
    settings = {"dt": 1e-3, "checkpoint": wish}
    for warm in (min(steps, 20), steps):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = [time.perf_counter()]
        x = ph.rollout(model.replace({"block.mu": mu}), steps=warm, every=warm, **settings)["block"].x
        times.append(time.perf_counter())
        if graded:
            x[-1].square().sum().backward()
        times.append(time.perf_counter())
        if warm < steps:
            first = before
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) / 1024
    return f"{times[1] - times[0]:10.2f} {times[2] - times[1]:11.2f} {used:10.0f}"


if __name__ == "__main__":
    main()
