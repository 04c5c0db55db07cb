"""Surfaces that things are pushed out of: a gap and an outward normal at a point, in the frame of the body they bound.

Three families with one signature, `surface(b, p, reach, …)`: analytic shapes, closed triangle meshes, and signed
distances on a grid. Each answers for body b and point p; beyond `reach` outside of the surface the answer may be `FAR`.
"""

import kernelc as kc
from nablasim.physics.kernels.bodies import GRID, MESH
from nablasim.physics.kernels.shapes import BOX, CAPSULE, SPHERE, shape_contact

FAR = 1e30


@kc.func
def shape_surface(
    b, p, reach, kind, size, local, corners, box_start, box_count, face_start, face_count, low, high, node, cells,
    origin, spacing, distance,
):  # fmt: skip
    """An analytic shape: its exact signed distance, and the slope of that."""
    gap, n = shape_contact(kind[b], size[b], p)
    return gap, n


# ------------------------------------------------------------------------------------------------------------- meshes
@kc.func
def box_distance_sq(p: kc.float3, low: kc.float3, high: kc.float3) -> float:
    """The square of the distance of p from an upright box; zero inside."""
    return kc.length_sq(kc.max(low - p, 0.0) + kc.max(p - high, 0.0))


@kc.func
def nearest_face(p, reach, first, count, local, corners, face_start, face_count, low, high):
    """The triangle that is nearest to p, or -1 if p is farther than `reach` from the box around all of them.

    The first of the boxes holds the whole mesh, the others groups of neighbours: those farther away than the best so
    far are left out. Where several triangles share the nearest point, the one that faces p most decides: only its side
    says whether p is inside.
    """
    face = -1
    best = FAR
    facing = 0.0
    if box_distance_sq(p, low[first], high[first]) <= reach * reach:
        for k in range(first + 1, first + count):
            if box_distance_sq(p, low[k], high[k]) <= best * 1.0001:
                for f in range(face_start[k], face_start[k] + face_count[k]):
                    a, b, c = local[corners[f, 0]], local[corners[f, 1]], local[corners[f, 2]]
                    w = kc.closest_point_triangle(p, a, b, c)
                    r = p - (a * w.x + b * w.y + c * w.z)
                    away = kc.length_sq(r)
                    faces = kc.abs(kc.dot(kc.normalize(kc.cross(b - a, c - a)), r))
                    if away < best * 0.9999 or (away <= best * 1.0001 and faces > facing):
                        face = f
                        facing = faces
                        best = kc.min(best, away)
    return face


@kc.func
def mesh_surface(
    b, p, reach, kind, size, local, corners, box_start, box_count, face_start, face_count, low, high, node, cells,
    origin, spacing, distance,
):  # fmt: skip
    """A closed mesh: the distance to its nearest triangle, which is constant for the gradient."""
    gap = FAR + 0.0 * p.x
    n = kc.float3()
    f = nearest_face(
        kc.stop_grad(p), reach, box_start[b], box_count[b], local, corners, face_start, face_count, low, high
    )
    if f >= 0:
        u, v, w = local[corners[f, 0]], local[corners[f, 1]], local[corners[f, 2]]
        m = kc.normalize(kc.cross(v - u, w - u))
        at = kc.closest_point_triangle(p, u, v, w)
        r = p - (u * at.x + v * at.y + w * at.z)
        away = kc.length(r)
        if min(at.x, at.y, at.z) > 0.0 or away == 0.0:
            gap = kc.dot(m, p - u)
            n = m
        else:  # Nearest is an edge or a corner.
            side = 1.0 if kc.dot(m, r) >= 0.0 else -1.0
            gap = away * side
            n = r * (side / away)
    return gap, n


@kc.kernel
def group_boxes(
    local: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    face_start: kc.Array[int],
    face_count: kc.Array[int],
    low: kc.Array[kc.float3],
    high: kc.Array[kc.float3],
):
    """The box around a group of triangles. It only says where to look: no gradient goes through it."""
    k = kc.tid()
    least = kc.float3(FAR, FAR, FAR)
    most = kc.float3(-FAR, -FAR, -FAR)
    for f in range(face_start[k], face_start[k] + face_count[k]):
        for c in range(3):
            p = kc.stop_grad(local[corners[f, c]])
            least = kc.min(least, p)
            most = kc.max(most, p)
    low[k] = least
    high[k] = most


# -------------------------------------------------------------------------------------------------------------- grids
@kc.func
def cubic(t: float) -> kc.float4:
    """Weights of four neighbours for the place t from 0 to 1 between the middle two (Catmull and Rom)."""
    return kc.float4(
        0.5 * t * (t * (2.0 - t) - 1.0),
        0.5 * (t * t * (3.0 * t - 5.0) + 2.0),
        0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
    )


@kc.func
def cubic_slope(t: float) -> kc.float4:
    """The derivative of `cubic`."""
    return kc.float4(
        0.5 * (t * (4.0 - 3.0 * t) - 1.0),
        0.5 * t * (9.0 * t - 10.0),
        0.5 * (t * (8.0 - 9.0 * t) + 1.0),
        0.5 * t * (3.0 * t - 2.0),
    )


@kc.func
def grid_surface(
    b, p, reach, kind, size, local, corners, box_start, box_count, face_start, face_count, low, high, node, cells,
    origin, spacing, distance,
):  # fmt: skip
    """Signed distances at the nodes of a grid, joined by cubics: a smooth surface with a continuous normal.

    Node (i, j, k) of body b is node[b] + (i · ny + j) nz + k, with (nx, ny, nz) = cells[b]. Where there are not four
    nodes around p, there is nothing to touch.
    """
    gap = FAR + 0.0 * p.x
    n = kc.float3()
    s = kc.cw_div(p - origin[b], spacing[b])
    i, j, k = int(kc.floor(s.x)), int(kc.floor(s.y)), int(kc.floor(s.z))
    inside = 1 <= i and i < cells[b, 0] - 2 and 1 <= j and j < cells[b, 1] - 2 and 1 <= k and k < cells[b, 2] - 2
    if inside:
        t = s - kc.float3(float(i), float(j), float(k))
        wx, wy, wz = cubic(t.x), cubic(t.y), cubic(t.z)
        dx, dy, dz = cubic_slope(t.x), cubic_slope(t.y), cubic_slope(t.z)
        value = 0.0
        slope = kc.float3()
        for u in range(4):
            for v in range(4):
                row = node[b] + ((i + u - 1) * cells[b, 1] + j + v - 1) * cells[b, 2] + k - 1
                along = 0.0
                across = 0.0
                for w in range(4):
                    along += wz[w] * distance[row + w]
                    across += dz[w] * distance[row + w]
                value += wx[u] * wy[v] * along
                slope += kc.float3(dx[u] * wy[v] * along, wx[u] * dy[v] * along, wx[u] * wy[v] * across)
        gap = value
        n = kc.normalize(kc.cw_div(slope, spacing[b]))
    return gap, n


# ------------------------------------------------------------------------------------------------------------- bounds
@kc.kernel
def body_bounds(
    kind: kc.Array[int],
    size: kc.Array[kc.float3],
    box_start: kc.Array[int],
    low: kc.Array[kc.float3],
    high: kc.Array[kc.float3],
    cells: kc.Array[int, 2],
    origin: kc.Array[kc.float3],
    spacing: kc.Array[kc.float3],
    bound: kc.Array[kc.float4],
):
    """A ball (centre, radius) in the body's frame that holds it: what is outside of it cannot touch.

    It only says where to look: no gradient goes through it.
    """
    b = kc.tid()
    s = kc.stop_grad(size[b])
    centre = kc.float3()
    radius = kc.length(kc.float2(s.x, 0.5 * s.y))
    if kind[b] == SPHERE:
        radius = s.x
    elif kind[b] == BOX:
        radius = 0.5 * kc.length(s)
    elif kind[b] == CAPSULE:
        radius = s.x + 0.5 * s.y
    elif kind[b] == MESH:
        k = box_start[b]
        centre = (low[k] + high[k]) * 0.5
        radius = 0.5 * kc.length(high[k] - low[k])
    elif kind[b] == GRID:
        nodes = kc.float3(float(cells[b, 0] - 1), float(cells[b, 1] - 1), float(cells[b, 2] - 1))
        half = kc.cw_mul(nodes, spacing[b]) * 0.5
        centre = origin[b] + half
        radius = kc.length(half)
    bound[b] = kc.float4(centre, radius * 1.00001)
