"""Bending of cloth and shells: hinges along the edges between two triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import filled
from nablasim.physics.geometry import TriMesh
from nablasim.physics.laws.deformable import bending_kernels as kernels
from nablasim.physics.laws.deformable.particles import F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

ENDS = Index("hinges.ends", to="particles", width=4)
REST_POINTS = Column("shell_rest.points", kc.float3)
"""Where the particles of shells lie when nothing is deformed: a table of its own, one row per particle of a shell."""
REST_ENDS = Index("hinges.rest_ends", to="shell_rest", width=4)
BEND = Column("hinges.bend", optional=True)
REST_ANGLE = Column("hinges.rest_angle", per_step=True)
ACTUATION = Column("hinges.actuation", per_step=True)
DAMPING = Column("hinges.damping", optional=True)
HINGE = (ENDS, BEND, REST_ANGLE, ACTUATION)


class Bending(System):
    """A moment k_b sin((phi - rest)/2 + actuation) + damping dphi/dt that unfolds every hinge."""

    name = "bending"
    columns = (BEND, REST_ANGLE, ACTUATION, DAMPING)
    indices = (ENDS, REST_ENDS)

    def forces(self, s: Step) -> None:
        if s.has(BEND) or s.has(DAMPING):
            hinges = s.bundle(kernels.Hinges, *HINGE, DAMPING)
            kc.launch(kernels.hinge_forces, s.rows("hinges"), [now(s), hinges], [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        n = s.rows("hinges")
        e = s.scratch("bending.energy", n)
        kc.launch(kernels.hinge_energies, n, [s[X], s.bundle(kernels.Hinges, *HINGE)], [e])
        return e

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        given = [a[REST_POINTS], a[REST_ENDS], a.bundle(kernels.Hinges, *HINGE, DAMPING)]
        kc.launch(kernels.hinge_stiffness, a.rows("hinges"), given, [bounds.elastic], parts=a.parts)


def add_hinges(
    draft: Draft,
    name: str,
    particles: Rows,
    rest: Rows,
    mesh: TriMesh,
    *,
    bend: ArrayLike,
    bend_damping: ArrayLike,
    rest_angle: ArrayLike | None,
    actuation: ArrayLike,
) -> None:
    """The hinges of one object. Without `rest_angle`, they rest as the mesh is."""
    ends = mesh.hinges.vertices
    n = len(ends)
    rows = draft.rows("hinges", n)
    draft.thing(name, "cloth", rows)
    draft.index(ENDS.name, ends + particles.start)
    draft.index(REST_ENDS.name, ends + rest.start)
    for quantity, column, value, unit in (
        ("bend", BEND, bend, "N m"), ("bend_damping", DAMPING, bend_damping, "N m s"),
    ):  # fmt: skip
        filled(f"{name}.{quantity}", value, (n,), positive=True, allow_zero=True)
        draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None))
    angle = dihedral_angles(mesh) if rest_angle is None else filled(f"{name}.rest_angle", rest_angle, (n,))
    start = filled(f"{name}.actuation", actuation, (n,))
    if not np.any(bend):
        # Without stiffness they have no effect: they are there for who replaces `bend`, but are not offered.
        draft.constant(REST_ANGLE, rows, angle)
        draft.constant(ACTUATION, rows, start)
        return
    draft.parameter(f"{name}.rest_angle", REST_ANGLE, rows, angle, unit="rad", bounds=(-np.pi, np.pi),
                    about="angle between the normals on both sides of an edge at rest; positive bulges")  # fmt: skip
    draft.parameter(f"{name}.actuation", ACTUATION, rows, start, unit="rad", bounds=(-np.pi / 2, np.pi / 2),
                    about="makes an edge rest at rest_angle - 2 actuation")  # fmt: skip


def dihedral_angles(mesh: TriMesh) -> NDArray[np.float64]:
    """The angle between the normals on both sides of every inner edge; in the order of `mesh.hinges`."""
    ends = mesh.hinges.vertices
    angle = kc.zeros(len(ends), real=kc.float64)
    points = kc.array(np.array(mesh.vertices), dtype=kc.float3)
    kc.launch(kernels.rest_angles, len(ends), [points, kc.array(np.array(ends))], [angle])
    return angle.numpy().copy()
