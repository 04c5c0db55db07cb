"""Kernels that see a body pass through another one within one step, where contact finds it on neither side.

A thread is a pair of bodies. Nothing is differentiated: the result is a speed in whole millimetres per second, or zero.
"""

import kernelc as kc
from nablasim.physics.kernels.bodies import GRID, MESH
from nablasim.physics.kernels.shapes import BOX, CONE, CYLINDER
from nablasim.physics.kernels.surfaces import grid_surface, mesh_surface, shape_surface

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


def kernels(surface):
    """The kernel for surfaces of this family."""

    @kc.kernel(lanes=0)
    def passing_pairs(
        x: kc.Array[kc.float3],
        rot: kc.Array[kc.quat],
        x_next: kc.Array[kc.float3],
        rot_next: kc.Array[kc.quat],
        dt: float,
        bound: kc.Array[kc.float4],
        point_start: kc.Array[int],
        point_count: kc.Array[int],
        kind: kc.Array[int],
        size: kc.Array[kc.float3],
        local: kc.Array[kc.float3],
        corners: kc.Array[int, 2],
        box_start: kc.Array[int],
        box_count: kc.Array[int],
        face_start: kc.Array[int],
        face_count: kc.Array[int],
        low: kc.Array[kc.float3],
        high: kc.Array[kc.float3],
        node: kc.Array[int],
        cells: kc.Array[int, 2],
        origin: kc.Array[kc.float3],
        spacing: kc.Array[kc.float3],
        distance: kc.Array[float],
        one: kc.Array[int],
        other: kc.Array[int],
        passed: kc.Array[int],
    ):
        """Look whether points of one body go through the other, to where they would be pushed out behind it."""
        r = kc.tid()
        a, b = one[r], other[r]
        thin = thinness(kind[b], size[b].x, size[b].y, size[b].z, bound[b].w)
        middle, whole = kc.float3(bound[a].x, bound[a].y, bound[a].z), kc.float3(bound[b].x, bound[b].y, bound[b].z)
        start = kc.quat_rotate_inv(rot[b], x[a] + kc.quat_rotate(rot[a], middle) - x[b])
        end = kc.quat_rotate_inv(rot_next[b], x_next[a] + kc.quat_rotate(rot_next[a], middle) - x_next[b])
        way = end - start
        far = kc.length_sq(way)
        if far > SLOW * SLOW * thin * thin:
            s = kc.clamp(kc.dot(whole - start, way) / far, 0.0, 1.0)
            if kc.length(start + way * s - whole) < bound[a].w + bound[b].w:
                found = 0
                for i in range(point_start[a], point_start[a] + point_count[a]):
                    p = kc.quat_rotate_inv(rot[b], x[a] + kc.quat_rotate(rot[a], local[i]) - x[b])
                    to = kc.quat_rotate_inv(rot_next[b], x_next[a] + kc.quat_rotate(rot_next[a], local[i]) - x_next[b])
                    step = to - p
                    reach = kc.length(step)
                    looks = min(LOOKS, 1 + int(kc.ceil(4.0 * reach / thin)))
                    before, m = surface(
                        b, p, reach, kind, size, local, corners, box_start, box_count, face_start, face_count, low,
                        high, node, cells, origin, spacing, distance,
                    )  # fmt: skip
                    inside = 1 if before < 0.0 else 0
                    if reach > SLOW * thin:
                        for k in range(looks):
                            away, n = surface(
                                b, p + step * (float(k + 1) / float(looks)), reach, kind, size, local, corners,
                                box_start, box_count, face_start, face_count, low, high, node, cells, origin, spacing,
                                distance,
                            )  # fmt: skip
                            if away < 0.0 and inside == 0:
                                inside, m = 1, n
                            elif inside == 1 and away < reach and kc.dot(m, n) < -0.5:
                                found = 1  # On the far side.
                if found == 1:
                    kc.atomic_max(passed, r, 1 + int(min(1e6, kc.sqrt(far) / dt) * 1000.0))

    return passing_pairs


FAMILIES = {"shape": kernels(shape_surface), "mesh": kernels(mesh_surface), "grid": kernels(grid_surface)}
