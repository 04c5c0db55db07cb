"""Which parts of a straight edge lie in a body: for each family of surfaces, as in `surfaces_kernels.py`.

`spans(surfaces, b, p, d, reach)` yields the parts s0 ... s1 of the edge p + s d, 0 <= s <= 1, in the frame of body b,
in which the surface is closer than `reach`; and for each end whether the edge pierces the surface there (from 0 on: for
meshes the number of the triangle) or ends inside (-1). All of that is constant for the gradient; `pierced` takes one
step of Newton's method from there, whose derivative is that of the place.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import BOX, shape_contact
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces, mesh_surface, triangle

HALVINGS = 50
HITS = 16
"""How often an edge may pierce a mesh; beyond that it is not followed."""
BESIDE = 1e-6
"""By how much of its size a triangle is widened, so that no edge slips through between two of them."""


@kc.func
def box_span(half: kc.float3, p: kc.float3, d: kc.float3):
    """The part of an edge that is in an upright box, by slabs; empty where the first is above the second."""
    low, high = 0.0, 1.0
    for k in range(3):
        if kc.abs(d[k]) > 1e-30:
            one, other = (-half[k] - p[k]) / d[k], (half[k] - p[k]) / d[k]
            low, high = max(low, min(one, other)), min(high, max(one, other))
        elif kc.abs(p[k]) > half[k]:
            high = -1.0
    return low, high


@kc.func
def inner(kind: int, size: kc.float3, p: kc.float3, d: kc.float3, reach: float) -> float:
    """A place of the edge at which it is inside, or -1. The distance from a convex shape is convex along the edge."""
    length = kc.length(d)
    left, right, found, k = 0.0, 1.0, -1.0, 0
    while k < HALVINGS:
        s = 0.5 * (left + right)
        away, n = shape_contact(kind, size, p + d * s)
        k += 1
        if away < reach:
            found, k = s, HALVINGS
        elif away - reach > 0.5 * (right - left) * length:
            k = HALVINGS
        elif kc.dot(n, d) > 0.0:
            right = s
        else:
            left = s
    return found


@kc.func
def border(kind: int, size: kc.float3, p: kc.float3, d: kc.float3, reach: float, inside: float, end: float) -> float:
    """Where the edge comes out between a place inside and an end; the end itself, if that is inside.

    It is the last place that is still inside: a hair outside, normals would be made of rounding errors.
    """
    outer, found = end, end
    away, _n = shape_contact(kind, size, p + d * end)
    if away >= reach:
        for _k in range(HALVINGS):
            s = 0.5 * (inside + outer)
            away, _n = shape_contact(kind, size, p + d * s)
            if away < reach:
                inside = s
            else:
                outer = s
        found = inside
    return found


@kc.func
def shape_spans(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, reach: float):
    """Shapes are convex: one part at most."""
    kind, size = surfaces.kind[b], kc.stop_grad(surfaces.size[b])
    low, high = 1.0, 0.0
    if kind == BOX and reach == 0.0:
        low, high = box_span(size * 0.5, p, d)
    else:
        s = inner(kind, size, p, d, reach)
        if s >= 0.0:
            low, high = border(kind, size, p, d, reach, s, 0.0), border(kind, size, p, d, reach, s, 1.0)
    for _k in range(1 if low < high else 0):
        yield low, high, 0 if low > 0.0 else -1, 0 if high < 1.0 else -1


@kc.func
def shape_end(surfaces: Surfaces, b: int, x: kc.float3, f: int):
    """Distance and normal where an edge pierces the surface."""
    gap, n = shape_contact(surfaces.kind[b], surfaces.size[b], x)
    return gap, n


# ------------------------------------------------------------------------------------------------------------- meshes
@kc.func
def hit(p: kc.float3, d: kc.float3, u: kc.float3, v: kc.float3, w: kc.float3) -> float:
    """Where the edge pierces a triangle, or -1."""
    n = kc.cross(v - u, w - u)
    slope, found = kc.dot(n, d), -1.0
    if slope != 0.0:
        s = kc.dot(n, u - p) / slope
        if s >= 0.0 and s <= 1.0:
            x, least = p + d * s, -BESIDE * kc.length_sq(n)
            one, two = kc.dot(n, kc.cross(v - u, x - u)), kc.dot(n, kc.cross(w - v, x - v))
            if one >= least and two >= least and kc.dot(n, kc.cross(u - w, x - w)) >= least:
                found = s
    return found


@kc.func
def meets_box(low: kc.float3, high: kc.float3, p: kc.float3, d: kc.float3) -> bool:
    half = (high - low) * 0.5
    slack = kc.length(half) * BESIDE
    begin, end = box_span(half + kc.float3(slack, slack, slack), p - (low + high) * 0.5, d)
    return begin <= end


@kc.func
def next_hit(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, after: float):
    """The first triangle that the edge pierces beyond a place, and where; -1 if there is none."""
    m, best, face = surfaces.meshes, 2.0, -1
    for k in range(m.box_start[b] + 1, m.box_start[b] + m.box_count[b]):
        if meets_box(m.low[k], m.high[k], p, d):
            for f in range(m.face_start[k], m.face_start[k] + m.face_count[k]):
                u, v, w = triangle(surfaces, f)
                s = hit(p, d, u, v, w)
                if s > after and s < best:
                    best, face = s, f
    return best, face


@kc.func
def face_normal(surfaces: Surfaces, f: int) -> kc.float3:
    u, v, w = triangle(surfaces, f)
    return kc.normalize(kc.cross(v - u, w - u))


@kc.func
def mesh_spans(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, reach: float):
    """Closed meshes: from where the edge enters to where it leaves. Edges with a radius are met from the other side."""
    m, first = surfaces.meshes, surfaces.meshes.box_start[b]
    left = HITS if reach == 0.0 and meets_box(m.low[first], m.high[first], p, d) else 0
    begin, start, inside = 0.0, -1, -1  # Whether the edge is inside after `begin` is not known at first.
    after = -1.0
    while left > 0:
        left -= 1
        s, f = next_hit(surfaces, b, p, d, after)
        low, at, was, whole = begin, start, inside, 0
        if f < 0:
            left, s = 0, 1.0
            if was == -1:
                gap, _n = mesh_surface(surfaces, b, p + d * 0.5, 0.0)
                was = 1 if gap < 0.0 else 0
            whole = was
        else:
            inside = 0 if kc.dot(face_normal(surfaces, f), d) > 0.0 else 1
            whole = 1 if inside == 0 and was != 0 else 0
        begin, start, after = s, f, s + BESIDE
        if whole == 1 and low < s:
            yield low, s, at, f


@kc.func
def mesh_end(surfaces: Surfaces, b: int, x: kc.float3, f: int):
    u, v, w = triangle(surfaces, f)
    n = kc.normalize(kc.cross(v - u, w - u))
    return kc.dot(n, x - u), n


# -------------------------------------------------------------------------------------------------------------- grids
@kc.func
def grid_spans(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, reach: float):
    """Signed distances on a grid are met by points alone."""
    for _k in range(0):
        yield 0.0, 0.0, -1, -1


@kc.func
def grid_end(surfaces: Surfaces, b: int, x: kc.float3, f: int):
    return 0.0 * x.x, kc.float3()
