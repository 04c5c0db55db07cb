"""Kernels that find which vertices of cloth touch which triangles. All numbers here are constants for the gradient.

A list of candidates, closer than the thickness and some slack, is made with a hash grid and kept over steps: it holds
until points have moved against each other by the slack. `find_touching` takes from it what touches now, so that the
result depends on the positions alone, and not on when the list was made.

Vertices and triangles are rows of `touch_vertices` and `touch_triangles`. The searches for edges that cross and points
that touch (`crossing_kernels.py`, `near_points_kernels.py`) are made of the same functions.
"""
# mypy: ignore-errors

import kernelc as kc


@kc.struct
class Vertices:
    """What can touch: its particle, thickness (m), [ke, kd, kf, mu], and the rest of the law of compliant contact."""

    particle: kc.Array[int]
    thickness: kc.Array[float]
    four: kc.Array[kc.float4]
    law: kc.Array[int]
    touch: kc.Array[float]
    smoothing: kc.Array[float]


@kc.struct
class Contacts:
    """What touches: those of row r are other[start[r]] ... other[start[r + 1] - 1]."""

    start: kc.Array[int]
    other: kc.Array[int]


@kc.struct
class Points:
    """Vertices as they are searched: where they are and how far they reach; their scene, and its first vertex."""

    now: kc.Array[kc.float3]
    reach: kc.Array[float]
    world: kc.Array[int]
    first: kc.Array[int]


@kc.struct
class Apart:
    """What a row does not touch, because it is close at rest: `count` of them, from other[start] on."""

    start: kc.Array[int]
    count: kc.Array[int]
    other: kc.Array[int]


@kc.struct
class Seen:
    """When candidates were listed: where vertices stood and how far they reached; and of each scene, which may be much
    finer than another one, how far beyond touch they may be (zero at the very start), and the side of the cells."""

    now: kc.Array[kc.float3]
    reach: kc.Array[float]
    slack: kc.Array[float]
    size: kc.Array[float]


@kc.struct
class Cells:
    """A hash grid of what is sought, by its middle: those of bucket k are order[start[k]] ... order[start[k + 1] - 1],
    ascending. There are a power of two of buckets."""

    world: kc.Array[int]
    middle: kc.Array[kc.float3]
    key: kc.Array[int]
    start: kc.Array[int]
    order: kc.Array[int]


@kc.struct
class Rows:
    """Rows of ascending numbers, and how many each has."""

    count: kc.Array[int]
    items: kc.Array[int, 2]


@kc.func
def bucket(cells: Cells, cell: kc.int3, world: int) -> int:
    """Where a cell of a scene of the batch is kept; cells may share a bucket."""
    mask = cells.start.shape[0] - 2
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
def look_around(x: kc.Array[kc.float3], vertices: Vertices, points: Points):
    """Where the vertices are and how far they reach, without a gradient. Two points touch at the mean of theirs."""
    v = kc.tid()
    points.now[v] = kc.stop_grad(x[vertices.particle[v]])
    points.reach[v] = kc.stop_grad(vertices.thickness[v]) + 2.0 * vertices.smoothing[v]


@kc.func
def mean_reach(points: Points, a: int, b: int) -> float:
    """The distance at which two touch."""
    return 0.5 * (points.reach[a] + points.reach[b])


# -- the list of candidates
@kc.func
def holds(points: Points, seen: Seen) -> bool:
    """Whether vertices have moved little against the first one of their scene: a fall does not count."""
    same = seen.slack[0] > 0.0
    for v in range(points.now.shape[0]):
        # Two points come closer by twice of what each moves; a little less, because sums are rounded.
        far, one = 0.49 * seen.slack[points.world[v]], points.first[v]
        d = kc.length_sq(points.now[v] - seen.now[v] - (points.now[one] - seen.now[one]))
        if not (d <= far * far and points.reach[v] == seen.reach[v]):  # also if it is not a number
            same = False
    return same


@kc.func
def look_anew(points: Points, seen: Seen):
    """Remember where points stand; `slack` gets the longest reach of each scene, `size` zero."""
    for w in range(seen.slack.shape[0]):
        seen.slack[w] = 0.0
        seen.size[w] = 0.0
    for v in range(points.now.shape[0]):
        w = points.world[v]
        seen.slack[w] = max(seen.slack[w], points.reach[v])
        seen.now[v] = points.now[v]
        seen.reach[v] = points.reach[v]


@kc.func
def place(cells: Cells, seen: Seen, t: int, middle: kc.float3, extent_sq: float):
    """Note where something is that is sought, and the square of how far it extends: `size` gets the largest."""
    cells.middle[t] = middle
    w = cells.world[t]
    seen.size[w] = max(seen.size[w], extent_sq)


@kc.func
def set_sizes(seen: Seen):
    """From the longest reach and the square of the largest extent of each scene: how far candidates may be beyond
    touch, and the side of the cells."""
    for w in range(seen.slack.shape[0]):
        longest = seen.slack[w]
        seen.slack[w] = 0.4 * longest
        seen.size[w] = kc.sqrt(seen.size[w]) + longest + seen.slack[w]


@kc.func
def sort_by_cell(cells: Cells, seen: Seen):
    """When everything is placed, sort it by the bucket of its middle."""
    set_sizes(seen)
    sort(cells, seen.size)


@kc.func
def sort(cells: Cells, size: kc.Array[float]):
    """Sort what is sought by the bucket of its middle, with cells of this side in each scene: see `Cells`."""
    start, count, buckets = cells.start, cells.middle.shape[0], cells.start.shape[0] - 1
    for k in range(buckets + 1):
        start[k] = 0
    for t in range(count):
        w = cells.world[t]
        k = bucket(cells, cell_of(cells.middle[t], size[w]), w)
        cells.key[t] = k
        start[k + 1] = start[k + 1] + 1
    for k in range(buckets):
        start[k + 1] = start[k + 1] + start[k]
    for t in reversed(range(count)):
        k = cells.key[t] + 1
        start[k] = start[k] - 1
        cells.order[start[k]] = t
    for k in range(buckets):
        start[k] = start[k + 1]  # Filling moved the end of every bucket to its beginning.
    start[buckets] = count


@kc.func
def nearby(cells: Cells, p: kc.float3, world: int, side: float, after: int):
    """What is in a scene and has its middle closer to p than the side of a cell; of a number above `after`."""
    home = cell_of(p, side)
    for n in range(27):
        cell = kc.int3(home.x + n % 3 - 1, home.y + n // 3 % 3 - 1, home.z + n // 9 - 1)
        k = bucket(cells, cell, world)
        for m in range(cells.start[k], cells.start[k + 1]):
            t = cells.order[m]
            if t > after and kc.length_sq(p - cells.middle[t]) < side * side and cells.world[t] == world:
                # Cells may share a bucket: each is looked at once, for its own cell.
                if same_cell(cell_of(cells.middle[t], side), cell):
                    yield t


@kc.func
def are_apart(apart: Apart, i: int, j: int) -> bool:
    """Whether j is in i's list of those that it does not touch."""
    found = False
    for k in range(apart.start[i], apart.start[i] + apart.count[i]):
        if apart.other[k] == j:
            found = True
    return found


@kc.func
def insert(rows: Rows, i: int, j: int):
    """Put a number into the ascending row of another."""
    at = rows.count[i]
    rows.count[i] = at + 1
    assert at < rows.items.shape[1], "too many layers touch in one place: make them thinner"
    while at > 0 and rows.items[i, at - 1] > j:
        rows.items[i, at] = rows.items[i, at - 1]
        at -= 1
    rows.items[i, at] = j


@kc.func
def triangle_distance(now: kc.Array[kc.float3], corners: kc.Array[int, 2], v: int, t: int) -> float:
    """From vertex v to triangle t."""
    return distance(now[v], now[corners[t, 0]], now[corners[t, 1]], now[corners[t, 2]])


@kc.kernel
def find_candidates(points: Points, corners: kc.Array[int, 2], apart: Apart, seen: Seen, cells: Cells, near: Rows):
    """List the candidates anew, if points have moved since they were listed. One thread: it is rarely needed."""
    now = points.now
    if not holds(points, seen):
        look_anew(points, seen)
        for t in range(corners.shape[0]):
            a, b, c = now[corners[t, 0]], now[corners[t, 1]], now[corners[t, 2]]
            m = (a + b + c) / 3.0
            place(cells, seen, t, m, max(kc.length_sq(a - m), kc.length_sq(b - m), kc.length_sq(c - m)))
        sort_by_cell(cells, seen)
        for v in range(near.count.shape[0]):
            w = points.world[v]
            near.count[v] = 0
            for t in nearby(cells, now[v], w, seen.size[w], -1):
                if not are_apart(apart, v, t):
                    far = mean_reach(points, v, corners[t, 0]) + seen.slack[w]
                    if triangle_distance(now, corners, v, t) < far:
                        insert(near, v, t)


@kc.kernel
def find_touching(points: Points, corners: kc.Array[int, 2], near: Rows, found: Rows):
    """The triangles that each vertex touches now, ascending."""
    v, n = kc.tid(), 0
    for k in range(near.count[v]):
        t = near.items[v, k]
        if triangle_distance(points.now, corners, v, t) < mean_reach(points, v, corners[t, 0]):
            found.items[v, n] = t
            n += 1
    found.count[v] = n


@kc.kernel
def pack_touching(found: Rows, contacts: Contacts):
    """The same without gaps. One thread."""
    n = 0
    for v in range(found.count.shape[0]):
        contacts.start[v] = n
        assert n + found.count[v] <= contacts.other.shape[0], "too many layers touch in one place: make them thinner"
        for k in range(found.count[v]):
            contacts.other[n] = found.items[v, k]
            n += 1
    contacts.start[found.count.shape[0]] = n
