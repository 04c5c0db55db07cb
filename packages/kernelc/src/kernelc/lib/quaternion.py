"""Quaternions (x, y, z, w) as rotations. Rotation vectors use series near zero: exact and smooth at the identity.

Unit length is expected, not enforced, except by quat_integrate, which would drift otherwise.
"""

import kernelc as kc


@kc.func
def quat_identity():
    return kc.quat(0.0, 0.0, 0.0, 1.0)


@kc.func
def quat_multiply(a, b):
    return a * b


@kc.func
def quat_inverse(q):
    return kc.quat(-q.x, -q.y, -q.z, q.w) / kc.dot(q, q)


@kc.func
def quat_rotate(q, v):
    u = kc.float3(q.x, q.y, q.z)
    t = 2.0 * kc.cross(u, v)
    return v + t * q.w + kc.cross(u, t)


@kc.func
def quat_rotate_inv(q, v):
    u = kc.float3(q.x, q.y, q.z)
    t = 2.0 * kc.cross(u, v)
    return v - t * q.w + kc.cross(u, t)


@kc.func
def quat_to_matrix(q):
    x = 2.0 * q.x
    y = 2.0 * q.y
    z = 2.0 * q.z
    return kc.mat33(
        1.0 - (y * q.y + z * q.z), x * q.y - z * q.w, x * q.z + y * q.w,
        x * q.y + z * q.w, 1.0 - (x * q.x + z * q.z), y * q.z - x * q.w,
        x * q.z - y * q.w, y * q.z + x * q.w, 1.0 - (x * q.x + y * q.y),
    )  # fmt: skip


@kc.func
def quat_from_matrix(m):
    """Shepperd's method: the largest of the four components is found first, so that nothing is divided by little."""
    xy = m[0, 1] + m[1, 0]
    yz = m[1, 2] + m[2, 1]
    zx = m[2, 0] + m[0, 2]
    wx = m[2, 1] - m[1, 2]
    wy = m[0, 2] - m[2, 0]
    wz = m[1, 0] - m[0, 1]
    t = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
    q = kc.quat(wx, wy, wz, t)
    if m[0, 0] + m[1, 1] + m[2, 2] < kc.max(m[0, 0], kc.max(m[1, 1], m[2, 2])):
        if m[0, 0] >= kc.max(m[1, 1], m[2, 2]):
            t = 1.0 + m[0, 0] - m[1, 1] - m[2, 2]
            q = kc.quat(t, xy, zx, wx)
        elif m[1, 1] >= m[2, 2]:
            t = 1.0 - m[0, 0] + m[1, 1] - m[2, 2]
            q = kc.quat(xy, t, yz, wy)
        else:
            t = 1.0 - m[0, 0] - m[1, 1] + m[2, 2]
            q = kc.quat(zx, yz, t, wz)
    half = 0.5 if q.w >= 0.0 else -0.5
    return q * (half / kc.sqrt(t))


@kc.func
def quat_from_axis_angle(axis, angle):
    u = kc.normalize(axis) * kc.sin(0.5 * angle)
    return kc.quat(u.x, u.y, u.z, kc.cos(0.5 * angle))


@kc.func
def quat_from_rotvec(r):
    x = 0.25 * kc.dot(r, r)  # square of half the angle
    if x < 0.01:
        k = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0)))
        w = 1.0 - x / 2.0 * (1.0 - x / 12.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0 * (1.0 - x / 90.0))))
    else:
        half = kc.sqrt(x)
        k = kc.sin(half) / half
        w = kc.cos(half)
    return kc.quat(0.5 * k * r.x, 0.5 * k * r.y, 0.5 * k * r.z, w)


@kc.func
def quat_to_rotvec(q):
    sign = -1.0 if q.w < 0.0 else 1.0  # of q and -q, the same rotation, the one with the smaller angle
    u = kc.float3(q.x, q.y, q.z)
    w = sign * q.w
    n = kc.dot(u, u)
    if n < 0.001 * w * w:
        y = n / (w * w)  # atan(sqrt(y)) / sqrt(y) as a series
        k = 1.0 - y * (1.0 / 3.0 - y * (0.2 - y * (1.0 / 7.0 - y * (1.0 / 9.0 - y * (1.0 / 11.0)))))
        k = k / w
    else:
        size = kc.sqrt(n)
        k = kc.atan2(size, w) / (size if size > 0.0 else 1.0)
    return u * (2.0 * sign * k)


@kc.func
def quat_integrate(q, w, dt):
    return kc.normalize(quat_from_rotvec(w * dt) * q)


@kc.func
def quat_slerp(a, b, t):
    """exp(t log(b a⁻¹)) a: the shorter way round, smooth where a = b."""
    conjugate = kc.quat(-a.x, -a.y, -a.z, a.w)
    return quat_from_rotvec(quat_to_rotvec(b * conjugate) * t) * a
