"""Kernels that list which of many bodies are near each other, anew in every step. All is constant for gradients.

The same hash grid as in `touching_kernels.py`: bodies are the balls that hold them, a little larger by what they move
in the step. Rows of the tables of pairs are handed out in order, so that the list is the same on every run.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import MESH
from nablasim.physics.laws.contact import touching_kernels as search
from nablasim.physics.laws.contact.touching_kernels import Cells, Rows, Seen
from nablasim.physics.laws.rigid.bodies_kernels import State
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces

AHEAD, MARGIN = 1.5, 0.02
"""How far bodies may move in a step, of what their velocity says; and of the radius of their ball."""


@kc.struct
class Swarm:
    """Bodies that are listed, ascending: their scene, and how well their points say where they are (`Meeting`)."""

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
    ball, q = surfaces.bound[b], kc.normalize(kc.stop_grad(bodies.rot[b]))
    arm = kc.quat_rotate(q, kc.stop_grad(ball[0:3]))
    v = kc.stop_grad(bodies.v[b]) + kc.cross(kc.stop_grad(bodies.omega[b]), arm)
    middle[i] = kc.stop_grad(bodies.x[b]) + arm
    reach[i] = kc.stop_grad(ball.w) * (1.0 + MARGIN) + swarm.smoothing[i] + AHEAD * kc.length(v) * kc.stop_grad(dt)


@kc.kernel
def find_near_bodies(reach: kc.Array[float], seen: Seen, cells: Cells, near: Rows):
    """For each body all that are near it, ascending. `cells.middle` is where they are. One thread."""
    for w in range(seen.slack.shape[0]):
        seen.slack[w], seen.size[w] = 0.0, 0.0
    for i in range(reach.shape[0]):
        # `search.set_sizes` makes cells of 1.4 times this.
        seen.slack[cells.world[i]] = max(seen.slack[cells.world[i]], 2.0 / 1.399 * reach[i])
    search.sort_by_cell(cells, seen)
    for i in range(reach.shape[0]):
        near.count[i] = 0
    for i in range(reach.shape[0]):
        p, w = cells.middle[i], cells.world[i]
        for j in search.nearby(cells, p, w, seen.size[w], i):
            far = reach[i] + reach[j]
            if kc.length_sq(p - cells.middle[j]) < far * far:
                search.insert(near, i, j)
                search.insert(near, j, i)


@kc.kernel
def begin_pairs(given_one: kc.Array[int], given_other: kc.Array[int], one: kc.Array[int], other: kc.Array[int]):
    """The pairs that never change; the others are a body with itself, which is no pair."""
    r = kc.tid()
    one[r] = given_one[r]
    other[r] = given_other[r]


@kc.kernel
def hand_out_pairs(
    kind: kc.Array[int], meshes: int, swarm: Swarm, points: kc.Array[int], near: Rows, slots: Slots,
    one: kc.Array[int], other: kc.Array[int],
):  # fmt: skip
    """Rows of one family, whose points of the one meet the surface of the other. One thread.

    As of pairs that never change: a ball is where its centre says, so that the rounder of two meets the surface of the
    other one; alike ones do so once, and both where they have corners.
    """
    for w in range(slots.used.shape[0]):
        slots.used[w] = 0
    for i in range(swarm.body.shape[0]):
        a, w = swarm.body[i], swarm.world[i]
        for k in range(near.count[i]):
            j = near.items[i, k]
            b, mine, its = swarm.body[j], swarm.roundness[i], swarm.roundness[j]
            fits = (1 if kind[b] == MESH else 0) == meshes and points[a] > 0
            if fits and (mine > its or (mine == its and (mine == 0 or i < j))):
                at = slots.used[w]
                assert at < slots.count[w], (
                    "too many bodies are near each other: do they lie in each other?"
                )
                one[slots.start[w] + at] = a
                other[slots.start[w] + at] = b
                slots.used[w] = at + 1
