"""Cloth and thin shells: neo-Hookean triangles with mass, in the air. Their bending is in `bending.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import filled, shaped
from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import TriMesh, vertex_masses
from nablasim.physics.laws.deformable import membrane_kernels as kernels
from nablasim.physics.laws.deformable.air_kernels import Air, air_damping, air_forces
from nablasim.physics.laws.deformable.bending import REST_POINTS, add_hinges
from nablasim.physics.laws.deformable.particles import GIVEN_MASS, MASS, F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

CORNERS = Index("triangles.corners", to="particles", width=3)
CLOTH = Index("triangles.cloth", to="cloths")
"""The cloth that a triangle belongs to: a row of a table that has nothing but its number of rows."""
REST_CORNERS = Index("triangles.rest_corners", to="shell_rest", width=3)
DENSITY, TOTAL = Column("triangles.density"), Column("triangles.total")
MU, LAM = Column("triangles.shear"), Column("triangles.stretch")
DAMPING = Column("triangles.damping", optional=True)
LIFT = Column("triangles.lift", per_step=True, optional=True)
DRAG = Column("triangles.drag", per_step=True, optional=True)
WIND = Column("triangles.wind", kc.float3, per_step=True)
INVERSE = Column("triangles.inverse", kc.float3, role="derived")
AREA = Column("triangles.area", role="derived")
SHEET = {"corners": CORNERS, "inverse": INVERSE, "area": AREA, "mu": MU, "lam": LAM}


class Cloth(System):
    """Elasticity and strain-rate damping of triangles, and the forces of the air on them."""

    name = "cloth"
    columns = (REST_POINTS, DENSITY, TOTAL, MU, LAM, DAMPING, LIFT, DRAG, WIND, INVERSE, AREA)
    indices = (CORNERS, CLOTH, REST_CORNERS)

    def setup(self, a: Arrays) -> None:
        n, whole = a.rows("triangles"), a.scratch("cloth.areas", a.rows("cloths"))
        whole.zero_()
        kc.launch(kernels.rest_triangles, n, [a[REST_POINTS], a[REST_CORNERS]], [a[INVERSE], a[AREA]], parts=a.parts)
        weighing = a.bundle(kernels.Weighing, DENSITY, TOTAL, CLOTH)
        kc.launch(kernels.cloth_areas, n, [a[AREA], weighing], [whole], parts=a.parts)
        kc.launch(kernels.cloth_masses, n, [a[AREA], weighing, whole, a[CORNERS]], [a[MASS]], parts=a.parts)

    def forces(self, s: Step) -> None:
        n, sheet = s.rows("triangles"), s.bundle(kernels.Triangles, DAMPING, **SHEET)
        kc.launch(kernels.membrane_forces, n, [now(s), sheet], [s[F]], parts=s.parts)
        if s.has(LIFT) or s.has(DRAG):
            air = s.bundle(Air, WIND, LIFT, DRAG)
            kc.launch(air_forces, n, [now(s), s[CORNERS], air], [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        n = s.rows("triangles")
        e = s.scratch("cloth.energy", n)
        kc.launch(kernels.membrane_energies, n, [s[X], s.bundle(kernels.Triangles, **SHEET)], [e])
        return e

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        n, sheet = a.rows("triangles"), a.bundle(kernels.Triangles, DAMPING, **SHEET)
        kc.launch(kernels.membrane_stiffness, n, [sheet], [bounds.elastic], parts=a.parts)
        air = a.bundle(Air, WIND, LIFT, DRAG)
        kc.launch(air_damping, n, [a[CORNERS], a[AREA], air], [bounds.elastic.c], parts=a.parts)


def add_cloth(
    draft: Draft,
    name: str,
    particles: Rows,
    mesh: TriMesh,
    *,
    masses: Mapping[str, ArrayLike | None],
    stretch: ArrayLike,
    shear: ArrayLike,
    damping: ArrayLike,
    lift: ArrayLike,
    drag: ArrayLike,
    bend: ArrayLike,
    bend_damping: ArrayLike,
    rest_angle: ArrayLike | None,
    actuation: ArrayLike,
) -> None:
    """The triangles and hinges of one object; `mesh` is its shape at rest.

    masses: "mass", "density" and "vertex_mass", one of which is given.
    """
    _require_used(mesh.require_area())
    n, count = len(mesh.faces), len(mesh.vertices)
    rows, rest, cloth = draft.rows("triangles", n), draft.rows("shell_rest", count), draft.rows("cloths", 1)
    draft.thing(name, "cloth", rows, rest, cloth)
    draft.surface(name, mesh.faces)
    draft.index(CORNERS.name, mesh.faces + particles.start)
    draft.index(REST_CORNERS.name, mesh.faces + rest.start)
    draft.index(CLOTH.name, np.full(n, cloth.start))
    draft.parameter(f"{name}.rest", REST_POINTS, rest, mesh.vertices, unit="m",
                    about="vertices of the undeformed mesh: its lengths and areas")  # fmt: skip
    _add_masses(draft, name, particles, rows, mesh, masses)
    for quantity, column, value, unit, about in (
        ("stretch", LAM, stretch, "N/m", "lambda of the membrane: resistance to a change of area"),
        ("shear", MU, shear, "N/m", "mu of the membrane: resistance to a change of shape"),
        ("damping", DAMPING, damping, "N s/m", "of the rate of strain in the plane"),
        ("lift", LIFT, lift, "kg/m³", "force of the air across the flow, per area and speed squared"),
        ("drag", DRAG, drag, "kg/m³", "force of the air along the flow, per area and speed squared"),
    ):  # fmt: skip
        filled(f"{name}.{quantity}", value, (n,), positive=True, allow_zero=True)
        draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None), about=about)
    add_hinges(draft, name, particles, rest, mesh, bend=bend, bend_damping=bend_damping, rest_angle=rest_angle,
               actuation=actuation)  # fmt: skip


def add_wind(draft: Draft, *, velocity: ArrayLike, asked: bool) -> None:
    """The velocity of the air around every triangle: called when all cloth is there."""
    value, count = shaped("wind", velocity, (3,)), draft.count.get("triangles", 0)
    airy = any(p.value.any() for p in draft.parameters.values() if p.places[0].column in (LIFT.name, DRAG.name))
    if asked and not airy:
        have = "has neither lift nor drag" if count else "is not there"
        raise ValueError(f"the wind acts on cloth, which {have}: give scene.add_cloth(...) lift or drag")
    if airy:
        rows = Rows("triangles", 0, count)
        draft.parameter("wind", WIND, rows, value, unit="m/s", uniform=True, about="velocity of the air")


def _add_masses(
    draft: Draft, name: str, particles: Rows, rows: Rows, mesh: TriMesh, masses: Mapping[str, ArrayLike | None]
) -> None:
    """The mass as a total, a density or one of each vertex: what was given is in force, the others can replace it."""
    (given,) = (what for what, value in masses.items() if value is not None)
    value = masses[given]
    assert value is not None
    sizes = {"mass": (), "density": (rows.count,), "vertex_mass": (particles.count,)}
    checked = filled(f"{name}.{given}", value, sizes[given], positive=True)
    if given == "vertex_mass":
        each = np.broadcast_to(checked, sizes[given])
    else:
        each = vertex_masses(mesh, checked / mesh.areas.sum() if given == "mass" else checked)
    same = {"mass": each.sum(), "density": each.sum() / mesh.areas.sum(), "vertex_mass": each, given: checked}
    for what in (given, *(other for other in masses if other != given)):
        column, where, unit, about = {
            "mass": (TOTAL, rows, "kg", "mass of the whole cloth, shared by area"),
            "density": (DENSITY, rows, "kg/m²", "mass per area of each triangle"),
            "vertex_mass": (GIVEN_MASS, particles, "kg", "mass of each particle"),
        }[what]
        draft.parameter(f"{name}.{what}", column, where, same[what], unit=unit, bounds=(1e-6, None),
                        uniform=what == "mass", choice=(f"{name}: mass", what), about=about)  # fmt: skip


def _require_used(mesh: TriMesh) -> None:
    unused = np.bincount(mesh.faces.ravel(), minlength=len(mesh.vertices)) == 0
    if unused.any():
        k, many = int(np.argmax(unused)), f"{int(unused.sum())} of {len(unused)} are like that"
        raise MeshError(
            f"vertex {k} belongs to no face: it would have no mass ({many})",
            advice="mesh.compact() leaves them out",
            element=("vertex", k),
        )
