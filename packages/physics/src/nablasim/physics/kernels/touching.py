"""Kernels that find which vertices of cloth touch which triangles. All numbers here are constants for the gradient.

A list of candidates, closer than the thickness and some slack, is made with a hash grid and kept over steps: it holds
until points have moved against each other by the slack. `find_touching` takes from it what touches now, so that the
result depends on the positions alone, and not on when the list was made.

Vertices and triangles are rows of `touch_vertices` and `touch_triangles`.
"""

import kernelc as kc


@kc.func
def bucket(cell: kc.int3, world: int, mask: int) -> int:
    """Where a cell of a scene of the batch is kept; cells may share a bucket."""
    return (cell.x * 73856093 ^ cell.y * 19349663 ^ cell.z * 83492791 ^ world * 49979687) & mask


@kc.func
def cell_of(p: kc.float3, size: float) -> kc.int3:
    return kc.int3(int(kc.floor(p.x / size)), int(kc.floor(p.y / size)), int(kc.floor(p.z / size)))


@kc.func
def same_cell(a: kc.int3, b: kc.int3) -> bool:
    return a.x == b.x and a.y == b.y and a.z == b.z


@kc.func
def distance(p: kc.float3, a: kc.float3, b: kc.float3, c: kc.float3) -> float:
    """From a point to a triangle."""
    w = kc.closest_point_triangle(p, a, b, c)
    return kc.length(p - (a * w.x + b * w.y + c * w.z))


@kc.kernel
def distances(points: kc.Array[kc.float3], faces: kc.Array[int, 2], pairs: kc.Array[int, 2], apart: kc.Array[float]):
    """The distance of pairs of a point and a triangle."""
    r = kc.tid()
    t = pairs[r, 1]
    apart[r] = distance(points[pairs[r, 0]], points[faces[t, 0]], points[faces[t, 1]], points[faces[t, 2]])


@kc.kernel
def look_around(
    x: kc.Array[kc.float3],
    particle: kc.Array[int],
    thickness: kc.Array[float],
    smoothing: kc.Array[float],
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
):
    """Where the vertices are and how far they reach, without a gradient. Two points touch at the mean of theirs."""
    v = kc.tid()
    now[v] = kc.stop_grad(x[particle[v]])
    reach[v] = kc.stop_grad(thickness[v]) + 2.0 * smoothing[v]


@kc.func
def holds(
    now: kc.Array[kc.float3], reach: kc.Array[float], world: kc.Array[int], first: kc.Array[int],
    slack: kc.Array[float], seen: kc.Array[kc.float3], seen_reach: kc.Array[float],
) -> bool:  # fmt: skip
    """Whether vertices have moved little against the first one of their scene: a fall does not count."""
    same = slack[0] > 0.0
    for v in range(now.shape[0]):
        # Two points come closer by twice of what each moves; a little less, because sums are rounded.
        far = 0.49 * slack[world[v]]
        d = kc.length_sq(now[v] - seen[v] - (now[first[v]] - seen[first[v]]))
        if not (d <= far * far and reach[v] == seen_reach[v]):  # also if it is not a number
            same = False
    return same


@kc.func
def look_anew(
    now: kc.Array[kc.float3], reach: kc.Array[float], world: kc.Array[int], slack: kc.Array[float],
    size: kc.Array[float], seen: kc.Array[kc.float3], seen_reach: kc.Array[float],
):  # fmt: skip
    """Remember where points stand; `slack` gets the longest reach of each scene, `size` zero."""
    for w in range(slack.shape[0]):
        slack[w] = 0.0
        size[w] = 0.0
    for v in range(now.shape[0]):
        slack[world[v]] = max(slack[world[v]], reach[v])
        seen[v] = now[v]
        seen_reach[v] = reach[v]


@kc.func
def set_sizes(slack: kc.Array[float], size: kc.Array[float]):
    """From the longest reach and the square of the largest extent of each scene: how far candidates may be beyond
    touch, and the side of the cells."""
    for w in range(slack.shape[0]):
        longest = slack[w]
        slack[w] = 0.4 * longest
        size[w] = kc.sqrt(size[w]) + longest + slack[w]


@kc.func
def sort_by_cell(
    middle: kc.Array[kc.float3], world: kc.Array[int], size: kc.Array[float], mask: int, key: kc.Array[int],
    start: kc.Array[int], order: kc.Array[int],
):  # fmt: skip
    """By the bucket of the middle: those of bucket k are order[start[k]] ... order[start[k + 1] - 1], ascending."""
    count = middle.shape[0]
    for k in range(mask + 2):
        start[k] = 0
    for t in range(count):
        k = bucket(cell_of(middle[t], size[world[t]]), world[t], mask)
        key[t] = k
        start[k + 1] = start[k + 1] + 1
    for k in range(mask + 1):
        start[k + 1] = start[k + 1] + start[k]
    for r in range(count):
        t = count - 1 - r
        k = key[t] + 1
        start[k] = start[k] - 1
        order[start[k]] = t
    for k in range(mask + 1):
        start[k] = start[k + 1]  # Filling moved the end of every bucket to its beginning.
    start[mask + 1] = count


@kc.func
def is_near(near: kc.Array[int], start: int, count: int, t: int) -> bool:
    """Whether a triangle is in a vertex's list of those that it does not touch."""
    found = False
    for i in range(start, start + count):
        if near[i] == t:
            found = True
    return found


@kc.func
def insert(rows: kc.Array[int, 2], v: int, count: int, t: int):
    """Put a number into the ascending row of a vertex, which has `count` of them."""
    assert count < rows.shape[1], "too many layers touch in one place: make them thinner"
    at = count
    while at > 0 and rows[v, at - 1] > t:
        rows[v, at] = rows[v, at - 1]
        at -= 1
    rows[v, at] = t


@kc.kernel
def find_candidates(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    world: kc.Array[int],
    near_start: kc.Array[int],
    near_count: kc.Array[int],
    near: kc.Array[int],
    corners: kc.Array[int, 2],
    triangle_world: kc.Array[int],
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
    """Make the list of candidates anew, if points have moved since it was made. One thread: it is rarely needed.

    Where points stood then is in `seen`; `slack` has how far candidates may be beyond touch, zero at the very start,
    and `size` the side of the cells: of each scene, which may be much finer than another one.
    """
    if not holds(now, reach, world, first, slack, seen, seen_reach):
        look_anew(now, reach, world, slack, size, seen, seen_reach)
        for t in range(middle.shape[0]):
            m = (now[corners[t, 0]] + now[corners[t, 1]] + now[corners[t, 2]]) / 3.0
            middle[t] = m
            w = triangle_world[t]
            for k in range(3):
                size[w] = max(size[w], kc.length_sq(now[corners[t, k]] - m))
        set_sizes(slack, size)
        sort_by_cell(middle, triangle_world, size, mask, key, start, order)
        for v in range(now.shape[0]):
            w = world[v]
            side, far, found = size[w], slack[w], 0
            home = cell_of(now[v], side)
            for n in range(27):
                cell = kc.int3(home.x + n % 3 - 1, home.y + n // 3 % 3 - 1, home.z + n // 9 - 1)
                k = bucket(cell, w, mask)
                for j in range(start[k], start[k + 1]):
                    t = order[j]
                    if kc.length_sq(now[v] - middle[t]) < side * side and triangle_world[t] == w:
                        # Cells may share a bucket: each triangle is looked at once, for its own cell.
                        mine = same_cell(cell_of(middle[t], side), cell)
                        if mine and not is_near(near, near_start[v], near_count[v], t):
                            a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
                            if distance(now[v], now[a], now[b], now[c]) < 0.5 * (reach[v] + reach[a]) + far:
                                insert(candidates, v, found, t)
                                found += 1
            count[v] = found


@kc.kernel
def find_touching(
    now: kc.Array[kc.float3],
    reach: kc.Array[float],
    corners: kc.Array[int, 2],
    count: kc.Array[int],
    candidates: kc.Array[int, 2],
    many: kc.Array[int],
    found: kc.Array[int, 2],
):
    """The triangles that each vertex touches now, ascending."""
    v = kc.tid()
    n = 0
    for k in range(count[v]):
        t = candidates[v, k]
        a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
        if distance(now[v], now[a], now[b], now[c]) < 0.5 * (reach[v] + reach[a]):
            found[v, n] = t
            n += 1
    many[v] = n


@kc.kernel
def pack_touching(many: kc.Array[int], found: kc.Array[int, 2], start: kc.Array[int], triangle: kc.Array[int]):
    """The same without gaps: those of vertex v are triangle[start[v]] ... triangle[start[v + 1] - 1]. One thread."""
    n = 0
    for v in range(many.shape[0]):
        start[v] = n
        assert n + many[v] <= triangle.shape[0], "too many layers touch in one place: make them thinner"
        for k in range(many[v]):
            triangle[n] = found[v, k]
            n += 1
    start[many.shape[0]] = n
