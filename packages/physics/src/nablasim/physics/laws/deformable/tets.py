"""Soft solids: constant-strain tetrahedra of the stable neo-Hookean material of Smith et al. (2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import filled
from nablasim.physics.geometry import NeoHookean, TetMesh, vertex_masses
from nablasim.physics.laws.deformable import tets_kernels as kernels
from nablasim.physics.laws.deformable.particles import GIVEN_MASS, MASS, F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

CORNERS = Index("tets.corners", to="particles", width=4)
REST_POINTS = Column("rest.points", kc.float3)
"""Where the particles of solids lie when nothing is deformed: a table of its own, one row per particle of a solid."""
REST_CORNERS = Index("tets.rest_corners", to="rest", width=4)
DENSITY = Column("tets.density", optional=True)
GIVEN_MU, GIVEN_LAM = Column("tets.given_mu"), Column("tets.given_lam")
YOUNG, POISSON = Column("tets.young", optional=True), Column("tets.poisson")
DAMPING = Column("tets.damping", optional=True)
ACTIVATION = Column("tets.activation", per_step=True, optional=True)
INVERSE = Column("tets.inverse", kc.mat33, role="derived")
VOLUME = Column("tets.volume", role="derived")
MU, LAM = Column("tets.mu", role="derived"), Column("tets.lam", role="derived")
SOLID = (CORNERS, INVERSE, VOLUME, MU, LAM)


class Tets(System):
    """Elasticity, activation and strain-rate damping of tetrahedra."""

    name = "tets"
    columns = (REST_POINTS, DENSITY, GIVEN_MU, GIVEN_LAM, YOUNG, POISSON, DAMPING, ACTIVATION, INVERSE, VOLUME, MU, LAM)
    indices = (CORNERS, REST_CORNERS)

    def setup(self, a: Arrays) -> None:
        n = a.rows("tets")
        kc.launch(kernels.rest_tets, n, [a[REST_POINTS], a[REST_CORNERS]], [a[INVERSE], a[VOLUME]], parts=a.parts)
        if a.has(DENSITY):
            kc.launch(kernels.tet_masses, n, [a[VOLUME], a[DENSITY], a[CORNERS]], [a[MASS]], parts=a.parts)
        moduli = a.bundle(kernels.Moduli, GIVEN_MU, GIVEN_LAM, YOUNG, POISSON)
        kc.launch(kernels.convert_moduli, n, [moduli], [a[MU], a[LAM]])

    def forces(self, s: Step) -> None:
        solid = s.bundle(kernels.Tets, *SOLID, ACTIVATION, DAMPING)
        kc.launch(kernels.tet_forces, s.rows("tets"), [now(s), solid], [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e, solid = s.scratch("tets.energy", s.rows("tets")), s.bundle(kernels.Tets, *SOLID, ACTIVATION)
        kc.launch(kernels.tet_energies, s.rows("tets"), [s[X], solid], [e])
        return e

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        solid = a.bundle(kernels.Tets, *SOLID, DAMPING)
        kc.launch(kernels.tet_stiffness, a.rows("tets"), [solid], [bounds.elastic], parts=a.parts)


def add_tets(
    draft: Draft,
    name: str,
    particles: Rows,
    mesh: TetMesh,
    *,
    material: NeoHookean,
    density: ArrayLike | None,
    damping: ArrayLike,
    activation: ArrayLike | bool,
) -> None:
    """The tetrahedra of one object; `mesh` is its shape at rest."""
    points, tets = mesh.vertices, mesh.tets
    n = len(tets)
    rows, rest = draft.rows("tets", n), draft.rows("rest", len(points))
    draft.thing(name, "soft", rows, rest)
    draft.surface(name, mesh.surface.faces)
    draft.index(CORNERS.name, tets + particles.start)
    draft.index(REST_CORNERS.name, tets + rest.start)
    draft.parameter(f"{name}.rest", REST_POINTS, rest, points, unit="m", about="vertices of the undeformed mesh")
    own = (f"{name}: mass", "density")
    if density is not None:
        filled(f"{name}.density", density, (n,), positive=True)
        draft.parameter(f"{name}.density", DENSITY, rows, density, unit="kg/m³", bounds=(1e-3, None),
                        choice=own)  # fmt: skip
        lumped = vertex_masses(mesh, density)
        draft.parameter(f"{name}.mass", GIVEN_MASS, particles, lumped, unit="kg", bounds=(1e-6, None),
                        choice=(own[0], "mass"), about="mass of each particle")  # fmt: skip
    for quantity, column, value, option in (
        ("mu", GIVEN_MU, material.mu, "mu, lam"), ("lam", GIVEN_LAM, material.lam, "mu, lam"),
        ("E", YOUNG, material.E, "E, nu"), ("nu", POISSON, material.nu, "E, nu"),
    ):  # fmt: skip
        unit, bounds = ("1", (0.0, 0.49)) if quantity == "nu" else ("Pa", (1.0, None))
        draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=bounds,
                        choice=(f"{name}: moduli", option))  # fmt: skip
    filled(f"{name}.damping", damping, (n,), positive=True, allow_zero=True)
    draft.parameter(f"{name}.damping", DAMPING, rows, damping, unit="Pa s", bounds=(0.0, None))
    if activation is not False:
        start = 0.0 if activation is True else activation
        draft.parameter(f"{name}.activation", ACTIVATION, rows, start, unit="1", bounds=(-1.0, 1.0),
                        about="lowers the rest constant of the volume term: positive contracts")  # fmt: skip
