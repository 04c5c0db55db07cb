"""Closed loops: robots of the field learn to run, by gradients through short windows, beside PPO with the same time.

Robots are read from gymnasium's files, and run on a plane of ours. What is learned here is then carried over to MuJoCo
as it is, which it has never seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from nablasim import physics as ph
from nablasim.sysid import control
from nablasim.sysid.baselines import ppo
from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.experiment import Chapter, Goal, Plate
from nablasim.sysid.report import Table

WINDOWS, PPO = "∇Sim, windows", "MuJoCo + PPO"
RATE, SWAYS = 0.1, 0.2
"""Of rates that networks are shown (s), and of first angles (rad) and rates."""


@dataclass(frozen=True)
class Runner:
    """A robot that is to run along x, worth what it is in gymnasium: its speed, less what it pushes, and being upright.

    turns: so many coordinates that nothing drives stand in front; gears: the largest torque of each of the others (N m)
    low, tilt: it has fallen where it is lower (m) or leans farther (rad); height: that at which it stands
    """

    name: str
    file: str
    world: str
    gears: tuple[float, ...]
    friction: float
    dt: float
    substeps: int
    steps: int
    cost: float
    upright: float = 0.0
    low: float | None = None
    tilt: float = np.inf
    height: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()

    def model(self) -> ph.Model:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = ph.load_robot(str(ppo.assets()) + f"/{self.file}")
        scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot, self_contact=False)
        return scene.add_plane("floor", normal=(0, 0, 1), mu=self.friction).build()

    def see(self, state: Mapping[str, Any]) -> torch.Tensor:
        """All but how far it has come."""
        return torch.cat([state["it.q"][1:], RATE * state["it.qd"]])

    def worth(self, state: Mapping[str, Any], action: Mapping[str, Any]) -> torch.Tensor:
        pushed = (action["it.torque"][3:] / torch.tensor(self.gears)).square().sum()
        return state["it.qd"][0] - self.cost * pushed + self.upright * ~self.fallen(state)

    def shaped(self, state: Mapping[str, Any], action: Mapping[str, Any]) -> torch.Tensor:
        """What gradients go by: being upright is worth less the farther it leans or sinks. A fall has no slope."""
        if self.low is None:
            return self.worth(state, action)
        sunk = ((self.height - state["it.q"][1]) / (self.height - self.low)).clamp(min=0.0)
        return self.worth(state, action) - self.upright * ((state["it.q"][2] / self.tilt) ** 2 + sunk**2)

    def fallen(self, state: Mapping[str, Any]) -> torch.Tensor:
        if self.low is None:
            return torch.zeros((), dtype=torch.bool)
        return (state["it.q"][1] < self.low) | (state["it.q"][2].abs() > self.tilt)

    def begin(self, first: Any, random: np.random.Generator, copies: int) -> dict[str, Any]:
        sways = SWAYS if self.low is None else 0.05 * SWAYS
        q, qd = (random.normal(scale=sways, size=(copies, len(first))) for _ in range(2))
        q[:, 0] = 0.0
        return {"it.q": first + q, "it.qd": qd}

    def task(self, *, shaped: bool = False) -> control.Task:
        """Of what a step is worth, or of what a training goes by."""
        model = self.model()
        inputs = 2 * len(model["it.q"]) - 1
        policy = control.Feedback(inputs, see=self.see, scale=(0.0, 0.0, 0.0, *self.gears))
        reward = control.Reward(self.shaped if shaped else self.worth, self.fallen if self.low is not None else None)
        return control.Task(model, {"it.torque": policy}, reward, dt=self.dt, steps=self.steps, substeps=self.substeps)

    def train(self, seconds: float, seed: int, **options: Any) -> control.Run:
        task = self.task(shaped=True)
        start = partial(self.begin, np.asarray(task.model["it.q"]))
        windows = control.Windows(length=16, copies=32, start=start, see=self.see)
        return task.train(iterations=10**9, seconds=seconds, seed=seed, rate=4e-3, clip=1.0, windows=windows, **options)

    def carried(self, task: control.Task) -> ppo.Motion:
        """What a policy of ours does in MuJoCo."""
        policy, gears = task.policy("it.torque"), np.asarray(self.gears)
        count = len(task.model["it.q"])

        def act(seen: Any) -> Any:
            # What is observed there: all coordinates but the first, then all rates.
            q = torch.as_tensor(np.concatenate([[0.0], seen[: count - 1]]), dtype=torch.float32)
            qd = torch.as_tensor(seen[count - 1 :], dtype=torch.float32)
            with torch.no_grad():
                return policy({"it.q": q, "it.qd": qd})[3:].numpy() / gears

        return ppo.moved(self.world, self.steps, act, **dict(self.options))


CHEETAH = Runner("half-cheetah", "half_cheetah.xml", "HalfCheetah-v5", (120.0, 90.0, 60.0, 120.0, 60.0, 30.0), 0.4,
                 dt=0.05, substeps=4, steps=100, cost=0.1)  # fmt: skip
HOPPER = Runner("hopper", "hopper.xml", "Hopper-v5", (200.0, 200.0, 200.0), 0.9, dt=0.016, substeps=3, steps=150,
                cost=1e-3, upright=1.0, low=0.7, tilt=0.2, height=1.25, options=(("frame_skip", 8),))  # fmt: skip
RUNNERS = {runner.name: runner for runner in (CHEETAH, HOPPER)}


@dataclass(frozen=True)
class Learned:
    """The item: one robot, one method, some seconds, one seed."""

    robot: str
    by: str
    seconds: float
    seed: int

    def run(self) -> dict[str, Any] | Missing:
        torch.set_num_threads(1)
        if ppo.assets() is None or (self.by == PPO and not ppo.can_practise()):
            return Missing(self.by, self.seed, ppo.MISSING)
        return self._ours() if self.by == WINDOWS else self._theirs()

    def _ours(self) -> dict[str, Any]:
        runner = RUNNERS[self.robot]
        judge = runner.task().loss
        run = runner.train(self.seconds, self.seed, progress=False, watch=lambda motion: -float(judge(motion)))
        motion, carried = run.motion(), runner.carried(run.task)
        q = motion["it"].q
        over = [bool(runner.fallen({"it.q": row})) for row in q]
        last = over.index(True) if True in over else len(q) - 1
        return {"seconds": run.seconds, "rewards": run.watched, "reward": -float(judge(motion)),
                "speed": float(q[last, 0] - q[0, 0]) / (last * runner.dt), "lasted": last,
                "steps": len(run.windows) * 16 * 32, "carried": asdict(carried)}  # fmt: skip

    def _theirs(self) -> dict[str, Any]:
        runner = RUNNERS[self.robot]
        made = ppo.practise(runner.world, runner.steps, self.seconds, self.seed, **dict(runner.options))
        assert made.best is not None
        return {"seconds": made.seconds, "rewards": made.rewards, "reward": made.best.reward, "speed": made.best.speed,
                "lasted": made.best.steps, "steps": made.steps[-1]}  # fmt: skip


SCALES = {"ci": (4.0, 1), "desk": (180.0, 2), "paper": (1200.0, 5)}
"""Seconds for each, and seeds."""


@dataclass(frozen=True)
class ClosedLoop:
    """The experiment."""

    name: str = "closed-loop"
    title: str = "Closed loops: robots that learn to run, beside PPO"

    def items(self, size: str) -> list[Any]:
        seconds, seeds = SCALES[size]
        # Both methods of a robot side by side: on two cores each has one, and meets what else the machine does.
        return [Learned(r, by, seconds, seed) for r in RUNNERS for seed in range(seeds) for by in (WINDOWS, PPO)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        known = [(i, r) for i, r in zip(items, results) if not isinstance(r, Missing)]
        text = (
            "Robots from gymnasium's files are to run along x. A network of the state (two layers of 64) says the "
            "torques, and is trained by gradients through windows of 16 steps of 32 copies, with a learned value at "
            "their end; PPO is that of stable-baselines3 with its defaults, on MuJoCo. Each has one core for "
            f"{SCALES[size][0]:g} seconds, judging and what is compiled included, side by side in this run. What a "
            "step is worth is gymnasium's: the speed, less the effort, and 1 for a hopper that stands; in training "
            "ours is told less the farther a hopper leans or sinks, for a fall has no slope. The best policy "
            "of a training counts, by one motion from the robot's start without noise.",
            "`in MuJoCo` is what was learned in our physics and is carried over as it is. The paper closes no loop.",
        )
        goals = () if size == "ci" else tuple(
            Goal(f"{r}: reward of a step, median, PPO's less ours", 0.0,
                 _rewarded(known, r, PPO) - _rewarded(known, r, WINDOWS))
            for r in RUNNERS if {i.by for i, _ in known if i.robot == r} == {WINDOWS, PPO}
        )  # fmt: skip
        plates = tuple(Plate(_curves(known, r), f"{r}: reward of a step against the seconds of training, each seed.")
                       for r in RUNNERS if any(i.robot == r for i, _ in known))  # fmt: skip
        data = {"trainings": [{**asdict(i), **r} for i, r in known]}
        return Chapter(self.name, self.title, text, (self._table(items, results),), goals, plates, data)

    def _table(self, items: Sequence[Any], results: Sequence[Any]) -> Table:
        rows = []
        for robot in RUNNERS:
            for by in (WINDOWS, PPO):
                mine = [r for i, r in zip(items, results) if (i.robot, i.by) == (robot, by)]
                if isinstance(mine[0], Missing):
                    rows.append((robot, by, mine[0].why, "", "", "", ""))
                    continue
                carried = [r["carried"] for r in mine if "carried" in r]
                there = f"{_middle(carried, 'reward'):.2f} ({_middle(carried, 'speed'):.2f} m/s)" if carried else ""
                rewards = [r["reward"] for r in mine]
                reward = f"{np.median(rewards):.2f} ({min(rewards):.2f})"
                rows.append((robot, by, reward, f"{_middle(mine, 'speed'):.2f}", f"{_middle(mine, 'lasted'):.0f}",
                             there, f"{_middle(mine, 'steps'):.0f}"))  # fmt: skip
        heads = ("robot", "trained by", "reward of a step: median (worst)", "m/s", "steps until it falls", "in MuJoCo",
                 "steps of training")  # fmt: skip
        return Table(heads, tuple(rows), "after the same time")


def _middle(results: Sequence[Mapping[str, Any]], what: str) -> float:
    return float(np.median([r[what] for r in results]))


def _rewarded(known: Sequence[tuple[Any, Any]], robot: str, by: str) -> float:
    return _middle([r for i, r in known if (i.robot, i.by) == (robot, by)], "reward")


def _curves(known: Sequence[tuple[Any, Any]], robot: str) -> Figure:
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    for by, colour in ((WINDOWS, "tab:blue"), (PPO, "tab:orange")):
        label: str | None = by
        for i, r in known:
            if (i.robot, i.by) == (robot, by):
                best = np.fmax.accumulate(np.asarray(r["rewards"], float))
                axes.plot(r["seconds"], best, color=colour, label=label)
                label = None
    axes.set(xlabel="seconds", ylabel="best reward of a step")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")
    return figure


CLOSED_LOOP = ClosedLoop()
