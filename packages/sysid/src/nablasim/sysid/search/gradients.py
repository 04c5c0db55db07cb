"""Many parameters: descent by gradients of one sweep back, L-BFGS (within bounds) or Adam, with priors for fields.

A field such as the mass of every particle has more numbers than some videos have information: `Param(smooth=...)`
says that neighbours are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nablasim.sysid.problem import FAILURES, Axis, Problem, Vector
from nablasim.sysid.search.windows import Start, next_window


def descend(
    problem: Problem,
    start: Start,
    *,
    method: str,
    grow: bool,
    steps: int,
    rate: float = 0.05,
    on_window: Callable[[Start], None] = lambda start: None,
) -> Start:
    """Bring a start to its end. `rate` is Adam's, in the space of the search, where ranges are a few units."""
    descent = _lbfgs if method == "lbfgs" else _adam
    prior = Smooth(problem)
    if start.frames == 0:
        start.frames = next_window(problem, start.u, 0) if grow else problem.frames
    while not start.done:
        whole = start.frames >= problem.frames
        try:
            found = descent(problem, prior, start.u, start.frames, steps if whole else max(5, steps // 4), rate)
        except FAILURES as error:
            start.done, start.message = True, f"the simulation fails: {error}"
            return start
        start.u, start.loss, converged, start.message, path = found
        start.path.append({"frames": start.frames, "loss": start.loss, "u": start.u.tolist(), "steps": len(path),
                           "losses": path})  # fmt: skip
        if whole:
            start.done, start.converged = True, converged
        else:
            start.frames = next_window(problem, start.u, start.frames)
        on_window(start)
    return start


Found = tuple[Vector, float, bool, str, list[float]]


def _lbfgs(problem: Problem, prior: Smooth, u: Vector, frames: int, steps: int, rate: float) -> Found:
    scale: list[float] = []
    path: list[float] = []

    def evaluate(at: Vector) -> tuple[float, Vector]:
        try:
            loss, gradient = problem.gradient(at, frames)
        except FAILURES:
            if not scale:
                raise
            # The line search comes back from here.
            return 1e10, np.zeros_like(at)
        path.append(loss)
        extra, slope = prior(at)
        if not scale:
            # The first step of L-BFGS is as long as the gradient: make that a part of the range.
            scale.append(1 / max(float(np.abs(gradient + slope).max()), 1e-300))
        return scale[0] * (loss + extra), scale[0] * (gradient + slope)

    bounds = list(zip(problem.space.low, problem.space.high))
    options = {"maxiter": steps, "maxfun": 3 * steps, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(evaluate, problem.space.clip(u), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    loss = problem.loss(found.x, frames)
    # Running out of steps is the one way not to end.
    return found.x, loss, found.status != 1, str(found.message), path


def _adam(problem: Problem, prior: Smooth, u: Vector, frames: int, steps: int, rate: float) -> Found:
    import torch

    at = torch.tensor(problem.space.clip(u), dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([at], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=steps, eta_min=0.01 * rate)
    low, high = torch.tensor(problem.space.low), torch.tensor(problem.space.high)
    path: list[float] = []
    best, lowest = at.detach().numpy().copy(), np.inf
    for _ in range(steps):
        loss, gradient = problem.gradient(at.detach().numpy(), frames)
        extra, slope = prior(at.detach().numpy())
        path.append(loss)
        if loss + extra < lowest:
            best, lowest = at.detach().numpy().copy(), loss + extra
        at.grad = torch.as_tensor(gradient + slope)
        adam.step()
        schedule.step()
        with torch.no_grad():
            at.clamp_(low, high)
    settled = len(path) > 5 and abs(path[-1] - path[-5]) <= 1e-3 * max(path[-1], 1e-300)
    return best, problem.loss(best, frames), settled, f"{steps} steps of Adam", path


class Smooth:
    """weight · mean over neighbours of (u_i - u_j)², and its gradient, for all params that ask for it."""

    def __init__(self, problem: Problem):
        self.terms = [(a, a.param.smooth, neighbours(problem.model, a)) for a in problem.space.axes if a.param.smooth]

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        total, slope = 0.0, np.zeros_like(u)
        for axis, weight, pairs in self.terms:
            mine = u[axis.at].reshape(axis.shape)
            apart = mine[pairs[:, 0]] - mine[pairs[:, 1]]
            total += weight * float((apart**2).sum()) / len(pairs)
            part = np.zeros_like(mine)
            np.add.at(part, pairs[:, 0], apart)
            np.add.at(part, pairs[:, 1], -apart)
            slope[axis.at] += (2 * weight / len(pairs)) * part.ravel()
        return total, slope


def neighbours(model: Any, axis: Axis) -> NDArray[np.int64]:
    """Pairs of rows of a field that touch: particles of a common element, or elements with a common side."""
    thing = axis.param.target.partition(".")[0]
    rows = next(r for r in model.layout.parameters[axis.param.target].places if r.rows.count == axis.shape[0]).rows
    cells = _cells(model, thing)
    if rows.table == "particles":
        cells = cells - model.layout.things[thing].rows["particles"].start
        ends = np.concatenate([cells[:, [i, j]] for i in range(cells.shape[1]) for j in range(i)])
        return np.unique(np.sort(ends, axis=1), axis=0).astype(np.int64)
    sides: dict[tuple[int, ...], list[int]] = {}
    for k, cell in enumerate(cells):
        for corner in range(len(cell)):
            sides.setdefault(tuple(sorted(np.delete(cell, corner))), []).append(k)
    return np.array([two for two in sides.values() if len(two) == 2], np.int64).reshape(-1, 2)


def _cells(model: Any, thing: str) -> NDArray[np.int64]:
    """The corners of an object's tetrahedra, triangles or springs, as rows of particles."""
    for name, kind in model.layout.kinds.items():
        rows = model.layout.things[thing].rows.get(kind.table)
        if kind.to == "particles" and kind.width >= 2 and rows is not None and rows.count:
            return np.asarray(model.layout.indices[name][rows.slice], np.int64)
    raise ValueError(f"{thing!r} has no elements that say which of its particles are neighbours: smooth=0 for it")
