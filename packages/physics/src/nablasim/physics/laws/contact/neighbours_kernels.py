"""Kernels that find which of many bodies are near each other, anew in every step. All is constant for gradients.

The hash grid is that of `touching_kernels.py`: bodies are the balls that hold them, larger by what they move in the
step. Rows of the tables of pairs are handed out in order, so that the list is the same on every run.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import MESH
from nablasim.physics.laws.contact import touching_kernels as search
from nablasim.physics.laws.contact.touching_kernels import Cells
from nablasim.physics.laws.rigid.bodies_kernels import State
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces

AHEAD, MARGIN = 1.5, 0.02
"""How far bodies may move in a step, of what their velocity says; and of the radius of their ball."""


@kc.struct
class Swarm:
    """Bodies that find each other: their scene, and how well their points say where they are (`Meeting`)."""

    body: kc.Array[int]
    world: kc.Array[int]
    roundness: kc.Array[int]
    smoothing: kc.Array[float]


@kc.struct
class Slots:
    """Of each scene: the rows of a table of pairs that are handed out, and how many are."""

    start: kc.Array[int]
    count: kc.Array[int]
    used: kc.Array[int]


@kc.kernel
def look_at_bodies(
    bodies: State, surfaces: Surfaces, swarm: Swarm, dt: float, middle: kc.Array[kc.float3], reach: kc.Array[float]
):
    """The balls that hold bodies until the step is over."""
    i = kc.tid()
    b = swarm.body[i]
    ball, q = kc.stop_grad(surfaces.bound[b]), kc.normalize(kc.stop_grad(bodies.rot[b]))
    arm = kc.quat_rotate(q, ball[0:3])
    v = kc.stop_grad(bodies.v[b]) + kc.cross(kc.stop_grad(bodies.omega[b]), arm)
    middle[i] = kc.stop_grad(bodies.x[b]) + arm
    reach[i] = ball.w * (1.0 + MARGIN) + swarm.smoothing[i] + AHEAD * kc.length(v) * kc.stop_grad(dt)


@kc.kernel
def sort_bodies(reach: kc.Array[float], size: kc.Array[float], cells: Cells):
    """Sort bodies, whose middles are in `cells`, by cells as large as what two of them can reach. One thread."""
    for w in range(size.shape[0]):
        size[w] = 0.0
    for i in range(reach.shape[0]):
        w = cells.world[i]
        size[w] = max(size[w], 2.0 * reach[i])
    search.sort(cells, size)


@kc.func
def meets(kind: kc.Array[int], meshes: int, points: kc.Array[int], swarm: Swarm, i: int, j: int) -> bool:
    """Whether the points of i meet the surface of j, and that is of this family.

    As of pairs that never change: a ball is where its centre says, so that the rounder of two meets the surface of the
    other one; alike ones do so once, and both where they have corners.
    """
    mine, its = swarm.roundness[i], swarm.roundness[j]
    family = 1 if kind[swarm.body[j]] == MESH else 0
    first = mine > its or (mine == its and (mine == 0 or i < j))
    return family == meshes and first and points[swarm.body[i]] > 0


@kc.func
def hand_out(slots: Slots, w: int, a: int, b: int, one: kc.Array[int], other: kc.Array[int]):
    """The next row of a scene is that of these two."""
    at = slots.used[w]
    assert at < slots.count[w], (
        "more bodies are near each other than there are rows for them: do they lie in each other? "
        "Replace long thin bodies by several short ones"
    )
    one[slots.start[w] + at] = a
    other[slots.start[w] + at] = b
    slots.used[w] = at + 1


@kc.kernel
def find_pairs(
    kind: kc.Array[int], meshes: int, points: kc.Array[int], swarm: Swarm, reach: kc.Array[float],
    size: kc.Array[float], cells: Cells, slots: Slots, one: kc.Array[int], other: kc.Array[int],
):  # fmt: skip
    """Hand out the rows of one family to bodies that are near each other. One thread."""
    for w in range(slots.used.shape[0]):
        slots.used[w] = 0
    for i in range(reach.shape[0]):
        p, w = cells.middle[i], cells.world[i]
        for j in search.nearby(cells, p, w, size[w], i):
            far = reach[i] + reach[j]
            if kc.length_sq(p - cells.middle[j]) < far * far:
                if meets(kind, meshes, points, swarm, i, j):
                    hand_out(slots, w, swarm.body[i], swarm.body[j], one, other)
                if meets(kind, meshes, points, swarm, j, i):
                    hand_out(slots, w, swarm.body[j], swarm.body[i], one, other)


@kc.kernel
def begin_pairs(given_one: kc.Array[int], given_other: kc.Array[int], one: kc.Array[int], other: kc.Array[int]):
    """The pairs that never change; the others are a body with itself, which is no pair."""
    r = kc.tid()
    one[r] = given_one[r]
    other[r] = given_other[r]
