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
from nablasim.physics.laws.rigid.surfaces_kernels import (
    FAR,
    Surfaces,
    grid_surface,
    ground_at,
    mesh_surface,
    shape_surface,
)

HOLLOW = 0.02
"""How thin the wall of a mesh, or of a grid of distances, may be, as a part of the radius of the ball that holds it."""
SLOW = 0.02
"""What moves by less than this part of how thin the other is, is not looked at: what lies still costs nothing."""
LOOKS = 1024
"""At how many places of its way a point, or an edge, is looked at, at most."""
STRIDE = 0.8
"""Part of the distance from the surface by which a point goes on: distances on a grid are not quite exact."""
GRAZE = 0.1
"""How deep something has been that comes out again within a step, as a part of the radius of the smaller of the balls
that hold the two: what grazes a corner is let pass, and what shoots through it is not."""


@kc.func
def thinness(kind: int, a: float, b: float, c: float, radius: float) -> float:
    """About how far it is through the thinnest part of a body, of sizes a, b, c, in a ball of this radius."""
    thin = 2.0 * a
    if kind == BOX:
        thin = min(a, min(b, c))
    elif kind == CYLINDER or kind == CONE:
        thin = min(2.0 * a, b)
    elif kind == MESH or kind == GRID or kind == FIELD:  # All below a field is ground, but ridges may be thin.
        thin = HOLLOW * radius
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


@kc.func
def grid_side(surfaces: Surfaces, b: int, p: kc.float3, reach: float):
    """On which side of a grid's surface p is, and about how far. Of ground only what is above or below p is asked: the
    nearest slope is not known that well from far away."""
    gap, n, g = FAR + 0.0 * p.x, kc.float3(), surfaces.grids
    if surfaces.kind[b] == FIELD:
        x, z = (p.x - g.origin[b].x) / g.spacing[b].x, (p.z - g.origin[b].z) / g.spacing[b].z
        if x >= 0.0 and x <= float(g.cells[b, 0] - 1) and z >= 0.0 and z <= float(g.cells[b, 2] - 1):
            height, n = ground_at(g, b, x, z)
            gap = (p.y - height) * n.y
    else:
        gap, n = grid_surface(surfaces, b, p, reach)
    return gap, n


def kernels(surface, spans):
    """The kernel for surfaces of this family."""

    @kc.func
    def goes_through(
        surfaces: Surfaces, b: int, p: kc.float3, step: kc.float3, ball: float, thin: float, graze: float
    ) -> int:
        """Whether a ball that moves by a step comes to where it would be pushed out behind the surface, or was deep
        inside between the two ends of its way."""
        reach, found, deepest = kc.length(step), 0, 0.0
        least, most = 0.125 * thin / reach, 1.0
        if surfaces.kind[b] == FIELD:
            most = thin / reach  # What is known there is the distance from the slope that is near.
        bound = surfaces.bound[b]
        s, end = through_ball(kc.float4(bound[0:3], bound.w + ball), p, step)
        if s <= end:
            away, m = surface(surfaces, b, p + step * s, reach + ball)
            inside, looks = 1 if away < ball else 0, 0
            came = inside == 0
            while s < end and looks < LOOKS and found == 0:
                looks += 1
                stride = STRIDE * kc.abs(away - ball) / reach if away < FAR else 0.0
                s = min(end, s + min(max(least, stride), most))
                away, n = surface(surfaces, b, p + step * s, reach + ball)
                deepest = max(deepest, ball - away)
                if away < ball and inside == 0:
                    inside, m = 1, n
                elif inside == 1 and away < reach and kc.dot(m, n) < -0.5:
                    found = 1  # On the far side.
            if came and away >= ball and deepest > graze:
                found = 1
        return found

    @kc.func
    def edge_goes_through(
        surfaces: Surfaces, b: int, p: kc.float3, q: kc.float3, to_p: kc.float3, to_q: kc.float3, radius: float,
        thin: float, graze: float,
    ) -> int:  # fmt: skip
        """The same of the middle of what is inside of an edge from p to q."""
        reach, found, inside, m = max(kc.length(to_p), kc.length(to_q)), 0, 0, kc.float3()
        if is_near(surfaces.bound[b], p, q - p, radius + reach):
            came, deepest, now = True, 0.0, 0.0
            looks = min(LOOKS, 1 + int(kc.ceil(4.0 * reach / thin)))
            for k in range(looks + 1):
                s = float(k) / float(looks)
                start = p + to_p * s
                along = q + to_q * s - start
                now = 0.0
                for s0, s1, _f0, _f1 in spans(surfaces, b, start, along, radius):
                    away, n = surface(surfaces, b, start + along * (0.5 * (s0 + s1)), radius + reach)
                    now = max(now, radius - away)
                    if inside == 0:
                        inside, m, came = 1, n, k > 0
                    elif kc.dot(m, n) < -0.5:
                        found = 1
                deepest = max(deepest, now)
            if came and now <= 0.0 and deepest > graze:
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
        graze = GRAZE * min(ball_a.w, ball_b.w)
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
                            found = goes_through(surfaces, b, p, step, points.ball[i], thin, graze)
                for i in range(edges.start[a], edges.start[a] + edges.count[a]):
                    if found == 0:
                        j, k = edges.ends[i, 0], edges.ends[i, 1]
                        p, q = seen(before, a, b, points.local[j]), seen(before, a, b, points.local[k])
                        to_p, to_q = seen(after, a, b, points.local[j]) - p, seen(after, a, b, points.local[k]) - q
                        moved = max(kc.length(to_p), kc.length(to_q))
                        if moved > SLOW * thin:
                            found = edge_goes_through(surfaces, b, p, q, to_p, to_q, points.ball[j], thin, graze)
                if found == 1:
                    speed = 1 + int(min(1e6, moved / dt) * 1000.0)
                    if speed > passed[r, 0]:
                        passed[r, 0], passed[r, 1], passed[r, 2] = speed, a, b

    return passing_pairs


FAMILIES = {
    "shape": kernels(shape_surface, shape_spans),
    "mesh": kernels(mesh_surface, mesh_spans),
    "grid": kernels(grid_side, grid_spans),
}
