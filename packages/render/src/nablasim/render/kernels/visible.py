"""Which face each sample sees, and what is there: for hard pictures, DIB-R, depth, normals, indices and flow.

The nearest face is found first, once. Everything else is computed for that face alone, and has gradients.
"""

import functools

import kernelc as kc
from nablasim.render.kernels.bins import tile_range
from nablasim.render.kernels.coverage import nearest_boundary, pixel_centre, squared_distance, tile_of
from nablasim.render.kernels.surface import mixed, shader, surface_weights
from nablasim.render.kernels.triangles import AREA, face_of


@kc.kernel(block=AREA)
def nearest_faces(
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
    slack: float,
    perspective: int,
    cull: int,
    seen: kc.Array[int, 3],
):
    """The slot whose triangle is the nearest at each sample; -1 if there is none. Of two at the same depth the first.

    Edges belong to the triangle; `slack` is added to it, so that rounding leaves no gap between two that share an edge.
    With `cull` only triangles that are counter-clockwise on the screen are seen.
    """
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, seen.shape[1])
    x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
    best = -1
    nearest = 1e30
    first, last, listed = tile_range(starts, items, b, tile, edges.shape[1])
    for k in range(first, last):
        s = items[b, k] if listed else k
        e = edges[b, s]
        if e[21] > 0.0 or (cull == 0 and e[21] < 0.0):
            s0 = e[0] * x + e[1] * y + e[2] + slack
            s1 = e[7] * x + e[8] * y + e[9] + slack
            s2 = e[14] * x + e[15] * y + e[16] + slack
            if s0 >= 0.0 and s1 >= 0.0 and s2 >= 0.0:
                _, _, _, depth = surface_weights(
                    corner[b, s], slope[b, s], deep[b, s], x, y, perspective, False, 0.0, 0.0, 0.0
                )
                if depth < nearest:
                    nearest = kc.stop_grad(depth)
                    best = s
    seen[band, t, p] = best


@kc.kernel(block=AREA)
def look(
    corner: kc.Array[kc.vec(6), 2],
    slope: kc.Array[kc.vec(4), 2],
    deep: kc.Array[kc.float3, 2],
    seen: kc.Array[int, 3],
    tiles_x: int,
    rows: int,
    columns: int,
    units: kc.float2,
    perspective: int,
    weights: kc.Array[kc.float3, 3],
    depth: kc.Array[float, 3],
):
    """Weights of the corners at the point that a sample sees, and its depth; zeros where it sees nothing."""
    band, t, p = kc.tid()
    _, tile = tile_of(band, t, seen.shape[1])
    x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
    s = seen[band, t, p]
    found = kc.float3()
    far = 0.0
    if s >= 0:
        pa, pb, pc, far = surface_weights(
            corner[band, s], slope[band, s], deep[band, s], x, y, perspective, False, 0.0, 0.0, 0.0
        )
        found = kc.float3(pa, pb, pc)
    weights[band, t, p] = found
    depth[band, t, p] = far


@kc.kernel(block=AREA)
def mix_seen(
    values: kc.Array[kc.vec(9), 2],
    seen: kc.Array[int, 3],
    weights: kc.Array[kc.float3, 3],
    unit: int,
    out: kc.Array[kc.float3, 3],
):
    """Three numbers per corner, mixed at what each sample sees; made a unit vector if `unit`."""
    band, t, p = kc.tid()
    s = seen[band, t, p]
    v = kc.float3()
    if s >= 0:
        w = weights[band, t, p]
        v = mixed(values[band, s], w.x, w.y, w.z)
        if unit != 0:
            v = kc.normalize(v)
    out[band, t, p] = v


@functools.cache
def paint(kind: tuple[bool, ...]):
    """The kernel that colours what is seen, for surfaces of one kind."""
    shade = shader(*kind)

    @kc.kernel(block=AREA)
    def paint_samples(
        paint: kc.Array[kc.vec(9), 2],
        uv: kc.Array[kc.vec(6), 2],
        texture: kc.Array[kc.float3, 2],
        normal: kc.Array[kc.vec(9), 2],
        position: kc.Array[kc.vec(9), 2],
        pose: kc.Array[kc.vec(12)],
        sky: kc.Array[kc.vec(30)],
        material: kc.Array[kc.float4],
        lights: kc.Array[kc.vec(10), 2],
        seen: kc.Array[int, 3],
        weights: kc.Array[kc.float3, 3],
        colour: kc.Array[kc.float3, 3],
    ):
        """The colour of what each sample sees."""
        band, t, p = kc.tid()
        s = seen[band, t, p]
        c = kc.float3()
        if s >= 0:
            w = weights[band, t, p]
            c = shade(paint, uv, texture, normal, position, pose, sky, material, lights, band, s, w.x, w.y, w.z)
        colour[band, t, p] = c

    return paint_samples


# -- DIB-R's mask. What runs back through its products is the adjoint of the logarithm, as in coverage.py.
@kc.func
def faded(left: float, x: float) -> float:
    """What is left uncovered after one more face, 1 - exp(-x)."""
    return left * -kc.expm1(-x)


@faded.adjoint
def _(left, x, adj_out):
    return adj_out, adj_out / kc.expm1(x) if x > 0.0 else 0.0


@kc.func
def mask_of(left: float) -> float:
    return 1.0 - left


@mask_of.adjoint
def _(left, adj_out):
    return -adj_out * left


@kc.kernel(block=AREA)
def soft_mask(
    corner: kc.Array[kc.vec(6), 2],
    edges: kc.Array[kc.vec(22), 2],
    starts: kc.Array[int, 2],
    items: kc.Array[int, 2],
    tiles_x: int,
    rows: int,
    columns: int,
    units: kc.float2,
    sigmainv: float,
    limit: float,
    seen: kc.Array[int, 3],
    left: kc.Array[float, 3],
):
    """DIB-R: Π(1 - exp(-sigmainv d²)) over the faces within reach of a sample that sees none; 0 for the others."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, seen.shape[1])
    x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
    first, last, listed = tile_range(starts, items, b, tile, edges.shape[1])
    total = 0.0
    if seen[band, t, p] < 0:
        total = 1.0
        for k in range(first, last):
            s = items[b, k] if listed else k
            d, _, u, v, w = nearest_boundary(edges[b, s], x, y)
            if d < limit:
                total = faded(total, sigmainv * squared_distance(corner[band, s], x, y, u, v, w))
    left[band, t, p] = total


# -- flow
@kc.kernel(block=AREA)
def flow_seen(
    view: kc.Array[kc.float3, 2],
    lens: kc.Array[kc.vec(5)],
    faces: kc.Array[int, 2],
    mix: kc.Array[kc.mat33, 2],
    part: int,
    perspective: int,
    near: float,
    tiles_x: int,
    rows: int,
    columns: int,
    units: kc.float2,
    seen: kc.Array[int, 3],
    weights: kc.Array[kc.float3, 3],
    flow: kc.Array[kc.float2, 3],
):
    """Where what a sample sees has gone in another view, in samples to the right and down; zero where it sees nothing,
    or where that is no longer in front of the camera."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, seen.shape[1])
    x, y = pixel_centre(tile, p, tiles_x, rows, columns, units)
    s = seen[band, t, p]
    moved = kc.float2()
    if s >= 0:
        w = weights[band, t, p]
        f = face_of(s, part, faces.shape[0])
        if part > 0:
            m = mix[b, s]
            w = kc.float3(
                w.x * m[0, 0] + w.y * m[1, 0] + w.z * m[2, 0],
                w.x * m[0, 1] + w.y * m[1, 1] + w.z * m[2, 1],
                w.x * m[0, 2] + w.y * m[1, 2] + w.z * m[2, 2],
            )
        v = view[band, faces[f, 0]] * w.x + view[band, faces[f, 1]] * w.y + view[band, faces[f, 2]] * w.z
        if v.z >= near:
            q = lens[band]
            vx = v.x / v.z if perspective != 0 else v.x
            vy = v.y / v.z if perspective != 0 else v.y
            dx = q[0] * vx + q[4] * vy + q[2] - x / units.x
            dy = q[1] * vy + q[3] - y / units.y
            moved = kc.float2(dx * 0.5 * float(columns), -dy * 0.5 * float(rows))
    flow[band, t, p] = moved
