"""Robots in scenes."""

from __future__ import annotations

from typing import TypeVar

from numpy.typing import ArrayLike

from nablasim.physics.geometry import Robot
from nablasim.physics.laws import add_robot
from nablasim.physics.scene.drafting import Drafting

S = TypeVar("S", bound="Robots")


class Robots(Drafting):
    """Adders of robots."""

    def add_robot(
        self: S,
        name: str,
        robot: Robot,
        *,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
    ) -> S:
        """A robot: links and joints, made by `ph.Robot()` or `ph.load_robot(file)`.

        pos, rot: where its base, the "world" of its joints, stands in the scene.
        q, qd: coordinates and rates of its joints at the start, in the order of `robot.joints`; by default as drawn.
        """
        self._new(name)
        if not isinstance(robot, Robot):
            raise TypeError(f"{name}: a robot is a ph.Robot, not {type(robot).__name__}; ph.load_robot(file) makes one")
        with self._whole():
            add_robot(self._draft, name, robot, pos=pos, rot=rot, q=q, qd=qd, gravity=self._gravity)
        return self
