"""External forces, impulses and torques on rigid bodies, constant or given anew for every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import shaped
from nablasim.physics.laws.deformable.loads import check_times
from nablasim.physics.laws.rigid.bodies import forces, moving
from nablasim.physics.laws.rigid.body_loads_kernels import Loads, body_load_forces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.model import Step

BODY = Index("body_loads.body", to="bodies")
IMPULSE, TURNS, CENTRAL = (Index(f"body_loads.{q}") for q in ("impulse", "turns", "central"))
VALUE = Column("body_loads.value", kc.float3, per_step=True)
AT = Column("body_loads.at", kc.float3)
START, STOP = Column("body_loads.start"), Column("body_loads.stop")

UNITS = {"force": "N", "impulse": "N s", "torque": "N m"}


class BodyLoads(System):
    """Forces (N) and torques (N m) while they act, impulses (N s) in one step."""

    name = "body_loads"
    columns = (VALUE, AT, START, STOP)
    indices = (BODY, IMPULSE, TURNS, CENTRAL)

    def forces(self, s: Step) -> None:
        given = [moving(s), s.bundle(Loads, *self.columns, *self.indices), s.first, s.k, s.dt]
        kc.launch(body_load_forces, s.rows("body_loads"), given, [forces(s)], parts=s.parts)


def add_body_load(
    draft: Draft,
    name: str,
    body: Rows,
    what: str,
    value: ArrayLike,
    *,
    at: ArrayLike | None,
    start: float,
    stop: float,
) -> None:
    """A force, an impulse or a torque under a parameter's name, in world axes.

    `at` is a point of the body's frame, which moves with the body; None is the centre of mass.
    """
    check_times(name, what, start, stop)
    rows = draft.rows("body_loads", 1)
    draft.index(BODY.name, [body.start])
    for index, flag in ((IMPULSE, what == "impulse"), (TURNS, what == "torque"), (CENTRAL, at is None)):
        draft.index(index.name, [int(flag)])
    draft.parameter(name, VALUE, rows, shaped(name, value, (3,)), unit=UNITS[what], uniform=True,
                    about=f"external {what}, in world axes")  # fmt: skip
    if at is not None:
        draft.parameter(f"{name}_at", AT, rows, shaped(f"{name}: at", at, (3,)), unit="m", uniform=True,
                        about="the point of the body's frame where it acts")  # fmt: skip
    draft.constant(START, rows, start)
    draft.constant(STOP, rows, min(stop, float(np.finfo(np.float32).max)))
