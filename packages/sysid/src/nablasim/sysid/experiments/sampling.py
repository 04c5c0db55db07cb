"""Fig. 11, right: the mass of a cube as PyBullet with REINFORCE sees it, beside gradients of our own.

A sample's loss is its surprise (minus the logarithm of its likelihood) times its reward (minus the misfit, normalised).
The reward has its top near the truth. Where the loss of samples is lowest goes with the present estimate: there, if its
reward is above the mean, and as far from it as samples are drawn, if it is below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim.sysid.baselines.bullet import NOISE, Engine, normalised, reinforce, surprise
from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.experiment import Plate
from nablasim.sysid.report import Table

CENTRES = (0.5, 1.0, 2.0)
"""Present estimates (kg) around which samples are drawn."""
NAME = "PyBullet + REINFORCE"


@dataclass(frozen=True)
class Scanned:
    """The item of one line: the misfit of every frame of PyBullet's rollouts at many masses."""

    cube: Any
    span: tuple[float, float]
    points: int

    def run(self) -> dict[str, Any] | Missing:
        bullet = _bullet()
        if isinstance(bullet, Missing):
            return bullet
        masses = np.geomspace(*self.span, self.points)
        with Engine(bullet, self.cube) as engine:
            misfits = np.stack([engine.misfit(float(m)) for m in masses])
        return {"values": masses, "misfits": misfits / self.cube.size**2}


@dataclass(frozen=True)
class Sampled:
    """The item of one search by REINFORCE, from a blind guess."""

    cube: Any
    span: tuple[float, float]
    seed: int
    steps: int

    def run(self) -> dict[str, Any] | Missing:
        bullet = _bullet()
        if isinstance(bullet, Missing):
            return bullet
        with Engine(bullet, self.cube) as engine:
            return {"found": reinforce(engine, self.span, self.seed, self.steps)}


def _bullet() -> Any:
    try:
        import pybullet
    except ImportError:
        return Missing(NAME, 0, 'not run: pip install "nablasim-sysid[bullet]"')
    return pybullet


def losses(values: NDArray[np.float64], rewards: NDArray[np.float64], centre: float) -> NDArray[np.float64]:
    """Of samples at these masses, drawn around a centre."""
    return np.asarray(surprise(np.log(values), np.log(centre)) * rewards)


def centres_table(scan: Mapping[str, Any] | Missing) -> Table:
    """Where a sample's loss is lowest among those that are likely to be drawn."""
    if isinstance(scan, Missing):
        return Table((NAME,), ((scan.why,),))
    values, rewards, rows = scan["values"], rewards_of(scan), []
    for centre in CENTRES:
        near = np.abs(np.log(values / centre)) <= 3 * NOISE
        lowest = float(values[near][np.argmin(losses(values, rewards, centre)[near])])
        rows.append((f"{centre:g}", f"{np.interp(centre, values, rewards):+.2f}", f"{lowest:.3g}"))
    best = float(values[np.argmax(rewards)])
    title = f"Flying cube in PyBullet: the reward is highest at {best:.3g} kg, the truth is 1 kg"
    return Table(("estimate (kg)", "reward there", "loss of samples is lowest at (kg)"), tuple(rows), title)


def rewards_of(scan: Mapping[str, Any]) -> NDArray[np.float64]:
    """Minus the misfit of all frames, normalised over the line."""
    return normalised(-np.asarray(scan["misfits"]).mean(axis=1))


def searches_table(found: Mapping[str, Sequence[float]], truth: float) -> Table:
    rows = []
    for name, ends in found.items():
        errors = np.abs(np.asarray(ends) / truth - 1)
        near = [f"{int((errors < part).sum())} of {len(errors)}" for part in (0.01, 0.1)]
        rows.append((name, *near, f"{np.median(errors):.2g}"))
    heads = ("flying cube: blind starts that find its mass", "within 1 %", "within 10 %", "median error")
    return Table(heads, tuple(rows))


def plate(scan: Mapping[str, Any], truth: float) -> Plate:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    values, rewards = scan["values"], rewards_of(scan)
    left.plot(values, rewards, linewidth=1)
    left.set(ylabel="reward")
    for centre in CENTRES:
        right.plot(values, losses(values, rewards, centre), linewidth=1, label=f"estimate {centre:g} kg")
    right.set(ylabel="surprise × reward", yscale="symlog")
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.axvline(truth, color="gray", linestyle=":", linewidth=1)
        axes.set(xscale="log", xlabel="mass (kg)")
        axes.grid(True, alpha=0.3)
    caption = "As the paper's Fig. 11: the reward of PyBullet's flights, and the loss of samples of three estimates."
    return Plate(figure, caption)
