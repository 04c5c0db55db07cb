"""Magnets: dipoles fixed in rigid bodies, and the force and the torques between every two of them.

A row of `magnets` is a dipole, a row of `magnet_pairs` two of them. Nothing here limits the step: how stiff a pair is
depends on how close it comes, and that is not known before the rollout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import filled, shaped
from nablasim.physics.laws.rigid import magnets_kernels as kernels
from nablasim.physics.laws.rigid.bodies import forces, moving
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step

BODY = Index("magnets.body", to="bodies")
MOMENT, SOFTENING = Column("magnets.moment", kc.float3, per_step=True), Column("magnets.softening")
ONE, OTHER = (Index(f"magnet_pairs.{q}", to="magnets") for q in ("one", "other"))


class Magnets(System):
    """Every magnet against every other one."""

    name = "magnets"
    columns = (MOMENT, SOFTENING)
    indices = (BODY, ONE, OTHER)

    def forces(self, s: Step) -> None:
        kc.launch(kernels.magnet_forces, s.rows("magnet_pairs"), acting(s), [forces(s)], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("magnet_pairs.energy", s.rows("magnet_pairs"))
        kc.launch(kernels.magnet_energies, s.rows("magnet_pairs"), acting(s), [e])
        return e


def acting(a: Arrays) -> list[Any]:
    """Bodies, their magnets and pairs of those, in kernels."""
    magnets = a.bundle(kernels.Magnets, BODY, MOMENT, SOFTENING)
    return [moving(a), magnets, a.bundle(kernels.Pairs, ONE, OTHER)]


def add_magnet(draft: Draft, name: str, body: Rows, moment: ArrayLike, softening: float) -> None:
    """The dipole of a body that has none yet, and its pairs with those that are there."""
    parameter = f"{name}.moment"
    if parameter in draft.parameters:
        raise ValueError(f"{name!r} is a magnet already: a body has one moment; add the two up")
    others = draft.count.get("magnets", 0)
    rows = draft.rows("magnets", 1)
    draft.index(BODY.name, [body.start])
    draft.parameter(parameter, MOMENT, rows, shaped(parameter, moment, (3,)), unit="A m²", uniform=True,
                    about="magnetic dipole, in the body's frame")  # fmt: skip
    radius = filled(f"{name}.softening", softening, (), positive=True)
    draft.parameter(f"{name}.softening", SOFTENING, rows, radius, unit="m", bounds=(1e-6, None), uniform=True,
                    about="radius within which the magnet is not a point")  # fmt: skip
    draft.rows("magnet_pairs", others)
    draft.index(ONE.name, np.arange(others))
    draft.index(OTHER.name, np.full(others, rows.start))
