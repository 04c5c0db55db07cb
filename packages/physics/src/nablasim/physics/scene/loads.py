"""What acts on objects: forces, impulses, torques and wind."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from numpy.typing import ArrayLike

from nablasim.physics.laws import add_body_load, add_load, add_wind
from nablasim.physics.model import Draft
from nablasim.physics.scene.drafting import Drafting, Where

S = TypeVar("S", bound="Loads")


class Loads(Drafting):
    """Adders of loads."""

    def __init__(self, gravity: ArrayLike) -> None:
        super().__init__(gravity)
        self._late["wind"] = partial(add_wind, velocity=(0.0, 0.0, 0.0), asked=False)

    def add_force(
        self: S,
        name: str,
        force: ArrayLike,
        *,
        at: ArrayLike | None = None,
        where: Where | None = None,
        t: tuple[float, float] = (0.0, float("inf")),
    ) -> S:
        """A force (N) on an object from time t[0] to t[1] (s), in world axes.

        at: where it acts on a rigid body: a point of the body's frame, moving with it; by default the centre of mass.
        where: which particles of another object share it equally, as in `fix`; by default all.
        It is the parameter "name.force" ("name.force2" ... for further ones), and can vary in time by `control`.
        """
        return self._add_load(name, "force", force, at, where, start=t[0], stop=t[1])

    def add_impulse(
        self: S,
        name: str,
        impulse: ArrayLike,
        *,
        at: ArrayLike | None = None,
        where: Where | None = None,
        t: float = 0.0,
    ) -> S:
        """An impulse (N s) on an object in the step in which time t (s) lies. See `add_force`.

        It is the parameter "name.impulse" ("name.impulse2" ... for further ones).
        """
        return self._add_load(name, "impulse", impulse, at, where, start=t, stop=float("inf"))

    def add_wind(self: S, velocity: ArrayLike) -> S:
        """The velocity of the air (m/s), which pushes cloth by its lift and drag.

        It is the parameter "wind", and can vary in time by `control`. Without this the air is at rest.
        """
        add = partial(add_wind, velocity=velocity, asked=True)
        add_wind(Draft(), velocity=velocity, asked=False)
        self._late["wind"] = add
        return self

    def add_torque(self: S, name: str, torque: ArrayLike, *, t: tuple[float, float] = (0.0, float("inf"))) -> S:
        """A torque (N m) on a rigid body from time t[0] to t[1] (s), in world axes: the parameter "name.torque"."""
        return self._add_load(name, "torque", torque, None, None, start=t[0], stop=t[1])

    def _add_load(
        self: S, name: str, what: str, value: ArrayLike, at: ArrayLike | None, where: Where | None, **times: float
    ) -> S:
        count = 1
        while f"{name}.{what}{count if count > 1 else ''}" in self._draft.parameters:
            count += 1
        parameter = f"{name}.{what}{count if count > 1 else ''}"
        body = self._body(name)
        with self._whole():
            if body is not None:
                if where is not None:
                    raise ValueError(f"{parameter}: `where` chooses particles, and {name!r} is a rigid body; use `at`")
                add_body_load(self._draft, parameter, body, what, value, at=at, **times)
            elif at is not None or what == "torque":
                raise ValueError(f"{parameter}: {name!r} is not a rigid body; forces on its particles use `where`")
            else:
                chosen = self._chosen(name, where, what)
                add_load(self._draft, parameter, chosen, value, impulse=what == "impulse", **times)
        return self
