"""Kernels that find which edges of cloth cross closely. All numbers here are constants for the gradient.

The same search as in `touching.py`, with edges in the place of vertices and of triangles. A pair is kept with the edge
of the lower number.

Edges are rows of `touch_edges`, their ends rows of `touch_vertices`.
"""

import kernelc as kc
from nablasim.physics.kernels.touching import (
    bucket,
    cell_of,
    holds,
    insert,
    is_near,
    look_anew,
    same_cell,
    set_sizes,
    sort_by_cell,
)

PARALLEL = 1e-12
"""Up to this sin² of the angle between them, edges have no crossing."""


@kc.func
def crossing(p1: kc.float3, q1: kc.float3, p2: kc.float3, q2: kc.float3):
    """Where the lines p1 q1 and p2 q2 are nearest to each other: at p1 + s (q1 - p1) and p2 + t (q2 - p2).

    N is their common normal, D1 and D2 are vectors across it with D1·d1 = D2·d2 = 1 and D1·d2 = D2·d1 = 0, the widths
    are how far each edge reaches across the line of the other one. Parallel edges have the width zero.
    """
    d1, d2, r = q1 - p1, q2 - p2, p1 - p2
    n = kc.cross(d1, d2)
    size = kc.length(n)
    proper = size * size > PARALLEL * kc.length_sq(d1) * kc.length_sq(d2)
    one_over = 1.0 / size if proper else 0.0
    N = n * one_over
    D1, D2 = kc.cross(d2, N) * one_over, kc.cross(N, d1) * one_over
    width1 = size / kc.length(d2) if proper else 0.0
    width2 = size / kc.length(d1) if proper else 0.0
    return N, D1, D2, -kc.dot(r, D1), kc.dot(r, D2), width1, width2


@kc.func
def distance(p1: kc.float3, q1: kc.float3, p2: kc.float3, q2: kc.float3) -> float:
    """From an edge to an edge."""
    _s, _t, apart = kc.closest_point_edge_edge(p1, q1, p2, q2)
    return apart


@kc.func
def cross_closely(p1: kc.float3, q1: kc.float3, p2: kc.float3, q2: kc.float3, reach: float) -> bool:
    """Whether two edges cross between their ends, and closer than this."""
    N, _D1, _D2, s, t, width1, _width2 = crossing(p1, q1, p2, q2)
    return width1 > 0.0 and 0.0 < s and s < 1.0 and 0.0 < t and t < 1.0 and kc.abs(kc.dot(p1 - p2, N)) < reach


@kc.kernel
def edge_distances(
    points: kc.Array[kc.float3], edges: kc.Array[int, 2], pairs: kc.Array[int, 2], apart: kc.Array[float]
):
    """The distance of pairs of edges."""
    r = kc.tid()
    i, j = pairs[r, 0], pairs[r, 1]
    apart[r] = distance(points[edges[i, 0]], points[edges[i, 1]], points[edges[j, 0]], points[edges[j, 1]])


@kc.kernel
def find_near_edges(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    world: kc.Array[int],
    near_start: kc.Array[int],
    near_count: kc.Array[int],
    near: kc.Array[int],
    ends: kc.Array[int, 2],
    edge_world: kc.Array[int],
    first: kc.Array[int],
    slack: kc.Array[float],
    size: kc.Array[float],
    seen: kc.Array[kc.float3],
    seen_reach: kc.Array[float],
    middle: kc.Array[kc.float3],
    key: kc.Array[int],
    start: kc.Array[int],
    order: kc.Array[int],
    mask: int,
    count: kc.Array[int],
    candidates: kc.Array[int, 2],
):
    """Make the list of candidates anew, if points have moved since it was made: see `touching.find_candidates`."""
    if not holds(now, reach, world, first, slack, seen, seen_reach):
        look_anew(now, reach, world, slack, size, seen, seen_reach)
        for i in range(middle.shape[0]):
            p, q = now[ends[i, 0]], now[ends[i, 1]]
            middle[i] = (p + q) * 0.5
            w = edge_world[i]
            size[w] = max(size[w], kc.length_sq(q - p))
        set_sizes(slack, size)
        sort_by_cell(middle, edge_world, size, mask, key, start, order)
        for i in range(middle.shape[0]):
            w = edge_world[i]
            side, far, found = size[w], slack[w], 0
            home = cell_of(middle[i], side)
            p, q = now[ends[i, 0]], now[ends[i, 1]]
            for n in range(27):
                cell = kc.int3(home.x + n % 3 - 1, home.y + n // 3 % 3 - 1, home.z + n // 9 - 1)
                k = bucket(cell, w, mask)
                for m in range(start[k], start[k + 1]):
                    j = order[m]
                    if j > i and kc.length_sq(middle[i] - middle[j]) < side * side and edge_world[j] == w:
                        # Cells may share a bucket: each edge is looked at once, for its own cell.
                        mine = same_cell(cell_of(middle[j], side), cell)
                        if mine and not is_near(near, near_start[i], near_count[i], j):
                            a, b = ends[j, 0], ends[j, 1]
                            if distance(p, q, now[a], now[b]) < 0.5 * (reach[ends[i, 0]] + reach[a]) + far:
                                insert(candidates, i, found, j)
                                found += 1
            count[i] = found


@kc.kernel
def find_crossing(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    ends: kc.Array[int, 2],
    count: kc.Array[int],
    candidates: kc.Array[int, 2],
    many: kc.Array[int],
    found: kc.Array[int, 2],
):
    """The edges that each edge crosses now, ascending."""
    i = kc.tid()
    a, b, n = ends[i, 0], ends[i, 1], 0
    for k in range(count[i]):
        j = candidates[i, k]
        c, d = ends[j, 0], ends[j, 1]
        if cross_closely(now[a], now[b], now[c], now[d], 0.5 * (reach[a] + reach[c])):
            found[i, n] = j
            n += 1
    many[i] = n
