"""Kernels that see a body pass through another one within one step, where contact finds it on neither side.

A thread is a pair of bodies. Nothing is differentiated: the result is a speed in whole millimetres per second, or zero.
Points go along their way in strides that the distance from the surface allows, so that nothing is too thin to be seen
however fast they are; edges are looked at often enough for the thinnest part of the other body.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import BOX, CONE, CYLINDER, FIELD, GRID, MESH
from nablasim.physics.laws.contact.body_contacts_kernels import Pairs
from nablasim.physics.laws.contact.body_edges_kernels import is_near
from nablasim.physics.laws.rigid.bodies_kernels import State
from nablasim.physics.laws.rigid.spans_kernels import grid_spans, mesh_spans, shape_spans
from nablasim.physics.laws.rigid.surfaces_kernels import FAR, Surfaces, grid_surface, mesh_surface, shape_surface

HOLLOW = 0.02
"""How thin the wall of a mesh, or of a grid of distances, may be, as a part of the radius of the ball that holds it."""
SLOW = 0.02
"""What moves by less than this part of how thin the other is, is not looked at: what lies still costs nothing."""
LOOKS = 1024
"""At how many places of its way a point, or an edge, is looked at, at most."""
STRIDE = 0.8
"""Part of the distance from the surface by which a point goes on: distances on a grid are not quite exact."""


@kc.func
def thinness(kind: int, a: float, b: float, c: float, radius: float) -> float:
    """About how far it is through the thinnest part of a body, of sizes a, b, c, in a ball of this radius."""
    thin = 2.0 * a
    if kind == BOX:
        thin = min(a, min(b, c))
    elif kind == CYLINDER or kind == CONE:
        thin = min(2.0 * a, b)
    elif kind == MESH or kind == GRID:
        thin = HOLLOW * radius
    elif kind == FIELD:
        thin = FAR  # All below is ground.
    return thin


@kc.func
def seen(state: State, a: int, b: int, p: kc.float3) -> kc.float3:
    """Point p of body a in the frame of body b."""
    return kc.quat_rotate_inv(state.rot[b], state.x[a] + kc.quat_rotate(state.rot[a], p) - state.x[b])


@kc.func
def turned(before: State, after: State, a: int, b: int) -> float:
    """At least the angle by which body a turns as body b sees it."""
    one = kc.quat_inverse(before.rot[b]) * before.rot[a]
    turn = kc.quat_inverse(one) * (kc.quat_inverse(after.rot[b]) * after.rot[a])
    return 3.2 * kc.length(kc.float3(turn.x, turn.y, turn.z))


@kc.func
def through_ball(ball: kc.float4, p: kc.float3, step: kc.float3):
    """The part of a way that is in a ball; empty where the first is above the second."""
    far, from_centre = kc.length_sq(step), p - ball[0:3]
    half = kc.dot(from_centre, step) / far
    under = half * half - (kc.length_sq(from_centre) - ball.w * ball.w) / far
    low, high = 1.0, 0.0
    if under > 0.0:
        low, high = max(0.0, -half - kc.sqrt(under)), min(1.0, -half + kc.sqrt(under))
    return low, high


def kernels(surface, spans):
    """The kernel for surfaces of this family."""

    @kc.func
    def goes_through(surfaces: Surfaces, b: int, p: kc.float3, step: kc.float3, thin: float) -> int:
        """Whether a point that moves by a step comes to where it would be pushed out behind the surface."""
        reach, found = kc.length(step), 0
        least = 0.125 * thin / reach
        s, end = through_ball(surfaces.bound[b], p, step)
        if s <= end:
            away, m = surface(surfaces, b, p + step * s, reach)
            inside, looks = 1 if away < 0.0 else 0, 0
            while s < end and looks < LOOKS and found == 0:
                looks += 1
                s = min(end, s + max(least, STRIDE * kc.abs(away) / reach if away < FAR else 0.0))
                away, n = surface(surfaces, b, p + step * s, reach)
                if away < 0.0 and inside == 0:
                    inside, m = 1, n
                elif inside == 1 and away < reach and kc.dot(m, n) < -0.5:
                    found = 1  # On the far side.
        return found

    @kc.func
    def edge_goes_through(
        surfaces: Surfaces, b: int, p: kc.float3, q: kc.float3, to_p: kc.float3, to_q: kc.float3, radius: float,
        thin: float,
    ) -> int:  # fmt: skip
        """The same of the middle of what is inside of an edge from p to q."""
        reach, found, inside, m = max(kc.length(to_p), kc.length(to_q)), 0, 0, kc.float3()
        if is_near(surfaces.bound[b], p, q - p, radius + reach):
            looks = min(LOOKS, 1 + int(kc.ceil(4.0 * reach / thin)))
            for k in range(looks + 1):
                s = float(k) / float(looks)
                start = p + to_p * s
                along = q + to_q * s - start
                for s0, s1, _f0, _f1 in spans(surfaces, b, start, along, radius):
                    _away, n = surface(surfaces, b, start + along * (0.5 * (s0 + s1)), radius + reach)
                    if inside == 0:
                        inside, m = 1, n
                    elif kc.dot(m, n) < -0.5:
                        found = 1
        return found

    @kc.kernel(lanes=0)
    def passing_pairs(
        before: State, after: State, surfaces: Surfaces, pairs: Pairs, dt: float, passed: kc.Array[int, 2]
    ):
        """Look whether points of one body go through the other, to where they would be pushed out behind it."""
        r = kc.tid()
        a, b, points, edges = pairs.one[r], pairs.other[r], surfaces.points, surfaces.edges
        size, ball_a, ball_b = surfaces.size[b], surfaces.bound[a], surfaces.bound[b]
        thin = thinness(surfaces.kind[b], size.x, size.y, size.z, ball_b.w)
        start = seen(before, a, b, ball_a[0:3])
        way = seen(after, a, b, ball_a[0:3]) - start
        spun = turned(before, after, a, b) * ball_a.w
        far = kc.length(way) + spun
        if a != b and far > SLOW * thin:
            s = kc.clamp(kc.dot(ball_b[0:3] - start, way) / max(kc.length_sq(way), 1e-30), 0.0, 1.0)
            if kc.length(start + way * s - ball_b[0:3]) < ball_a.w + ball_b.w + spun:
                found, moved = 0, 0.0
                for i in range(points.start[a], points.start[a] + points.count[a]):
                    if found == 0:
                        p = seen(before, a, b, points.local[i])
                        step = seen(after, a, b, points.local[i]) - p
                        moved = kc.length(step)
                        if moved > SLOW * thin:
                            found = goes_through(surfaces, b, p, step, thin)
                for i in range(edges.start[a], edges.start[a] + edges.count[a]):
                    if found == 0:
                        j, k = edges.ends[i, 0], edges.ends[i, 1]
                        p, q = seen(before, a, b, points.local[j]), seen(before, a, b, points.local[k])
                        to_p, to_q = seen(after, a, b, points.local[j]) - p, seen(after, a, b, points.local[k]) - q
                        moved = max(kc.length(to_p), kc.length(to_q))
                        if moved > SLOW * thin:
                            found = edge_goes_through(surfaces, b, p, q, to_p, to_q, points.ball[j], thin)
                if found == 1:
                    speed = 1 + int(min(1e6, moved / dt) * 1000.0)
                    if speed > passed[r, 0]:
                        passed[r, 0], passed[r, 1], passed[r, 2] = speed, a, b

    return passing_pairs


FAMILIES = {
    "shape": kernels(shape_surface, shape_spans),
    "mesh": kernels(mesh_surface, mesh_spans),
    "grid": kernels(grid_surface, grid_spans),
}
