"""Robots in scenes."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nablasim.physics.geometry import Robot, rotation_matrix, turned
from nablasim.physics.laws import add_robot
from nablasim.physics.scene.bodies import Bodies

S = TypeVar("S", bound="Robots")


class Robots(Bodies):
    """Adders of robots."""

    def __init__(self, gravity: ArrayLike) -> None:
        super().__init__(gravity)
        self._robots: dict[str, tuple[Robot, bool]] = {}
        """The robots, and whether they touch themselves."""

    def add_robot(
        self: S,
        name: str,
        robot: Robot,
        *,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        self_contact: bool = True,
    ) -> S:
        """A robot: links and joints, made by `ph.Robot()` or `ph.load_robot(file)`.

        pos, rot: where its base, the "world" of its joints, stands in the scene.
        q, qd: coordinates and rates of its joints at the start, in the order of `robot.joints`; by default as drawn.
        self_contact: whether its links touch each other. Those that a joint joins never do, nor those that the robot
            excludes, nor shapes that lie in each other at the start.

        Shapes of an MJCF file that stand in its world become obstacles, "name_geom"; planes are left to the scene.
        """
        self._new(name)
        if not isinstance(robot, Robot):
            raise TypeError(f"{name}: a robot is a ph.Robot, not {type(robot).__name__}; ph.load_robot(file) makes one")
        with self._whole():
            add_robot(self._draft, name, robot, pos=pos, rot=rot, q=q, qd=qd, gravity=self._gravity)
        self._robots[name] = (robot, self_contact)
        for what, part in robot.surroundings.items():
            at = np.asarray(pos, float) + rotation_matrix(rot) @ part.pos
            self.add_obstacle(f"{name}_{what}", part.shape, pos=at, rot=turned(rot, part.rot))
        return self
