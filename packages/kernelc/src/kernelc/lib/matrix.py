"""Small matrices: closed forms up to 4 by 4, elimination with partial pivoting beyond.

`len(m)` is the number of rows, known while compiling: a branch on it costs nothing.
"""

import kernelc as kc


@kc.func
def transpose(m):
    result = kc.mat(len(m[0]), len(m))()
    for i in range(len(m)):
        for j in range(len(m[0])):
            result[j, i] = m[i, j]
    return result


@kc.func
def trace(m):
    total = m[0, 0]
    for i in range(1, len(m)):
        total += m[i, i]
    return total


@kc.func
def ddot(a, b):
    total = kc.dot(a[0], b[0])
    for i in range(1, len(a)):
        total += kc.dot(a[i], b[i])
    return total


@kc.func
def skew(v):
    return kc.mat33(0.0, -v.z, v.y, v.z, 0.0, -v.x, -v.y, v.x, 0.0)


@kc.func
def diag(v):
    result = kc.mat(len(v), len(v))()
    for i in range(len(v)):
        result[i, i] = v[i]
    return result


@kc.func
def symmetric(m):
    """(m + mᵀ) / 2: what functions of symmetric matrices use of their argument."""
    result = m
    for i in range(len(m)):
        for j in range(i):
            mean = 0.5 * (m[i, j] + m[j, i])
            result[i, j] = mean
            result[j, i] = mean
    return result


@kc.func
def minors4(m):
    """2 by 2 determinants of the upper two rows of a 4 by 4 matrix, and of the lower two: columns 01 02 03 12 13 23."""
    upper = kc.vec(6)(m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0], m[0, 0] * m[1, 2] - m[0, 2] * m[1, 0],
                      m[0, 0] * m[1, 3] - m[0, 3] * m[1, 0], m[0, 1] * m[1, 2] - m[0, 2] * m[1, 1],
                      m[0, 1] * m[1, 3] - m[0, 3] * m[1, 1], m[0, 2] * m[1, 3] - m[0, 3] * m[1, 2])  # fmt: skip
    lower = kc.vec(6)(m[2, 0] * m[3, 1] - m[2, 1] * m[3, 0], m[2, 0] * m[3, 2] - m[2, 2] * m[3, 0],
                      m[2, 0] * m[3, 3] - m[2, 3] * m[3, 0], m[2, 1] * m[3, 2] - m[2, 2] * m[3, 1],
                      m[2, 1] * m[3, 3] - m[2, 3] * m[3, 1], m[2, 2] * m[3, 3] - m[2, 3] * m[3, 2])  # fmt: skip
    return upper, lower


@kc.func
def determinant(m):
    if len(m) == 2:
        return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    elif len(m) == 3:
        return kc.dot(m[0], kc.cross(m[1], m[2]))
    else:
        u, w = minors4(m)
        return u[0] * w[5] - u[1] * w[4] + u[2] * w[3] + u[3] * w[2] - u[4] * w[1] + u[5] * w[0]


@kc.func
def cofactor(m):
    if len(m) == 2:
        return kc.mat22(m[1, 1], -m[1, 0], -m[0, 1], m[0, 0])
    elif len(m) == 3:
        a = kc.cross(m[1], m[2])
        b = kc.cross(m[2], m[0])
        c = kc.cross(m[0], m[1])
        return kc.mat33(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z)
    else:
        # A row's cofactors take its partner row and the minors of the other two rows.
        u, w = minors4(m)
        a = cofactor_row(m[1], w)
        b = cofactor_row(m[0], w)
        c = cofactor_row(m[3], u)
        d = cofactor_row(m[2], u)
        return kc.mat44(a.x, a.y, a.z, a.w, -b.x, -b.y, -b.z, -b.w, c.x, c.y, c.z, c.w, -d.x, -d.y, -d.z, -d.w)


@kc.func
def cofactor_row(r, s):
    return kc.float4(
        r.y * s[5] - r.z * s[4] + r.w * s[3],
        -(r.x * s[5] - r.z * s[2] + r.w * s[1]),
        r.x * s[4] - r.y * s[2] + r.w * s[0],
        -(r.x * s[3] - r.y * s[1] + r.z * s[0]),
    )


@kc.func
def identity_like(m):
    result = m
    for i in range(len(m)):
        for j in range(len(m)):
            result[i, j] = 1.0 if i == j else 0.0
    return result


@kc.func
def pivot(m, x, k, i):
    """The rows k and i of both matrices, the one with the larger entry in column k of m on top."""
    swap = kc.abs(m[i, k]) > kc.abs(m[k, k])
    top = m[k]
    m[k] = m[i] if swap else top
    m[i] = top if swap else m[i]
    right = x[k]
    x[k] = x[i] if swap else right
    x[i] = right if swap else x[i]
    return m, x


@kc.func
def clear(m, x, k, i):
    """Row i without column k; the entry of row k there is 1."""
    factor = m[i, k]
    m[i] = m[i] - m[k] * factor
    x[i] = x[i] - x[k] * factor
    return m, x


@kc.func
def eliminate(m, x):
    """The solution of m y = x for a matrix x: Gauss-Jordan, partial pivoting, every index known while compiling."""
    for k in range(len(m)):
        for i in range(k + 1, len(m)):
            m, x = pivot(m, x, k, i)
        head = m[k, k]
        x[k] = x[k] / head
        m[k] = m[k] / head
        for i in range(len(m)):
            if i != k:
                m, x = clear(m, x, k, i)
    return x


@kc.func
def invert(m):
    if len(m) <= 4:
        c = kc.cofactor(m)
        return kc.transpose(c) / kc.dot(m[0], c[0])
    else:
        return eliminate(m, identity_like(m))


@kc.func
def inverse(m):
    return invert(m)


@inverse.adjoint
def _(m, adj_result):
    y = kc.transpose(invert(m))
    return -(y * adj_result * y)


@kc.func
def solve_vector(a, b):
    column = kc.mat(len(b), 1)()
    for i in range(len(b)):
        column[i, 0] = b[i]
    return kc.transpose(eliminate(a, column))[0]


@kc.func
def solve(a, b):
    return solve_vector(a, b)


@solve.adjoint
def _(a, b, adj_x):
    adj_b = solve_vector(kc.transpose(a), adj_x)
    return -kc.outer(adj_b, solve_vector(a, b)), adj_b


@kc.func
def cholesky(m):
    """Column by column (Cholesky-Crout) on the symmetric part."""
    s = symmetric(m)
    result = kc.mat(len(m), len(m))()
    for j in range(len(m)):
        rest = s[j, j]
        for k in range(j):
            rest -= result[j, k] * result[j, k]
        root = kc.sqrt(rest)
        result[j, j] = root
        divisor = root if root != 0.0 else 1.0
        for i in range(j + 1, len(m)):
            rest = s[i, j]
            for k in range(j):
                rest -= result[i, k] * result[j, k]
            result[i, j] = (rest if root != 0.0 else 0.0) / divisor
    return result
