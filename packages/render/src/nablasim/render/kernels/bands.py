"""Copies for bands and frames, so that each sums its own gradients (coverage.py); and what faces get from vertices.

Numbers that belong to one thing lie side by side: the last axis here is "things times numbers".
"""

import kernelc as kc
from nablasim.render.kernels.triangles import Faces, face_of, of_face


@kc.kernel(block=64)
def copy_bands(source: kc.Array[float, 3], copies: kc.Array[float, 4]):
    """A row for each frame becomes a row for each of its bands."""
    b, band, k, p = kc.tid()
    copies[b, band, k, p] = source[b, k, p]


@kc.kernel
def spread_bands(source: kc.Array[float, 2], copies: kc.Array[float, 3]):
    """The same, from fewer rows than there are frames: they are used again and again."""
    b, band, k = kc.tid()
    copies[b, band, k] = source[b % source.shape[0], k]


@kc.kernel
def spread_rows(source: kc.Array[float, 2], copies: kc.Array[float, 2]):
    """A row for each frame, from fewer."""
    b, k = kc.tid()
    copies[b, k] = source[b % source.shape[0], k]


@kc.kernel
def spread_points(source: kc.Array[kc.float3, 2], copies: kc.Array[kc.float3, 2]):
    """Vertices for each frame, from fewer."""
    b, v = kc.tid()
    copies[b, v] = source[b % source.shape[0], v]


@kc.kernel
def copy_points(source: kc.Array[kc.float3], frame: kc.Array[kc.float3]):
    v = kc.tid()
    frame[v] = source[v]


# -- attributes of the corners of each slot
@kc.func
def corners_of(x, slots: Faces, frame, slot):
    """What the corners of a slot have: those of its face, or mixed, row k of `mix` for corner k."""
    a, b, c = of_face(x, slots.faces, frame, face_of(slot, slots.part, slots.faces.shape[0]))
    if slots.mix is not None:
        m = slots.mix[frame, slot]
        return (
            a * m[0, 0] + b * m[0, 1] + c * m[0, 2],
            a * m[1, 0] + b * m[1, 1] + c * m[1, 2],
            a * m[2, 0] + b * m[2, 1] + c * m[2, 2],
        )
    else:
        return a, b, c


@kc.kernel
def gather_vectors(x: kc.Array[kc.float3, 2], slots: Faces, out: kc.Array[kc.vec(9), 2]):
    """What the corners of each slot have: positions, normals, colours."""
    i, s = kc.tid()
    a, b, c = corners_of(x, slots, i, s)
    out[i, s] = kc.vec(9)(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z)


@kc.kernel
def gather_uvs(x: kc.Array[kc.float2, 2], slots: Faces, out: kc.Array[kc.vec(6), 2]):
    i, s = kc.tid()
    a, b, c = corners_of(x, slots, i, s)
    out[i, s] = kc.vec(6)(a.x, a.y, b.x, b.y, c.x, c.y)


@kc.kernel
def repeat_vectors(x: kc.Array[kc.float3, 2], part: int, out: kc.Array[kc.vec(9), 2]):
    """What each face has, at all three corners: colours, flat normals. Parts of a face have what the face has."""
    i, s = kc.tid()
    v = x[i, face_of(s, part, x.shape[1])]
    out[i, s] = kc.vec(9)(v.x, v.y, v.z, v.x, v.y, v.z, v.x, v.y, v.z)


# -- normals
@kc.kernel
def face_normals(x: kc.Array[kc.float3, 2], faces: kc.Array[int, 2], normal: kc.Array[kc.float3, 2]):
    i, f = kc.tid()
    a, b, c = of_face(x, faces, i, f)
    normal[i, f] = kc.normalize(kc.cross(b - a, c - a))


@kc.kernel
def add_normals(x: kc.Array[kc.float3, 2], faces: kc.Array[int, 2], total: kc.Array[kc.float3, 2]):
    """Add the normal of each face, as long as twice its area, to its vertices."""
    i, f = kc.tid()
    a, b, c = of_face(x, faces, i, f)
    n = kc.cross(b - a, c - a)
    total[i, faces[f, 0]] += n
    total[i, faces[f, 1]] += n
    total[i, faces[f, 2]] += n


@kc.kernel
def unit_vectors(x: kc.Array[kc.float3, 2], out: kc.Array[kc.float3, 2]):
    i, v = kc.tid()
    out[i, v] = kc.normalize(x[i, v])


@kc.kernel
def slopes(corner: kc.Array[kc.vec(6), 2], edges: kc.Array[kc.vec(22), 2], slope: kc.Array[kc.vec(4), 2]):
    """How the weights of the second and the third corner grow with x and y on the screen; zero for a flat triangle."""
    i, s = kc.tid()
    q = corner[i, s]
    bx, by, cx, cy = q[2] - q[0], q[3] - q[1], q[4] - q[0], q[5] - q[1]
    if edges[i, s][21] != 0.0:
        one = 1.0 / (bx * cy - by * cx)
        slope[i, s] = kc.vec(4)(cy * one, -cx * one, -by * one, bx * one)
    else:
        slope[i, s] = kc.vec(4)(0.0, 0.0, 0.0, 0.0)
