"""Shapes of links as bodies: by them robots touch bodies, obstacles, particles, each other and themselves.

A row of `link_bodies` is a shape of a link. It has a row among the bodies, which the link carries along: all contacts
of bodies are those of links as well, and what they push there, the joints feel.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.geometry import WORLD, Placed, Robot, Shape, Solid, rates, rotation_matrix, solid, supports
from nablasim.physics.laws.articulated import link_bodies_kernels as kernels
from nablasim.physics.laws.articulated.bundles import Motion, Poses
from nablasim.physics.laws.articulated.nodes import jacobians, mass_matrix, nodes_of, placed
from nablasim.physics.laws.articulated.robots_kernels import poses
from nablasim.physics.laws.articulated.tables import QD, Q, memory, rig, tree
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.adding_bodies import add_carried
from nablasim.physics.laws.rigid.bodies_kernels import State
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays, Step

Floats = NDArray[np.float64]
LINKED, LINK = Index("bodies.linked"), Index("bodies.link", to="link_bodies", begins=True)
BODY, NODE, ROBOT = (
    Index(f"link_bodies.{name}", to=to) for name, to in (("body", "bodies"), ("node", "nodes"), ("robot", "robots"))
)
POS, ROT = Column("link_bodies.pos", kc.float3), Column("link_bodies.rot", kc.quat)


SHARED, GIVES = 2.0, 4.0
"""How many times as fast as its mass alone contacts may move a link, where they push it together, and where they turn
it, too: at 300/s, the rate that contacts have, 4 is stable in steps of 3 ms."""

STIFF = 0.05
"""How easily a link turns at least about any axis, as part of how easily it turns about another."""


class LinkBodies(System):
    """Where the links of robots have their shapes, before contact looks at bodies."""

    name = "link_bodies"
    columns = (POS, ROT)
    indices = (LINKED, LINK, BODY, NODE, ROBOT)

    def place(self, s: Step) -> None:
        if not s.rows("link_bodies"):
            return
        p, m, given = memory(s, Poses), memory(s, Motion), [tree(s.base), rig(s.base), s[Q]]
        kc.launch(poses, s.rows("robots"), given, [p], parts=s.parts)
        kc.launch(kernels.twists, s.rows("robots"), [tree(s.base), p, s[QD]], [m], parts=s.parts)
        n, made = s.rows("bodies"), {c: s.scratch(c.name, s.rows("bodies"), c.element) for c in b.STATE}
        after = s.base.bundle(State, **{c.name.partition(".")[2]: array for c, array in made.items()})
        kc.launch(kernels.carry, n, [p, m, carried(s.base), b.before(s)], [after], parts=s.parts)
        s.stand_in(made)
        s.notes["links"] = p


def carried(a: Arrays) -> Any:
    return a.bundle(kernels.Carried, LINKED, LINK, BODY, NODE, ROBOT, POS, ROT)


def pushes(s: Step) -> Array | None:
    """What contact of links with what moves does in all degrees of freedom; None if there is none."""
    if "links" not in s.notes:
        return None
    p, n = s.notes["links"], s.rows("robots")
    torque, force = (s.scratch(f"robots.{name}", s.rows("nodes"), kc.float3) for name in ("torque", "force"))
    for total in (torque, force):
        total.zero_()
    given = [carried(s.base), p, b.before(s), s[b.COM], b.forces(s),
             b.rub(s) if s.has(b.CONTACT_F) else None]  # fmt: skip
    kc.launch(kernels.wrenches, s.rows("link_bodies"), given, [torque, force], parts=s.parts)
    push = s.scratch("robots.push", s.rows("dofs"))
    kc.launch(kernels.joint_pushes, n, [tree(s.base), p, torque, force, memory(s, Motion)], [push], parts=s.parts)
    return push


# -- adding
def add_link_bodies(draft: Draft, robots: dict[str, Robot], selves: dict[str, bool]) -> None:
    """The shapes of all robots as bodies, where there is anything for them to touch: called before contacts are added.

    `selves` says which robots touch themselves.
    """
    others = {"rigid", "obstacle", "cloth", "soft", "springs", "particles"} & {t.kind for t in draft.things.values()}
    apart = {name: _apart(robot, draft.parameters[f"{name}.q"].value, touching=selves[name])
             for name, robot in robots.items()}  # fmt: skip
    if others or len(robots) > 1 or any(len(one) < _pairs(robots[name]) for name, one in apart.items()):
        rows = {name: _add(draft, name, robot) for name, robot in robots.items()}
        for name, pairs in apart.items():
            draft.apart |= {frozenset((rows[name][i], rows[name][k])) for i, k in pairs}
        for one, other in combinations(rows, 2):
            parts = [[part for _, part in _shapes(robots[name])] for name in (one, other)]
            draft.apart |= {frozenset((rows[one][i], rows[other][k])) for i, x in enumerate(parts[0])
                            for k, y in enumerate(parts[1]) if not _meet(x, y)}  # fmt: skip


def finish_link_bodies(draft: Draft) -> None:
    """Which bodies are shapes of links; they are nothing of their own to whoever looks at the scene."""
    linked, link = (np.zeros(draft.count.get("bodies", 0), np.int32) for _ in range(2))
    body = draft.whole(BODY)
    linked[body], link[body] = 1, np.arange(len(body))
    draft.index(LINKED.name, linked)
    draft.index(LINK.name, link)
    for name in [name for name, thing in draft.things.items() if thing.kind == "link"]:
        draft.surfaces.pop(name, None)
        for known in [known for known in draft.parameters if known.startswith(f"{name}.")]:
            parameter = draft.parameters.pop(known)
            draft.constants += [(place, parameter.value) for place in parameter.places]


def _shapes(robot: Robot) -> list[tuple[str, Placed]]:
    return [(name, part) for name in robot.links for part in robot.link(name).shapes]


def _pairs(robot: Robot) -> int:
    n = len(_shapes(robot))
    return n * (n - 1) // 2


def _add(draft: Draft, name: str, robot: Robot) -> list[int]:
    """The bodies of a robot, in the order of `_shapes`."""
    nodes, q = nodes_of(robot), draft.parameters[f"{name}.q"].value
    places, J, M = placed(nodes, q), jacobians(nodes, q), mass_matrix(nodes, q)
    inverse = np.asarray(np.linalg.inv(M) if len(M) else M, np.float64)
    thing, of = draft.things[name], {node.link.name: i for i, node in enumerate(nodes) if node.link is not None}
    found = []
    for number, (link, part) in enumerate(_shapes(robot)):
        i = of[link]
        made = solid(f"{name}.{link}", part.shape, 1.0)
        x, R, _ = places[i]
        turned = R @ rotation_matrix(part.rot)
        mass, spin = _weight(J[i], inverse, x + R @ part.pos + turned @ made.unit.com, turned)
        if mass is not None and spin is not None:
            made, mass = _lightened(made, mass, spin)
        rows = add_carried(draft, f"{name}.{link}.{number}", made, mass=mass, inertia=spin)
        draft.rows("link_bodies", 1)
        at = draft.count["link_bodies"] - 1
        draft.index(BODY.name, [rows.start])
        draft.index(NODE.name, [thing.rows["nodes"].start + i])
        draft.index(ROBOT.name, [thing.rows["robots"].start])
        for column, value in ((POS, part.pos), (ROT, part.rot)):
            draft.constant(column, type(rows)("link_bodies", at, 1), value)
        found.append(rows.start)
    return found


def _weight(J: Floats, inverse: Floats, at: Floats, R: Floats) -> tuple[float | None, Floats | None]:
    """How heavy a link is there for what pushes it the way it gives most, and to turn, in the axes R of a shape; None
    where nothing moves it."""
    if not len(inverse) or not J.any():
        return None, None
    move = J[3:] + np.cross(J[:3].T, at).T
    mass = 1.0 / max(float(np.linalg.eigvalsh(move @ inverse @ move.T)[-1]), 1e-9)
    values, axes = np.linalg.eigh(R.T @ (J[:3] @ inverse @ J[:3].T) @ R)
    # Joints that do not turn it now may do so where the robot is bent another way.
    most = max(float(values[-1]), 1e-3 / mass)
    return mass, (axes / np.maximum(values, STIFF * most)) @ axes.T


def _lightened(made: Solid, mass: float, spin: Floats) -> tuple[Solid, float]:
    """Contacts have their stiffness by the mass of bodies, and long or fine shapes give way to it much more than that
    mass alone: such a link counts as lighter, and its points share what they bear, so that it limits no usual step."""
    share, com = made.features.share[made.features.others :], made.unit.com
    points = made.points[made.features.others :]

    def times(mass: float) -> float:
        sets = supports(points, share, mass, com, spin)
        n = len(sets.normals)
        found = rates(sets, points - com, share, np.full(n, mass), np.broadcast_to(spin, (n, 3, 3)))
        return mass * float(found.max())

    if not len(points):
        return made, mass
    together = times(1e-9 * mass)  # So light that it gives way before it turns.
    if together > SHARED:
        share = share * (SHARED / together)
        whole = made.features.share.copy()
        whole[made.features.others :] = share
        made = replace(made, features=made.features._replace(share=whole))
    while times(mass) > GIVES:
        mass *= 0.8
    return made, mass


def _meet(one: Placed, other: Placed) -> bool:
    """Whether two shapes touch, by their bits: as of MJCF, (contype, conaffinity)."""
    return bool(one.bits[0] & other.bits[1] or other.bits[0] & one.bits[1])


def _apart(robot: Robot, q: Floats, *, touching: bool) -> list[tuple[int, int]]:
    """Pairs of shapes of a robot that never touch: of one link, or of links that a joint joins; of links that were
    excluded; and what lies in each other at the start."""
    shapes, group = _shapes(robot), _welded(robot)
    joined = {frozenset((group[j.parent], group[j.child])) for j in map(robot.joint, robot.joints) if j.parent != WORLD}
    nodes = nodes_of(robot)
    places = {node.link.name: at[:2] for node, at in zip(nodes, placed(nodes, q)) if node.link is not None}
    found = []
    for i, k in combinations(range(len(shapes)), 2):
        (one, x), (other, y) = shapes[i], shapes[k]
        neighbours = group[one] == group[other] or frozenset((group[one], group[other])) in joined
        excluded = not touching or frozenset((one, other)) in robot.exclusions or not _meet(x, y)
        if neighbours or excluded or _overlap(x, places[one], y, places[other]):
            found.append((i, k))
    return found


def _welded(robot: Robot) -> dict[str, str]:
    """For each link the first of those that it is welded to."""
    group = {WORLD: WORLD} | {name: name for name in robot.links}
    for node in nodes_of(robot):
        if node.joint.kind == "fixed" and node.link is not None:
            group[node.link.name] = group[node.joint.parent]
    return group


def _overlap(one: Placed, at_one: Any, other: Placed, at_other: Any) -> bool:
    """Whether two shapes lie in each other; of meshes, whether their boxes do."""
    corners = []
    for part, (x, R) in ((one, at_one), (other, at_other)):
        mesh = part.shape.mesh() if isinstance(part.shape, Shape) else solid("", part.shape, 1.0).skin
        local = np.asarray(mesh.vertices if mesh is not None else np.zeros((1, 3)))
        corners.append(x + R @ part.pos + local @ (R @ rotation_matrix(part.rot)).T)
    (a, c) = corners
    if (a.min(axis=0) > c.max(axis=0)).any() or (c.min(axis=0) > a.max(axis=0)).any():
        return False
    for part, (x, R), points in ((other, at_other, a), (one, at_one, c)):
        if not isinstance(part.shape, Shape):
            return True
        local = (points - x - R @ part.pos) @ (R @ rotation_matrix(part.rot))
        if (part.shape.distance(local) < 1e-4).any():
            return True
    return False
