"""Smoke: which motion of the air at the start makes a disc of smoke a pattern half a second later?

The pattern is the nabla. Searched for are the two components of the velocity in every cell, from air at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim.sysid.experiments.experiment import Chapter, Goal, Plate
from nablasim.sysid.report import Table

DT, STEPS = 1 / 60, 30
SMALL = 0.05
"""The misfit that counts as the pattern, as a part of that of the disc itself."""


@dataclass(frozen=True)
class Blown:
    """The item: a search on a grid of n × n cells by L-BFGS, with so many rollouts."""

    n: int
    rounds: int
    seed: int

    def run(self) -> dict[str, Any]:
        """The mean of squares in every rollout, and what was formed."""
        import torch

        start, wanted = patterns(self.n)
        smoke, target = ph.Smoke(cells=(self.n, self.n), density=start), torch.tensor(wanted, dtype=torch.float32)
        random = torch.Generator().manual_seed(self.seed)
        wind = (1e-3 * torch.randn(self.n, self.n, 2, generator=random)).requires_grad_()
        search = torch.optim.LBFGS([wind], max_iter=self.rounds, max_eval=self.rounds, history_size=20,
                                   tolerance_change=0, tolerance_grad=0, line_search_fn="strong_wolfe")  # fmt: skip
        losses: list[float] = []

        def loss() -> Any:
            search.zero_grad()
            end = ph.rollout(smoke.replace(velocity=wind), dt=DT, steps=STEPS, every=STEPS).density[-1]
            error = (end - target).square().mean()
            error.backward()
            losses.append(error.item())
            return error

        search.step(loss)
        with torch.no_grad():
            end = ph.rollout(smoke.replace(velocity=wind), dt=DT, steps=STEPS, every=STEPS).density[-1]
        still = float(np.square(start - wanted).mean())
        return {"losses": losses, "still": still, "end": float((end - target).square().mean()), "formed": end.numpy()}


def patterns(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A disc, and a nabla of the same amount of smoke; their edges are a cell or two wide."""
    x, y = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 2, indexing="ij")
    edge = 1.5 / n
    outer = _inside(x, y, [(0.5, 0.18), (0.84, 0.78), (0.16, 0.78)])
    inner = _inside(x, y, [(0.5, 0.40), (0.65, 0.67), (0.35, 0.67)])
    nabla = 1 / (1 + np.exp(-np.minimum(outer, -inner) / edge))
    # A flow without divergence keeps areas.
    radius = np.sqrt(nabla.mean() / np.pi)
    return 1 / (1 + np.exp((np.hypot(x - 0.5, y - 0.55) - radius) / edge)), nabla


def _inside(x: Any, y: Any, corners: Sequence[tuple[float, float]]) -> Any:
    """How far from the nearest side of a convex polygon points lie inside of it; negative outside."""
    sides = zip(corners, [*corners[1:], corners[0]])
    return np.min([((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / np.hypot(bx - ax, by - ay)
                   for (ax, ay), (bx, by) in sides], axis=0)  # fmt: skip


SCALES = {"ci": (16, 6, 1), "desk": (48, 120, 3), "paper": (64, 300, 5)}
"""Cells along a side, rollouts and seeds."""


@dataclass(frozen=True)
class Smoke:
    """The experiment."""

    name: str = "smoke"
    title: str = "Smoke that forms a pattern"

    def items(self, size: str) -> list[Any]:
        n, rounds, seeds = SCALES[size]
        return [Blown(n, rounds, seed) for seed in range(seeds)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        rows = [(f"seed {i.seed}", str(len(r["losses"])), f"{r['still']:.4f}", f"{r['end']:.5f}",
                 f"{r['end'] / r['still']:.1%}") for i, r in zip(items, results)]  # fmt: skip
        table = Table(("start", "rollouts", "of the disc", "at the end", "of the first"), tuple(rows),
                      "mean of squares from the pattern")  # fmt: skip
        worst = max(r["end"] / r["still"] for r in results)
        goals = () if size == "ci" else (Goal("misfit, as a part of that of the disc, the worst start", SMALL, worst),)
        n = SCALES[size][0]
        text = (
            f"The velocity of the air in each of {n} × {n} cells is searched for by L-BFGS through {STEPS} steps of "
            "advection and projection, from air that hardly moves. The paper shows a film of such a search, and no "
            "figures.",
        )
        data = {"searches": [{**asdict(i), "losses": r["losses"], "end": r["end"]} for i, r in zip(items, results)]}
        caption = "The disc, what the air makes of it, the pattern asked for, and the misfit against rollouts."
        return Chapter(self.name, self.title, text, (table,), goals, (Plate(_draw(n, results), caption),), data)


def _draw(n: int, results: Sequence[Any]) -> Figure:
    figure = Figure(figsize=(10, 2.6), layout="constrained")
    axes: Any = figure.subplots(1, 4)
    disc, nabla = patterns(n)
    for one, picture in zip(axes, (disc, results[0]["formed"], nabla)):
        one.imshow(np.asarray(picture).T, origin="lower", cmap="gray_r", vmin=0, vmax=1)
        one.set_axis_off()
    for result in results:
        axes[3].semilogy(result["losses"])
    axes[3].set(xlabel="rollouts", ylabel="mean of squares")
    axes[3].grid(True, alpha=0.3)
    return figure


SMOKE = Smoke()
