"""Singular values, polar factors and eigenvalues of 2 by 2 and 3 by 3 matrices, by Jacobi rotations.

The number of sweeps is fixed: all lanes do the same work, and the count is enough for float64. Rotations of columns
(one-sided Jacobi, Hestenes 1958) find small singular values to their own relative precision, which the eigenvalues
of MᵀM cannot. Matrices are scaled to entries of at most 1 first, so that nothing overflows.

The adjoints are written by hand: a rotation that has converged says nothing about how it would turn. They divide by
differences (and sums) of values; where such a number is lost in rounding, its reciprocal counts as zero. So gradients
are finite, and at equal values exact for what does not depend on the basis there: the sum of s, U Vᵀ, everything that
polar2 and polar3 return. What treats equal values differently once they differ, such as U f(s) Vᵀ, has no gradient in
these results alone at exactly equal values: the part that would separate them is left out.
"""

import kernelc as kc

# Measured on 2.4 million matrices of all kinds in float64; the vectors of tiny singular values need one sweep more.
SVD_SWEEPS = 5
EIGEN_SWEEPS = 4


@kc.func
def largest(m):
    """The largest magnitude in m, or 1 for a zero matrix: what to divide m by."""
    size = kc.abs(m[0, 0])
    for i in range(len(m)):
        for j in range(len(m[0])):
            size = kc.max(size, kc.abs(m[i, j]))
    scale = size if size > 0.0 else 1.0
    return scale


@kc.func
def reciprocal(x, scale):
    """1 / x, or 0 where x is lost in the rounding of `scale` (about 16 units in its last place)."""
    counts = scale + 0.03125 * x != scale
    inverse = 1.0 / (x if counts else 1.0)
    result = inverse if counts else 0.0
    return result


@kc.func
def jacobi(app, apq, aqq):
    """Cosine and sine of the smaller rotation that makes [[app, apq], [apq, aqq]] diagonal (Golub and Van Loan 8.5)."""
    twice = 2.0 * apq
    tau = (aqq - app) / (twice if apq != 0.0 else 1.0)
    root = kc.sqrt(1.0 + tau * tau)
    t = 1.0 / (tau + (root if tau >= 0.0 else -root))
    t = t if apq != 0.0 else 0.0
    c = 1.0 / kc.sqrt(1.0 + t * t)
    return c, t * c


@kc.func
def turn(bp, bq, vp, vq):
    """Make the columns bp and bq orthogonal; vp and vq turn with them."""
    c, s = jacobi(kc.dot(bp, bp), kc.dot(bp, bq), kc.dot(bq, bq))
    return bp * c - bq * s, bp * s + bq * c, vp * c - vq * s, vp * s + vq * c


@kc.func
def order(bp, bq, vp, vq):
    """The longer column first; a swap changes one sign, so that V stays a rotation."""
    swap = kc.dot(bp, bp) < kc.dot(bq, bq)
    b = -bp
    v = -vp
    first, second = bq if swap else bp, b if swap else bq
    first_v, second_v = vq if swap else vp, v if swap else vq
    return first, second, first_v, second_v


@kc.func
def perpendicular(u):
    """A unit vector at right angles to the unit vector u."""
    a = kc.float3(-u.y, u.x, 0.0)
    b = kc.float3(0.0, -u.z, u.y)
    v = a if kc.abs(u.x) > kc.abs(u.z) else b
    return kc.normalize(v)


@kc.func
def direction(v):
    """normalize(v), also where the square of v is too small a number."""
    size = kc.max(kc.abs(v.x), kc.max(kc.abs(v.y), kc.abs(v.z)))
    scale = size if size > 0.0 else 1.0
    return kc.normalize(v / scale)


@kc.func
def basis(b0, b1, b2):
    """Orthonormal columns along b0, b1, b2, which are orthogonal, longest first, some of them zero or just noise."""
    u0 = kc.normalize(b0 if kc.dot(b0, b0) > 0.0 else kc.float3(1.0, 0.0, 0.0))
    once = b1 - u0 * kc.dot(u0, b1)
    twice = once - u0 * kc.dot(u0, once)
    # If the second pass still removes much, b1 was noise along u0, and any direction will do.
    u1 = direction(twice)
    other = perpendicular(u0)
    u1 = u1 if kc.dot(twice, twice) > 0.25 * kc.dot(once, once) else other
    u2 = kc.cross(u0, u1)
    sign = -1.0 if kc.dot(u2, b2) < 0.0 else 1.0
    return u0, u1, u2 * sign


@kc.func
def jacobi_svd3(m):
    scale = largest(m)
    b0 = kc.float3(m[0, 0], m[1, 0], m[2, 0]) / scale
    b1 = kc.float3(m[0, 1], m[1, 1], m[2, 1]) / scale
    b2 = kc.float3(m[0, 2], m[1, 2], m[2, 2]) / scale
    v0 = kc.float3(1.0, 0.0, 0.0)
    v1 = kc.float3(0.0, 1.0, 0.0)
    v2 = kc.float3(0.0, 0.0, 1.0)
    for _ in range(SVD_SWEEPS):
        b0, b1, v0, v1 = turn(b0, b1, v0, v1)
        b0, b2, v0, v2 = turn(b0, b2, v0, v2)
        b1, b2, v1, v2 = turn(b1, b2, v1, v2)
    b0, b1, v0, v1 = order(b0, b1, v0, v1)
    b0, b2, v0, v2 = order(b0, b2, v0, v2)
    b1, b2, v1, v2 = order(b1, b2, v1, v2)
    u0, u1, u2 = basis(b0, b1, b2)
    s = kc.float3(kc.length(b0), kc.length(b1), kc.length(b2)) * scale
    return kc.mat33(u0, u1, u2), s, kc.mat33(v0, v1, v2)


@kc.func
def svd3(m):
    return jacobi_svd3(m)


@svd3.adjoint
def _(m, adj_u, adj_s, adj_v):
    u, s, v = jacobi_svd3(m)
    return svd_adjoint(u, s, v, adj_u, adj_s, adj_v)


@kc.func
def svd_adjoint(u, s, v, adj_u, adj_s, adj_v):
    """With Ω = Uᵀ dU, Ψ = Vᵀ dV (both skew) and P = Uᵀ dM V, for i < j:
    P_ij + P_ji = (Ω_ij + Ψ_ij) (s_j - s_i) and P_ij - P_ji = (Ω_ij - Ψ_ij) (s_j + s_i)."""
    a = kc.transpose(u) * adj_u
    b = kc.transpose(v) * adj_v
    p = kc.diag(adj_s)
    for i in range(len(s)):
        for j in range(i + 1, len(s)):
            omega = a[i, j] - a[j, i]
            psi = b[i, j] - b[j, i]
            even = -0.5 * (omega + psi) * reciprocal(s[i] - s[j], s[0])
            odd = 0.5 * (omega - psi) * reciprocal(s[i] + s[j], s[0])
            p[i, j] = even + odd
            p[j, i] = even - odd
    return u * p * kc.transpose(v)


@kc.func
def jacobi_svd2(m):
    scale = largest(m)
    b0 = kc.float2(m[0, 0], m[1, 0]) / scale
    b1 = kc.float2(m[0, 1], m[1, 1]) / scale
    v0 = kc.float2(1.0, 0.0)
    v1 = kc.float2(0.0, 1.0)
    for _ in range(3):  # one rotation is exact, the others remove its rounding when the columns are nearly parallel
        b0, b1, v0, v1 = turn(b0, b1, v0, v1)
    b0, b1, v0, v1 = order(b0, b1, v0, v1)
    u0 = kc.normalize(b0 if kc.dot(b0, b0) > 0.0 else kc.float2(1.0, 0.0))
    sign = -1.0 if u0.x * b1.y - u0.y * b1.x < 0.0 else 1.0
    u1 = kc.float2(-u0.y, u0.x) * sign
    s = kc.float2(kc.length(b0), kc.length(b1)) * scale
    return kc.mat22(u0, u1), s, kc.mat22(v0, v1)


@kc.func
def svd2(m):
    return jacobi_svd2(m)


@svd2.adjoint
def _(m, adj_u, adj_s, adj_v):
    u, s, v = jacobi_svd2(m)
    return svd_adjoint(u, s, v, adj_u, adj_s, adj_v)


@kc.func
def polar3(m):
    u, s, v = jacobi_svd3(m)
    return u * kc.transpose(v), v * kc.diag(s) * kc.transpose(v)


@polar3.adjoint
def _(m, adj_r, adj_s):
    """With X = Rᵀ dR (skew): Rᵀ dM - dMᵀ R = X S + S X, so that X_ij (s_i + s_j) is known in the basis V."""
    u, s, v = jacobi_svd3(m)
    r = u * kc.transpose(v)
    even = 0.5 * (adj_s + kc.transpose(adj_s))
    # In the basis V: z is what multiplies X, namely Rᵀ adj_r - adj_s S.
    z = kc.transpose(u) * adj_r * v - kc.transpose(v) * even * v * kc.diag(s)
    h = z
    for i in range(3):
        for j in range(3):
            h[i, j] = (z[i, j] - z[j, i]) * reciprocal(s[i] + s[j], s[0])
    return u * h * kc.transpose(v) + r * even


@kc.func
def polar2(m):
    """M + cof M is (s1 + s2) R where det M >= 0; where det M < 0, M - cof M is. Differentiated as it stands."""
    sign = -1.0 if kc.determinant(m / largest(m)) < 0.0 else 1.0
    p = m[0, 0] + sign * m[1, 1]
    q = m[1, 0] - sign * m[0, 1]
    size = kc.hypot(p, q)
    divisor = size if size > 0.0 else 1.0
    c = (p if size > 0.0 else 1.0) / divisor
    s = q / divisor
    r = kc.mat22(c, -sign * s, s, sign * c)
    t = kc.transpose(r) * m
    mean = 0.5 * (t[0, 1] + t[1, 0])
    return r, kc.mat22(t[0, 0], mean, mean, t[1, 1])


@kc.func
def turn_symmetric(app, aqq, apq, apr, aqr, vp, vq):
    """One Jacobi rotation of a symmetric 3 by 3 matrix: the new app, aqq, apr, aqr and eigenvectors; apq becomes 0."""
    c, s = jacobi(app, apq, aqq)
    t = s / c
    return app - t * apq, aqq + t * apq, c * apr - s * aqr, s * apr + c * aqr, vp * c - vq * s, vp * s + vq * c


@kc.func
def order_values(p, q, vp, vq):
    """The smaller eigenvalue first; a swap changes one sign, so that V stays a rotation."""
    swap = q < p
    v = -vp
    first, second = q if swap else p, p if swap else q
    first_v, second_v = vq if swap else vp, v if swap else vq
    return first, second, first_v, second_v


@kc.func
def jacobi_eigen3(m):
    scale = largest(m)
    a0 = m[0, 0] / scale
    a1 = m[1, 1] / scale
    a2 = m[2, 2] / scale
    a01 = 0.5 * (m[0, 1] / scale + m[1, 0] / scale)
    a02 = 0.5 * (m[0, 2] / scale + m[2, 0] / scale)
    a12 = 0.5 * (m[1, 2] / scale + m[2, 1] / scale)
    v0 = kc.float3(1.0, 0.0, 0.0)
    v1 = kc.float3(0.0, 1.0, 0.0)
    v2 = kc.float3(0.0, 0.0, 1.0)
    for _ in range(EIGEN_SWEEPS):
        a0, a1, a02, a12, v0, v1 = turn_symmetric(a0, a1, a01, a02, a12, v0, v1)
        a0, a2, a01, a12, v0, v2 = turn_symmetric(a0, a2, a02, 0.0, a12, v0, v2)
        a1, a2, a01, a02, v1, v2 = turn_symmetric(a1, a2, a12, a01, 0.0, v1, v2)
        a12 = 0.0
    a0, a1, v0, v1 = order_values(a0, a1, v0, v1)
    a0, a2, v0, v2 = order_values(a0, a2, v0, v2)
    a1, a2, v1, v2 = order_values(a1, a2, v1, v2)
    return kc.float3(a0, a1, a2) * scale, kc.mat33(v0, v1, v2)


@kc.func
def eig3_sym(m):
    return jacobi_eigen3(m)


@eig3_sym.adjoint
def _(m, adj_values, adj_vectors):
    """With X = Vᵀ dV (skew) and P = Vᵀ dM V (symmetric): P_ij = X_ij (λ_j - λ_i)."""
    values, v = jacobi_eigen3(m)
    scale = kc.max(kc.abs(values.x), kc.abs(values.z))
    a = kc.transpose(v) * adj_vectors
    p = kc.diag(adj_values)
    for i in range(3):
        for j in range(i + 1, 3):
            half = 0.5 * (a[i, j] - a[j, i]) * reciprocal(values[j] - values[i], scale)
            p[i, j] = half
            p[j, i] = half
    return v * p * kc.transpose(v)
