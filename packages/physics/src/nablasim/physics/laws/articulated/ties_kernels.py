"""Joints that follow others (`mimic`): q = ratio · q of the other + offset, kept by very stiff springs in every step.

They act at the end of the step, so they limit none, and couple degrees of freedom of different branches: `nodes.py`
hangs one branch below the other for that. `ties(load)`: see `dynamics_kernels.py`.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Drives, Now, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held, kept

BACK = 0.2
"""Which part of what a joint is off by it comes back in a step."""


@kc.kernel
def tie_strengths(leads: kc.Array[int], apparent: kc.Array[float], stick: float, tie: kc.Array[float]):
    """How hard a joint is held to the one that it follows: a mass; zero where it follows none."""
    k = kc.tid()
    tie[k] = stick * apparent[k] if leads[k] != k else 0.0


def ties(load):
    """What holds joints to those that they follow."""

    @kc.func
    def add_pulls(t: Tree, s: Drives, now: Now, a, dt: float, rest, r: int):
        """Add what ties do in joints at the accelerations a."""
        for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
            j = t.leads[k]
            if j != k:
                ratio = load(s.ratio[k])
                off = load(now.q[t.dof_coord[k]]) - ratio * load(now.q[t.dof_coord[j]]) - load(s.offset[k])
                rate = load(now.qd[k]) + dt * load(a[k]) - ratio * (load(now.qd[j]) + dt * load(a[j]))
                pull = kc.stop_grad(s.tie[k]) / dt * (rate + BACK / dt * off)
                rest[k] = rest[k] - pull
                rest[j] = rest[j] + ratio * pull

    return SimpleNamespace(add_pulls=add_pulls)


@kc.func
def add_tie_stiffness(t: Tree, s: Drives, L, r: int):
    """Add the negative derivative of `add_pulls` by a."""
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        j = t.leads[k]
        if j != k:
            K, ratio = held(s.tie[k]), held(s.ratio[k])
            L[t.row[k]] = L[t.row[k]] + K
            L[t.row[j]] = L[t.row[j]] + K * ratio * ratio
            at = t.row[k] + t.depth[k] - t.depth[j]
            if t.depth[j] > t.depth[k]:
                at = t.row[j] + t.depth[j] - t.depth[k]
            L[at] = L[at] - K * ratio


TIES, TIES_HELD = ties(kept), ties(held)
