"""Compound rows: vectors, matrices, quaternions, transforms, geometry, textures. Their bodies are in kernelc/lib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..types import Mat, Type, Vec
from . import meanings as np_
from .registry import compound

_ZERO, _ONE, _X, _Y = np.zeros(3), np.ones(3), np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
_EYE, _IDENTITY = np.eye(3), np.array([0, 0, 0, 1.0])
_Types = tuple[Type, ...]
if TYPE_CHECKING:
    _Rng = np.random.Generator  # importing it takes as long as a third of kernelc


# -- arguments for tests, where ranges alone do not do
def _orthogonal(rng: _Rng, n: int) -> Any:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def _regular(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    """Matrices with singular values well away from zero and from each other; vectors as they come."""

    def one(kind: Type) -> Any:
        if isinstance(kind, Mat):
            values = np.linspace(0.6, 2.0, kind.r) + rng.uniform(-0.1, 0.1, kind.r)
            return _orthogonal(rng, kind.r) @ np.diag(values) @ _orthogonal(rng, kind.r)
        assert isinstance(kind, Vec)
        return rng.uniform(-2, 2, kind.n)

    return tuple(one(kind) for kind in types)


def _positive(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    (m,) = _regular(rng, types)
    return (m @ m.T,)


def _rotation(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    q = rng.standard_normal(4)
    return (np_.quat_to_matrix(q / np.linalg.norm(q)),)


def _picture(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    texel = types[0].element.shape if isinstance(types[0].element, Vec) else ()  # type: ignore[attr-defined]
    image = rng.uniform(0, 1, (4, 5, *texel))
    return image, rng.uniform(-0.3, 1.3, 2)


def _channels(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    return rng.uniform(0, 1, (4, 5, 3)), rng.uniform(-0.3, 1.3, 2), int(rng.integers(3))


def _sorted(rng: _Rng, types: _Types) -> tuple[Any, ...]:
    values = np.sort(rng.integers(0, 20, 9))
    return values, int(rng.integers(-1, 22))


# -- what is unique, where results are not: singular vectors and eigenvectors have free signs
def _svd_facts(args: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
    u, s, v = results
    return u @ np.diag(s) @ v.T, s, u @ u.T, v @ v.T


def _eigen_facts(args: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
    values, vectors = results
    return values, vectors @ np.diag(values) @ vectors.T, vectors @ vectors.T


# fmt: off
# -- interpolation
compound("lerp", "a (1 - t) + b t, exact at both ends", lambda a, b, t: np.asarray(a) + np.subtract(b, a) * t,
         body="interpolation:lerp", params="a b t",
         signatures=("real, real, real -> real", "vec n, vec n, real -> vec n", "mat r c, mat r c, real -> mat r c"))
compound("smoothstep", "0 below low, 1 above high (low < high), a cubic with flat ends between", np_.smoothstep,
         body="interpolation:smoothstep", params="low high x", signatures=("real, real, real -> real",),
         domain=((-2.0, -1.0), (1.0, 2.0), (-2.5, 2.5)), singular=((0.0, 1.0, 0.0), (0.0, 1.0, 1.0)))

# -- vectors
_VECTOR = ("vec n -> real", "quat -> real")
compound("dot", "sum of the products of components", np.dot, body="vector:dot", params="a b",
         signatures=("vec n, vec n -> real", "quat, quat -> real"))
compound("cross", "vector product", np.cross, body="vector:cross", params="a b", signatures=("vec3, vec3 -> vec3",))
compound("length", "Euclidean length; derivative 0 at 0", np.linalg.norm, body="vector:length", params="v",
         signatures=_VECTOR, singular=((_ZERO,),))
compound("length_sq", "square of the length", lambda v: np.dot(v, v), body="vector:length_sq", params="v",
         signatures=_VECTOR, singular=((_ZERO,),))
compound("normalize", "v / length(v); the zero vector stays zero, with derivative 0", np_.normalize,
         body="vector:normalize", params="v", signatures=("vec n -> vec n", "quat -> quat"), singular=((_ZERO,),))
compound("cw_mul", "products of components", np.multiply, body="vector:cw_mul", params="a b",
         signatures=("vec n, vec n -> vec n", "mat r c, mat r c -> mat r c"))
compound("cw_div", "quotients of components", np.divide, body="vector:cw_div", params="a b",
         signatures=("vec n, vec n -> vec n", "mat r c, mat r c -> mat r c"), domain=((-2.0, 2.0), (0.5, 2.0)))
compound("outer", "the matrix a bᵀ", np.outer, body="vector:outer", params="a b",
         signatures=("vec r, vec c -> mat r c",))
compound("reflect", "v mirrored at the plane with the unit normal n", np_.reflect, body="vector:reflect", params="v n",
         signatures=("vec n, vec n -> vec n",))
compound("angle_between", "angle from 0 to pi; derivative 0 for parallel, opposite and zero vectors",
         np_.angle_between, body="vector:angle_between", params="a b", signatures=("vec n, vec n -> real",),
         singular=((_X, 2 * _X), (_X, -_X), (_X, _ZERO), (_ONE, _ONE)))

# -- matrices
_SQUARES = ("mat22 -> mat22", "mat33 -> mat33", "mat44 -> mat44")
compound("transpose", "rows as columns", np.transpose, body="matrix:transpose", params="m",
         signatures=("mat r c -> mat c r",))
compound("determinant", "determinant of a matrix of up to 4 by 4", np.linalg.det, body="matrix:determinant", params="m",
         signatures=("mat22 -> real", "mat33 -> real", "mat44 -> real"), singular=((np.zeros((3, 3)),),))
compound("trace", "sum of the diagonal", np.trace, body="matrix:trace", params="m", signatures=("mat n n -> real",))
compound("inverse", "inverse matrix; not finite for a singular one", np.linalg.inv, body="matrix:inverse", params="m",
         signatures=("mat n n -> mat n n",), make=_regular)
compound("skew", "the matrix whose product with u is cross(v, u)", np_.skew, body="matrix:skew", params="v",
         signatures=("vec3 -> mat33",))
compound("diag", "diagonal matrix", np.diag, body="matrix:diag", params="v", signatures=("vec n -> mat n n",))
compound("cofactor", "derivative of the determinant by the entries, for up to 4 by 4", np_.cofactor,
         body="matrix:cofactor", params="m", signatures=_SQUARES, singular=((np.zeros((3, 3)),),))
compound("ddot", "sum of the products of entries", lambda a, b: np.sum(np.multiply(a, b)), body="matrix:ddot",
         params="a b", signatures=("mat r c, mat r c -> real",))
compound("solve", "x with a x = b, by elimination with partial pivoting; not finite for a singular matrix",
         np.linalg.solve, body="matrix:solve", params="a b", signatures=("mat n n, vec n -> vec n",), make=_regular)
compound("cholesky", "lower triangle L with L Lᵀ = (m + mᵀ) / 2; a zero pivot gives a zero column",
         lambda m: np.linalg.cholesky(np_.symmetric(m)), body="matrix:cholesky", params="m",
         signatures=("mat n n -> mat n n",), make=_positive, singular=((np.zeros((3, 3)),), (np.ones((3, 3)),)))
_SINGULAR: Any = tuple((m,) for m in (_EYE, -_EYE, 0 * _EYE, np.diag([1.0, 1, 0]), np.diag([1.0, 0, 0]),
                                      np.diag([2.0, 1, 1]), np.ones((3, 3)), 1e-30 * _EYE))
_SINGULAR2: Any = tuple((m,) for m in (np.eye(2), -np.eye(2), np.zeros((2, 2)), np.diag([1.0, -1]), np.ones((2, 2))))
compound("svd2", "(U, s, V) with m = U diag(s) Vᵀ, s falling, V a rotation; equal values: finite", np_.svd,
         body="decompositions:svd2", params="m", signatures=("mat22 -> mat22, vec2, mat22",), make=_regular,
         invariant=_svd_facts, singular=_SINGULAR2)
compound("svd3", "(U, s, V) with m = U diag(s) Vᵀ, s falling, V a rotation; equal values: finite", np_.svd,
         body="decompositions:svd3", params="m", signatures=("mat33 -> mat33, vec3, mat33",), make=_regular,
         invariant=_svd_facts, singular=_SINGULAR)
compound("polar2", "(R, S) with m = R S, R = U Vᵀ (a reflection where det m < 0), S symmetric; derivative 0 at 0",
         np_.polar, body="decompositions:polar2", params="m", signatures=("mat22 -> mat22, mat22",), make=_regular,
         singular=_SINGULAR2)
compound("polar3", "(R, S) with m = R S, R = U Vᵀ (a reflection where det m < 0), S symmetric; where two singular "
         "values vanish R counts as constant", np_.polar, body="decompositions:polar3", params="m",
         signatures=("mat33 -> mat33, mat33",), make=_regular, singular=_SINGULAR)
compound("eig3_sym", "(values, vectors) of (m + mᵀ) / 2: values rising, vectors in columns; equal values: finite",
         np_.eig_symmetric, body="decompositions:eig3_sym", params="m", signatures=("mat33 -> vec3, mat33",),
         make=_regular, invariant=_eigen_facts, singular=_SINGULAR)

# -- quaternions (x, y, z, w)
compound("quat_identity", "the rotation that changes nothing", lambda: _IDENTITY.copy(),
         body="quaternion:quat_identity", params="", signatures=("-> quat",))
compound("quat_multiply", "the rotation b, then a: the same as a * b", np_.quat_multiply,
         body="quaternion:quat_multiply", params="a b", signatures=("quat, quat -> quat",))
compound("quat_inverse", "conjugate over squared length", np_.quat_inverse, body="quaternion:quat_inverse", params="q",
         signatures=("quat -> quat",))
compound("quat_rotate", "v rotated by the unit quaternion q", np_.quat_rotate, body="quaternion:quat_rotate",
         params="q v", signatures=("quat, vec3 -> vec3",))
compound("quat_rotate_inv", "v rotated by the inverse of the unit quaternion q", np_.quat_rotate_inv,
         body="quaternion:quat_rotate_inv", params="q v", signatures=("quat, vec3 -> vec3",))
compound("quat_to_matrix", "rotation matrix of a unit quaternion", np_.quat_to_matrix,
         body="quaternion:quat_to_matrix", params="q", signatures=("quat -> mat33",))
compound("quat_from_matrix", "unit quaternion of a rotation matrix, with w >= 0", np_.quat_from_matrix,
         body="quaternion:quat_from_matrix", params="m", signatures=("mat33 -> quat",), make=_rotation,
         singular=tuple((np.diag(d),) for d in ([1.0, 1, 1], [1.0, -1, -1], [-1.0, 1, -1], [-1.0, -1, 1])))
compound("quat_from_axis_angle", "rotation about an axis of any length but 0, by an angle in radians",
         np_.quat_from_axis_angle, body="quaternion:quat_from_axis_angle", params="axis angle",
         signatures=("vec3, real -> quat",), singular=((_X, 0.0), (_ZERO, 1.0)))
compound("quat_from_rotvec", "rotation about r by the angle length(r); smooth at 0", np_.quat_from_rotvec,
         body="quaternion:quat_from_rotvec", params="r", signatures=("vec3 -> quat",),
         singular=((_ZERO,), (1e-9 * _ONE,), (1e-30 * _ONE,)))
compound("quat_to_rotvec", "axis times angle, the angle from 0 to pi; smooth at the identity; 0 for the zero "
         "quaternion", np_.quat_to_rotvec, body="quaternion:quat_to_rotvec", params="q", signatures=("quat -> vec3",),
         singular=((_IDENTITY,), (-_IDENTITY,), (np.array([1.0, 0, 0, 0]),), (np.zeros(4),)))
compound("quat_integrate", "q turned by the angular velocity w (world frame) for the time dt, of unit length",
         np_.quat_integrate, body="quaternion:quat_integrate", params="q w dt",
         signatures=("quat, vec3, real -> quat",),
         singular=((_IDENTITY, _ZERO, 0.1), (_IDENTITY, _X, 0.0)))
compound("quat_slerp", "from a (t = 0) to b (t = 1) at constant speed, the shorter way", np_.quat_slerp,
         body="quaternion:quat_slerp", params="a b t", signatures=("quat, quat, real -> quat",),
         domain=((-1.0, 1.0), (-1.0, 1.0), (0.0, 1.0)),
         singular=((_IDENTITY, _IDENTITY, 0.3), (_IDENTITY, -_IDENTITY, 0.3)))

# -- rigid motions: position p, then rotation q
compound("transform_identity", "the motion that changes nothing", lambda: np.append(_ZERO, _IDENTITY),
         body="rigid:transform_identity", params="", signatures=("-> transform",))
compound("transform_position", "the position, t.p", lambda t: np.asarray(t)[:3], body="rigid:transform_position",
         params="t", signatures=("transform -> vec3",))
compound("transform_rotation", "the rotation, t.q", lambda t: np.asarray(t)[3:], body="rigid:transform_rotation",
         params="t", signatures=("transform -> quat",))
compound("transform_point", "p rotated, then moved", np_.transform_point, body="rigid:transform_point", params="t p",
         signatures=("transform, vec3 -> vec3",))
compound("transform_vector", "v rotated", np_.transform_vector, body="rigid:transform_vector", params="t v",
         signatures=("transform, vec3 -> vec3",))
compound("transform_multiply", "the motion b, then a", np_.transform_multiply, body="rigid:transform_multiply",
         params="a b", signatures=("transform, transform -> transform",))
compound("transform_inverse", "the motion back", np_.transform_inverse, body="rigid:transform_inverse", params="t",
         signatures=("transform -> transform",))
compound("transform_twist", "a twist (angular, linear) in the outer frame: spatial_adjoint(t) * a",
         np_.transform_twist, body="rigid:transform_twist", params="t a", signatures=("transform, vec6 -> vec6",))
compound("transform_wrench", "a wrench (torque, force) in the outer frame; keeps spatial_dot with a twist",
         np_.transform_wrench, body="rigid:transform_wrench", params="t f", signatures=("transform, vec6 -> vec6",))

# -- spatial vectors (angular, linear)
compound("spatial_join", "the spatial vector (angular, linear)", lambda w, v: np.append(w, v),
         body="rigid:spatial_join", params="angular linear", signatures=("vec3, vec3 -> vec6",))
compound("spatial_top", "the angular part", lambda a: np.asarray(a)[:3], body="rigid:spatial_top", params="a",
         signatures=("vec6 -> vec3",))
compound("spatial_bottom", "the linear part", lambda a: np.asarray(a)[3:], body="rigid:spatial_bottom", params="a",
         signatures=("vec6 -> vec3",))
compound("spatial_dot", "power of a twist and a wrench", np.dot, body="rigid:spatial_dot", params="a f",
         signatures=("vec6, vec6 -> real",))
compound("spatial_cross", "rate of the twist b in a frame that moves with the twist a", np_.spatial_cross,
         body="rigid:spatial_cross", params="a b", signatures=("vec6, vec6 -> vec6",))
compound("spatial_cross_dual", "rate of the wrench f in a frame that moves with the twist a", np_.spatial_cross_dual,
         body="rigid:spatial_cross_dual", params="a f", signatures=("vec6, vec6 -> vec6",))
compound("spatial_adjoint", "the matrix [[R, 0], [skew(p) R, R]] that takes twists to the outer frame",
         np_.spatial_adjoint, body="rigid:spatial_adjoint", params="t", signatures=("transform -> mat66",))
compound("spatial_inertia", "the matrix that takes a twist to momentum (angular about the origin, linear), from mass, "
         "centre of mass and inertia about it", np_.spatial_inertia, body="rigid:spatial_inertia",
         params="mass com inertia", signatures=("real, vec3, mat33 -> mat66",))

# -- geometry
_TRIANGLE = (np.array([0.3, 0.2, 0.5]), _ZERO, _X, _Y)
compound("closest_point_triangle", "barycentric coordinates of the point of the triangle that is closest to p; one "
         "thinner than 1e-6 counts as its edges", np_.closest_point_triangle, body="geometry:closest_point_triangle",
         params="p a b c", signatures=("vec3, vec3, vec3, vec3 -> vec3",),
         singular=(_TRIANGLE, (_ONE, _ZERO, _ZERO, _ZERO), (_ONE, _ZERO, _ZERO, _X), (_ONE, _ZERO, _X, 2 * _X),
                   (_X, _ZERO, _X, _Y)))
compound("closest_point_segment", "t from 0 to 1 such that a + t (b - a) is closest to p; 0 where a = b",
         np_.closest_point_segment, body="geometry:closest_point_segment", params="p a b",
         signatures=("vec n, vec n, vec n -> real",), singular=((_ONE, _X, _X), (_ZERO, _ZERO, _X)))
compound("closest_point_edge_edge", "(s, t, distance) of the closest points p1 + s (q1 - p1) and p2 + t (q2 - p2); one "
         "of the pairs for parallel edges; derivative of the distance 0 where they touch",
         np_.closest_point_edge_edge, body="geometry:closest_point_edge_edge", params="p1 q1 p2 q2",
         signatures=("vec3, vec3, vec3, vec3 -> real, real, real",),
         singular=((_ZERO, _X, _Y, _X + _Y), (_ZERO, _ZERO, _X, _Y), (_X, _Y, _ZERO, _ZERO), (_X, _X, _Y, _Y),
                   (_ZERO, _X, _ZERO, _Y)))
compound("sdf_sphere", "signed distance to a sphere around the origin; derivative 0 by p in its centre",
         lambda p, radius: np.linalg.norm(p) - radius, body="geometry:sdf_sphere", params="p radius",
         signatures=("vec n, real -> real",), singular=((_ZERO, 1.0),))
compound("sdf_box", "signed distance to a box around the origin with these half edges", np_.sdf_box,
         body="geometry:sdf_box", params="p half", signatures=("vec3, vec3 -> real",),
         domain=((-2.0, 2.0), (0.5, 1.5)), singular=((_ZERO, _ONE), (_ONE, _ONE), (_X, _ONE), (2 * _X, _ONE)))
compound("sdf_capsule", "signed distance to the points within radius of the segment from a to b", np_.sdf_capsule,
         body="geometry:sdf_capsule", params="p a b radius", signatures=("vec3, vec3, vec3, real -> real",),
         singular=((_ONE, _X, _X, 0.5), (0.5 * _X, _ZERO, _X, 0.5)))
compound("sdf_plane", "signed distance to the plane normal · x + offset = 0, for a unit normal",
         lambda p, normal, offset: np.dot(p, normal) + offset, body="geometry:sdf_plane", params="p normal offset",
         signatures=("vec3, vec3, real -> real",))
compound("triangle_area", "area; derivative 0 for a degenerate triangle", np_.triangle_area,
         body="geometry:triangle_area", params="a b c", signatures=("vec3, vec3, vec3 -> real",),
         singular=((_X, _X, _X), (_ZERO, _X, 2 * _X)))
compound("tet_volume", "volume, positive where d lies on the side from which a, b, c run counter-clockwise",
         np_.tet_volume, body="geometry:tet_volume", params="a b c d",
         signatures=("vec3, vec3, vec3, vec3 -> real",), singular=((_X, _X, _X, _X),))
compound("barycentric", "coordinates of p, or of its projection, in the triangle; (1, 0, 0) for a degenerate one",
         np_.barycentric, body="geometry:barycentric", params="p a b c",
         signatures=("vec3, vec3, vec3, vec3 -> vec3", "vec2, vec2, vec2, vec2 -> vec3"),
         singular=((_ONE, _X, _X, _X), (_ONE, _ZERO, _X, 2 * _X)))
compound("ray_triangle", "(hit, t, u, v) with o + t d = (1 - u - v) a + u b + v c, from both sides; without a hit the "
         "numbers are those of the plane, or 0 where the ray is parallel to it", np_.ray_triangle,
         body="geometry:ray_triangle", params="o d a b c",
         signatures=("vec3, vec3, vec3, vec3, vec3 -> bool, real, real, real",),
         singular=((_ONE, _X, _ZERO, _X, _Y), (_ONE, _Y, _X, _X, _X)))

# -- random numbers, textures, search
_COUNTERS: Any = {"params": "seed i k", "signatures": ("int, int, int -> real",), "domain": (0.0, 9999.0),
                  "smooth": False}
compound("rand", "uniform in [0, 1), the same for the same (seed, i, k) in both precisions", np_.rand,
         body="random:rand", **_COUNTERS)
compound("randn", "normal with mean 0 and deviation 1, the same for the same (seed, i, k)", np_.randn,
         body="random:randn", **_COUNTERS)
compound("noise", "Perlin's noise, from -1 to 1, zero where all coordinates are whole; twice differentiable in p",
         np_.noise, body="random:noise1 noise2 noise3", params="seed p",
         signatures=("int, real -> real", "int, vec2 -> real", "int, vec3 -> real"),
         domain=((0.0, 9999.0), (-9.0, 9.0)))
_TEXTURE: Any = {"params": "texture uv", "signatures": ("real[2], vec2 -> real", "vec n[2], vec2 -> vec n"),
                 "make": _picture}
compound("texture_clamp", "bilinear sample of texture[row, column], u right, v up, texel centres at half; the edge "
         "texels go on outside", np_.texture("clamp"), body="interpolation:texture_clamp", **_TEXTURE)
compound("texture_wrap", "bilinear sample of texture[row, column], u right, v up, texel centres at half; the picture "
         "repeats outside", np_.texture("wrap"), body="interpolation:texture_wrap", **_TEXTURE)
_CHANNEL: Any = {"params": "texture uv k", "signatures": ("real[3], vec2, int -> real",), "make": _channels}
compound("texture_channel_clamp", "texture_clamp for channel k of texture[row, column, channel]", np_.texture("clamp"),
         body="interpolation:texture_channel_clamp", **_CHANNEL)
compound("texture_channel_wrap", "texture_wrap for channel k of texture[row, column, channel]", np_.texture("wrap"),
         body="interpolation:texture_channel_wrap", **_CHANNEL)
compound("lower_bound", "first index of a rising array whose element is not below value; its length if there is none",
         np_.lower_bound, body="search:lower_bound", params="array value",
         signatures=("real[1], real -> int", "int[1], int -> int"), make=_sorted, smooth=False)
