"""Adding robots to a scene: their rows in the tables of `robots.py`, and the names of their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import shaped
from nablasim.physics.errors import RobotError
from nablasim.physics.geometry import Joint, Placed, Robot, Shape, TriMesh, rotation_matrix, solid
from nablasim.physics.laws.articulated import tables
from nablasim.physics.laws.articulated.bundles import COORDS, DOFS
from nablasim.physics.laws.articulated.link_planes import add_points
from nablasim.physics.laws.articulated.nodes import (
    Node,
    couplings,
    dof_parents,
    joined_branches,
    mass_matrix,
    nodes_of,
)
from nablasim.physics.laws.articulated.robots_kernels import NONE
from nablasim.physics.model import Column, Draft, Rows

STOP_RATE = 500.0
"""How fast stops of joints are (1/s): springs of this angular frequency, critically damped."""
FAR = 1e20
"""A limit where there is none."""


def add_robot(
    draft: Draft,
    name: str,
    robot: Robot,
    *,
    pos: ArrayLike,
    rot: ArrayLike,
    q: ArrayLike | None,
    qd: ArrayLike | None,
    gravity: ArrayLike,
) -> None:
    """A robot whose base stands at (pos, rot)."""
    nodes = nodes_of(robot.check())
    q0 = _start(name, robot, nodes, q)
    names = _Names(name, robot)
    rows = {table: draft.rows(table, count) for table, count in (
        ("robots", 1), ("nodes", len(nodes)), ("coords", robot.coords), ("dofs", robot.dofs))}  # fmt: skip
    links = {node.link.name: k for k, node in enumerate(nodes) if node.link is not None}
    draft.thing(name, "robot", *rows.values(), links=links)
    _add_skin(draft, name, robot)
    _add_base(draft, name, rows, pos, rot, gravity)
    draft.parameter(f"{name}.q", tables.Q, rows["coords"], q0, unit="rad or m",
                    about="initial coordinates of the joints, in their order")  # fmt: skip
    v0 = np.zeros(robot.dofs) if qd is None else shaped(f"{name}: qd", qd, (robot.dofs,))
    draft.parameter(f"{name}.qd", tables.QD, rows["dofs"], v0, unit="rad/s or m/s", about="initial rates of the joints")
    draft.parameter(f"{name}.torque", tables.MORE_TORQUE, rows["dofs"], np.zeros(robot.dofs), unit="N m or N",
                    about="in all degrees of freedom, added before the motors' clip")  # fmt: skip
    _add_tree(draft, robot, rows, nodes)
    for node, row in zip(nodes, rows["nodes"]):
        _add_node(draft, names, node, Rows("nodes", row, 1))
    M = mass_matrix(nodes, q0)
    _add_joints(draft, names, robot, rows, nodes, M)
    add_points(draft, robot, nodes, q0, M, first=rows["nodes"].start, number=rows["robots"].start)


def _start(name: str, robot: Robot, nodes: list[Node], q: ArrayLike | None) -> NDArray[np.float64]:
    q0 = robot.start() if q is None else shaped(f"{name}: q", q, (robot.coords,))
    for node in nodes:
        if COORDS[node.kind] > 3 and not np.linalg.norm(q0[node.coord : node.coord + COORDS[node.kind]][-4:]) > 0:
            raise RobotError(f"{name}: the quaternion (x, y, z, w) of joint {node.joint.name} in q is zero")
    return q0


def _add_skin(draft: Draft, name: str, robot: Robot) -> None:
    """What is drawn: the shapes of all links."""
    points, faces, of, first = [], [], [], 0
    drawn = [link for link in robot.links if robot.link(link).looks]
    for k, link in enumerate(drawn):
        for part in robot.link(link).looks:
            mesh = _seen(f"{name}.{link}", part)
            points.append(part.pos + np.asarray(mesh.vertices) @ rotation_matrix(part.rot).T)
            faces.append(np.asarray(mesh.faces) + first)
            of.append(np.full(len(mesh.vertices), k))
            first += len(mesh.vertices)
    if drawn:
        draft.surface(name, np.concatenate(faces), np.concatenate(points), links=tuple(drawn), link=np.concatenate(of))


def _seen(name: str, part: Placed) -> TriMesh:
    if isinstance(part.shape, TriMesh):  # It may be open: nothing touches it.
        return part.shape
    mesh = part.shape.mesh() if isinstance(part.shape, Shape) else solid(name, part.shape, 1.0).skin
    assert mesh is not None, "a link has no signed distances"
    return mesh


class _Names:
    """The names of parameters: "arm.thigh.mass", or "arm.link.thigh.mass" where a joint is called so, too."""

    def __init__(self, name: str, robot: Robot):
        self.name = name
        self.clash = set(robot.links) & set(robot.joints)
        # What the robot itself has under these names.
        self.clash |= {"q", "qd", "torque", "x", "rot", "link", "joint"} & {*robot.links, *robot.joints}

    def link(self, link: str, quantity: str) -> str:
        return f"{self.name}.link.{link}.{quantity}" if link in self.clash else f"{self.name}.{link}.{quantity}"

    def joint(self, joint: str, quantity: str) -> str:
        return f"{self.name}.joint.{joint}.{quantity}" if joint in self.clash else f"{self.name}.{joint}.{quantity}"


def _add_base(draft: Draft, name: str, rows: dict[str, Rows], pos: ArrayLike, rot: ArrayLike, g: ArrayLike) -> None:
    turn = shaped(f"{name}: rot", rot, (4,))
    if not np.linalg.norm(turn) > 0:
        raise RobotError(f"{name}: rot is a quaternion (x, y, z, w), and not zero; ph.quat(axis, angle) makes one")
    base = rows["robots"]
    draft.parameter(f"{name}.pos", tables.BASE_X, base, shaped(f"{name}: pos", pos, (3,)), unit="m", uniform=True,
                    about="where the base stands")  # fmt: skip
    draft.parameter(f"{name}.rot", tables.BASE_ROT, base, turn / np.linalg.norm(turn), unit="1", uniform=True,
                    about="how the base is turned, a quaternion (x, y, z, w) of any length")  # fmt: skip
    draft.parameter("gravity", tables.GRAVITY, base, g, unit="m/s²", uniform=True, about="acceleration of what falls")


def _add_tree(draft: Draft, robot: Robot, rows: dict[str, Rows], nodes: list[Node]) -> None:
    first, coord, dof = (rows[table].start for table in ("nodes", "coords", "dofs"))
    own, leads = dof_parents(nodes), np.arange(robot.dofs)
    starts = {node.joint.name: node.dof for node in reversed(nodes)}
    for follower, mimic in robot.mimics.items():
        leads[starts[follower]] = starts[mimic.leader]
    above = joined_branches(own, [(k, int(j)) for k, j in enumerate(leads) if j != k])
    order, depth, reach = couplings(above, own)
    pairs = draft.rows("couplings", int(depth.sum()))
    coord_of = {n.dof: n.coord for n in nodes}
    numbers = {
        tables.FIRST: [first], tables.COUNT: [len(nodes)], tables.DOF_FIRST: [dof], tables.DOF_COUNT: [len(above)],
        tables.KIND: [n.kind for n in nodes], tables.PARENT: [first + n.parent for n in nodes],
        tables.COORD: [coord + n.coord for n in nodes], tables.DOF: [dof + n.dof for n in nodes],
        tables.DOF_COORD: [coord + coord_of.get(k, 0) for k in range(len(above))],
        tables.ABOVE: dof + np.where(above < 0, np.arange(len(above)), above), tables.DEPTH: depth,
        tables.ROW: pairs.start + np.cumsum(depth) - depth, tables.ORDER: [dof + k for k in order],
        tables.LEADS: dof + leads, tables.REACH: reach,
    }  # fmt: skip
    for index, entries in numbers.items():
        draft.index(index.name, np.asarray(entries, np.int64))


def _add_node(draft: Draft, names: _Names, node: Node, row: Rows) -> None:
    joint, link = node.joint, node.link
    moves = node.first and joint.kind not in ("spherical", "free")
    for quantity, column, value, unit, told in (
        ("pos", tables.POS, node.pos, "m", node.first),
        ("rot", tables.ROT, node.rot, "1", node.first),
        ("axis", tables.AXIS, node.axis, "1", moves and joint.kind in ("revolute", "continuous", "prismatic")),
        ("anchor", tables.ANCHOR, node.anchor, "m", bool(node.anchor.any())),
    ):
        if told:
            draft.parameter(names.joint(joint.name, quantity), column, row, value, unit=unit, uniform=True)
        else:
            draft.constant(column, row, value)
    draft.constant(tables.UNIT, row, np.zeros((3, 3)))
    draft.constant(tables.GIVEN_INERTIA, row, NONE)
    if link is None:
        return
    if link.mass and link.of_shape:
        draft.constant(tables.UNIT, row, link.inertia / link.mass)
    draft.parameter(names.link(link.name, "mass"), tables.MASS, row, link.mass, unit="kg", bounds=(1e-6, None),
                    uniform=True)  # fmt: skip
    draft.parameter(names.link(link.name, "com"), tables.COM, row, link.com, unit="m", uniform=True,
                    about="centre of mass in the link's frame")  # fmt: skip
    draft.parameter(names.link(link.name, "inertia"), tables.GIVEN_INERTIA, row, link.inertia, unit="kg m²",
                    uniform=True, choice=(names.link(link.name, "x") + ": inertia", "inertia"), dormant=link.of_shape,
                    about="about the centre of mass, in the link's axes, instead of that of its shapes")  # fmt: skip


def _add_joints(draft: Draft, names: _Names, robot: Robot, rows: dict[str, Rows], nodes: list[Node],
                M: NDArray[np.float64]) -> None:  # fmt: skip
    heavy, apparent = _weights(names.name, robot, nodes, M)
    dof, coord = rows["dofs"].start, rows["coords"].start
    draft.constant(tables.APPARENT, rows["dofs"], apparent)
    draft.constant(tables.STOP_KE, rows["dofs"], heavy * STOP_RATE**2)
    draft.constant(tables.STOP_KD, rows["dofs"], heavy * 2 * STOP_RATE)
    for name in robot.joints:
        joint = robot.joint(name)
        mine = Rows("dofs", dof, joint.dofs)
        draft.constant(tables.REF, Rows("coords", coord, joint.coords), joint.ref)
        if joint.dofs:
            _add_joint(draft, names, joint, robot, mine)
        dof, coord = dof + joint.dofs, coord + joint.coords


def _add_joint(draft: Draft, names: _Names, joint: Joint, robot: Robot, rows: Rows) -> None:
    def put(quantity: str, column: Column, value: Any, unit: str, told: bool, **more: Any) -> None:
        if told:
            draft.parameter(names.joint(joint.name, quantity), column, rows, value, unit=unit, uniform=True, **more)
        else:
            draft.constant(column, rows, value)

    scalar = joint.kind not in ("spherical", "free")
    put("damping", tables.DAMPING, joint.damping, "N m s or N s/m", True, bounds=(0.0, None))
    put("armature", tables.ARMATURE, joint.armature, "kg m² or kg", True, bounds=(0.0, None))
    put("friction", tables.FRICTION, joint.friction, "N m or N", scalar, bounds=(0.0, None))
    put("stiffness", tables.STIFFNESS, joint.stiffness, "N m or N/m", scalar, bounds=(0.0, None))
    put("rest", tables.REST, joint.rest, "rad or m", scalar)
    limits = [float(np.clip(end, -FAR, FAR)) for end in joint.limits or (-FAR, FAR)]
    put("limits", tables.LIMITS, limits, "rad or m", joint.limits is not None)
    motor = robot.motors.get(joint.name)
    has = motor is not None
    put("kp", tables.KP, motor.kp if motor else 0.0, "N m or N/m", has, bounds=(0.0, None))
    put("kd", tables.KD, motor.kd if motor else 0.0, "N m s or N s/m", has, bounds=(0.0, None))
    put("limit", tables.LIMIT, min(motor.limit, FAR) if motor else FAR, "N m or N",
        has and math.isfinite(motor.limit if motor else 0.0), bounds=(0.0, None))  # fmt: skip
    mimic = robot.mimics.get(joint.name)
    put("ratio", tables.RATIO, mimic.ratio if mimic else 0.0, "1 or m or 1/m", mimic is not None)
    put("offset", tables.OFFSET, mimic.offset if mimic else 0.0, "rad or m", mimic is not None)
    put("target", tables.TARGET, motor.target if motor else 0.0, "rad or m", has)
    draft.parameter(names.joint(joint.name, "torque"), tables.TORQUE, rows, np.zeros(rows.count), unit="N m or N",
                    about="added before the motor's clip")  # fmt: skip


def _weights(name: str, robot: Robot, nodes: list[Node], M: NDArray[np.float64]
             ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """How heavy each degree of freedom is with all others held, and with all others free."""
    if not len(M):
        return np.zeros(0), np.zeros(0)
    heavy = np.diag(M).copy()
    scale = np.sqrt(np.outer(heavy, heavy))
    joint_of = [n.joint.name for n in sorted(nodes, key=lambda n: n.dof) for _ in range(DOFS[n.kind])]
    light = np.flatnonzero(~(heavy > 0))
    if len(light):
        raise RobotError(f"{name}: joint {joint_of[light[0]]} moves nothing that has a mass",
                         advice="Give the links behind it a mass, or the joint an armature")  # fmt: skip
    values, vectors = np.linalg.eigh(M / scale)
    if not values[0] > 1e-12:
        worst = int(np.argmax(np.abs(vectors[:, 0])))
        raise RobotError(
            f"{name}: joint {joint_of[worst]} can move without moving a mass: the mass matrix is singular",
            advice="Give the links behind it a mass and an inertia, or the joint an armature",
        )
    return heavy, 1.0 / np.diag(np.linalg.inv(M))
