"""Damped springs between particles, with a rest length and an actuation that shortens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import filled, indices
from nablasim.physics.kernels.springs import actuated_spring_forces, spring_energies, spring_forces, spring_stiffness
from nablasim.physics.layout import Column, Draft, Index, Rows
from nablasim.physics.systems.particles import F, V, X
from nablasim.physics.systems.system import System

if TYPE_CHECKING:
    from nablasim.physics.program import Arrays, Step
    from nablasim.physics.stability import Bounds

PAIRS = Index("springs.pairs", to="particles", width=2)
KE, KD, REST = Column("springs.ke"), Column("springs.kd"), Column("springs.rest")
ACTUATION = Column("springs.actuation", per_step=True, optional=True)


class Springs(System):
    """ke (|d| - rest (1 - actuation)) + kd d|d|/dt, along d."""

    name = "springs"
    columns = (KE, KD, REST, ACTUATION)
    indices = (PAIRS,)

    def forces(self, s: Step) -> None:
        given = [s[X], s[V], s[PAIRS], s[REST], s[KE], s[KD]]
        if s.has(ACTUATION):
            kc.launch(actuated_spring_forces, s.rows("springs"), [*given, s[ACTUATION]], [s[F]], parts=s.parts)
        else:
            kc.launch(spring_forces, s.rows("springs"), given, [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("springs.energy", s.rows("springs"))
        kc.launch(spring_energies, s.rows("springs"), [s[X], s[PAIRS], s[REST], s[KE], s[ACTUATION]], [e])
        return e

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        kc.launch(spring_stiffness, a.rows("springs"), [a[PAIRS], a[KE], a[KD]], [bounds.k, bounds.c], parts=a.parts)


def add_springs(
    draft: Draft,
    name: str,
    particles: Rows,
    points: NDArray[np.float64],
    pairs: ArrayLike,
    *,
    ke: ArrayLike,
    kd: ArrayLike,
    rest: ArrayLike | None,
    actuation: ArrayLike | bool,
    prefix: str = "",
) -> None:
    """Springs between particles of one object; `points` are where their rest lengths are measured.

    Their parameters are "name.ke" and so on, with `prefix` before the quantity in an object that has others, too.
    """
    ij = indices(f"{name}.{prefix}pairs", pairs, 2, len(points), "particle")
    same = ij[:, 0] == ij[:, 1]
    if same.any():
        raise ValueError(f"spring {int(np.argmax(same))} of {name!r} joins particle {ij[same][0, 0]} to itself")
    lengths = np.linalg.norm(points[ij[:, 1]] - points[ij[:, 0]], axis=1) if rest is None else rest
    rows, shape = draft.rows("springs", len(ij)), (len(ij),)
    draft.thing(name, "springs", rows)
    draft.index(PAIRS.name, ij + particles.start)
    if not len(ij):
        return
    for quantity, column, value, unit in (
        ("ke", KE, ke, "N/m"), ("kd", KD, kd, "N s/m"), ("rest", REST, lengths, "m"),
    ):  # fmt: skip
        filled(f"{name}.{prefix}{quantity}", value, shape, positive=True, allow_zero=True)
        draft.parameter(f"{name}.{prefix}{quantity}", column, rows, value, unit=unit, bounds=(0.0, None))
    if actuation is not False:
        start = 0.0 if actuation is True else actuation
        draft.parameter(f"{name}.{prefix}actuation", ACTUATION, rows, start, unit="1", bounds=(-1.0, 1.0),
                        about="by which part of its length a spring is shortened")  # fmt: skip
