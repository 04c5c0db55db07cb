"""Whether exact slopes are those of runs beside the point: looked at once, where a fit ended.

Tangents have no step, and differences have no rules that could be wrong. Where they are apart, either the loss has a
kink there, of which a tangent sees one side, or one of them is wrong: the user is told which parameters, and how much.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.problem import Problem, Slopes, Vector

APART = 0.1
"""How much of a column may be otherwise. What is left of it in an interval is less than what noise does to one."""
SMALL = 2**24
"""Numbers of a Jacobian that is compared number by number; of larger ones the lengths in each frame are."""


class SlopesDisagree(UserWarning):
    """Exact derivatives and finite differences disagree where a fit ended."""


def disagreement(problem: Problem, u: Vector) -> dict[int, tuple[float, float, float]]:
    """Coordinates whose slopes disagree at a point: how far apart, relative, and the length of both columns."""
    if not problem.pushes:
        return {}
    keep = problem.space.size * problem.bound.target.size <= SMALL
    exact = problem.slopes(u, by="tangents", keep=keep)
    found = _apart(problem, exact, problem.slopes(u, by="differences", keep=keep, batched=False))
    if not found:
        return {}
    # Long steps cut corners: who is right is seen from steps that are shorter.
    short = problem.slopes(u, step=problem.bound.step / 8, by="differences", keep=keep, batched=False)
    nearer = _apart(problem, exact, short)
    return {j: nearer[j] for j in found if j in nearer and nearer[j][0] > found[j][0] / 2}


def _apart(problem: Problem, exact: Slopes | None, near: Slopes | None) -> dict[int, tuple[float, float, float]]:
    if exact is None or near is None:
        return {}
    a, b = _columns(exact), _columns(near)
    apart, long, short = (np.linalg.norm(x, axis=1) for x in (a - b, a, b))
    rounding = np.sqrt(100 * problem.bound.target.size) * problem.bound.blur
    size = np.maximum(long, short)
    return {int(j): (float(apart[j] / size[j]), float(long[j]), float(short[j]))
            for j in np.flatnonzero(apart > APART * size + rounding)}  # fmt: skip


def _columns(slopes: Slopes) -> NDArray[np.float64]:
    if slopes.J is not None:
        return slopes.J.reshape(len(slopes.J), -1).astype(np.float64)
    return np.sqrt(np.diagonal(slopes.normal, axis1=1, axis2=2)).T


def say(problem: Problem, labels: list[str], u: Vector) -> dict[int, str]:
    """Look once, warn where slopes disagree, and give the reasons by coordinate."""
    found = disagreement(problem, u)
    said = {j: f"its exact slopes and those of runs beside the point are {100 * apart:.0f} % apart"
            for j, (apart, _, _) in found.items()}  # fmt: skip
    if found:
        each = "; ".join(f"{labels[j]}: {100 * apart:.0f} % apart, length {long:.4g} by tangents and {short:.4g} by "
                         f"differences" for j, (apart, long, short) in found.items())  # fmt: skip
        warnings.warn(
            f"slopes disagree where the fit ended ({each}). A kink there, or a derivative that is wrong: compare "
            'problem.slopes(fit.u, by="tangents") with by="differences" at several steps',
            SlopesDisagree, stacklevel=4,
        )  # fmt: skip
    return said
