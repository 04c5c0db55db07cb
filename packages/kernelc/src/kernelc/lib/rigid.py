"""Rigid motions (position p, rotation q) and spatial vectors.

Spatial vectors are (angular, linear): a twist is (angular velocity, velocity of the point at the origin), a wrench is
(torque about the origin, force), as in Featherstone's Rigid Body Dynamics Algorithms (2008).
"""

import kernelc as kc


@kc.func
def transform_identity():
    return kc.transform(kc.float3(0.0, 0.0, 0.0), kc.quat(0.0, 0.0, 0.0, 1.0))


@kc.func
def transform_position(t):
    return t.p


@kc.func
def transform_rotation(t):
    return t.q


@kc.func
def transform_point(t, p):
    return t.p + kc.quat_rotate(t.q, p)


@kc.func
def transform_vector(t, v):
    return kc.quat_rotate(t.q, v)


@kc.func
def transform_multiply(a, b):
    return kc.transform(a.p + kc.quat_rotate(a.q, b.p), a.q * b.q)


@kc.func
def transform_inverse(t):
    return kc.transform(-kc.quat_rotate_inv(t.q, t.p), kc.quat_inverse(t.q))


@kc.func
def join(top, bottom):
    return kc.spatial_vector(top.x, top.y, top.z, bottom.x, bottom.y, bottom.z)


@kc.func
def spatial_join(angular, linear):
    return join(angular, linear)


@kc.func
def spatial_top(a):
    return kc.float3(a[0], a[1], a[2])


@kc.func
def spatial_bottom(a):
    return kc.float3(a[3], a[4], a[5])


@kc.func
def spatial_dot(a, f):
    return kc.dot(a, f)


@kc.func
def spatial_cross(a, b):
    w = spatial_top(a)
    linear = kc.cross(w, spatial_bottom(b)) + kc.cross(spatial_bottom(a), spatial_top(b))
    return join(kc.cross(w, spatial_top(b)), linear)


@kc.func
def spatial_cross_dual(a, f):
    w = spatial_top(a)
    torque = kc.cross(w, spatial_top(f)) + kc.cross(spatial_bottom(a), spatial_bottom(f))
    return join(torque, kc.cross(w, spatial_bottom(f)))


@kc.func
def transform_twist(t, a):
    w = kc.quat_rotate(t.q, spatial_top(a))
    return join(w, kc.quat_rotate(t.q, spatial_bottom(a)) + kc.cross(t.p, w))


@kc.func
def transform_wrench(t, f):
    force = kc.quat_rotate(t.q, spatial_bottom(f))
    return join(kc.quat_rotate(t.q, spatial_top(f)) + kc.cross(t.p, force), force)


@kc.func
def blocks(a, b, c, d):
    """The 6 by 6 matrix [[a, b], [c, d]]."""
    result = kc.spatial_matrix()
    for i in range(3):
        for j in range(3):
            result[i, j] = a[i, j]
            result[i, j + 3] = b[i, j]
            result[i + 3, j] = c[i, j]
            result[i + 3, j + 3] = d[i, j]
    return result


@kc.func
def spatial_adjoint(t):
    r = kc.quat_to_matrix(t.q)
    return blocks(r, kc.mat33(), kc.skew(t.p) * r, r)


@kc.func
def spatial_inertia(mass, com, inertia):
    c = kc.skew(com)
    moment = c * mass
    unit = kc.diag(kc.float3(1.0, 1.0, 1.0))
    return blocks(inertia - moment * c, moment, -moment, unit * mass)
