"""Contact of the links of robots with planes: how hard friction holds."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Motion, Poses
from nablasim.physics.laws.contact.compliant_kernels import HalfSpaces, contact_force
from nablasim.physics.laws.contact.reports_kernels import Report, note


@kc.struct
class Points:
    """Points of links: balls about a place in the frame of a node; `light` is the inverse mass that contacts feel."""

    node: kc.Array[int]
    robot: kc.Array[int]
    local: kc.Array[kc.float3]
    ball: kc.Array[float]
    light: kc.Array[float]


@kc.struct
class Planes(HalfSpaces):
    """Pairs of a point and a plane."""

    point: kc.Array[int]


@kc.kernel
def grips(point: kc.Array[int], light: kc.Array[float], stick: float, grip: kc.Array[float]):
    """How hard friction holds, as a mass: so many times what a point weighs in contacts; nothing that cannot move."""
    r = kc.tid()
    inverse = light[point[r]]
    grip[r] = stick / inverse if inverse > 0.0 else 0.0


@kc.kernel
def report_links(p: Poses, m: Motion, a: Points, c: Planes, report: Report):
    """Write the contacts of links down, in a state that is looked at."""
    r = kc.tid()
    i = c.point[r]
    b, up = a.node[i], c.normal[r]
    at = p.x[b] + kc.quat_rotate(p.rot[b], a.local[i]) - up * a.ball[i]
    v = m.v[b] + kc.cross(m.w[b], at - p.origin[a.robot[i]])
    gap = kc.dot(up, at) - c.offset[r]
    if gap < c.smoothing[r]:
        force = contact_force(
            gap, v, up, c.ke[r], c.kd[r], c.kf[r], c.mu[r], c.law[r], c.touch[r], c.smoothing[r], 0.0
        )
        note(report, r, at, up, force, gap)
