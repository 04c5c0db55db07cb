"""Kernels that find which points touch each other. All numbers here are constants for the gradient.

The same search as in `touching.py`. A pair is kept with the point of the lower number. Points are rows of
`touch_points`; `vertex` has their rows of `touch_vertices`.
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


@kc.kernel
def find_near_points(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    world: kc.Array[int],
    near_start: kc.Array[int],
    near_count: kc.Array[int],
    near: kc.Array[int],
    vertex: kc.Array[int],
    point_world: kc.Array[int],
    first: kc.Array[int],
    slack: kc.Array[float],
    size: kc.Array[float],
    seen: kc.Array[kc.float3],
    seen_reach: kc.Array[float],
    place: kc.Array[kc.float3],
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
        set_sizes(slack, size)
        for i in range(place.shape[0]):
            place[i] = now[vertex[i]]
        sort_by_cell(place, point_world, size, mask, key, start, order)
        for i in range(place.shape[0]):
            w = point_world[i]
            side, far, found = size[w], slack[w], 0
            home = cell_of(place[i], side)
            for n in range(27):
                cell = kc.int3(home.x + n % 3 - 1, home.y + n // 3 % 3 - 1, home.z + n // 9 - 1)
                k = bucket(cell, w, mask)
                for m in range(start[k], start[k + 1]):
                    j = order[m]
                    if j > i and point_world[j] == w and same_cell(cell_of(place[j], side), cell):
                        touch = 0.5 * (reach[vertex[i]] + reach[vertex[j]])
                        close = kc.length(place[i] - place[j]) < touch + far
                        if close and not is_near(near, near_start[i], near_count[i], j):
                            insert(candidates, i, found, j)
                            found += 1
            count[i] = found


@kc.kernel
def find_close_points(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    vertex: kc.Array[int],
    count: kc.Array[int],
    candidates: kc.Array[int, 2],
    many: kc.Array[int],
    found: kc.Array[int, 2],
):
    """The points that each point touches now, ascending."""
    i = kc.tid()
    a, n = vertex[i], 0
    for k in range(count[i]):
        b = vertex[candidates[i, k]]
        if kc.length(now[a] - now[b]) < 0.5 * (reach[a] + reach[b]):
            found[i, n] = candidates[i, k]
            n += 1
    many[i] = n
