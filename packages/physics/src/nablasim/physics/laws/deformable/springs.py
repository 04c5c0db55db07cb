"""Damped springs between particles, with a rest length and an actuation that shortens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import filled, indices
from nablasim.physics.laws.deformable import springs_kernels as kernels
from nablasim.physics.laws.deformable.particles import F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

PAIRS = Index("springs.pairs", to="particles", width=2)
KE, KD, REST = Column("springs.ke"), Column("springs.kd"), Column("springs.rest")
ACTUATION = Column("springs.actuation", per_step=True, optional=True)


class Springs(System):
    """ke (|d| - rest (1 - actuation)) + kd d|d|/dt, along d."""

    name = "springs"
    columns = (KE, KD, REST, ACTUATION)
    indices = (PAIRS,)

    def forces(self, s: Step) -> None:
        kc.launch(kernels.spring_forces, s.rows("springs"), [now(s), springs(s)], [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("springs.energy", s.rows("springs"))
        kc.launch(kernels.spring_energies, s.rows("springs"), [s[X], springs(s)], [e])
        return e

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        kc.launch(kernels.spring_stiffness, a.rows("springs"), [springs(a)], [bounds.elastic], parts=a.parts)


def springs(a: Arrays) -> Any:
    """All that a spring has, as kernels take it."""
    return a.bundle(kernels.Springs, PAIRS, REST, KE, KD, ACTUATION)


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
