"""Kernels that see a body pass through another one within one step, where contact finds it on neither side.

A thread is a pair of bodies. Nothing is differentiated: the result is a speed in whole millimetres per second, or zero,
and the two bodies, since a row may stand for other ones in the next step.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import BOX, CONE, CYLINDER, GRID, MESH
from nablasim.physics.laws.contact.body_contacts_kernels import Pairs
from nablasim.physics.laws.rigid.bodies_kernels import State
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces, grid_surface, mesh_surface, shape_surface

HOLLOW = 0.02
"""How thin the wall of a mesh, or of a grid of distances, may be, as a part of the radius of the ball that holds it."""
SLOW = 0.02
"""What moves by less than this part of how thin the other is, is not looked at: what lies still costs nothing."""
LOOKS = 64
"""At how many places of its way a point is looked at, at most."""


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
    return thin


@kc.func
def seen(state: State, a: int, b: int, p: kc.float3) -> kc.float3:
    """Point p of body a in the frame of body b."""
    return kc.quat_rotate_inv(state.rot[b], state.x[a] + kc.quat_rotate(state.rot[a], p) - state.x[b])


def kernels(surface):
    """The kernel for surfaces of this family."""

    @kc.kernel(lanes=0)
    def passing_pairs(
        before: State, after: State, surfaces: Surfaces, pairs: Pairs, dt: float, passed: kc.Array[int, 2]
    ):
        """Look whether points of one body go through the other, to where they would be pushed out behind it."""
        r = kc.tid()
        a, b, points = pairs.one[r], pairs.other[r], surfaces.points
        size, ball_a, ball_b = surfaces.size[b], surfaces.bound[a], surfaces.bound[b]
        thin = thinness(surfaces.kind[b], size.x, size.y, size.z, ball_b.w)
        start = seen(before, a, b, ball_a[0:3])
        way = seen(after, a, b, ball_a[0:3]) - start
        far = kc.length_sq(way)
        if a != b and far > SLOW * SLOW * thin * thin:
            s = kc.clamp(kc.dot(ball_b[0:3] - start, way) / far, 0.0, 1.0)
            if kc.length(start + way * s - ball_b[0:3]) < ball_a.w + ball_b.w:
                found = 0
                for i in range(points.start[a], points.start[a] + points.count[a]):
                    p = seen(before, a, b, points.local[i])
                    step = seen(after, a, b, points.local[i]) - p
                    reach = kc.length(step)
                    looks = min(LOOKS, 1 + int(kc.ceil(4.0 * reach / thin)))
                    away, m = surface(surfaces, b, p, reach)
                    inside = 1 if away < 0.0 else 0
                    if reach > SLOW * thin:
                        for k in range(looks):
                            away, n = surface(surfaces, b, p + step * (float(k + 1) / float(looks)), reach)
                            if away < 0.0 and inside == 0:
                                inside, m = 1, n
                            elif inside == 1 and away < reach and kc.dot(m, n) < -0.5:
                                found = 1  # On the far side.
                if found == 1:
                    speed = 1 + int(min(1e6, kc.sqrt(far) / dt) * 1000.0)
                    if speed > passed[r, 0]:
                        passed[r, 0], passed[r, 1], passed[r, 2] = speed, a, b

    return passing_pairs


FAMILIES = {"shape": kernels(shape_surface), "mesh": kernels(mesh_surface), "grid": kernels(grid_surface)}
