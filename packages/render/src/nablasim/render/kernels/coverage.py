"""How much of each pixel is covered, softly: SoftRas' silhouette and DIB-R's mask.

A grid is (4 frames, tiles / 4, 16): each frame is cut into four bands of tiles, and each band has a copy of the
triangles of its own. So the gradients of a band are summed by one thread, in a fixed order: the same bits on every run,
however many threads there are and whatever else is in the batch.
"""

import kernelc as kc
from nablasim.render.kernels.bins import Lists, slots_of
from nablasim.render.kernels.triangles import AREA, BITS, TILE, Screen

BANDS = 4
STEEP = 80.0
"""Beyond this sigmoid(x) is 1 in every precision, and below its negative nobody looks; exp still fits into a float32.
Lanes that do not count are kept within it, too: the vector functions of the C library take a slow way outside."""


@kc.func
def tile_of(band, t, per_band):
    """The frame of a band, and which of the frame's tiles number t of the band is."""
    return band // BANDS, (band % BANDS) * per_band + t


@kc.func
def pixel_centre(screen: Screen, tile, p):
    """Where pixel p of a tile is on the screen."""
    i = (tile // screen.tiles_x) * TILE + (p >> BITS)
    j = (tile % screen.tiles_x) * TILE + (p & (TILE - 1))
    x = float(2 * j + 1 - screen.columns) / float(screen.columns) * screen.units.x
    y = float(screen.rows - 1 - 2 * i) / float(screen.rows) * screen.units.y
    return x, y


@kc.func
def clamp01(t: float) -> float:
    # Written out: kc.clamp keeps NaN apart, which costs four times as many instructions in lanes.
    low = 0.0 if t < 0.0 else t
    return 1.0 if low > 1.0 else low


@kc.func
def nearest_boundary(e, x: float, y: float):
    """The squared distance to the boundary of a triangle, whether (x, y) is inside, and the weights of the corners at
    the nearest point of the boundary. `e` is a table of edges (triangles.tabulate)."""
    s0 = e[0] * x + e[1] * y + e[2]
    t0 = e[3] * x + e[4] * y + e[5]
    c0 = clamp01(t0)
    d0 = s0 * s0 + (t0 - c0) * (t0 - c0) * e[6]
    s1 = e[7] * x + e[8] * y + e[9]
    t1 = e[10] * x + e[11] * y + e[12]
    c1 = clamp01(t1)
    d1 = s1 * s1 + (t1 - c1) * (t1 - c1) * e[13]
    s2 = e[14] * x + e[15] * y + e[16]
    t2 = e[17] * x + e[18] * y + e[19]
    c2 = clamp01(t2)
    d2 = s2 * s2 + (t2 - c2) * (t2 - c2) * e[20]
    # Bits instead of `and`, and names in the choices: then nothing branches.
    inside = (s0 > 0.0) & (s1 > 0.0) & (s2 > 0.0) & (e[21] != 0.0)
    r0, r1, r2 = 1.0 - c0, 1.0 - c1, 1.0 - c2
    second = d1 < d0
    d = d1 if second else d0
    u = 0.0 if second else r0
    v = r1 if second else c0
    w = c1 if second else 0.0
    third = d2 < d
    return d2 if third else d, inside, c2 if third else u, 0.0 if third else v, r2 if third else w


@kc.func
def squared_distance(q, x: float, y: float, u: float, v: float, w: float) -> float:
    """From (x, y) to the point with weights u, v, w of the corners q.

    It is the nearest point of the boundary: moving it along the boundary does not change the distance to first order,
    so the weights need no gradient, and this has all of it.
    """
    u, v, w = kc.stop_grad(u), kc.stop_grad(v), kc.stop_grad(w)
    dx = x - u * q[0] - v * q[2] - w * q[4]
    dy = y - u * q[1] - v * q[3] - w * q[5]
    return dx * dx + dy * dy


# Products of many factors 1 - D, and their gradients. What runs through the loop is the inverse of the product,
# Π (1 + exp(x)) with D = sigmoid(x): one exponential, no division, and too much cover is infinity, as it should be.
# What runs back through it is the adjoint of its *logarithm*, a sum: the same number for every factor, nothing to tape.
@kc.func
def covered(inverse: float, odds: float) -> float:
    """The inverse of what is left uncovered, after one more face with D = odds / (1 + odds)."""
    return inverse + inverse * odds


@covered.adjoint
def _(inverse, odds, adj_out):
    return adj_out, adj_out / (1.0 + odds)


@kc.func
def alpha_of(inverse: float) -> float:
    """1 - Π(1 - D)."""
    return 1.0 - 1.0 / inverse


@alpha_of.adjoint
def _(inverse, adj_out):
    return adj_out / inverse


@kc.func
def odds_of(d2: float, inside: bool, scale: float) -> float:
    """exp(±d² / sigma): D = sigmoid(±d² / sigma) is this, over one more."""
    far = d2 * scale
    x = far if inside else -far
    low = -STEEP if x < -STEEP else x
    return kc.exp(STEEP if low > STEEP else low)


@kc.kernel(block=AREA)
def cover(
    corner: kc.Array[kc.vec(6), 2],
    lists: Lists,
    screen: Screen,
    scale: float,
    limit: float,
    inverse: kc.Array[float, 3],
):
    """SoftRas: the inverse of Π(1 - D) for each pixel, D = sigmoid(±d² scale), without faces whose d² ≥ limit."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, inverse.shape[1])
    x, y = pixel_centre(screen, tile, p)
    total = 1.0
    for s in slots_of(lists, b, tile):
        d, inside, u, v, w = nearest_boundary(lists.edges[b, s], x, y)
        if inside or d < limit:
            d2 = squared_distance(corner[band, s], x, y, u, v, w)
            total = covered(total, odds_of(d2, inside, scale))
    inverse[band, t, p] = total
