"""What compound built-ins mean in NumPy: written from definitions, not from the bodies in kernelc/lib, to check them.

Values are NumPy arrays: vectors (n,), matrices (r, c), quaternions (x, y, z, w), transforms (position, quaternion).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # a NumPy array; its shape is the subject of each function


# -- vectors
def normalize(v: Any) -> Array:
    size = np.linalg.norm(v)
    return np.asarray(v, float) / size if size > 0 else np.zeros(np.shape(v))


def reflect(v: Any, n: Any) -> Array:
    return (np.eye(len(n)) - 2 * np.outer(n, n)) @ np.asarray(v)


def angle_between(a: Any, b: Any) -> float:
    a, b = normalize(a), normalize(b)
    return float(np.arctan2(np.linalg.norm(b - a * (a @ b)), a @ b))


def smoothstep(low: Any, high: Any, x: Any) -> Any:
    return np.polyval([-2, 3, 0, 0], np.clip((x - low) / (high - low), 0, 1))


# -- matrices
def skew(v: Any) -> Array:
    return np.array([np.cross(v, e) for e in np.eye(3)]).T


def cofactor(m: Any) -> Array:
    m = np.asarray(m, float)
    n = len(m)
    minor = [[np.delete(np.delete(m, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minor[i][j]) for j in range(n)] for i in range(n)])


def symmetric(m: Any) -> Array:
    m = np.asarray(m, float)
    return (m + m.T) / 2


def svd(m: Any) -> tuple[Array, Array, Array]:
    u, s, vt = np.linalg.svd(m)
    return u, s, vt.T


def polar(m: Any) -> tuple[Array, Array]:
    u, s, vt = np.linalg.svd(m)
    return u @ vt, vt.T @ np.diag(s) @ vt


def eig_symmetric(m: Any) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(symmetric(m))
    return values, vectors


# -- quaternions
def quat_multiply(a: Any, b: Any) -> Array:
    (u, w), (v, r) = (np.asarray(a[:3]), a[3]), (np.asarray(b[:3]), b[3])
    return np.append(w * v + r * u + np.cross(u, v), w * r - u @ v)


def quat_inverse(q: Any) -> Array:
    return np.asarray(q) * [-1, -1, -1, 1] / np.dot(q, q)


def quat_to_matrix(q: Any) -> Array:
    k = skew(q[:3])
    return np.asarray(np.eye(3) + 2 * q[3] * k + 2 * k @ k)


def quat_rotate(q: Any, v: Any) -> Array:
    return quat_to_matrix(q) @ np.asarray(v)


def quat_rotate_inv(q: Any, v: Any) -> Array:
    return quat_to_matrix(q).T @ np.asarray(v)


def quat_from_matrix(m: Any) -> Array:
    """The leading eigenvector of Bar-Itzhack's matrix (2000), with w >= 0."""
    m = np.asarray(m, float)
    k = np.zeros((4, 4))
    k[:3, :3] = m + m.T - np.trace(m) * np.eye(3)
    k[3, :3] = k[:3, 3] = [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]
    k[3, 3] = np.trace(m)
    q = np.linalg.eigh(k)[1][:, -1]
    leading = q[3] if abs(q[3]) > 1e-12 else q[np.argmax(np.abs(q[:3]))]
    return np.asarray(q if leading > 0 else -q)


def quat_from_axis_angle(axis: Any, angle: Any) -> Array:
    return np.append(normalize(axis) * np.sin(angle / 2), np.cos(angle / 2))


def quat_from_rotvec(r: Any) -> Array:
    half = np.linalg.norm(r) / 2
    return np.append(np.sinc(half / np.pi) / 2 * np.asarray(r), np.cos(half))


def quat_to_rotvec(q: Any) -> Array:
    q = np.asarray(q, float) * (-1 if q[3] < 0 else 1)
    size = np.linalg.norm(q[:3])
    return q[:3] * (2 * np.arctan2(size, q[3]) / size) if size > 0 else np.zeros(3)


def quat_integrate(q: Any, w: Any, dt: Any) -> Array:
    angle = np.linalg.norm(w) * dt
    return normalize(quat_multiply(quat_from_axis_angle(w, angle), q))


def quat_slerp(a: Any, b: Any, t: Any) -> Array:
    a, b = np.asarray(a, float), np.asarray(b, float)
    b = -b if a @ b < 0 else b
    angle = angle_between(a, b)
    if angle == 0:
        return a
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


# -- rigid motions: 4 by 4 matrices do the work
def _pose(t: Any) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = quat_to_matrix(t[3:]), t[:3]
    return pose


def transform_point(t: Any, p: Any) -> Array:
    return np.asarray((_pose(t) @ np.append(p, 1))[:3])


def transform_vector(t: Any, v: Any) -> Array:
    return np.asarray((_pose(t) @ np.append(v, 0))[:3])


def transform_multiply(a: Any, b: Any) -> Array:
    return np.append((_pose(a) @ _pose(b))[:3, 3], quat_multiply(a[3:], b[3:]))


def transform_inverse(t: Any) -> Array:
    return np.append(-_pose(t)[:3, :3].T @ t[:3], quat_inverse(t[3:]))


def spatial_adjoint(t: Any) -> Array:
    r = quat_to_matrix(t[3:])
    return np.block([[r, np.zeros((3, 3))], [skew(t[:3]) @ r, r]])


def transform_twist(t: Any, a: Any) -> Array:
    return spatial_adjoint(t) @ np.asarray(a)


def transform_wrench(t: Any, f: Any) -> Array:
    """Power is the same in every frame: wrenches transform with the inverse transpose of what moves twists."""
    r, p = quat_to_matrix(t[3:]), skew(t[:3])
    return np.block([[r, p @ r], [np.zeros((3, 3)), r]]) @ np.asarray(f)


def _cross_matrix(a: Any) -> Array:
    return np.block([[skew(a[:3]), np.zeros((3, 3))], [skew(a[3:]), skew(a[:3])]])


def spatial_cross(a: Any, b: Any) -> Array:
    return _cross_matrix(a) @ np.asarray(b)


def spatial_cross_dual(a: Any, f: Any) -> Array:
    return -_cross_matrix(a).T @ np.asarray(f)


def spatial_inertia(mass: Any, com: Any, inertia: Any) -> Array:
    """Jᵀ diag(inertia, mass) J, where J takes a twist to the twist at the centre of mass."""
    shift = np.block([[np.eye(3), np.zeros((3, 3))], [-skew(com), np.eye(3)]])
    middle = np.block([[np.asarray(inertia), np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])
    return np.asarray(shift.T @ middle @ shift)


# -- geometry: closest points by trying all faces of the simplex
def _simplex_point(p: Any, corners: list[Any]) -> Array:
    """Barycentric coordinates of the point closest to p: the best feasible projection onto any face."""
    best, answer = np.inf, np.eye(len(corners))[0]
    for size in range(1, len(corners) + 1):
        for face in itertools.combinations(range(len(corners)), size):
            first, *rest = (np.asarray(corners[i], float) for i in face)
            edges = np.array([c - first for c in rest]).reshape(-1, len(first)).T
            x = np.linalg.lstsq(edges, np.asarray(p) - first, rcond=None)[0] if size > 1 else np.zeros(0)
            weights = np.zeros(len(corners))
            weights[list(face)] = np.append(1 - x.sum(), x)
            distance = float(np.linalg.norm(first + edges @ x - p))
            if weights.min() >= 0 and distance < best * (1 - 1e-12):
                best, answer = distance, weights
    return answer


def closest_point_triangle(p: Any, a: Any, b: Any, c: Any) -> Array:
    return _simplex_point(p, [a, b, c])


def closest_point_segment(p: Any, a: Any, b: Any) -> float:
    return float(_simplex_point(p, [a, b])[1])


def closest_point_edge_edge(p1: Any, q1: Any, p2: Any, q2: Any) -> tuple[float, float, float]:
    p1, q1, p2, q2 = (np.asarray(x, float) for x in (p1, q1, p2, q2))
    inner = np.linalg.lstsq(np.stack([q1 - p1, p2 - q2], 1), p2 - p1, rcond=None)[0]
    tries = [tuple(inner)] if inner.min() >= 0 and inner.max() <= 1 else []
    tries += [(s, closest_point_segment(p1 + s * (q1 - p1), p2, q2)) for s in (0, 1)]
    tries += [(closest_point_segment(p2 + t * (q2 - p2), p1, q1), t) for t in (0, 1)]
    distance = [float(np.linalg.norm(p1 + s * (q1 - p1) - p2 - t * (q2 - p2))) for s, t in tries]
    best = int(np.argmin(distance))
    return float(tries[best][0]), float(tries[best][1]), distance[best]


def sdf_box(p: Any, half: Any) -> float:
    gap = np.abs(p) - half
    return float(gap.max() if gap.max() <= 0 else np.linalg.norm(gap[gap > 0]))


def sdf_capsule(p: Any, a: Any, b: Any, radius: Any) -> float:
    t = closest_point_segment(p, a, b)
    return float(np.linalg.norm(np.asarray(p) - ((1 - t) * np.asarray(a) + t * np.asarray(b))) - radius)


def triangle_area(a: Any, b: Any, c: Any) -> float:
    edges = np.array([np.subtract(b, a), np.subtract(c, a)])
    return float(np.sqrt(max(np.linalg.det(edges @ edges.T), 0)) / 2)


def tet_volume(a: Any, b: Any, c: Any, d: Any) -> float:
    return float(np.linalg.det(np.array([np.subtract(x, a) for x in (b, c, d)])) / 6)


def barycentric(p: Any, a: Any, b: Any, c: Any) -> Array:
    edges = np.stack([np.subtract(b, a), np.subtract(c, a)], 1)
    v, w = np.linalg.lstsq(edges, np.subtract(p, a), rcond=None)[0]
    return np.array([1 - v - w, v, w])


def ray_triangle(o: Any, d: Any, a: Any, b: Any, c: Any) -> tuple[bool, float, float, float]:
    system = np.stack([-np.asarray(d), np.subtract(b, a), np.subtract(c, a)], 1)
    if np.linalg.det(system) == 0:
        return False, 0.0, 0.0, 0.0
    t, u, v = np.linalg.solve(system, np.subtract(o, a))
    return bool(t >= 0 and u >= 0 and v >= 0 and u + v <= 1), float(t), float(u), float(v)


# -- random numbers
def _words(seed: int, i: int, k: int) -> list[int]:
    x = [(int(n) * 1664525 + 1013904223) & 0xFFFFFFFF for n in (seed, i, k)]
    for last in (False, True):
        for n in range(3):
            x[n] = (x[n] + x[(n + 1) % 3] * x[(n + 2) % 3]) & 0xFFFFFFFF
        x = x if last else [w ^ (w >> 16) for w in x]
    return x


def rand(seed: int, i: int, k: int) -> float:
    return (_words(seed, i, k)[0] >> 8) / 2**24


def advanced(state: Any) -> tuple[int, int, int]:
    """Where a generator stands, which moves on by one draw."""
    at = int(state.seed), int(state.i), int(state.k)
    state.k = (at[2] + 1) % 2**32
    return at


def randn(*where: Any) -> float:
    """Of (seed, i, k), or of a generator."""
    x, y, _ = _words(*(advanced(*where) if len(where) == 1 else where))
    return float(np.sqrt(-2 * np.log1p(-(x >> 8) / 2**24)) * np.cos(2 * np.pi * (y >> 8) / 2**24))


def noise(seed: int, p: Any) -> float:
    """Perlin's: the slopes at the corners of the cell around p, each times the way from its corner, blended."""
    p = np.atleast_1d(np.asarray(p, float))
    n, low = len(p), np.floor(p)
    total = 0.0
    for corner in itertools.product((0, 1), repeat=n):
        way = p - low - corner
        weight = np.prod([1 - np.polyval([6, -15, 10, 0, 0, 0], abs(w)) for w in way])
        total += weight * np.dot(_corner_slope(seed, [int(c) for c in low + corner]), way)
    return float(2 / np.sqrt(n) * total)


def _corner_slope(seed: int, at: list[int]) -> Array:
    """A direction of the unit sphere, the same for the same corner; in one dimension a number from -1 to 1."""
    i, j, k = (*at, 0, 0)[:3]
    x, y, _ = _words((seed ^ (k * 1640531527)) % 2**32, i % 2**32, j % 2**32)
    u, v = (x >> 8) / 2**24, (y >> 8) / 2**24
    turn = np.exp(2j * np.pi * u)
    if len(at) == 1:
        return np.array([2 * u - 1])
    if len(at) == 2:
        return np.array([turn.real, turn.imag])
    z = 2 * v - 1
    return np.array([*(np.sqrt(1 - z * z) * np.array([turn.real, turn.imag])), z])


# -- arrays
def texture(mode: str) -> Callable[..., Any]:
    """Bilinear sampling as a sum over all texels with hat functions, around a padded or repeated picture."""

    def sample(image: Any, uv: Any, channel: Any = None) -> Any:
        image = np.asarray(image) if channel is None else np.asarray(image)[:, :, channel]
        rows, columns = image.shape[:2]
        x, y = uv[0] * columns - 0.5, (1 - uv[1]) * rows - 0.5
        if mode == "clamp":
            x, y = np.clip(x, 0, columns - 1), np.clip(y, 0, rows - 1)
        return np.tensordot(np.outer(_hat(y, rows, mode), _hat(x, columns, mode)), image, 2)

    return sample


def _hat(x: float, n: int, mode: str) -> Array:
    gap = np.abs(x - np.arange(n))
    return np.asarray(np.maximum(0, 1 - (gap if mode == "clamp" else np.minimum(gap % n, n - gap % n))))


def lower_bound(array: Any, value: Any) -> int:
    return int(np.searchsorted(array, value))
