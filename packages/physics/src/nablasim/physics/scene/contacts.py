"""What objects meet: planes, each other, and themselves."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nablasim.physics.checks import nearest, rubs
from nablasim.physics.geometry import TriMesh
from nablasim.physics.laws import (
    Law,
    add_contacts,
    add_edge_contact,
    add_face_hits,
    add_friction,
    add_plane,
    add_point_contact,
    add_scene,
    add_self_contact,
)
from nablasim.physics.model import Draft
from nablasim.physics.scene.bodies import Bodies

S = TypeVar("S", bound="Contacts")


class Contacts(Bodies):
    """Adders of contact."""

    def __init__(self, gravity: ArrayLike) -> None:
        super().__init__(gravity)
        self._by_mass: dict[str, float | None] = {}
        """The rate and the ratio of contacts, also of planes that were added before they were said."""
        self.set_contact()

    def set_contact(
        self: S,
        *,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float = 0.5,
        friction: str = "relaxed",
        rate: float | None = None,
        ratio: float = 0.1,
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
        hard: bool = False,
    ) -> S:
        """Contact between bodies, and between bodies and particles, where they have no numbers of their own.

        ke, kd, kf, mu, friction, damping, touch, smoothing: as of `add_plane`.
        hard: bodies have neither spring nor damper between each other: of the four numbers only mu counts.
        rate, ratio: where ke, kd or kf is not given, it is chosen by the reduced mass m of the two that touch, so that
        they swing with this rate (1/s) and part of the critical damping: m rate², 2 ratio m rate, m rate. By default
        the rate is 3000 of bodies that touch bodies and planes, "contact.body_rate", and 300 with particles. Between
        bodies the step solves for such contact, so that no rate is too large for it.
        The parameters are "contact.ke", "contact.rate" and so on: those that something depends on.
        """
        kf = rubs("contact", friction, kf)
        numbers = {"ke": ke, "kd": kd, "kf": kf, "mu": mu, "rate": rate, "ratio": ratio}
        add = partial(_add_contacts, numbers=numbers, law=Law(damping, touch, smoothing, hard), laws=self._laws)
        add(Draft())  # Wrong values are refused here, not when it is built.
        self._late["contact"] = add
        self._by_mass.update(rate=rate, ratio=ratio)
        return self

    def add_ground(
        self: S,
        name: str = "ground",
        *,
        height: float = 0.0,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float = 0.5,
        friction: str = "relaxed",
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
        hard: bool = False,
    ) -> S:
        """Ground that pushes things up: the half-space y < height. See `add_plane`."""
        return self.add_plane(name, normal=(0.0, 1.0, 0.0), offset=height, ke=ke, kd=kd, kf=kf, mu=mu,
                              friction=friction, damping=damping, touch=touch, smoothing=smoothing,
                              hard=hard)  # fmt: skip

    def add_plane(
        self: S,
        name: str,
        *,
        normal: ArrayLike,
        offset: float = 0.0,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float = 0.5,
        friction: str = "relaxed",
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
        hard: bool = False,
    ) -> S:
        """A half-space normal·x < offset that pushes things out, and rubs.

        ke, kd: stiffness (N/m) and damping (N s/m) of the contact of one particle, or of one point of a body.
        damping: "smooth", which grows with the penetration and is kd beyond the length `touch` (m), or "linear", kd
        while approaching.
        kf, mu: friction is min(mu · normal force, kf · slip velocity).
        friction: "relaxed", the law above, which creeps where it holds; or "stick", which has no kf: what it can hold
        does not slip at all. Of two things, one that sticks decides.
        Without ke, kd or kf, bodies that have none of their own have them by their mass and by the rate and the ratio
        of `set_contact`, as among each other; particles and links of robots have 1e4, 1e2 and 1e2.
        smoothing: a length (m) over which kinks are rounded, for methods that need a continuous slope; 0 is exact.
        hard: nothing is inside at the end of a step, without any spring or damper; of the four numbers only mu counts.
        """
        self._new(name)
        kf = rubs(name, friction, kf)
        add = partial(add_plane, name=name, normal=normal, offset=offset, ke=ke, kd=kd, kf=kf, mu=mu, damping=damping,
                      touch=touch, smoothing=smoothing, hard=hard, by_mass=self._by_mass)  # fmt: skip
        add(Draft())  # Wrong values are refused here, not when it is built.
        self._late[name] = add
        return self

    def add_self_contact(
        self: S,
        name: str,
        *,
        thickness: float | None = None,
        ke: float = 1e2,
        kd: float = 1e-2,
        kf: float = 1e-2,
        mu: float = 0.3,
        friction: str = "relaxed",
        damping: str = "smooth",
        touch: float | None = None,
        smoothing: float = 0.0,
        edges: bool = True,
    ) -> S:
        """Let what is deformable touch itself, and others that were given to this method.

        Of cloth and soft solids, the vertices meet triangles, edges meet edges, and triangles feel the corners of
        bodies, with the numbers that vertices have there. Springs and particles are points, which meet each other, and
        triangles.

        thickness (m): distance at which two of them begin to touch; half of the shortest edge of cloth and solids,
            unless told otherwise. Between two objects it is the mean of theirs, and bodies have none. What is closer at
            rest does not touch; particles that nothing joins have no rest.
        ke, kd, kf, mu, damping, smoothing: as of `add_plane`, of one such pair; touch: thickness / 5. Points do not rub
            against points.
        friction: "relaxed"; "stick" is for bodies and planes, and refused here.
        edges: False leaves out edges against edges: several times faster, for sheets that do not meet by their edges.
        They are the parameters "name.thickness", "name.self_ke", "name.self_kd", "name.self_kf" and "name.self_mu".
        """
        if rubs(name, friction, None) is not None:
            raise ValueError(f'{name}: what is deformable touches itself by the forces that a step begins with, which '
                             f'no step can let stick: use friction="relaxed" with a larger kf')  # fmt: skip
        kinds = ("cloth", "soft", "springs", "particles")
        thing = self._draft.things.get(name)
        if thing is None or thing.kind not in kinds:
            known = [t.name for t in self._draft.things.values() if t.kind in kinds]
            raise KeyError(f"add_self_contact: there is nothing deformable named {name!r}: {nearest(name, known)}")
        if "touch_vertices" in thing.rows:
            raise ValueError(f"add_self_contact: {name!r} touches itself already")
        law: dict[str, Any] = {"thickness": thickness, "ke": ke, "kd": kd, "kf": kf, "mu": mu, "damping": damping,
                               "touch": touch, "smoothing": smoothing}  # fmt: skip
        with self._whole():
            if thing.kind in ("springs", "particles"):
                add_point_contact(self._draft, name, **law)
                self._late[f"{name}.friction"] = partial(add_friction, name=name, kf=kf, mu=mu)
                return self
            faces = self._draft.surfaces[name].faces
            outer, corners = np.unique(faces, return_inverse=True)  # The inside of a solid touches nothing.
            mesh = TriMesh(self._draft.parameters[f"{name}.rest"].value[outer], corners.reshape(faces.shape))
            vertices = thing.rows["particles"].start + outer
            made = add_self_contact(self._draft, name, vertices, mesh, **law)
            if edges:
                add_edge_contact(self._draft, name, mesh, *made)
        return self


def _add_contacts(draft: Draft, **how: Any) -> None:
    """All contacts of bodies: with each other, and with what is made of particles."""
    add_contacts(draft, **how)
    add_face_hits(draft, **how)
    if any(draft.count.get(f"{family}_pairs", 0) for family in ("shape", "mesh", "grid")):
        add_scene(draft)
