"""Surfaces that things are pushed out of: a gap and an outward normal at a point, in the frame of the body they bound.

Three families with one signature, `surface(surfaces, b, p, reach)`: analytic shapes, closed triangle meshes, and signed
distances on a grid. Each answers for body b and point p; beyond `reach` outside of the surface the answer may be `FAR`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import BOX, CAPSULE, FIELD, GRID, MESH, SPHERE, shape_contact
from nablasim.physics.laws.rigid.bodies_kernels import Points

FAR = 1e30
FEET = 3
"""How often the foot of a point on a heightfield is improved."""
ABOVE = 2.0
"""How much more a triangle counts that a point is above, and not beside."""
BESIDE = 1e-6
"""As a part of the radius of the ball that holds a mesh: a point that is no farther beside a triangle is above it. The
direction to its border is not known well enough, where that is as close as rounding."""


@kc.struct
class Meshes:
    """Triangles of points, and boxes around groups of them: the first of a body holds all of its triangles."""

    corners: kc.Array[int, 2]
    box_start: kc.Array[int]
    box_count: kc.Array[int]
    face_start: kc.Array[int]
    face_count: kc.Array[int]
    low: kc.Array[kc.float3]
    high: kc.Array[kc.float3]


@kc.struct
class Grids:
    """Signed distances at nodes: (i, j, k) of body b is node[b] + (i · ny + j) nz + k, with (nx, ny, nz) = cells[b]."""

    node: kc.Array[int]
    cells: kc.Array[int, 2]
    origin: kc.Array[kc.float3]
    spacing: kc.Array[kc.float3]
    distance: kc.Array[float]


@kc.struct
class Edges:
    """Edges between points, `count` of them per body from `start` on. Ends that are balls are those of an axis."""

    ends: kc.Array[int, 2]
    start: kc.Array[int]
    count: kc.Array[int]


@kc.struct
class Surfaces:
    """What bodies touch with. `bound` is a ball (centre, radius) in the body's frame that holds it."""

    kind: kc.Array[int]
    size: kc.Array[kc.float3]
    bound: kc.Array[kc.float4]
    points: Points
    edges: Edges
    meshes: Meshes
    grids: Grids


@kc.func
def shape_surface(surfaces: Surfaces, b: int, p: kc.float3, reach: float):
    """An analytic shape: its exact signed distance, and the slope of that."""
    gap, n = shape_contact(surfaces.kind[b], surfaces.size[b], p)
    return gap, n


# ------------------------------------------------------------------------------------------------------------- meshes
@kc.func
def box_distance_sq(p: kc.float3, low: kc.float3, high: kc.float3) -> float:
    """The square of the distance of p from an upright box; zero inside."""
    return kc.length_sq(kc.max(low - p, 0.0) + kc.max(p - high, 0.0))


@kc.func
def triangle(surfaces: Surfaces, f: int):
    """The corners of a face, in the frame of its body."""
    local, corners = surfaces.points.local, surfaces.meshes.corners
    return local[corners[f, 0]], local[corners[f, 1]], local[corners[f, 2]]


@kc.func
def nearest_face(surfaces: Surfaces, body: int, p: kc.float3, reach: float) -> int:
    """The triangle that is nearest to p, or -1 if p is farther than `reach` from the box around all of them.

    The first of the boxes holds the whole mesh, the others groups of neighbours: those farther away than the best so
    far are left out. Where several triangles share the nearest point, the one that faces p most decides: only its side
    says whether p is inside. Those in one plane face p alike, and it is the one that p is above: the border of the
    other one is nearly as close, but not in the direction of the normal.
    """
    m = surfaces.meshes
    first = m.box_start[body]
    face = -1
    best = FAR
    facing = 0.0
    if box_distance_sq(p, m.low[first], m.high[first]) <= reach * reach:
        for k in range(first + 1, first + m.box_count[body]):
            if box_distance_sq(p, m.low[k], m.high[k]) <= best * 1.0001:
                for f in range(m.face_start[k], m.face_start[k] + m.face_count[k]):
                    a, b, c = triangle(surfaces, f)
                    w = kc.closest_point_triangle(p, a, b, c)
                    r = p - (a * w.x + b * w.y + c * w.z)
                    away = kc.length_sq(r)
                    faces = kc.abs(kc.dot(kc.normalize(kc.cross(b - a, c - a)), r))
                    if min(w.x, w.y, w.z) > 0.0:
                        faces *= ABOVE
                    if away < best * 0.9999 or (away <= best * 1.0001 and faces > facing):
                        face = f
                        facing = faces
                        best = kc.min(best, away)
    return face


@kc.func
def mesh_surface(surfaces: Surfaces, b: int, p: kc.float3, reach: float):
    """A closed mesh: the distance to its nearest triangle, which is constant for the gradient."""
    gap = FAR + 0.0 * p.x
    n = kc.float3()
    f = nearest_face(surfaces, b, kc.stop_grad(p), reach)
    if f >= 0:
        u, v, w = triangle(surfaces, f)
        m = kc.normalize(kc.cross(v - u, w - u))
        at = kc.closest_point_triangle(p, u, v, w)
        r = p - (u * at.x + v * at.y + w * at.z)
        away, beside = kc.length(r), kc.length(kc.stop_grad(r - m * kc.dot(m, r)))
        if min(at.x, at.y, at.z) > 0.0 or beside <= BESIDE * kc.stop_grad(surfaces.bound[b].w):
            gap = kc.dot(m, p - u)
            n = m
        else:  # Nearest is an edge or a corner.
            side = 1.0 if kc.dot(m, r) >= 0.0 else -1.0
            gap = away * side
            n = r * (side / away)
    return gap, n


@kc.kernel
def group_boxes(surfaces: Surfaces):
    """The box around a group of triangles. It only says where to look: no gradient goes through it."""
    k = kc.tid()
    m = surfaces.meshes
    least = kc.float3(FAR, FAR, FAR)
    most = kc.float3(-FAR, -FAR, -FAR)
    for f in range(m.face_start[k], m.face_start[k] + m.face_count[k]):
        for c in range(3):
            p = kc.stop_grad(surfaces.points.local[m.corners[f, c]])
            least = kc.min(least, p)
            most = kc.max(most, p)
    m.low[k] = least
    m.high[k] = most


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
def ground_at(g: Grids, b: int, x: float, z: float):
    """The height of ground and its normal at a place, in units of nodes: cubics between them (Catmull and Rom)."""
    i = min(max(int(kc.floor(x)), 0), g.cells[b, 0] - 2)
    k = min(max(int(kc.floor(z)), 0), g.cells[b, 2] - 2)
    wx, wz, dx, dz = cubic(x - float(i)), cubic(z - float(k)), cubic_slope(x - float(i)), cubic_slope(z - float(k))
    height, along_x, along_z = 0.0, 0.0, 0.0
    for u in range(4):
        for w in range(4):
            h = node_height(g, b, i + u - 1, k + w - 1)
            height += wx[u] * wz[w] * h
            along_x += dx[u] * wz[w] * h
            along_z += wx[u] * dz[w] * h
    return height, kc.normalize(kc.float3(-along_x / g.spacing[b].x, 1.0, -along_z / g.spacing[b].z))


@kc.func
def field_surface(surfaces: Surfaces, b: int, p: kc.float3):
    """Heights at the nodes of a grid. The ground nearest to p is looked for from what is below it, by the planes that
    touch it there; it is not farther to the side than a few cells.
    """
    g = surfaces.grids
    gap, n = FAR + 0.0 * p.x, kc.float3()
    low, step = g.origin[b], g.spacing[b]
    x, z = (p.x - low.x) / step.x, (p.z - low.z) / step.z
    if x >= 0.0 and x <= float(g.cells[b, 0] - 1) and z >= 0.0 and z <= float(g.cells[b, 2] - 1):
        most = 4.0 * max(step.x, step.z)
        height, n = ground_at(g, b, x, z)
        gap = (p.y - height) * n.y
        for _k in range(FEET):
            away = kc.clamp(gap, -most, most)
            fx, fz = p.x - n.x * away, p.z - n.z * away
            height, n = ground_at(g, b, (fx - low.x) / step.x, (fz - low.z) / step.z)
            gap = (p.x - fx) * n.x + (p.y - height) * n.y + (p.z - fz) * n.z
    return gap, n


@kc.func
def node_height(g: Grids, b: int, i: int, k: int) -> float:
    """The height of a node; one beyond the border lies on the line through the last two."""
    nx, nz = g.cells[b, 0], g.cells[b, 2]
    ci, ck = min(max(i, 0), nx - 1), min(max(k, 0), nz - 1)
    first = g.node[b]
    h = g.distance[first + ci * nz + ck]
    return 3.0 * h - g.distance[first + (2 * ci - i) * nz + ck] - g.distance[first + ci * nz + 2 * ck - k]


@kc.func
def grid_surface(surfaces: Surfaces, b: int, p: kc.float3, reach: float):
    """Heights of ground, or signed distances at the nodes of a grid."""
    gap, n = FAR + 0.0 * p.x, kc.float3()
    if surfaces.kind[b] == FIELD:
        gap, n = field_surface(surfaces, b, p)
    else:
        gap, n = distance_surface(surfaces, b, p)
    return gap, n


@kc.func
def distance_surface(surfaces: Surfaces, b: int, p: kc.float3):
    """Signed distances, joined by cubics: a smooth surface with a continuous normal.

    Where there are not four nodes around p, there is nothing to touch.
    """
    g = surfaces.grids
    gap = FAR + 0.0 * p.x
    n = kc.float3()
    s = kc.cw_div(p - g.origin[b], g.spacing[b])
    i, j, k = int(kc.floor(s.x)), int(kc.floor(s.y)), int(kc.floor(s.z))
    nx, ny, nz = g.cells[b, 0], g.cells[b, 1], g.cells[b, 2]
    if i >= 1 and i < nx - 2 and j >= 1 and j < ny - 2 and k >= 1 and k < nz - 2:
        t = s - kc.float3(float(i), float(j), float(k))
        wx, wy, wz = cubic(t.x), cubic(t.y), cubic(t.z)
        dx, dy, dz = cubic_slope(t.x), cubic_slope(t.y), cubic_slope(t.z)
        value = 0.0
        slope = kc.float3()
        for u in range(4):
            for v in range(4):
                row = g.node[b] + ((i + u - 1) * ny + j + v - 1) * nz + k - 1
                along = 0.0
                across = 0.0
                for w in range(4):
                    along += wz[w] * g.distance[row + w]
                    across += dz[w] * g.distance[row + w]
                value += wx[u] * wy[v] * along
                slope += kc.float3(dx[u] * wy[v] * along, wx[u] * dy[v] * along, wx[u] * wy[v] * across)
        gap = value
        n = kc.normalize(kc.cw_div(slope, g.spacing[b]))
    return gap, n


# ------------------------------------------------------------------------------------------------------------- bounds
@kc.kernel
def body_bounds(surfaces: Surfaces):
    """The ball that holds a body: what is outside of it cannot touch.

    It only says where to look: no gradient goes through it.
    """
    b = kc.tid()
    kind, m, g = surfaces.kind[b], surfaces.meshes, surfaces.grids
    s = kc.stop_grad(surfaces.size[b])
    centre = kc.float3()
    radius = kc.length(kc.float2(s.x, 0.5 * s.y))
    if kind == SPHERE:
        radius = s.x
    elif kind == BOX:
        radius = 0.5 * kc.length(s)
    elif kind == CAPSULE:
        radius = s.x + 0.5 * s.y
    elif kind == MESH:
        k = m.box_start[b]
        centre = (m.low[k] + m.high[k]) * 0.5
        radius = 0.5 * kc.length(m.high[k] - m.low[k])
    elif kind == GRID:
        nodes = kc.float3(float(g.cells[b, 0] - 1), float(g.cells[b, 1] - 1), float(g.cells[b, 2] - 1))
        half = kc.cw_mul(nodes, g.spacing[b]) * 0.5
        centre = g.origin[b] + half
        radius = kc.length(half)
    elif kind == FIELD:
        # All that is above the rectangle, and as far below as it is wide.
        least, most, half = FAR, -FAR, -g.origin[b]
        for i in range(g.node[b], g.node[b] + g.cells[b, 0] * g.cells[b, 2]):
            least, most = min(least, kc.stop_grad(g.distance[i])), max(most, kc.stop_grad(g.distance[i]))
        wide = max(half.x, half.z)
        centre = kc.float3(0.0, 0.5 * (least + most) - wide, 0.0)
        radius = kc.length(kc.float3(half.x, 0.5 * (most - least) + wide, half.z))
    surfaces.bound[b] = kc.float4(centre, radius * 1.00001)
