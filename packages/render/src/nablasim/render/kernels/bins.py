"""Which triangles a tile of 4 × 4 pixels has to look at: a list per tile, in the order of the slots.

One thread per frame goes through the boxes twice: the second time it knows where each list begins. Lists are integers:
gradients do not pass here.
"""

import kernelc as kc


@kc.kernel(lanes=0)
def count_tiles(box: kc.Array[kc.int4, 2], tiles_x: int, starts: kc.Array[int, 2], totals: kc.Array[int]):
    """starts[b, t] of each tile, counted from the frame's own beginning; starts[b, tiles] is how many there are."""
    b = kc.tid()
    tiles = starts.shape[1] - 1
    for t in range(tiles + 1):
        starts[b, t] = 0
    for s in range(box.shape[1]):
        r = box[b, s]
        for i in range(r.x, r.y + 1):
            for j in range(r.z, r.w + 1):
                starts[b, i * tiles_x + j + 1] += 1
    total = 0
    for t in range(tiles):
        total += starts[b, t + 1]
        starts[b, t + 1] = total
    totals[b] = total


@kc.kernel(lanes=0)
def list_tiles(
    box: kc.Array[kc.int4, 2],
    tiles_x: int,
    starts: kc.Array[int, 2],
    cursor: kc.Array[int, 2],
    items: kc.Array[int, 2],
):
    """items[b, starts[b, t]: starts[b, t + 1]] are the slots of tile t. Lists that do not fit are left out as a whole:
    who reads them looks at every slot instead."""
    b = kc.tid()
    tiles = starts.shape[1] - 1
    if starts[b, tiles] <= items.shape[1]:
        for t in range(tiles):
            cursor[b, t] = starts[b, t]
        for s in range(box.shape[1]):
            r = box[b, s]
            for i in range(r.x, r.y + 1):
                for j in range(r.z, r.w + 1):
                    t = i * tiles_x + j
                    items[b, cursor[b, t]] = s
                    cursor[b, t] = cursor[b, t] + 1


@kc.struct
class Lists:
    """Tables of edges (triangles.tabulate), and which of them each tile looks at."""

    edges: kc.Array[kc.vec(22), 2]
    starts: kc.Array[int, 2]
    items: kc.Array[int, 2]


@kc.func
def slots_of(lists: Lists, b: int, tile: int):
    """The slots that a tile of a frame looks at; all of them where the lists of the frame do not fit."""
    listed = lists.starts[b, lists.starts.shape[1] - 1] <= lists.items.shape[1]
    first = lists.starts[b, tile] if listed else 0
    last = lists.starts[b, tile + 1] if listed else lists.edges.shape[1]
    for k in range(first, last):
        yield lists.items[b, k] if listed else k
