"""`Robot`: a description of links that hang on joints, built by hand or read from a file, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nablasim.physics.checks import nearest, shaped
from nablasim.physics.errors import RobotError
from nablasim.physics.geometry.robot_parts import (
    KINDS,
    SINGLE,
    WORLD,
    Floats,
    Joint,
    Link,
    Mimic,
    Motor,
    Placed,
    axis_of,
    limits_of,
    placed,
    quat_of,
    weighed,
)
from nablasim.physics.geometry.solids import Geometry


@dataclass(eq=False)
class Robot:
    """Links and joints that make a tree. `scene.add_robot` puts it into a scene."""

    name: str = "robot"
    _links: dict[str, Link] = field(default_factory=dict)
    _joints: dict[str, Joint] = field(default_factory=dict)
    _motors: dict[str, Motor] = field(default_factory=dict)
    _mimics: dict[str, Mimic] = field(default_factory=dict)
    exclusions: set[frozenset[str]] = field(default_factory=set)
    """Pairs of links that never touch each other."""
    initial: dict[str, Floats] = field(default_factory=dict)
    """Coordinates of joints at the start, where those are not as drawn."""
    surroundings: dict[str, Placed] = field(default_factory=dict)
    """Shapes that stand still around it, in the frame of its base: they become obstacles of a scene."""

    # -- what it is made of
    @property
    def links(self) -> list[str]:
        """The names of the links in the order in which joints name them as children; those that hang on none last."""
        hanging = dict.fromkeys(joint.child for joint in self._joints.values())
        return [*hanging, *(name for name in self._links if name not in hanging)]

    @property
    def joints(self) -> list[str]:
        """The names of the joints, in the order of q."""
        return list(self._joints)

    @property
    def motors(self) -> dict[str, Motor]:
        """The motors by the name of their joint."""
        return dict(self._motors)

    @property
    def mimics(self) -> dict[str, Mimic]:
        """What joints follow, by the name of the joint that does."""
        return dict(self._mimics)

    @property
    def coords(self) -> int:
        """How many numbers q has."""
        return sum(joint.coords for joint in self._joints.values())

    @property
    def dofs(self) -> int:
        """How many numbers qd has."""
        return sum(joint.dofs for joint in self._joints.values())

    def link(self, name: str) -> Link:
        if name not in self._links:
            raise RobotError(f"there is no link {name!r}: {nearest(name, self._links)}")
        return self._links[name]

    def joint(self, name: str) -> Joint:
        if name not in self._joints:
            raise RobotError(f"there is no joint {name!r}: {nearest(name, self._joints)}")
        return self._joints[name]

    def start(self) -> Floats:
        """q where every joint is where it was drawn, or inside its limits, or where the one is that it follows."""
        return np.array([number for name in self._joints for number in self._start_of(name)], np.float64)

    def _start_of(self, name: str) -> list[float]:
        joint, turn = self._joints[name], [0.0, 0.0, 0.0, 1.0]
        if name in self._mimics:
            mimic = self._mimics[name]
            return [mimic.ratio * self._start_of(mimic.leader)[0] + mimic.offset]
        if name in self.initial:
            return list(self.initial[name])
        if joint.kind in ("spherical", "free"):
            return turn if joint.kind == "spherical" else [0.0, 0.0, 0.0, *turn]
        low, high = joint.limits or (-math.inf, math.inf)
        return [min(max(joint.ref, low), high)] * joint.coords

    # -- adding
    def add_link(
        self,
        name: str,
        shape: Geometry | None = None,
        *,
        mass: float | None = None,
        density: float | None = None,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
    ) -> Robot:
        """A link: a shape at (pos, rot) in its frame with a mass (kg) or a density (kg/m³), or numbers.

        com: the centre of mass in the link's frame, by default that of the shape.
        inertia: about the centre of mass, in the link's axes (kg m²), (3, 3) or its diagonal; by default that of the
            shape, which then grows with the mass.
        """
        if not isinstance(name, str) or not name or "." in name or name == WORLD:
            raise RobotError(f'a link has a name without dots, other than "world"; got {name!r}')
        if name in self._links:
            raise RobotError(f"there is a link {name!r} already: names are given once")
        shapes = () if shape is None else (placed(f"link {name}", shape, pos, rot),)
        if mass is not None and density is not None:
            raise RobotError(f"link {name}: give either mass (kg) or density (kg/m³)")
        made = Link(name, 0.0, np.zeros(3), np.zeros((3, 3)), True, shapes)
        self._links[name] = made if shape is None and mass is None else weighed(made, mass, density, com, inertia)
        return self

    def add_shape(
        self, link: str, shape: Geometry, *, pos: ArrayLike = (0, 0, 0), rot: ArrayLike = (0, 0, 0, 1),
        bits: tuple[int, int] = (1, 1),
    ) -> Robot:  # fmt: skip
        """Another shape of a link. Where inertia is that of shapes, the mass is spread evenly over all of them.

        bits: two shapes of robots touch if one's first number and the other's second have a bit in common.
        """
        old = self.link(link)
        made = replace(old, shapes=(*old.shapes, replace(placed(f"link {link}", shape, pos, rot), bits=bits)))
        self._links[link] = weighed(made, old.mass, None, None, None) if old.of_shape and old.mass else made
        return self

    def add_visual(self, link: str, shape: Geometry, *, pos: ArrayLike = (0, 0, 0), rot: ArrayLike = (0, 0, 0, 1)
                   ) -> Robot:  # fmt: skip
        """What is drawn of a link instead of its shapes: it touches nothing and weighs nothing, and may be open."""
        old = self.link(link)
        self._links[link] = replace(old, visuals=(*old.visuals, placed(f"link {link}", shape, pos, rot)))
        return self

    def add_joint(
        self,
        name: str,
        kind: str,
        *,
        parent: str = WORLD,
        child: str,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        axis: ArrayLike | None = None,
        limits: tuple[float, float] | None = None,
        damping: float = 0.0,
        armature: float = 0.0,
        friction: float = 0.0,
        stiffness: float = 0.0,
        rest: float = 0.0,
        anchor: ArrayLike = (0.0, 0.0, 0.0),
        ref: float = 0.0,
    ) -> Robot:
        """A joint between two links, or a link and the world. Two between the same pair act one behind the other.

        kind: "fixed", "revolute", "continuous", "prismatic", "spherical", "universal", "planar" or "free".
        pos, rot: where the joint's frame is in that of the parent. At q = ref the child's frame is there, too.
        axis: in the joint's frame; two of them, (a, b), for a universal joint; across the plane for a planar one.
        limits: of q (rad or m). damping (N m s/rad or N s/m), armature (kg m² or kg), dry friction (N m or N) and a
            spring of this stiffness (N m/rad or N/m), which is at rest at q = rest.
        anchor: where the joint is in the frame of the child, if not at its origin.
        """
        joint = self._joint(name, kind, parent, child, pos, rot, axis, limits, anchor, ref)
        numbers = {"damping": damping, "armature": armature, "friction": friction, "stiffness": stiffness}
        for quantity, value in numbers.items():
            if not (math.isfinite(value) and value >= 0):
                raise RobotError(f"joint {name}: {quantity} must be finite and not negative, and is {value}")
        if (stiffness or friction) and kind in ("spherical", "free"):
            raise RobotError(f"joint {name}: a {kind} joint has no stiffness and no friction; use revolute ones")
        self._joints[name] = replace(joint, damping=float(damping), armature=float(armature), friction=float(friction),
                                     stiffness=float(stiffness), rest=float(rest))  # fmt: skip
        return self

    def _joint(self, name: str, kind: str, parent: str, child: str, pos: Any, rot: Any, axis: Any, limits: Any,
               anchor: Any, ref: float) -> Joint:  # fmt: skip
        if not isinstance(name, str) or not name or "." in name:
            raise RobotError(f"a joint has a name without dots; got {name!r}")
        if name in self._joints:
            raise RobotError(f"there is a joint {name!r} already: names are given once")
        if kind not in KINDS:
            raise RobotError(f"joint {name}: there is no kind {kind!r}: {nearest(str(kind), KINDS)}")
        for role, link in (("parent", parent), ("child", child)):
            if link not in self._links and not (link == WORLD and role == "parent"):
                reason = f"joint {name}: there is no link {link!r}, its {role}: {nearest(str(link), self._links)}"
                raise RobotError(reason, advice="Links are added before the joints that they hang on")
        if parent == child:
            raise RobotError(f"joint {name} joins link {child} to itself")
        others = [j for j in self._joints.values() if j.child == child]
        if others and others[0].parent != parent:
            raise RobotError(
                f"joint {name} closes a loop: link {child} hangs on {others[0].parent} already, by joint "
                f"{others[0].name}",
                advice="The links of a robot make a tree; closed loops are not supported",
            )
        made = Joint(name, kind, parent, child, shaped(f"joint {name}: pos", pos, (3,)), quat_of(f"joint {name}", rot),
                     axis_of(name, kind, axis), limits_of(name, kind, limits), 0.0, 0.0, 0.0, 0.0, 0.0,
                     shaped(f"joint {name}: anchor", anchor, (3,)), float(ref))  # fmt: skip
        ring = [child, *self._upwards(parent)]
        if ring.count(child) > 1:
            raise RobotError(f"joint {name} closes a loop: {' - '.join(reversed(ring))}",
                             advice="The links of a robot make a tree; closed loops are not supported")  # fmt: skip
        return made

    def _upwards(self, link: str) -> Iterator[str]:
        """A link, and those that it hangs on, up to the world."""
        above = {joint.child: joint.parent for joint in self._joints.values()}
        while link != WORLD:
            yield link
            link = above.get(link, WORLD)

    def add_motor(self, joint: str, *, kp: float = 0.0, kd: float = 0.0, limit: float = math.inf,
                  target: float = 0.0) -> Robot:  # fmt: skip
        """A motor: torque = clip(kp (target - q) - kd qd + torque, ±limit). Target and torque vary by `control`."""
        if joint in self._motors:
            raise RobotError(f"joint {joint} has a motor already")
        kind = self.joint(joint).kind
        if KINDS[kind][0] != KINDS[kind][1] or kind == "fixed":
            raise RobotError(f"joint {joint} is {kind}: motors turn revolute, prismatic, universal and planar joints")
        for quantity, value in (("kp", kp), ("kd", kd), ("limit", limit)):
            if not value >= 0 or (quantity != "limit" and math.isinf(value)):
                raise RobotError(f"motor of {joint}: {quantity} must be finite and not negative, and is {value}")
        self._motors[joint] = Motor(float(kp), float(kd), float(limit), float(target))
        return self

    def add_mimic(self, joint: str, leader: str, *, ratio: float = 1.0, offset: float = 0.0) -> Robot:
        """A joint that follows another one: q = ratio · q of the leader + offset, in every step.

        Both keep a coordinate of their own; what moves one moves the other. `forward_dynamics` and
        `inverse_dynamics` are without it.
        """
        for name in (joint, leader):
            if self.joint(name).kind not in SINGLE:
                raise RobotError(f"joint {name} is {self.joint(name).kind}: joints that follow others, and those that "
                                 f"they follow, are {', '.join(SINGLE)}")  # fmt: skip
        if joint in self._mimics:
            raise RobotError(f"joint {joint} follows {self._mimics[joint].leader} already")
        ring = [leader]
        while ring[-1] in self._mimics:
            ring.append(self._mimics[ring[-1]].leader)
        if joint in ring:
            raise RobotError(f"joint {joint} would follow itself: {' - '.join([joint, *ring])}")
        if not (math.isfinite(ratio) and math.isfinite(offset)):
            raise RobotError(f"joint {joint}: ratio and offset must be finite, and are {ratio} and {offset}")
        self._mimics[joint] = Mimic(leader, float(ratio), float(offset))
        return self

    def scale_mass(self, link: str, factor: float) -> Robot:
        """A link made heavier: its mass and its inertia by this factor."""
        old = self.link(link)
        self._links[link] = replace(old, mass=old.mass * factor, inertia=old.inertia * factor)
        return self

    def exclude(self, one: str, other: str) -> Robot:
        """Two links that never touch each other."""
        self.exclusions.add(frozenset((self.link(one).name, self.link(other).name)))
        return self

    # -- as a whole
    def check(self) -> Robot:
        """Refuse a robot that is not a tree on the world, or has links that nothing moves."""
        if not self._links:
            raise RobotError("the robot has no links: robot.add_link(...)")
        hanging = {joint.child for joint in self._joints.values()}
        loose = [name for name in self._links if name not in hanging]
        if loose:
            raise RobotError(
                f"link {loose[0]} hangs on no joint",
                advice=f"robot.add_joint(..., 'fixed' or 'free', parent='world', child={loose[0]!r}) puts it somewhere",
            )
        return self
