"""From vertices to triangles on the screen: view transform, clipping, projection, tables for distances.

A grid is (frame, vertex) or (frame, slot). A slot holds one triangle. A face has one slot, or four where faces may be
clipped: slot f + k part for k from 0 to 3. There are multiples of 64 slots. A slot without a triangle has an empty box,
and is in no list.

The screen is NDC times `units`: (1, 1), or half the picture's size where distances are measured in pixels.
"""

import kernelc as kc

FLAT = 1e-10
"""A triangle is flat if twice its area is below this part of its longest edge squared."""
STUB = 1e-12
"""An edge shorter than this counts as one of this length, so that it has a direction."""

FAR = 1e9
BITS = 2
TILE = 1 << BITS
"""Pixels along the side of a tile: what runs side by side in lanes looks at the same faces. A power of two, because
shifts are faster in lanes than divisions."""
AREA = TILE * TILE


@kc.struct
class Screen:
    """A grid of samples: tiles in a row, rows and columns of samples, and the unit of distances on it."""

    tiles_x: int
    rows: int
    columns: int
    units: kc.float2


@kc.struct
class Triangles:
    """What slots hold: corners on the screen, how weights change there (bands.slopes), and depths or their inverses."""

    corner: kc.Array[kc.vec(6), 2]
    slope: kc.Array[kc.vec(4), 2]
    deep: kc.Array[kc.float3, 2]


@kc.struct
class Lenses:
    """kx, ky, ox, oy, skew of each frame, then what `bent` reads; whether they see in perspective, and the unit of the
    screen."""

    lens: kc.Array[kc.vec(11)]
    perspective: int
    units: kc.float2


@kc.struct
class Faces:
    """The vertices of faces; where faces may be clipped, of which corners those of a slot are made, and `part`."""

    faces: kc.Array[int, 2]
    mix: kc.Array[kc.mat33, 2] | None
    part: int


@kc.func
def face_of(slot, part, count):
    """The face of a slot; the last one for slots that belong to none. `part` is 0 where a face has one slot."""
    half = slot - 2 * part if slot >= 2 * part else slot
    f = half - part if half >= part else half
    return f if f < count else count - 1


@kc.func
def of_face(values, faces, frame, f):
    """What the three vertices of a face have."""
    return values[frame, faces[f, 0]], values[frame, faces[f, 1]], values[frame, faces[f, 2]]


@kc.kernel
def view_vertices(x: kc.Array[kc.float3, 2], pose: kc.Array[kc.vec(12)], view: kc.Array[kc.float3, 2]):
    """x right, y up, depth: rows of the pose are the camera's right, up and backward axes, then its position."""
    b, v = kc.tid()
    r = pose[b]
    d = x[b, v] - kc.float3(r[9], r[10], r[11])
    right = kc.float3(r[0], r[1], r[2])
    up = kc.float3(r[3], r[4], r[5])
    back = kc.float3(r[6], r[7], r[8])
    view[b, v] = kc.float3(kc.dot(right, d), kc.dot(up, d), -kc.dot(back, d))


@kc.func
def in_perspective(p, perspective):
    """A point of the view on the plane at depth 1, or as it is for an orthographic camera."""
    return p.x / p.z if perspective != 0 else p.x, p.y / p.z if perspective != 0 else p.y


@kc.func
def bent(x: float, y: float, q):
    """Where a lens with distortion shows a point of the plane at depth 1: OpenCV's model, with y up.

    q[5:10] are k1, k2, p1, p2, k3. q[10] is the squared radius at which the model turns back, and would fold what is
    far outside into the picture: from there on it goes straight outwards. It is 0 for a lens without distortion.
    """
    r2 = x * x + y * y
    edge = q[10]
    if edge > 0.0:
        shrink = 1.0
        ahead = 0.0
        if r2 > edge:
            r = kc.sqrt(r2)
            shrink = kc.sqrt(edge) / r
            ahead = 1.0 - shrink
        a, b = x * shrink, y * shrink
        s2 = a * a + b * b
        radial = s2 * (q[5] + s2 * (q[6] + s2 * q[9])) * shrink
        across = 2.0 * a * b
        bx = x * (shrink + radial + ahead) + q[8] * (s2 + 2.0 * a * a) - q[7] * across
        by = y * (shrink + radial + ahead) - q[7] * (s2 + 2.0 * b * b) + q[8] * across
        return bx, by
    else:
        return x, y


@kc.func
def through_lens(p, perspective, q):
    """A point of the view on the plane at depth 1, as the lens bends it."""
    x, y = in_perspective(p, perspective)
    return bent(x, y, q)


@kc.func
def to_screen(p, lenses: Lenses, frame):
    """Of a point in the view."""
    q, units = lenses.lens[frame], lenses.units
    x, y = through_lens(p, lenses.perspective, q)
    return kc.float2((q[0] * x + q[4] * y + q[2]) * units.x, (q[1] * y + q[3]) * units.y)


@kc.func
def store_triangle(a, b, c, lenses: Lenses, frame, slot, corner, deep):
    """Corners on the screen; and, for interpolation, inverse depths (perspective) or depths (orthographic)."""
    sa, sb, sc = to_screen(a, lenses, frame), to_screen(b, lenses, frame), to_screen(c, lenses, frame)
    corner[frame, slot] = kc.vec(6)(sa.x, sa.y, sb.x, sb.y, sc.x, sc.y)
    if lenses.perspective != 0:
        deep[frame, slot] = kc.float3(1.0 / a.z, 1.0 / b.z, 1.0 / c.z)
    else:
        deep[frame, slot] = kc.float3(a.z, b.z, c.z)


@kc.kernel
def project_faces(
    view: kc.Array[kc.float3, 2],
    faces: kc.Array[int, 2],
    lenses: Lenses,
    count: int,
    corner: kc.Array[kc.vec(6), 2],
    deep: kc.Array[kc.float3, 2],
    there: kc.Array[int, 2],
):
    """Every face is one triangle: nothing is nearer than the near plane, or beyond the far one."""
    i, s = kc.tid()
    f = face_of(s, 0, faces.shape[0])
    a, b, c = of_face(view, faces, i, f)
    store_triangle(a, b, c, lenses, i, s, corner, deep)
    there[i, s] = 1 if s < count else 0


@kc.func
def crossing(a, b, plane):
    """How far from a to b the plane is; a and b are on different sides."""
    return (plane - a.z) / (b.z - a.z)


@kc.func
def rotated(k, a, b, c):
    """The three, beginning with number k."""
    if k == 1:
        return b, c, a
    elif k == 2:
        return c, a, b
    else:
        return a, b, c


@kc.func
def keeps(z: float, plane: float, beyond: bool) -> bool:
    return z >= plane if beyond else z <= plane


@kc.func
def cut(a, b, c, plane, beyond, second):
    """What is left of a triangle beyond a plane, or before it: a triangle, two, or none. Gives the first or the second
    of them, the weights of a, b and c at each of its corners, and whether there is one.

    With one corner left, that one and two crossings. With two, a quadrilateral of the crossings p, q and the corners
    b, c: the triangles p b c and p c q.
    """
    in_a, in_b, in_c = keeps(a.z, plane, beyond), keeps(b.z, plane, beyond), keeps(c.z, plane, beyond)
    many = int(in_a) + int(in_b) + int(in_c)
    first = 0
    if many == 1:
        first = 0 if in_a else (1 if in_b else 2)
    if many == 2:
        first = 2 if in_a and in_b else (1 if in_a else 0)
    a, b, c = rotated(first, a, b, c)
    e0, e1, e2 = rotated(first, kc.float3(1.0, 0.0, 0.0), kc.float3(0.0, 1.0, 0.0), kc.float3(0.0, 0.0, 1.0))
    exists = many > 0 and (not second or many == 2)
    # Straight ahead: slots without a triangle stay finite.
    p, q, r = kc.float3(0.0, 0.0, plane), kc.float3(0.0, 0.0, plane), kc.float3(0.0, 0.0, plane)
    wp, wq, wr = e0, e1, e2
    if exists:
        if many == 3:
            p, q, r = a, b, c
        else:
            t = crossing(a, b, plane)
            u = crossing(a, c, plane)
            ab = kc.float3(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), plane)
            ac = kc.float3(a.x + u * (c.x - a.x), a.y + u * (c.y - a.y), plane)
            w_ab = e0 * (1.0 - t) + e1 * t
            w_ac = e0 * (1.0 - u) + e2 * u
            if many == 1:
                p, q, r = a, ab, ac
                wp, wq, wr = e0, w_ab, w_ac
            elif second:
                p, q, r = ab, c, ac
                wp, wq, wr = w_ab, e2, w_ac
            else:
                p, q, r = ab, b, c
                wp, wq, wr = w_ab, e1, e2
    return p, q, r, wp, wq, wr, exists


@kc.kernel
def clip_faces(
    view: kc.Array[kc.float3, 2],
    faces: kc.Array[int, 2],
    lenses: Lenses,
    count: int,
    near: float,
    far: float,
    part: int,
    corner: kc.Array[kc.vec(6), 2],
    deep: kc.Array[kc.float3, 2],
    mix: kc.Array[kc.mat33, 2],
    there: kc.Array[int, 2],
):
    """What is left of each face between the near and the far plane: the near one leaves two triangles at most, and the
    far one two of each. Row k of `mix` says of which corners of the face corner k is made."""
    i, s = kc.tid()
    f = face_of(s, part, faces.shape[0])
    behind = s >= 2 * part
    half = s - 2 * part if behind else s
    second = half >= part
    is_face = (half - part if second else half) < count
    a, b, c = of_face(view, faces, i, f)
    a, b, c, wa, wb, wc, in_front = cut(a, b, c, near, True, second)
    p, q, r, wp, wq, wr, in_reach = cut(a, b, c, far, False, behind)
    store_triangle(p, q, r, lenses, i, s, corner, deep)
    mp = wa * wp.x + wb * wp.y + wc * wp.z
    mq = wa * wq.x + wb * wq.y + wc * wq.z
    mr = wa * wr.x + wb * wr.y + wc * wr.z
    mix[i, s] = kc.mat33(mp.x, mp.y, mp.z, mq.x, mq.y, mq.z, mr.x, mr.y, mr.z)
    there[i, s] = 1 if is_face and in_front and in_reach else 0


# -- tables: what is constant while pixels look at a triangle, without gradients
@kc.func
def edge_table(ax, ay, bx, by, sign):
    """For the edge a b: n·p + c is the distance from its line, positive inside; t·p + d the place along it, 0 at a.

    Gives n, c, t, d and the squared length.
    """
    x = bx - ax
    y = by - ay
    size = x * x + y * y
    if size < STUB * STUB:
        x = 0.0
        y = STUB
        size = STUB * STUB
    inverse = 1.0 / size
    length = kc.sqrt(size)
    nx = -y / length * sign
    ny = x / length * sign
    tx = x * inverse
    ty = y * inverse
    return nx, ny, -(nx * ax + ny * ay), tx, ty, -(tx * ax + ty * ay), size


@kc.func
def grid_cell(x, size):
    """The pixel, as a real number, whose centre has a coordinate x in [-1, 1] of a picture of this size."""
    return (x * size + size - 1.0) * 0.5


@kc.kernel
def tabulate(
    corner: kc.Array[kc.vec(6), 2],
    there: kc.Array[int, 2],
    screen: Screen,
    reach: float,
    edges: kc.Array[kc.vec(22), 2],
    box: kc.Array[kc.int4, 2],
):
    """Edges of each triangle, then twice its area (0: flat); and the tiles that its soft border reaches."""
    b, s = kc.tid()
    q = kc.stop_grad(corner[b, s])
    area = (q[2] - q[0]) * (q[5] - q[1]) - (q[3] - q[1]) * (q[4] - q[0])
    sign = -1.0 if area < 0.0 else 1.0
    n0, n1, n2, n3, n4, n5, n6 = edge_table(q[0], q[1], q[2], q[3], sign)
    m0, m1, m2, m3, m4, m5, m6 = edge_table(q[2], q[3], q[4], q[5], sign)
    k0, k1, k2, k3, k4, k5, k6 = edge_table(q[4], q[5], q[0], q[1], sign)
    proper = there[b, s] != 0 and kc.abs(area) > FLAT * max(n6, m6, k6)
    if there[b, s] == 0:
        # No triangle: far from everything, for those who look at every slot.
        n0, n1, n2, m0, m1, m2, k0, k1, k2 = 0.0, 0.0, FAR, 0.0, 0.0, FAR, 0.0, 0.0, FAR
    edges[b, s] = kc.vec(22)(
        n0, n1, n2, n3, n4, n5, n6, m0, m1, m2, m3, m4, m5, m6, k0, k1, k2, k3, k4, k5, k6, area if proper else 0.0
    )  # fmt: skip
    left = (min(q[0], q[2], q[4]) - reach) / screen.units.x
    right = (max(q[0], q[2], q[4]) + reach) / screen.units.x
    low = (min(q[1], q[3], q[5]) - reach) / screen.units.y
    high = (max(q[1], q[3], q[5]) + reach) / screen.units.y
    # A pixel more on each side: rounding must not lose one.
    first_column = kc.clamp(kc.floor(grid_cell(left, float(screen.columns))), -1.0, float(screen.columns))
    last_column = kc.clamp(kc.ceil(grid_cell(right, float(screen.columns))), -1.0, float(screen.columns))
    first_row = kc.clamp(kc.floor(grid_cell(-high, float(screen.rows))), -1.0, float(screen.rows))
    last_row = kc.clamp(kc.ceil(grid_cell(-low, float(screen.rows))), -1.0, float(screen.rows))
    i0, i1 = max(int(first_row), 0), min(int(last_row), screen.rows - 1)
    j0, j1 = max(int(first_column), 0), min(int(last_column), screen.columns - 1)
    if there[b, s] == 0 or i0 > i1 or j0 > j1:
        box[b, s] = kc.int4(1, 0, 1, 0)
    else:
        box[b, s] = kc.int4(i0 // TILE, i1 // TILE, j0 // TILE, j1 // TILE)
