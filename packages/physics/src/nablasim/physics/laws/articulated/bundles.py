"""What the kernels of robots take: the columns of their tables as bundles, and memory of a pass.

A *node* is a rigid frame behind one elementary joint. Joints of several kinds are several nodes in a row, of which only
the last one has a mass: that is the link. Nodes stand behind their parents; a node on the base is its own parent.
"""
# mypy: ignore-errors

from typing import Any

import kernelc as kc

FIXED, REVOLUTE, PRISMATIC, SPHERICAL, FREE = range(5)
"""Kinds of elementary joints: what a node may do in front of its parent."""
DOFS = (0, 1, 1, 3, 6)
COORDS = (0, 1, 1, 4, 7)


@kc.struct
class Tree:
    """Who hangs on whom. A thread is a robot; it has nodes from `first` on, and degrees of freedom from `dof_first`.

    The degrees of freedom that one is coupled to are those `above` it, `depth` in number with itself; it moves with
    those of them in `reach`, an entry for each coupling. `leads`: the one that it follows, or itself.
    """

    first: kc.Array[int]
    count: kc.Array[int]
    dof_first: kc.Array[int]
    dof_count: kc.Array[int]
    kind: kc.Array[int]
    parent: kc.Array[int]
    coord: kc.Array[int]
    dof: kc.Array[int]
    dof_coord: kc.Array[int]
    above: kc.Array[int]
    depth: kc.Array[int]
    row: kc.Array[int]
    order: kc.Array[int]
    leads: kc.Array[int]
    reach: kc.Array[int]


@kc.struct
class Rig:
    """Where joints are: (pos, rot) in the frame of the parent; the node's origin lies at -anchor behind the joint."""

    base_x: kc.Array[kc.float3]
    base_rot: kc.Array[kc.quat]
    pos: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    axis: kc.Array[kc.float3]
    anchor: kc.Array[kc.float3]
    ref: kc.Array[float]


@kc.struct
class Masses:
    """What moves: mass, centre of mass and inertia about it in the node's frame; armature of motors."""

    gravity: kc.Array[kc.float3]
    mass: kc.Array[float]
    com: kc.Array[kc.float3]
    inertia: kc.Array[kc.mat33]
    armature: kc.Array[float]


@kc.struct
class Drives:
    """What acts in joints, by degree of freedom."""

    damping: kc.Array[float]
    stiffness: kc.Array[float]
    rest: kc.Array[float]
    friction: kc.Array[float]
    kp: kc.Array[float]
    kd: kc.Array[float]
    limit: kc.Array[float]
    target: kc.Array[float]
    torque: kc.Array[float]
    more_torque: kc.Array[float]
    limits: kc.Array[kc.float2]
    stop_ke: kc.Array[float]
    stop_kd: kc.Array[float]
    ratio: kc.Array[float]
    offset: kc.Array[float]
    tie: kc.Array[float]
    apparent: kc.Array[float]


@kc.struct
class Poses:
    """Where nodes are, and how degrees of freedom move: the twist of each, angular and linear, about `origin`."""

    x: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    origin: kc.Array[kc.float3]
    turn: kc.Array[kc.float3]
    slide: kc.Array[kc.float3]


@kc.struct
class Motion:
    """Velocity and acceleration of nodes about `origin`, and the wrench that their joints carry."""

    w: kc.Array[kc.float3]
    v: kc.Array[kc.float3]
    dw: kc.Array[kc.float3]
    dv: kc.Array[kc.float3]
    n: kc.Array[kc.float3]
    f: kc.Array[kc.float3]


@kc.struct
class Composite:
    """Mass, first and second moments of a node and all behind it, about `origin`."""

    mass: kc.Array[float]
    first: kc.Array[kc.float3]
    second: kc.Array[kc.mat33]


@kc.struct
class Touch:
    """Memory of contact: velocities of nodes about `origin` at the end of the step, wrenches on them, and which rows
    are supposed to slide, and where to."""

    w: kc.Array[kc.float3]
    v: kc.Array[kc.float3]
    n: kc.Array[kc.float3]
    f: kc.Array[kc.float3]
    slide: kc.Array[int]
    way: kc.Array[kc.float3]


@kc.struct
class Contacts:
    """What links touch: rows of a robot are order[first[r]] and so on. A row is a pair of a point and a plane.

    Points are balls at a place in the frame of a node, `light` the inverse mass that contacts feel. `grip` is how hard
    friction holds: a mass.
    """

    first: kc.Array[int]
    count: kc.Array[int]
    order: kc.Array[int]
    point: kc.Array[int]
    node: kc.Array[int]
    local: kc.Array[kc.float3]
    ball: kc.Array[float]
    light: kc.Array[float]
    normal: kc.Array[kc.float3]
    offset: kc.Array[float]
    ke: kc.Array[float]
    kd: kc.Array[float]
    mu: kc.Array[float]
    law: kc.Array[int]
    touch: kc.Array[float]
    smoothing: kc.Array[float]
    grip: kc.Array[float]


@kc.struct
class Now:
    """Where a step starts: coordinates and rates, and what contact does in joints, if there is any."""

    q: kc.Array[float]
    qd: kc.Array[float]
    push: kc.Array[float] | None


ELEMENTS: dict[Any, dict[str, tuple[str, Any]]] = {
    Poses: {"x": ("nodes", kc.float3), "rot": ("nodes", kc.quat), "origin": ("robots", kc.float3),
            "turn": ("dofs", kc.float3), "slide": ("dofs", kc.float3)},
    Motion: dict.fromkeys(("w", "v", "dw", "dv", "n", "f"), ("nodes", kc.float3)),
    Composite: {"mass": ("nodes", float), "first": ("nodes", kc.float3), "second": ("nodes", kc.mat33)},
    Touch: {**dict.fromkeys(("w", "v", "n", "f"), ("nodes", kc.float3)), "slide": ("link_planes", int),
            "way": ("link_planes", kc.float3)},
}  # fmt: skip
"""The members of bundles that are memory of a pass: rows of which table, and of what."""
