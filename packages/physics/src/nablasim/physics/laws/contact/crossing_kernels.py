"""Kernels that find which edges of cloth cross closely. All numbers here are constants for the gradient.

The same search as in `touching_kernels.py`, with edges in the place of vertices and of triangles. A pair is kept with
the edge of the lower number.

Edges are rows of `touch_edges`, their ends rows of `touch_vertices`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact import touching_kernels as search
from nablasim.physics.laws.contact.touching_kernels import Apart, Cells, Points, Rows, Seen, mean_reach

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
    return width1 > 0.0 and s > 0.0 and s < 1.0 and t > 0.0 and t < 1.0 and kc.abs(kc.dot(p1 - p2, N)) < reach


@kc.kernel
def edge_distances(
    points: kc.Array[kc.float3], edges: kc.Array[int, 2], pairs: kc.Array[int, 2], apart: kc.Array[float]
):
    """The distance of pairs of edges."""
    r = kc.tid()
    i, j = pairs[r, 0], pairs[r, 1]
    apart[r] = distance(points[edges[i, 0]], points[edges[i, 1]], points[edges[j, 0]], points[edges[j, 1]])


@kc.kernel
def find_near_edges(points: Points, ends: kc.Array[int, 2], apart: Apart, seen: Seen, cells: Cells, near: Rows):
    """List the candidates anew, if points have moved since they were listed: see `touching.find_candidates`."""
    now = points.now
    if not search.holds(points, seen):
        search.look_anew(points, seen)
        for i in range(ends.shape[0]):
            p, q = now[ends[i, 0]], now[ends[i, 1]]
            search.place(cells, seen, i, (p + q) * 0.5, kc.length_sq(q - p))
        search.sort_by_cell(cells, seen)
        for i in range(ends.shape[0]):
            w, p, q = cells.world[i], now[ends[i, 0]], now[ends[i, 1]]
            near.count[i] = 0
            for j in search.nearby(cells, cells.middle[i], w, seen.size[w], i):
                if not search.are_apart(apart, i, j):
                    far = mean_reach(points, ends[i, 0], ends[j, 0]) + seen.slack[w]
                    if distance(p, q, now[ends[j, 0]], now[ends[j, 1]]) < far:
                        search.insert(near, i, j)


@kc.kernel
def find_crossing(points: Points, ends: kc.Array[int, 2], near: Rows, found: Rows):
    """The edges that each edge crosses now, ascending."""
    i, now, n = kc.tid(), points.now, 0
    a, b = ends[i, 0], ends[i, 1]
    for k in range(near.count[i]):
        j = near.items[i, k]
        c, d = ends[j, 0], ends[j, 1]
        if cross_closely(now[a], now[b], now[c], now[d], mean_reach(points, a, c)):
            found.items[i, n] = j
            n += 1
    found.count[i] = n
