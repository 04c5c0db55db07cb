"""Point masses: what soft solids, cloth and springs are made of. Owns positions, velocities and masses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import filled, shaped
from nablasim.physics.laws.deformable import particles_kernels as kernels
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows, owner

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step

X = Column("particles.x", kc.float3, role="state")
V = Column("particles.v", kc.float3, role="state")
F = Column("particles.f", kc.float3, role="sum")
CONTACTS = ("plane_contacts", "shape_hits", "mesh_hits", "grid_hits")
CONTACT_F = Column("particles.contact_f", kc.float3, role="sum", by=CONTACTS)
"""Forces of contacts that look at all the others first: they take dampers and friction at the end of the step."""
GIVEN_MASS = Column("particles.given_mass")
MASS = Column("particles.mass", role="derived")
WEIGHT = Column("particles.weight", role="derived")
"""1 / mass; 0 where a particle is held."""
GRAVITY = Column("particles.gravity", kc.float3)
FREE = Index("particles.free")


class Particles(System):
    """Newton's law for point masses; gravity is an acceleration."""

    name = "particles"
    columns = (X, V, F, CONTACT_F, GIVEN_MASS, MASS, WEIGHT, GRAVITY)
    indices = (FREE,)

    def setup(self, a: Arrays) -> None:
        kc.launch(kernels.copy_masses, a.rows("particles"), [a[GIVEN_MASS]], [a[MASS]])

    def finish(self, a: Arrays) -> None:
        kc.launch(kernels.invert_masses, a.rows("particles"), [a[MASS], a[FREE]], [a[WEIGHT]])

    def advance(self, s: Step) -> None:
        after = kernels.Particles(x=s.next(X), v=s.next(V))
        given = [now(s), s[F], s[CONTACT_F] if s.has(CONTACT_F) else None, s[WEIGHT], s[GRAVITY], s.dt]
        kc.launch(kernels.integrate_particles, s.rows("particles"), given, [after])

    def check(self, a: Arrays) -> None:
        mass = a.numpy(MASS)
        if not (mass > 0).all():
            row = int(np.argmin(np.where(np.isnan(mass), -np.inf, mass)))
            thing, at = owner(a.layout, "particles", row)
            raise ValueError(
                f"{thing}: particle {at} has the mass {mass[row]:g} kg; masses must be positive. Check its mass or "
                f"density; to hold a particle, use scene.fix"
            )

    def energy(self, s: Step) -> Any:
        e = s.scratch("particles.energy", s.rows("particles"))
        kc.launch(kernels.kinetic_energies, s.rows("particles"), [now(s), s[MASS], s[GRAVITY]], [e])
        return e


def now(s: Step) -> Any:
    """Where particles are, and how fast, as kernels take it."""
    return s.bundle(kernels.Particles, X, V)


def add_particles(
    draft: Draft, name: str, kind: str, x: ArrayLike, v: ArrayLike, mass: ArrayLike | None, gravity: ArrayLike
) -> Rows:
    """Rows of the particles of an object, and the object itself. Without `mass`, another system brings it."""
    x = shaped(f"{name}.x", x, (None, 3))
    rows = draft.rows("particles", len(x))
    draft.thing(name, kind, rows)
    draft.index(FREE.name, np.ones(len(x)))
    draft.parameter(f"{name}.x", X, rows, x, unit="m", about="initial positions")
    draft.parameter(f"{name}.v", V, rows, v, unit="m/s", about="initial velocities")
    if mass is not None:
        mass = filled(f"{name}.mass", mass, (len(x),), positive=True)
        draft.parameter(f"{name}.mass", GIVEN_MASS, rows, mass, unit="kg", bounds=(1e-6, None),
                        about="mass of each particle")  # fmt: skip
    draft.parameter("gravity", GRAVITY, rows, gravity, unit="m/s²", uniform=True, about="acceleration of what falls")
    return rows
