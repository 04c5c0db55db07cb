"""Rigid bodies, and obstacles that nothing moves."""

from __future__ import annotations

from typing import TypeVar

from numpy.typing import ArrayLike

from nablasim.physics.checks import nearest, rubs
from nablasim.physics.geometry import Geometry, solid
from nablasim.physics.laws import Four, Law, add_body, add_magnet, add_obstacle
from nablasim.physics.scene.drafting import Drafting

S = TypeVar("S", bound="Bodies")


class Bodies(Drafting):
    """Adders of bodies."""

    def __init__(self, gravity: ArrayLike) -> None:
        super().__init__(gravity)
        self._laws: dict[str, Law] = {}
        """How contact with an obstacle is damped and smoothed."""

    def add_rigid(
        self: S,
        name: str,
        shape: Geometry,
        *,
        density: float | None = None,
        mass: float | None = None,
        inertia: ArrayLike | None = None,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        vel: ArrayLike = (0.0, 0.0, 0.0),
        omega: ArrayLike = (0.0, 0.0, 0.0),
        scale: ArrayLike = 1.0,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float | None = None,
        friction: str = "relaxed",
        hard: bool = False,
    ) -> S:
        """A rigid body: a shape, a closed surface, or its vertices and faces, solid and of uniform density.

        density (kg/m³) or mass (kg); the centre of mass and the inertia follow from the shape.
        inertia: about the centre of mass, in the body's frame (kg m²), (3, 3) or its diagonal, if it is another one.
        pos, rot: where the origin of the shape's frame is (m), and how the frame is turned, (x, y, z, w).
        vel, omega: the velocity of that origin (m/s) and the angular velocity (rad/s), in world axes.
        scale: makes the shape larger, by one number or one along each axis.
        ke, kd, kf, mu, friction: what the body brings to its contacts, as of `add_plane`. By default the things that it
            touches decide.
        hard: contact with other bodies has neither spring nor damper, whatever they are.
        """
        self._new(name)
        kf = rubs(name, friction, kf)
        with self._whole():
            add_body(self._draft, name, solid(name, shape, scale), density=density, mass=mass, inertia=inertia, pos=pos,
                     rot=rot, vel=vel, omega=omega, contact=Four(ke, kd, kf, mu), gravity=self._gravity)  # fmt: skip
        if hard:
            self._laws[name] = Law(hard=True)
        return self

    def add_obstacle(
        self: S,
        name: str,
        shape: Geometry,
        *,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        vel: ArrayLike = (0.0, 0.0, 0.0),
        omega: ArrayLike = (0.0, 0.0, 0.0),
        scale: ArrayLike = 1.0,
        ke: float = 1e4,
        kd: float = 1e2,
        kf: float | None = None,
        mu: float = 0.5,
        friction: str = "relaxed",
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
        hard: bool = False,
    ) -> S:
        """Something that things bump into, and that nothing moves: a shape, a closed mesh, a `ph.SignedDistance`, or
        a `ph.Heightfield`.

        vel, omega: it moves with these velocities all the time, as a conveyor or a turning drum does.
        The rest is as of `add_rigid` and `add_plane`.
        """
        self._new(name)
        law = Law(damping, touch, smoothing, hard).check(name)
        kf = rubs(name, friction, kf)
        kf = 1e2 if kf is None else kf
        with self._whole():
            add_obstacle(self._draft, name, solid(name, shape, scale), pos=pos, rot=rot, vel=vel, omega=omega,
                         contact=Four(ke, kd, kf, mu))  # fmt: skip
        self._laws[name] = law
        return self

    def add_magnet(self: S, name: str, moment: ArrayLike, *, softening: float) -> S:
        """Make a body, or an obstacle, a magnet: every two magnets of a scene push and turn each other.

        moment: the dipole (A m²), in the body's frame; it sits at the centre of mass. It is the parameter
            "name.moment", and can vary in time by `control`, as that of a coil does.
        softening: about the radius of the magnet (m), "name.softening". Far outside of it, it is a point dipole.
        """
        body = self._body(name)
        if body is None:
            known = [thing.name for thing in self._draft.things.values() if "bodies" in thing.rows]
            raise KeyError(f"magnet: there is no rigid body {name!r}: {nearest(name, known)}")
        with self._whole():
            add_magnet(self._draft, name, body, moment, softening)
        return self
