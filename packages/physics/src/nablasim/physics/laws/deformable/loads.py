"""External forces and impulses on particles, constant or given anew for every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import shaped
from nablasim.physics.laws.deformable import loads_kernels as kernels
from nablasim.physics.laws.deformable.particles import F
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Step

PARTICLE, IMPULSE = Index("loads.particle", to="particles"), Index("loads.impulse")
FORCE = Column("loads.force", kc.float3, per_step=True)
SHARE, START, STOP = Column("loads.share"), Column("loads.start"), Column("loads.stop")


class Loads(System):
    """Forces (N) while they act, impulses (N s) in one step."""

    name = "loads"
    columns = (FORCE, SHARE, START, STOP)
    indices = (PARTICLE, IMPULSE)

    def forces(self, s: Step) -> None:
        loads = s.bundle(kernels.Loads, PARTICLE, FORCE, SHARE, START, STOP, IMPULSE)
        kc.launch(kernels.load_forces, s.rows("loads"), [loads, s.first, s.k, s.dt], [s[F]], parts=s.parts)


def add_load(
    draft: Draft,
    name: str,
    particles: NDArray[np.int64],
    value: ArrayLike,
    *,
    impulse: bool,
    start: float,
    stop: float,
) -> None:
    """A force or an impulse under a parameter's name, shared equally by some particles of the scene."""
    what = "impulse" if impulse else "force"
    check_times(name, what, start, stop)
    rows = draft.rows("loads", len(particles))
    draft.index(PARTICLE.name, particles)
    draft.index(IMPULSE.name, np.full(len(particles), int(impulse)))
    draft.parameter(name, FORCE, rows, shaped(name, value, (3,)), unit="N s" if impulse else "N", uniform=True,
                    about=f"external {what}, in all")  # fmt: skip
    draft.constant(SHARE, rows, 1 / len(particles))
    draft.constant(START, rows, start)
    draft.constant(STOP, rows, min(stop, float(np.finfo(np.float32).max)))


def check_times(name: str, what: str, start: float, stop: float) -> None:
    if not (np.isfinite(start) and start >= 0 and stop > start):
        raise ValueError(f"{name}: the {what} acts from {start} s to {stop} s; expected 0 <= from < to")
