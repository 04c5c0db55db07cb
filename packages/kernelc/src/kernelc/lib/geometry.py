"""Points, segments, triangles, tetrahedra and signed distances. Degenerate shapes give finite values and gradients."""

import kernelc as kc

# Triangles and pairs of lines whose sine is below 1e-6 count as degenerate (the square is compared).
FLAT = 1e-12


@kc.func
def closest_point_segment(p, a, b):
    ab = b - a
    size = kc.dot(ab, ab)
    divisor = size if size > 0.0 else 1.0
    return kc.clamp(kc.dot(p - a, ab) / divisor, 0.0, 1.0)


@kc.func
def closest_point_triangle(p, a, b, c):
    """Inside the triangle's prism the projection, else the best of the three edges.

    Edges are compared by the squared distance minus |p - a|², a form in the coordinates (v, w) along ab and ac: the
    height above the plane, which may be large, has cancelled.
    """
    ab = b - a
    ac = c - a
    ap = p - a
    n = kc.cross(ab, ac)
    area = kc.dot(n, n)
    uu = kc.dot(ab, ab)
    uv = kc.dot(ab, ac)
    vv = kc.dot(ac, ac)
    pu = kc.dot(ap, ab)
    pv = kc.dot(ap, ac)
    proper = area > FLAT * uu * vv
    v = kc.dot(kc.cross(ap, ac), n) / (area if proper else 1.0)
    w = kc.dot(kc.cross(ab, ap), n) / (area if proper else 1.0)
    if proper and v >= 0.0 and w >= 0.0 and v + w <= 1.0:
        return kc.float3(1.0 - v - w, v, w)
    r = closest_point_segment(p, a, b)
    s = closest_point_segment(p, a, c)
    t = closest_point_segment(p, b, c)
    to_ab = r * (r * uu - 2.0 * pu)
    to_ac = s * (s * vv - 2.0 * pv)
    to_bc = (1.0 - t) * ((1.0 - t) * uu + 2.0 * t * uv - 2.0 * pu) + t * (t * vv - 2.0 * pv)
    if to_ab <= to_ac and to_ab <= to_bc:
        return kc.float3(1.0 - r, r, 0.0)
    elif to_ac <= to_bc:
        return kc.float3(1.0 - s, 0.0, s)
    else:
        return kc.float3(0.0, 1.0 - t, t)


@kc.func
def closest_point_edge_edge(p1, q1, p2, q2):
    """After Ericson, Real-Time Collision Detection, 5.1.9, with n = d1 x d2 instead of differences of products."""
    d1 = q1 - p1
    d2 = q2 - p2
    r = p1 - p2
    n = kc.cross(d1, d2)
    nn = kc.dot(n, n)
    a = kc.dot(d1, d1)
    e = kc.dot(d2, d2)
    b = kc.dot(d1, d2)
    c = kc.dot(d1, r)
    f = kc.dot(d2, r)
    crossing = nn > FLAT * a * e
    best = kc.clamp(-kc.dot(kc.cross(r, d2), n) / (nn if crossing else 1.0), 0.0, 1.0)
    s = best if crossing else 0.0
    free = (b * s + f) / (e if e > 0.0 else 1.0)
    t = kc.clamp(free, 0.0, 1.0)
    # Where t met an end of its segment, or the lines have no single best pair, s answers to t.
    answer = kc.clamp((b * t - c) / (a if a > 0.0 else 1.0), 0.0, 1.0)
    s = s if crossing and free == t else answer
    return s, t, kc.length(r + d1 * s - d2 * t)


@kc.func
def sdf_sphere(p, radius):
    return kc.length(p) - radius


@kc.func
def sdf_box(p, half):
    gap = kc.abs(p) - half
    return kc.length(kc.max(gap, 0.0)) + kc.min(kc.max(gap.x, kc.max(gap.y, gap.z)), 0.0)


@kc.func
def sdf_capsule(p, a, b, radius):
    t = closest_point_segment(p, a, b)
    return kc.length(p - a - (b - a) * t) - radius


@kc.func
def sdf_plane(p, normal, offset):
    return kc.dot(p, normal) + offset


@kc.func
def triangle_area(a, b, c):
    return 0.5 * kc.length(kc.cross(b - a, c - a))


@kc.func
def tet_volume(a, b, c, d):
    return kc.dot(kc.cross(b - a, c - a), d - a) / 6.0


@kc.func
def barycentric(p, a, b, c):
    ab = b - a
    ac = c - a
    ap = p - a
    if len(p) == 2:
        area = ab.x * ac.y - ab.y * ac.x
        v = ap.x * ac.y - ap.y * ac.x
        w = ab.x * ap.y - ab.y * ap.x
    else:
        n = kc.cross(ab, ac)
        area = kc.dot(n, n)
        v = kc.dot(kc.cross(ap, ac), n)
        w = kc.dot(kc.cross(ab, ap), n)
    divisor = area if area != 0.0 else 1.0
    v = (v if area != 0.0 else 0.0) / divisor
    w = (w if area != 0.0 else 0.0) / divisor
    return kc.float3(1.0 - v - w, v, w)


@kc.func
def ray_triangle(o, d, a, b, c):
    """Moeller and Trumbore (1997), both sides."""
    ab = b - a
    ac = c - a
    ao = o - a
    h = kc.cross(d, ac)
    det = kc.dot(ab, h)
    k = kc.cross(ao, ab)
    inverse = 1.0 / (det if det != 0.0 else 1.0)
    scale = inverse if det != 0.0 else 0.0
    u = kc.dot(ao, h) * scale
    v = kc.dot(d, k) * scale
    t = kc.dot(ac, k) * scale
    hit = det != 0.0 and t >= 0.0 and u >= 0.0 and v >= 0.0 and u + v <= 1.0
    return hit, t, u, v
