"""SoftRas' colours: every face near a pixel adds to it, nearer ones exponentially more.

Two passes over the lists of a tile. The first finds the nearest depth of each pixel: everything is weighed relative to
it, so that nothing overflows. It cancels in the end, so it needs no gradient, and the second pass has only sums: going
back through it needs nothing but the same pass again.
"""

import functools

import kernelc as kc
from nablasim.render.kernels.bins import Lists, slots_of
from nablasim.render.kernels.coverage import (
    covered,
    nearest_boundary,
    odds_of,
    pixel_centre,
    squared_distance,
    tile_of,
)
from nablasim.render.kernels.surface import Paint, Surface, mixed, painted, shader, surface_weights
from nablasim.render.kernels.triangles import AREA, Screen, Triangles

NEGLIGIBLE = -60.0
"""exp of this, relative to the nearest face, is nothing in any precision."""
CLEAR = 1e-3
"""What is less opaque than this hides nothing."""
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


@kc.struct
class Sums:
    """Of the faces that reach a sample: the inverse of what they leave uncovered, their weights, weighted colours."""

    inverse: kc.Array[float, 3]
    weight: kc.Array[float, 3]
    colour: kc.Array[kc.float3, 3]


@kc.kernel(block=AREA)
def nearest_depths(
    triangles: Triangles,
    paint: Paint,
    lists: Lists,
    screen: Screen,
    limit: float,
    perspective: int,
    start: float,
    top: kc.Array[float, 3],
):
    """The smallest depth of the faces that reach a pixel and are opaque there, at most `start`."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, top.shape[1])
    x, y = pixel_centre(screen, tile, p)
    best = start
    for s in slots_of(lists, b, tile):
        e = lists.edges[b, s]
        d, inside, u, v, w = nearest_boundary(e, x, y)
        if inside or d < limit:
            q, m, h = triangles.corner[b, s], triangles.slope[b, s], triangles.deep[b, s]
            pa, pb, pc, depth = surface_weights(q, m, h, x, y, perspective, e[21] == 0.0, u, v, w)
            depth = kc.stop_grad(depth)
            if paint.uv is not None:
                if depth < best:
                    opacity = painted(paint, band, s, pa, pb, pc).w
                    if opacity < CLEAR:
                        depth = best
            best = depth if depth < best else best
    top[band, t, p] = best


@functools.cache
def blend(kind: tuple[bool, ...]):
    """The kernel of the second pass, for surfaces of one kind."""
    shade = shader(*kind)

    @kc.kernel(block=AREA)
    def blend_faces(
        triangles: Triangles,
        surface: Surface,
        lists: Lists,
        top: kc.Array[float, 3],
        screen: Screen,
        scale: float,
        limit: float,
        perspective: int,
        sharpness: float,
        sums: Sums,
    ):
        """Sums over the faces that reach a pixel: coverage, weights, and weighted colours.

        A weight is D exp(z / gamma) with z = (far - depth) / (far - near), relative to that of the smallest depth:
        D exp((top - depth) sharpness), which is more exact than a difference of two z.
        """
        band, t, p = kc.tid()
        b, tile = tile_of(band, t, top.shape[1])
        x, y = pixel_centre(screen, tile, p)
        nearest = kc.stop_grad(top[band, t, p])
        left = 1.0
        total = 0.0
        red, green, blue = 0.0, 0.0, 0.0
        for s in slots_of(lists, b, tile):
            e = lists.edges[b, s]
            d, inside, u, v, w = nearest_boundary(e, x, y)
            if inside or d < limit:
                q = triangles.corner[band, s]
                d2 = squared_distance(q, x, y, u, v, w)
                odds = odds_of(d2, inside, scale)
                cover = odds / (1.0 + odds)
                m, h = triangles.slope[band, s], triangles.deep[band, s]
                pa, pb, pc, depth = surface_weights(q, m, h, x, y, perspective, e[21] == 0.0, u, v, w)
                nearness = (nearest - depth) * sharpness
                if surface.paint.uv is not None:
                    # Opacity is a part of the coverage: D becomes D times it.
                    look = painted(surface.paint, band, s, pa, pb, pc)
                    cover = cover * look.w
                    left = covered(left, odds * look.w / (1.0 + odds * (1.0 - look.w)))
                    if nearness > NEGLIGIBLE:
                        share = cover * relative_weight(nearness)
                        c = shade(surface, kc.float3(look.x, look.y, look.z), band, s, pa, pb, pc)
                        total += share
                        red += share * c.x
                        green += share * c.y
                        blue += share * c.z
                else:
                    left = covered(left, odds)
                    if nearness > NEGLIGIBLE:
                        share = cover * relative_weight(nearness)
                        c = shade(surface, mixed(surface.paint.colors[band, s], pa, pb, pc), band, s, pa, pb, pc)
                        total += share
                        red += share * c.x
                        green += share * c.y
                        blue += share * c.z
        sums.inverse[band, t, p] = left
        sums.weight[band, t, p] = total
        sums.colour[band, t, p] = kc.float3(red, green, blue)

    return blend_faces
