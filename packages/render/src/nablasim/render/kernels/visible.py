"""Which face each sample sees, and what is there: for hard pictures, DIB-R, depth, normals, indices and flow.

The nearest face is found first, once. Everything else is computed for that face alone, and has gradients.
"""

import functools

import kernelc as kc
from nablasim.render.kernels.bins import Lists, slots_of
from nablasim.render.kernels.coverage import nearest_boundary, pixel_centre, squared_distance, tile_of
from nablasim.render.kernels.surface import Surface, mixed, painted, shader, surface_weights
from nablasim.render.kernels.triangles import AREA, Faces, Lenses, Screen, Triangles, face_of, of_face, through_lens


@kc.struct
class Seen:
    """The slot that each sample sees, -1 where there is none, and the weights of its corners there."""

    slot: kc.Array[int, 3]
    weights: kc.Array[kc.float3, 3]


def nearest_kernel(is_next: bool):
    """The kernel that finds the nearest face of each sample, or the next one behind those that it looks through."""

    @kc.kernel(block=AREA)
    def nearest_faces(
        triangles: Triangles,
        lists: Lists,
        screen: Screen,
        slack: float,
        perspective: int,
        cull: int,
        before: kc.Array[float, 3],
        slot: kc.Array[int, 3],
    ):
        """The slot whose triangle is the nearest at each sample; -1 if there is none. Of two at the same depth the
        first. The next one lies behind the depth `before`, by more than rounding: where that is 0, there is none.

        Edges belong to the triangle; `slack` is added to it, so that rounding leaves no gap between two that share an
        edge. With `cull` only triangles that are counter-clockwise on the screen are seen.
        """
        band, t, p = kc.tid()
        b, tile = tile_of(band, t, slot.shape[1])
        x, y = pixel_centre(screen, tile, p)
        best = -1
        nearest = 1e30
        behind = -1e30
        if is_next:
            last = kc.stop_grad(before[band, t, p])
            behind = last + 1e-5 * kc.abs(last) if last != 0.0 else 1e30
        for s in slots_of(lists, b, tile):
            e = lists.edges[b, s]
            if e[21] > 0.0 or (cull == 0 and e[21] < 0.0):
                s0 = e[0] * x + e[1] * y + e[2] + slack
                s1 = e[7] * x + e[8] * y + e[9] + slack
                s2 = e[14] * x + e[15] * y + e[16] + slack
                if s0 >= 0.0 and s1 >= 0.0 and s2 >= 0.0:
                    q, m, h = triangles.corner[b, s], triangles.slope[b, s], triangles.deep[b, s]
                    _, _, _, depth = surface_weights(q, m, h, x, y, perspective, False, 0.0, 0.0, 0.0)
                    if depth < nearest and (not is_next or depth > behind):
                        nearest = kc.stop_grad(depth)
                        best = s
        slot[band, t, p] = best

    return nearest_faces


nearest_faces = nearest_kernel(False)
next_faces = nearest_kernel(True)


@kc.kernel(block=AREA)
def look(
    triangles: Triangles,
    slot: kc.Array[int, 3],
    screen: Screen,
    perspective: int,
    weights: kc.Array[kc.float3, 3],
    depth: kc.Array[float, 3],
):
    """Weights of the corners at the point that a sample sees, and its depth; zeros where it sees nothing."""
    band, t, p = kc.tid()
    _, tile = tile_of(band, t, slot.shape[1])
    x, y = pixel_centre(screen, tile, p)
    s = slot[band, t, p]
    found = kc.float3()
    far = 0.0
    if s >= 0:
        q, m, h = triangles.corner[band, s], triangles.slope[band, s], triangles.deep[band, s]
        pa, pb, pc, far = surface_weights(q, m, h, x, y, perspective, False, 0.0, 0.0, 0.0)
        found = kc.float3(pa, pb, pc)
    weights[band, t, p] = found
    depth[band, t, p] = far


@kc.kernel(block=AREA)
def mix_seen(values: kc.Array[kc.vec(9), 2], seen: Seen, unit: int, out: kc.Array[kc.float3, 3]):
    """Three numbers per corner, mixed at what each sample sees; made a unit vector if `unit`."""
    band, t, p = kc.tid()
    s = seen.slot[band, t, p]
    v = kc.float3()
    if s >= 0:
        w = seen.weights[band, t, p]
        v = mixed(values[band, s], w.x, w.y, w.z)
        if unit != 0:
            v = kc.normalize(v)
    out[band, t, p] = v


@functools.cache
def paint(kind: tuple[bool, ...]):
    """The kernel that colours what is seen, for surfaces of one kind."""
    shade = shader(*kind)

    @kc.kernel(block=AREA)
    def paint_samples(surface: Surface, seen: Seen, colour: kc.Array[kc.float4, 3]):
        """Colour and opacity of what each sample sees, the colour times the opacity."""
        band, t, p = kc.tid()
        s = seen.slot[band, t, p]
        c = kc.float4()
        if s >= 0:
            w = seen.weights[band, t, p]
            look = painted(surface.paint, band, s, w.x, w.y, w.z)
            shown = shade(surface, kc.float3(look.x, look.y, look.z), band, s, w.x, w.y, w.z)
            c = kc.float4(shown.x * look.w, shown.y * look.w, shown.z * look.w, look.w)
        colour[band, t, p] = c

    return paint_samples


@kc.kernel(block=AREA)
def lay_under(front: kc.Array[kc.float4, 3], back: kc.Array[kc.float4, 3], both: kc.Array[kc.float4, 3]):
    """What is seen through what lies in front of it."""
    band, t, p = kc.tid()
    over = front[band, t, p]
    both[band, t, p] = over + back[band, t, p] * (1.0 - over.w)


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
    lists: Lists,
    screen: Screen,
    sigmainv: float,
    limit: float,
    slot: kc.Array[int, 3],
    left: kc.Array[float, 3],
):
    """DIB-R: Π(1 - exp(-sigmainv d²)) over the faces within reach of a sample that sees none; 0 for the others."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, slot.shape[1])
    x, y = pixel_centre(screen, tile, p)
    total = 0.0
    if slot[band, t, p] < 0:
        total = 1.0
        for s in slots_of(lists, b, tile):
            d, _, u, v, w = nearest_boundary(lists.edges[b, s], x, y)
            if d < limit:
                total = faded(total, sigmainv * squared_distance(corner[band, s], x, y, u, v, w))
    left[band, t, p] = total


# -- flow
@kc.kernel(block=AREA)
def flow_seen(
    view: kc.Array[kc.float3, 2],
    lenses: Lenses,
    slots: Faces,
    near: float,
    screen: Screen,
    seen: Seen,
    flow: kc.Array[kc.float2, 3],
):
    """Where what a sample sees has gone in another view, in samples to the right and down; zero where it sees nothing,
    or where that is no longer in front of the camera."""
    band, t, p = kc.tid()
    b, tile = tile_of(band, t, seen.slot.shape[1])
    x, y = pixel_centre(screen, tile, p)
    s = seen.slot[band, t, p]
    moved = kc.float2()
    if s >= 0:
        w = seen.weights[band, t, p]
        if slots.mix is not None:
            w = w * slots.mix[b, s]
        f = face_of(s, slots.part, slots.faces.shape[0])
        pa, pb, pc = of_face(view, slots.faces, band, f)
        v = pa * w.x + pb * w.y + pc * w.z
        if v.z >= near:
            q, units = lenses.lens[band], lenses.units
            vx, vy = through_lens(v, lenses.perspective, q)
            dx = q[0] * vx + q[4] * vy + q[2] - x / units.x
            dy = q[1] * vy + q[3] - y / units.y
            moved = kc.float2(dx * 0.5 * float(screen.columns), -dy * 0.5 * float(screen.rows))
    flow[band, t, p] = moved
