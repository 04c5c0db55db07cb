"""Kernels that find which points touch each other. All numbers here are constants for the gradient.

The same search as in `touching_kernels.py`. A pair is kept with the point of the lower number. Points are rows of
`touch_points`; `vertex` has their rows of `touch_vertices`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact import touching_kernels as search
from nablasim.physics.laws.contact.touching_kernels import Apart, Cells, Points, Rows, Seen, mean_reach


@kc.kernel
def find_near_points(points: Points, vertex: kc.Array[int], apart: Apart, seen: Seen, cells: Cells, near: Rows):
    """List the candidates anew, if points have moved since they were listed: see `touching.find_candidates`."""
    if not search.holds(points, seen):
        search.look_anew(points, seen)
        for i in range(vertex.shape[0]):
            search.place(cells, seen, i, points.now[vertex[i]], 0.0)
        search.sort_by_cell(cells, seen)
        for i in range(vertex.shape[0]):
            w, p = cells.world[i], cells.middle[i]
            near.count[i] = 0
            for j in search.nearby(cells, p, w, seen.size[w], i):
                if not search.are_apart(apart, i, j):
                    if kc.length(p - cells.middle[j]) < mean_reach(points, vertex[i], vertex[j]) + seen.slack[w]:
                        search.insert(near, i, j)


@kc.kernel
def find_close_points(points: Points, vertex: kc.Array[int], near: Rows, found: Rows):
    """The points that each point touches now, ascending."""
    i, n = kc.tid(), 0
    a = vertex[i]
    for k in range(near.count[i]):
        b = vertex[near.items[i, k]]
        if kc.length(points.now[a] - points.now[b]) < mean_reach(points, a, b):
            found.items[i, n] = near.items[i, k]
            n += 1
    found.count[i] = n
