"""A robot as nodes, one per elementary joint, in an order in which parents come first; and what it weighs at the start.

The mass matrix that is computed here, by Jacobians, only says how heavy each degree of freedom is about: how stiff its
stops are, and how far ahead its laws look. The one of the dynamics is in `tree_kernels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import RobotError
from nablasim.physics.geometry import WORLD, Joint, Link, Robot, rotation_matrix
from nablasim.physics.laws.articulated.bundles import COORDS, DOFS, FIXED, FREE, PRISMATIC, REVOLUTE, SPHERICAL

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Node:
    """One elementary joint and the frame behind it; `parent` and starts are numbers inside of the robot."""

    kind: int
    joint: Joint
    parent: int
    coord: int
    dof: int
    pos: Floats
    rot: Floats
    axis: Floats
    anchor: Floats = field(default_factory=lambda: np.zeros(3))
    ref: float = 0.0
    link: Link | None = None
    """None between two joints of a link."""
    first: bool = True
    """Whether it is the one that stands where the joint is."""


def nodes_of(robot: Robot) -> list[Node]:
    """The nodes; those of a joint follow each other, and parents come before children."""
    coord, dof, starts = 0, 0, {}
    for name in robot.joints:
        joint = robot.joint(name)
        starts[name] = (coord, dof)
        coord, dof = coord + joint.coords, dof + joint.dofs
    left, made = list(robot.joints), list[Node]()
    last = {WORLD: -1}
    while left:
        child = next((robot.joint(n).child for n in left if robot.joint(n).parent in last), None)
        if child is None:
            raise RobotError(f"joint {left[0]} does not lead to the world",
                             advice="Join the first link to it: parent='world', 'fixed' or 'free'")  # fmt: skip
        chain = [n for n in left if robot.joint(n).child == child]
        at = last[robot.joint(chain[0]).parent]
        for name in chain:
            for node in _elementary(robot.joint(name), *starts[name]):
                node.parent = len(made) if at < 0 else at
                made.append(node)
                at = len(made) - 1
        made[-1].link = robot.link(child)
        last[child] = at
        left = [n for n in left if n not in chain]
    return made


def _elementary(joint: Joint, coord: int, dof: int) -> list[Node]:
    still, unturned = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])

    def node(kind: int, axis: Floats, k: int = 0) -> Node:
        pos, rot = (joint.pos, joint.rot) if k == 0 else (still, unturned)
        return Node(kind, joint, -1, coord + k, dof + k, pos, rot, axis, ref=joint.ref, first=k == 0)

    kinds = {"fixed": FIXED, "spherical": SPHERICAL, "free": FREE, "prismatic": PRISMATIC}
    if joint.kind == "universal":
        made = [node(REVOLUTE, joint.axis[k], k) for k in range(2)]
    elif joint.kind == "planar":
        x, y = across(joint.axis)
        made = [node(PRISMATIC, x), node(PRISMATIC, y, 1), node(REVOLUTE, joint.axis, 2)]
    else:
        made = [node(kinds.get(joint.kind, REVOLUTE), joint.axis)]
    made[-1].anchor = joint.anchor
    return made


def across(axis: Floats) -> tuple[Floats, Floats]:
    """Where x and y come to when z is turned to an axis the shortest way."""
    z = np.array([0.0, 0.0, 1.0])
    v, c = np.cross(z, axis), float(axis[2])
    if c < -1 + 1e-12:
        return np.array([1.0, 0, 0]), np.array([0.0, -1, 0])
    K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    R = np.eye(3) + K + K @ K / (1 + c)
    return R[:, 0], R[:, 1]


def dof_parents(nodes: list[Node]) -> NDArray[np.int32]:
    """For each degree of freedom the one before it on the way to the base, or -1."""
    above = np.full(sum(DOFS[n.kind] for n in nodes), -1, np.int32)
    for i, node in enumerate(nodes):
        if not DOFS[node.kind]:
            continue
        up = i
        while nodes[up].parent != up:
            up = nodes[up].parent
            if DOFS[nodes[up].kind]:
                above[node.dof] = nodes[up].dof + DOFS[nodes[up].kind] - 1
                break
        above[node.dof + 1 : node.dof + DOFS[node.kind]] = range(node.dof, node.dof + DOFS[node.kind] - 1)
    return above


def joined_branches(above: NDArray[np.int32], ties: list[tuple[int, int]]) -> NDArray[np.int32]:
    """The same, with the branches of two degrees of freedom that are tied below each other: so what couples them is
    among the couplings of one branch, and the factors of a matrix stay as sparse as those of a tree."""
    above = above.copy()
    for one, other in ties:
        mine, theirs = _way_up(above, one), _way_up(above, other)
        if one not in theirs and other not in mine:
            top = next(k for k in reversed(mine) if k not in theirs)
            above[top] = other
    return above


def _way_up(above: NDArray[np.int32], k: int) -> list[int]:
    way = [k]
    while above[way[-1]] >= 0:
        way.append(int(above[way[-1]]))
    return way


def couplings(above: NDArray[np.int32], own: NDArray[np.int32]) -> tuple[list[int], NDArray[np.int64], list[int]]:
    """An order in which those above come first, how many each has above it, itself included, and for each of these
    whether it moves with it: is above it in the tree itself, `own`, too."""
    ways = [_way_up(above, k) for k in range(len(above))]
    depth = np.array([len(way) for way in ways], np.int64)
    reach = [int(j in moving) for way, moving in zip(ways, (_way_up(own, k) for k in range(len(own)))) for j in way]
    return sorted(range(len(above)), key=lambda k: int(depth[k])), depth, reach


def placed(nodes: list[Node], q: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """Forward kinematics in NumPy: of each node position, rotation matrix, and the twists of its joint, (dofs, 6)."""
    found: list[tuple[Floats, Floats, Floats]] = []
    for i, n in enumerate(nodes):
        x, R = (np.zeros(3), np.eye(3)) if n.parent == i else found[n.parent][:2]
        at, R = x + R @ n.pos, R @ rotation_matrix(n.rot)
        mine = q[n.coord : n.coord + COORDS[n.kind]]
        side = np.eye(3) if n.kind == FREE and n.parent == i else R
        twists = np.zeros((DOFS[n.kind], 6))
        if n.kind == FREE:
            at = at + R @ mine[:3]
            twists[:3, 3:] = side.T
        if n.kind == REVOLUTE:
            twists[0, :3], twists[0, 3:] = R @ n.axis, np.cross(at, R @ n.axis)
            half = 0.5 * (mine[0] - n.ref)
            R = R @ rotation_matrix([*(np.sin(half) * n.axis), np.cos(half)])
        elif n.kind == PRISMATIC:
            twists[0, 3:] = R @ n.axis
            at = at + R @ n.axis * (mine[0] - n.ref)
        elif n.kind in (SPHERICAL, FREE):
            for k in range(3):
                twists[k - 3, :3], twists[k - 3, 3:] = side[:, k], np.cross(at, side[:, k])
            R = R @ rotation_matrix(mine[-4:])
        found.append((at - R @ n.anchor, R, twists))
    return found


def jacobians(nodes: list[Node], q: Floats) -> Floats:
    """(nodes, 6, dofs): the twist of each node about the base's origin, angular and linear, by the rates."""
    J = np.zeros((len(nodes), 6, sum(DOFS[node.kind] for node in nodes)))
    for i, (node, (_, _, twists)) in enumerate(zip(nodes, placed(nodes, q))):
        J[i] = 0.0 if node.parent == i else J[node.parent]
        J[i][:, node.dof : node.dof + DOFS[node.kind]] = twists.T
    return J


def mass_matrix(nodes: list[Node], q: Floats) -> Floats:
    """The mass matrix, armature included, by the Jacobians of all links."""
    J = jacobians(nodes, q)
    M = np.zeros((J.shape[2], J.shape[2]))
    for i, (node, (x, R, _)) in enumerate(zip(nodes, placed(nodes, q))):
        for k in range(node.dof, node.dof + DOFS[node.kind]):
            M[k, k] += node.joint.armature
        if node.link is not None:
            c = x + R @ node.link.com
            turn = J[i][:3]
            move = J[i][3:] + np.cross(turn.T, c).T
            M += node.link.mass * move.T @ move + turn.T @ (R @ node.link.inertia @ R.T) @ turn
    return M
