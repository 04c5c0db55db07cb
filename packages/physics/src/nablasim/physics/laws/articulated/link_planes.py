"""Compliant contact of the links of robots with half-spaces. A row is a pair of a point of a link and a plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.geometry import Robot, Shape, rotation_matrix, solid
from nablasim.physics.laws.articulated import link_planes_kernels as kernels
from nablasim.physics.laws.articulated.bundles import Motion, Poses
from nablasim.physics.laws.articulated.nodes import Node, jacobians, placed
from nablasim.physics.laws.articulated.robots_kernels import poses
from nablasim.physics.laws.articulated.tables import QD, Q, memory, rig, tree
from nablasim.physics.laws.contact.planes import USUAL
from nablasim.physics.laws.contact.planes_kernels import unit_normals
from nablasim.physics.laws.contact.reports import Touches, blank, touches
from nablasim.physics.laws.limits import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays, Step

NODE, ROBOT = Index("link_points.node", to="nodes"), Index("link_points.robot", to="robots")
LOCAL, BALL, LIGHT = Column("link_points.local", kc.float3), Column("link_points.ball"), Column("link_points.light")
POINT, LAW = Index("link_planes.point", to="link_points"), Index("link_planes.law")
KE, KD, KF, MU, OFFSET, TOUCH, SMOOTHING = (
    Column(f"link_planes.{q}") for q in ("ke", "kd", "kf", "mu", "offset", "touch", "smoothing"))  # fmt: skip
GIVEN_NORMAL = Column("link_planes.given_normal", kc.float3)
NORMAL = Column("link_planes.normal", kc.float3, role="derived")


class LinkPlanes(System):
    """Where robots may touch planes; `Robots` asks for the forces in every step."""

    name = "link_planes"
    columns = (LOCAL, BALL, LIGHT, KE, KD, KF, MU, OFFSET, TOUCH, SMOOTHING, GIVEN_NORMAL, NORMAL)
    indices = (NODE, ROBOT, POINT, LAW)
    touches = True

    def setup(self, a: Arrays) -> None:
        kc.launch(unit_normals, a.rows(self.name), [a[GIVEN_NORMAL]], [a[NORMAL]])

    def contacts(self, s: Step) -> list[Touches]:
        n, count, p, m = s.rows(self.name), s.rows("robots"), memory(s, Poses), memory(s, Motion)
        kc.launch(poses, count, [tree(s), rig(s), s[Q]], [p])
        kc.launch(kernels.twists, count, [tree(s), p, s[QD]], [m])
        report = blank(s, n)
        kc.launch(kernels.report_links, n, [p, m, *bundles(s)], [report])
        return [touches(report, ("nodes", s.numpy(NODE)[s.numpy(POINT)]), (self.name, np.arange(n)))]

    def limits(self, a: Arrays) -> list[Limit]:
        if not a.rows(self.name):
            return []
        point = a.numpy(POINT)
        k = a.numpy(KE).astype(np.float64) * a.numpy(LIGHT)[point]
        most = np.zeros(a.rows("nodes"))
        np.maximum.at(most, a.numpy(NODE)[point], step_rate(k, np.zeros_like(k), np.ones(len(k))))
        return [Limit("nodes", most, "the contact of its links (ke)", "soften the contact", safety=CONTACT_SAFETY)]


def pushes(s: Step, p: Any) -> Array:
    """What planes do in all degrees of freedom, where links are at p."""
    n, t, m = s.rows("robots"), tree(s.base), memory(s, Motion)
    kc.launch(kernels.twists, n, [t, p, s[QD]], [m], parts=s.parts)
    torque, force = (s.scratch(f"robots.{name}", s.rows("nodes"), kc.float3) for name in ("torque", "force"))
    for total in (torque, force):
        total.zero_()
    kc.launch(kernels.plane_wrenches, s.rows("link_planes"), [p, m, *bundles(s.base), s.dt], [torque, force],
              parts=s.parts)  # fmt: skip
    push = s.scratch("robots.push", s.rows("dofs"))
    kc.launch(kernels.joint_pushes, n, [t, p, torque, force, memory(s, Motion)], [push], parts=s.parts)
    return push


def bundles(a: Arrays) -> list[Any]:
    """Points of links, and their pairs with planes, in kernels."""
    return [a.bundle(kernels.Points, NODE, ROBOT, LOCAL, BALL, LIGHT),
            a.bundle(kernels.Planes, POINT, NORMAL, OFFSET, KE, KD, KF, MU, LAW, TOUCH, SMOOTHING)]  # fmt: skip


# -- adding
def add_points(draft: Draft, robot: Robot, nodes: list[Node], q: NDArray[np.float64], M: NDArray[np.float64], *,
               first: int, number: int) -> None:  # fmt: skip
    """The points by which a robot touches; `first` is the row of its first node, `number` that of the robot."""
    places, J = placed(nodes, q), jacobians(nodes, q)
    inverse = np.linalg.inv(M) if len(M) else M
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
        at = x + local @ R.T
        move = [J[i][3:] + np.cross(J[i][:3].T, point).T for point in at]
        draft.constant(LIGHT, rows, [crowd * float(np.linalg.eigvalsh(j @ inverse @ j.T)[-1]) for j in move])


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
                    hard: bool, by_mass: Mapping[str, float]) -> None:  # fmt: skip
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
        draft.parameter(f"{name}.{quantity}", column, rows, USUAL[quantity] if value is None else value, unit=unit,
                        uniform=True)  # fmt: skip
    draft.constant(TOUCH, rows, touch)
    draft.constant(SMOOTHING, rows, smoothing)
