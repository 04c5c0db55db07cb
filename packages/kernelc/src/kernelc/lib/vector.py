"""Vectors: products, lengths and angles, for any number of components; quaternions count as four."""

import math

import kernelc as kc


@kc.func
def dot(a, b):
    return kc.vec(len(a))(a) @ kc.vec(len(b))(b)  # quaternions become vectors


@kc.func
def cross(a, b):
    return kc.float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@kc.func
def length_sq(v):
    return kc.dot(v, v)


@kc.func
def length(v):
    return kc.sqrt(kc.dot(v, v))  # sqrt has derivative 0 at 0, and so has the length


@kc.func
def normalize(v):
    # A quotient, not a product with 1 / size: its adjoint holds 1 / size once and does not overflow for short vectors.
    # Zero over infinity is zero, and so are its derivatives.
    size = kc.length(v)
    divisor = size if size > 0.0 else math.inf
    return v / divisor


@kc.func
def cw_mul(a, b):
    result = a
    for i in range(len(a)):
        if len(a.shape) == 2:
            for j in range(a.shape[1]):
                result[i, j] = a[i, j] * b[i, j]
        else:
            result[i] = a[i] * b[i]
    return result


@kc.func
def cw_div(a, b):
    result = a
    for i in range(len(a)):
        if len(a.shape) == 2:
            for j in range(a.shape[1]):
                result[i, j] = a[i, j] / b[i, j]
        else:
            result[i] = a[i] / b[i]
    return result


@kc.func
def outer(a, b):
    result = kc.mat(len(a), len(b))()
    for i in range(len(a)):
        for j in range(len(b)):
            result[i, j] = a[i] * b[j]
    return result


@kc.func
def reflect(v, n):
    return v - n * (2.0 * kc.dot(v, n))


@kc.func
def angle_between(a, b):
    # Kahan's formula: exact for small angles and near pi, where acos(dot) loses half of the digits.
    size_a = kc.length(a)
    size_b = kc.length(b)
    p = a * size_b
    q = b * size_a
    size = size_a * size_b
    return 2.0 * kc.atan2(above_rounding(kc.length(p - q), size), above_rounding(kc.length(p + q), size))


@kc.func
def above_rounding(x, scale):
    """x, or 0 without a derivative where x is just the rounding of numbers like `scale`: parallel vectors end there."""
    result = x if scale + 0.0625 * x != scale else 0.0
    return result
