"""Neighbours: the loops of `HashGrid` and `Bvh` queries, and the kernels that build their tables.

The tables hold integers and boxes without gradients: which elements a query visits is constant, what a kernel then
computes from their positions is differentiated as in any loop. Building is a handful of launches; where order matters
they run on one thread, so that the same points give the same table, bit by bit, whatever the number of threads.

The table of a grid is one array of integers: buckets, points, and the width of a cell as a fraction m / 2**s; where
each bucket starts, and an end; the points, bucket by bucket; the three cell numbers of each of them.
"""

import kernelc as kc

HEAD = 4

# Cells and boxes are found a little larger than asked for, by this part of the coordinates: rounding loses nothing.
SLACK = 5e-7


# -- grids of cells
@kc.func
def cell_of(x, width):
    return int(kc.floor(kc.stop_grad(x) / width))


@kc.func
def bucket_of(i: int, j: int, k: int, buckets: int) -> int:
    """Cells in a row along x have buckets in a row: one stretch of points for all of them."""
    return (((j * 73856093) ^ (k * 19349663)) + i) & (buckets - 1)


@kc.func
def hash_grid_query(grid, p, radius):
    """The points that may lie within `radius` of p: all that do, and some others."""
    buckets, count = grid[0], grid[1]
    width = float(grid[2]) / float(1 << grid[3])
    p = kc.stop_grad(p)
    r = kc.stop_grad(radius) * (1.0 + SLACK)
    i, top_i = cell_of(p[0] - r - SLACK * abs(p[0]), width), cell_of(p[0] + r + SLACK * abs(p[0]), width)
    j, top_j = cell_of(p[1] - r - SLACK * abs(p[1]), width), cell_of(p[1] + r + SLACK * abs(p[1]), width)
    k, top_k = cell_of(p[2] - r - SLACK * abs(p[2]), width), cell_of(p[2] + r + SLACK * abs(p[2]), width)
    across = min(top_i - i + 1, buckets)
    rows = top_j - j + 1
    items = HEAD + buckets + 1
    for row in range(rows * (top_k - k + 1)):
        y = j + row % rows
        z = k + row // rows
        first = bucket_of(i, y, z, buckets)
        last = first + across
        begin = grid[HEAD + first]
        # Behind the last bucket it goes on with the first one.
        end = grid[HEAD + last] if last <= buckets else count + grid[HEAD + last - buckets]
        for n in range(begin, end):
            at = n if n < count else n - count
            cell = items + count + 3 * at
            # Other cells may share the bucket.
            if i <= grid[cell] and grid[cell] <= top_i and grid[cell + 1] == y and grid[cell + 2] == z:
                yield grid[items + at]


@kc.kernel
def find_cells(x: kc.Array[kc.float3], m: int, s: int, cell: kc.Array[int, 2]):
    n = kc.tid()
    width = float(m) / float(1 << s)
    p = x[n]
    cell[n, 0] = cell_of(p.x, width)
    cell[n, 1] = cell_of(p.y, width)
    cell[n, 2] = cell_of(p.z, width)


@kc.kernel
def sort_cells(cell: kc.Array[int, 2], buckets: int, m: int, s: int, grid: kc.Array[int]):
    """Count the points of each bucket, then put them there in their order. One thread."""
    count = int(cell.shape[0])
    items = HEAD + buckets + 1
    grid[0] = buckets
    grid[1] = count
    grid[2] = m
    grid[3] = s
    for b in range(buckets + 1):
        grid[HEAD + b] = 0
    for n in range(count):
        b = HEAD + bucket_of(cell[n, 0], cell[n, 1], cell[n, 2], buckets)
        grid[b] = grid[b] + 1
    total = 0
    for b in range(buckets + 1):
        total += grid[HEAD + b]
        grid[HEAD + b] = total
    # From the end of every bucket backwards: what remains is where it starts.
    for back in range(count):
        n = count - 1 - back
        b = HEAD + bucket_of(cell[n, 0], cell[n, 1], cell[n, 2], buckets)
        at = grid[b] - 1
        grid[b] = at
        grid[items + at] = n
        for axis in range(3):
            grid[items + count + 3 * at + axis] = cell[n, axis]


# -- trees of boxes
# A complete binary tree in heap order: the children of node n are 2n + 1 and 2n + 2, the last half are leaves with one
# item each, in the order of `order[2:]`; leaves without an item have a box that nothing meets.
@kc.func
def next_node(node: int) -> int:
    """The node after a whole subtree: right of the nearest left child on the way up; -1 at the end."""
    n = node + 1
    while n % 2 == 1 and n > 0:
        n = n >> 1
    return n if n > 0 else -1


@kc.func
def bvh_query(order, boxes, lower, upper):
    """The items whose boxes meet the box from `lower` to `upper`; touching counts."""
    inner = order[1] - 1
    lower, upper = kc.stop_grad(lower), kc.stop_grad(upper)
    node = 0
    while node >= 0:
        low, high = boxes[node, 0], boxes[node, 1]
        meets = (
            low[0] <= upper[0] and high[0] >= lower[0]
            and low[1] <= upper[1] and high[1] >= lower[1]
            and low[2] <= upper[2] and high[2] >= lower[2]
        )  # fmt: skip
        leaf = node - inner
        node = 2 * node + 1 if meets and leaf < 0 else next_node(node)
        if meets and leaf >= 0:
            yield order[2 + leaf]


@kc.func
def slab(low, high, origin, direction, near, far):
    """The part of a stretch of a ray that lies between two planes; behind itself if there is none."""
    if direction == 0.0:
        far = far if low <= origin and origin <= high else near - 1.0
    else:
        a = (low - origin) / direction
        b = (high - origin) / direction
        near = kc.max(near, kc.min(a, b))
        far = kc.min(far, kc.max(a, b))
    return near, far


@kc.func
def bvh_query_ray(order, boxes, origin, direction, reach):
    """The items whose boxes meet the ray origin + t direction for t from 0 to `reach`, in the order of the tree."""
    inner = order[1] - 1
    o, d = kc.stop_grad(origin), kc.stop_grad(direction)
    top = kc.stop_grad(reach)
    node = 0
    while node >= 0:
        low, high = boxes[node, 0], boxes[node, 1]
        near = 0.0 * top
        far = top
        for axis in range(3):
            # The planes stand a little apart from the box: rounding of the division loses nothing.
            margin = SLACK * (kc.abs(low[axis] - o[axis]) + kc.abs(high[axis] - o[axis]))
            near, far = slab(low[axis] - margin, high[axis] + margin, o[axis], d[axis], near, far)
        meets = near <= far and low[0] <= high[0]
        leaf = node - inner
        node = 2 * node + 1 if meets and leaf < 0 else next_node(node)
        if meets and leaf >= 0:
            yield order[2 + leaf]


@kc.func
def middle_of(lower, upper):
    """The middle of a box, at zero where it is no number: one lost item must not lose the others."""
    m = kc.stop_grad(lower + upper) * 0.5
    return kc.float3(m.x if m.x == m.x else 0.0, m.y if m.y == m.y else 0.0, m.z if m.z == m.z else 0.0)


@kc.kernel
def frame_boxes(lower: kc.Array[kc.float3], upper: kc.Array[kc.float3], frame: kc.Array[kc.float3]):
    """The box around the middles of all items. One thread."""
    low = middle_of(lower[0], upper[0])
    high = low
    for n in range(1, lower.shape[0]):
        middle = middle_of(lower[n], upper[n])
        low = kc.min(low, middle)
        high = kc.max(high, middle)
    frame[0] = low
    frame[1] = high


@kc.func
def spread(v: int) -> int:
    """Ten bits, with two zeros after each."""
    v = (v | (v << 16)) & 0x030000FF
    v = (v | (v << 8)) & 0x0300F00F
    v = (v | (v << 4)) & 0x030C30C3
    return (v | (v << 2)) & 0x09249249


@kc.kernel
def morton_codes(
    lower: kc.Array[kc.float3], upper: kc.Array[kc.float3], frame: kc.Array[kc.float3], code: kc.Array[int, 2]
):
    """Where an item's middle stands on a curve that keeps neighbours together: the bits of its coordinates in turn."""
    n = kc.tid()
    middle = middle_of(lower[n], upper[n])
    size = frame[1] - frame[0]
    total = 0
    for axis in range(3):
        part = (middle[axis] - frame[0][axis]) / (size[axis] if size[axis] > 0.0 else 1.0)
        part = part if part == part else 0.0
        total = total | (spread(int(kc.clamp(part * 1024.0, 0.0, 1023.0))) << axis)
    code[0, n] = total


@kc.kernel
def sort_codes(code: kc.Array[int, 2], item: kc.Array[int, 2], counts: kc.Array[int], order: kc.Array[int]):
    """Items in the order of their codes, equal ones in their own: ten bits at a time. One thread."""
    count = int(code.shape[1])
    for n in range(count):
        item[0, n] = n
    for sweep in range(3):
        a, b = sweep % 2, (sweep + 1) % 2
        for digit in range(1025):
            counts[digit] = 0
        for n in range(count):
            digit = ((code[a, n] >> (10 * sweep)) & 1023) + 1
            counts[digit] = counts[digit] + 1
        for digit in range(1024):
            counts[digit + 1] = counts[digit + 1] + counts[digit]
        for n in range(count):
            digit = (code[a, n] >> (10 * sweep)) & 1023
            at = counts[digit]
            counts[digit] = at + 1
            code[b, at] = code[a, n]
            item[b, at] = item[a, n]
    for n in range(count):
        order[2 + n] = item[1, n]


@kc.kernel
def fill_leaves(
    lower: kc.Array[kc.float3], upper: kc.Array[kc.float3], order: kc.Array[int], boxes: kc.Array[kc.float3, 2]
):
    leaf = kc.tid()
    node = order[1] - 1 + leaf
    if leaf < order[0]:
        item = order[2 + leaf]
        low, high = kc.stop_grad(lower[item]), kc.stop_grad(upper[item])
        # A box with NaN meets nothing; joined with others, it would hide them as well.
        if low[0] == low[0] and low[1] == low[1] and low[2] == low[2]:
            if high[0] == high[0] and high[1] == high[1] and high[2] == high[2]:
                boxes[node, 0] = low
                boxes[node, 1] = high
                return
    boxes[node, 0] = kc.float3(1e30)
    boxes[node, 1] = kc.float3(-1e30)


@kc.kernel
def join_boxes(order: kc.Array[int], boxes: kc.Array[kc.float3, 2]):
    """The box of every inner node holds those of its children. One thread, from the leaves to the root."""
    inner = order[1] - 1
    for back in range(inner):
        node = inner - 1 - back
        boxes[node, 0] = kc.min(boxes[2 * node + 1, 0], boxes[2 * node + 2, 0])
        boxes[node, 1] = kc.max(boxes[2 * node + 1, 1], boxes[2 * node + 2, 1])
