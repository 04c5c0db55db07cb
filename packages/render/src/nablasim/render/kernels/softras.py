"""SoftRas' colours: every face near a pixel adds to it, nearer ones exponentially more.

Two passes over the lists of a tile. The first finds the nearest depth of each pixel: everything is weighed relative to
it, so that nothing overflows. It cancels in the end, so it needs no gradient, and the second pass has only sums: going
back through it needs nothing but the same pass again.
"""

import functools

import kernelc as kc
from nablasim.render.kernels.bins import tile_range
from nablasim.render.kernels.coverage import (
    covered,
    nearest_boundary,
    odds_of,
    pixel_centre,
    squared_distance,
    tile_of,
)
from nablasim.render.kernels.surface import shader, surface_weights
from nablasim.render.kernels.triangles import AREA

NEGLIGIBLE = -60.0
"""exp of this, relative to the nearest face, is nothing in any precision."""
LEAD = 20.0
"""The most that a face may be before the nearest one: its weight, squared, still fits into a float32."""


@kc.func
def relative_weight(nearness: float) -> float:
    """exp(nearness), for nearness above `NEGLIGIBLE`.

    The nearest depth is found by another kernel: rounding may put a face before it, which a small gamma makes many
    times as heavy. That cancels, as long as it is no infinity. Lanes that do not count are kept in, as in coverage.py.
    """
    low = NEGLIGIBLE if nearness < NEGLIGIBLE else nearness
    return kc.exp(LEAD if low > LEAD else low)


@kc.kernel(block=AREA)
def nearest_depths(
    corner: kc.Array[kc.vec(6), 2],
    slope: kc.Array[kc.vec(4), 2],
    deep: kc.Array[kc.float3, 2],
    edges: kc.Array[kc.vec(22), 2],
    starts: kc.Array[int, 2],
    items: kc.Array[int, 2],
    tiles_x: int,
    rows: int,
    columns: int,
    units: kc.float2,
    limit: float,
    perspective: int,
    start: float,
    top: kc.Array[float, 3],
):
    """The smallest depth of the faces that reach a pixel, at most `start`."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, top.shape[1])
    x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
    best = start
    first, last, listed = tile_range(starts, items, b, tile, edges.shape[1])
    for k in range(first, last):
        s = items[b, k] if listed else k
        e = edges[b, s]
        d, inside, u, v, w = nearest_boundary(e, x, y)
        if inside or d < limit:
            q, m, h = corner[b, s], slope[b, s], deep[b, s]
            _, _, _, depth = surface_weights(q, m, h, x, y, perspective, e[21] == 0.0, u, v, w)
            depth = kc.stop_grad(depth)
            best = depth if depth < best else best
    top[band, t, p] = best


@functools.cache
def blend(kind: tuple[bool, ...]):
    """The kernel of the second pass, for surfaces of one kind."""
    shade = shader(*kind)

    @kc.kernel(block=AREA)
    def blend_faces(
        corner: kc.Array[kc.vec(6), 2],
        slope: kc.Array[kc.vec(4), 2],
        deep: kc.Array[kc.float3, 2],
        paint: kc.Array[kc.vec(9), 2],
        uv: kc.Array[kc.vec(6), 2],
        texture: kc.Array[kc.float3, 2],
        normal: kc.Array[kc.vec(9), 2],
        position: kc.Array[kc.vec(9), 2],
        pose: kc.Array[kc.vec(12)],
        sky: kc.Array[kc.vec(30)],
        material: kc.Array[kc.float4],
        lights: kc.Array[kc.vec(10), 2],
        edges: kc.Array[kc.vec(22), 2],
        starts: kc.Array[int, 2],
        items: kc.Array[int, 2],
        top: kc.Array[float, 3],
        tiles_x: int,
        rows: int,
        columns: int,
        units: kc.float2,
        scale: float,
        limit: float,
        perspective: int,
        sharpness: float,
        inverse: kc.Array[float, 3],
        weight: kc.Array[float, 3],
        colour: kc.Array[kc.float3, 3],
    ):
        """Sums over the faces that reach a pixel: coverage, weights, and weighted colours.

        A weight is D exp(z / gamma) with z = (far - depth) / (far - near), relative to that of the smallest depth:
        D exp((top - depth) sharpness), which is more exact than a difference of two z.
        """
        band, t, p = kc.tid()
        b, tile = tile_of(band, t, top.shape[1])
        x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
        nearest = kc.stop_grad(top[band, t, p])
        left = 1.0
        total = 0.0
        red, green, blue = 0.0, 0.0, 0.0
        first, last, listed = tile_range(starts, items, b, tile, edges.shape[1])
        for k in range(first, last):
            s = items[b, k] if listed else k
            e = edges[b, s]
            d, inside, u, v, w = nearest_boundary(e, x, y)
            if inside or d < limit:
                q = corner[band, s]
                d2 = squared_distance(q, x, y, u, v, w)
                odds = odds_of(d2, inside, scale)
                cover = odds / (1.0 + odds)
                left = covered(left, odds)
                m, h = slope[band, s], deep[band, s]
                pa, pb, pc, depth = surface_weights(q, m, h, x, y, perspective, e[21] == 0.0, u, v, w)
                nearness = (nearest - depth) * sharpness
                if nearness > NEGLIGIBLE:
                    share = cover * relative_weight(nearness)
                    c = shade(paint, uv, texture, normal, position, pose, sky, material, lights, band, s, pa, pb, pc)
                    total += share
                    red += share * c.x
                    green += share * c.y
                    blue += share * c.z
        inverse[band, t, p] = left
        weight[band, t, p] = total
        colour[band, t, p] = kc.float3(red, green, blue)

    return blend_faces
