"""Compliant contact of the links of robots with half-spaces. A row is a pair of a point of a link and a plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import STICK as STUCK
from nablasim.physics.geometry import Robot, Shape, rotation_matrix, solid
from nablasim.physics.laws.articulated import link_planes_kernels as kernels
from nablasim.physics.laws.articulated.bundles import Contacts, Motion, Poses
from nablasim.physics.laws.articulated.link_bodies_kernels import twists
from nablasim.physics.laws.articulated.nodes import Node, jacobians, placed
from nablasim.physics.laws.articulated.robots_kernels import poses
from nablasim.physics.laws.articulated.tables import QD, Q, memory, rig, tree
from nablasim.physics.laws.contact.planes import USUAL
from nablasim.physics.laws.contact.planes_kernels import unit_normals
from nablasim.physics.laws.contact.reports import Touches, blank, touches
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step

NODE, ROBOT = Index("link_points.node", to="nodes"), Index("link_points.robot", to="robots")
LOCAL, BALL, LIGHT = Column("link_points.local", kc.float3), Column("link_points.ball"), Column("link_points.light")
POINT, LAW = Index("link_planes.point", to="link_points"), Index("link_planes.law")
KE, KD, KF, MU, OFFSET, TOUCH, SMOOTHING = (
    Column(f"link_planes.{q}") for q in ("ke", "kd", "kf", "mu", "offset", "touch", "smoothing"))  # fmt: skip
GIVEN_NORMAL = Column("link_planes.given_normal", kc.float3)
NORMAL = Column("link_planes.normal", kc.float3, role="derived")


GRIP = Column("link_planes.grip", role="derived")
TOUCH_FIRST, TOUCH_COUNT = Index("robots.touch_first", to="link_planes", begins=True), Index("robots.touch_count")
ORDER = Index("link_planes.order", to="link_planes")
STICK = {"float64": 1e6, "float32": 1e3}
"""How much faster than a step friction brakes what it can hold."""


class LinkPlanes(System):
    """Where robots may touch planes: `Robots` solves for what that does."""

    name = "link_planes"
    columns = (LOCAL, BALL, LIGHT, KE, KD, KF, MU, OFFSET, TOUCH, SMOOTHING, GIVEN_NORMAL, NORMAL, GRIP)
    indices = (NODE, ROBOT, POINT, LAW, ORDER, TOUCH_FIRST, TOUCH_COUNT)
    touches = True

    def setup(self, a: Arrays) -> None:
        kc.launch(unit_normals, a.rows(self.name), [a[GIVEN_NORMAL]], [a[NORMAL]])
        given = [a[POINT], a[LIGHT], STICK[a.real]]
        kc.launch(kernels.grips, a.rows(self.name), given, [a[GRIP]], parts=a.parts)

    def contacts(self, s: Step) -> list[Touches]:
        n, count, p, m = s.rows(self.name), s.rows("robots"), memory(s, Poses), memory(s, Motion)
        kc.launch(poses, count, [tree(s), rig(s), s[Q]], [p])
        kc.launch(twists, count, [tree(s), p, s[QD]], [m])
        report = blank(s, n)
        kc.launch(kernels.report_links, n, [p, m, *bundles(s)], [report])
        return [touches(report, ("nodes", s.numpy(NODE)[s.numpy(POINT)]), (self.name, np.arange(n)))]


def touching(a: Arrays) -> Any:
    """The planes that links may touch, in kernels; None if there are none."""
    if not a.rows("link_planes"):
        return None
    return a.bundle(Contacts, ORDER, POINT, NODE, LOCAL, BALL, LIGHT, NORMAL, OFFSET, KE, KD, MU, LAW, TOUCH, SMOOTHING,
                    GRIP, first=TOUCH_FIRST, count=TOUCH_COUNT)  # fmt: skip


def bundles(a: Arrays) -> list[Any]:
    """Points of links, and their pairs with planes, in kernels."""
    return [a.bundle(kernels.Points, NODE, ROBOT, LOCAL, BALL, LIGHT),
            a.bundle(kernels.Planes, POINT, NORMAL, OFFSET, KE, KD, KF, MU, LAW, TOUCH, SMOOTHING)]  # fmt: skip


# -- adding
def add_points(draft: Draft, robot: Robot, nodes: list[Node], q: NDArray[np.float64], M: NDArray[np.float64], *,
               first: int, number: int) -> None:  # fmt: skip
    """The points by which a robot touches; `first` is the row of its first node, `number` that of the robot."""
    places, J = placed(nodes, q), jacobians(nodes, q)
    inverse: NDArray[np.float64] = np.asarray(np.linalg.inv(M) if len(M) else M, np.float64)
    for i, node in enumerate(nodes):
        local, ball = _points(node)
        if not len(local) or not len(M):
            continue
        x, R, _ = places[i]
        rows = draft.rows("link_points", len(local))
        draft.index(NODE.name, np.full(len(local), first + i))
        draft.index(ROBOT.name, np.full(len(local), number))
        draft.constant(LOCAL, rows, local)
        draft.constant(BALL, rows, ball)
        # About half of the points of a link touch at a time, and share what it weighs there.
        crowd = max(1.0, 0.5 * len(local))
        light = [_lightness(J[i], inverse, x + R @ point, radius) for point, radius in zip(local, ball)]
        draft.constant(LIGHT, rows, crowd * np.array(light))


def _lightness(J: NDArray[np.float64], inverse: NDArray[np.float64], at: NDArray[np.float64], ball: float) -> float:
    """The inverse mass that contact feels at a point, or, where its middle stays where it is, at the ball about it:
    that of a wheel. Zero where joints move neither."""
    move = J[3:] + np.cross(J[:3].T, at).T
    light, turn = (float(np.linalg.eigvalsh(j @ inverse @ j.T)[-1]) for j in (move, J[:3]))
    rounding = 1e-12 * float(np.abs(inverse).max())
    light = light if light > rounding else ball**2 * turn
    return light if light > rounding else 0.0


def _points(node: Node) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points of a link's shapes in its frame, and the radii of balls about them."""
    local, ball = [np.zeros((0, 3))], [np.zeros(0)]
    for part in node.link.shapes if node.link is not None else ():
        made = solid(node.joint.child, part.shape, 1.0)
        some = np.arange(made.features.planes)
        some = some[made.features.round[some, 1] == 0]  # Without rims: their points stand for them.
        radius = float(part.shape.size[0]) if isinstance(part.shape, Shape) else 0.0
        local.append(part.pos + made.points[some] @ rotation_matrix(part.rot).T)
        ball.append(made.features.round[some, 0] * radius)
    return np.concatenate(local), np.concatenate(ball)


def add_link_planes(draft: Draft, name: str, *, normal: ArrayLike, offset: float, ke: float | None,
                    kd: float | None, kf: float | None, mu: float, damping: str, touch: float, smoothing: float,
                    hard: bool, **_: object) -> None:  # fmt: skip
    """Pairs of one plane with all points of robots. The plane itself is there already, and so are its parameters."""
    count = draft.count.get("link_points", 0)
    if not count:
        return
    if hard:
        raise ValueError(f"{name}: robots touch planes by springs and dampers only, without hard=True")
    rows = draft.rows("link_planes", count)
    draft.thing(name, "plane", rows)
    draft.index(POINT.name, np.arange(count))
    draft.index(LAW.name, np.full(count, ("linear", "smooth").index(damping)))
    for quantity, column, value, unit in (
        ("ke", KE, ke, "N/m"), ("kd", KD, kd, "N s/m"), ("kf", KF, kf, "N s/m"), ("mu", MU, mu, "1"),
        ("normal", GIVEN_NORMAL, normal, "1"), ("offset", OFFSET, offset, "m"),
    ):  # fmt: skip
        value = USUAL[quantity] if value is None else value
        draft.constant(column, rows, value)
        if quantity == "kf" and value == STUCK:
            continue
        draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, uniform=True)
    draft.constant(TOUCH, rows, touch)
    draft.constant(SMOOTHING, rows, smoothing)


def sort_link_planes(draft: Draft) -> None:
    """The rows of each robot, one after the other: called when all planes are there."""
    robots = draft.count.get("robots", 0)
    of = draft.whole(ROBOT)[draft.whole(POINT)]
    count = np.bincount(of, minlength=robots)
    draft.index(ORDER.name, np.argsort(of, kind="stable"))
    draft.index(TOUCH_FIRST.name, np.cumsum(count) - count)
    draft.index(TOUCH_COUNT.name, count)
