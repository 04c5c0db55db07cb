"""Analytic shapes in kernels: signed distance, surface normal, and the closed forms of volume, centre and inertia.

A shape is a kind (an int) and a size (a float3), so that one array holds shapes of all kinds and a kernel can
differentiate by the size. Round shapes stand upright, along y; the origin is half-way up.

| kind     | size                         |
|----------|------------------------------|
| SPHERE   | radius                       |
| BOX      | the three sides              |
| CAPSULE  | radius, height of its middle |
| CYLINDER | radius, height               |
| CONE     | radius of the base, height   |

Called from Python, `shape_moments` computes with NumPy: `shapes.py` does that, so that no formula stands twice.
"""
# mypy: ignore-errors

import kernelc as kc

SPHERE = 0
BOX = 1
CAPSULE = 2
CYLINDER = 3
CONE = 4
MESH = 5
GRID = 6
FIELD = 7
"""The last three are bodies of triangles, of signed distances and of heights: their numbers are in other tables."""


@kc.func
def cylinder_distance(p: kc.float3, radius: float, height: float) -> float:
    """As a box in the plane of (distance from the axis, height)."""
    gap = kc.float2(kc.hypot(p.x, p.z) - radius, kc.abs(p.y) - 0.5 * height)
    return kc.length(kc.max(gap, 0.0)) + kc.min(kc.max(gap.x, gap.y), 0.0)


@kc.func
def cone_distance(p: kc.float3, radius: float, height: float) -> float:
    """The distance to the base or to the slope, the nearer one, in the plane of (distance from the axis, height)."""
    q = kc.float2(kc.hypot(p.x, p.z), p.y)
    rim = kc.float2(radius, -0.5 * height)
    tip = kc.float2(0.0, 0.5 * height)
    to_base = kc.length(q - kc.float2(kc.min(q.x, radius), -0.5 * height))
    to_slope = kc.length(q - rim - (tip - rim) * kc.closest_point_segment(q, rim, tip))
    below_slope = (q.x - radius) * height + (q.y + 0.5 * height) * radius < 0.0
    distance = kc.min(to_base, to_slope)
    return -distance if below_slope and q.y > -0.5 * height else distance


@kc.func
def shape_distance(kind: int, size: kc.float3, p: kc.float3) -> float:
    """How far p (in the shape's own frame) lies outside of the shape; negative inside. Exact, with slope one."""
    distance = kc.length(p) - size.x
    if kind == BOX:
        distance = kc.sdf_box(p, size * 0.5)
    elif kind == CAPSULE:
        half = kc.float3(0.0, 0.5 * size.y, 0.0)
        distance = kc.sdf_capsule(p, -half, half, size.x)
    elif kind == CYLINDER:
        distance = cylinder_distance(p, size.x, size.y)
    elif kind == CONE:
        distance = cone_distance(p, size.x, size.y)
    return distance


@kc.func
def flat_surface(gap: kc.float2) -> kc.float3:
    """Distance and normal (2) of a corner whose two sides are at these gaps: a side inside, the corner outside."""
    out = kc.float2(kc.max(gap.x, 0.0), kc.max(gap.y, 0.0))
    away = kc.length(out)
    found = kc.float3(away, out.x / away, out.y / away) if away > 0.0 else kc.float3(gap.x, 1.0, 0.0)
    if away == 0.0 and gap.y > gap.x:
        found = kc.float3(gap.y, 0.0, 1.0)
    return found


@kc.func
def cone_surface(q: kc.float2, radius: float, height: float) -> kc.float3:
    """Distance and normal (2) of a cone in the plane of (distance from the axis, height)."""
    rim = kc.float2(radius, -0.5 * height)
    slope = kc.normalize(kc.float2(height, radius))
    gap = kc.float2(kc.dot(slope, q - rim), -0.5 * height - q.y)
    found = kc.float3(gap.y, 0.0, -1.0)
    if gap.x >= gap.y:
        found = kc.float3(gap.x, slope.x, slope.y)
    if kc.max(gap.x, gap.y) > 0.0:
        tip = kc.float2(0.0, 0.5 * height)
        to_base = q - kc.float2(kc.min(q.x, radius), -0.5 * height)
        to_slope = q - rim - (tip - rim) * kc.closest_point_segment(q, rim, tip)
        out = to_base if kc.length_sq(to_base) < kc.length_sq(to_slope) else to_slope
        away = kc.length(out)
        found = kc.float3(away, out.x / away, out.y / away)
    return found


@kc.func
def box_surface(p: kc.float3, half: kc.float3):
    """Distance and normal of a box."""
    gap = kc.abs(p) - half
    side = kc.float3(kc.copysign(1.0, p.x), kc.copysign(1.0, p.y), kc.copysign(1.0, p.z))
    out = kc.max(gap, 0.0)
    distance = kc.length(out)
    normal = kc.cw_mul(out, side)
    if distance > 0.0:
        normal = normal / distance
    elif gap.x >= gap.y and gap.x >= gap.z:
        distance = gap.x
        normal = kc.float3(side.x, 0.0, 0.0)
    elif gap.y >= gap.z:
        distance = gap.y
        normal = kc.float3(0.0, side.y, 0.0)
    else:
        distance = gap.z
        normal = kc.float3(0.0, 0.0, side.z)
    return distance, normal


@kc.func
def shape_contact(kind: int, size: kc.float3, p: kc.float3):
    """The same as `shape_distance` and its slope by p, in one go: to be differentiated once more."""
    distance, normal = kc.length(p) - size.x, kc.normalize(p)
    if kind == BOX:
        distance, normal = box_surface(p, size * 0.5)
    elif kind == CAPSULE:
        r = p - kc.float3(0.0, kc.clamp(p.y, -0.5 * size.y, 0.5 * size.y), 0.0)
        distance, normal = kc.length(r) - size.x, kc.normalize(r)
    elif kind == CYLINDER or kind == CONE:
        axis = kc.float2(p.x, p.z)
        away = kc.length(axis)
        side = kc.copysign(1.0, p.y)
        found = flat_surface(kc.float2(away - size.x, kc.abs(p.y) - 0.5 * size.y))
        if kind == CONE:
            side = 1.0
            found = cone_surface(kc.float2(away, p.y), size.x, size.y)
        radial = kc.normalize(axis)
        distance = found.x
        normal = kc.float3(radial.x * found.y, side * found.z, radial.y * found.y)
    return distance, normal


@kc.func
def shape_moments(kind: int, size: kc.float3):
    """Volume, height of the centre of mass, and the principal moments about it per unit of mass."""
    r, h = size[0], size[1]  # by index, which NumPy's vectors have as well
    volume = 4.0 / 3.0 * kc.pi * r * r * r
    centre = 0.0 * r
    across = 0.4 * r * r  # about x
    along = 0.4 * r * r  # about y
    deep = 0.4 * r * r  # about z
    if kind == BOX:
        a, b, c = size[0], size[1], size[2]
        volume = a * b * c
        across = (b * b + c * c) / 12.0
        along = (a * a + c * c) / 12.0
        deep = (a * a + b * b) / 12.0
    elif kind == CAPSULE:
        # A cylinder and the two halves of a ball, as parts of the whole mass.
        ball = volume
        volume = ball + kc.pi * r * r * h
        part = ball / volume
        along = (1.0 - part) * r * r / 2.0 + part * 0.4 * r * r
        across = (1.0 - part) * (r * r / 4.0 + h * h / 12.0) + part * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
        deep = across
    elif kind == CYLINDER:
        volume = kc.pi * r * r * h
        along = r * r / 2.0
        across = (3.0 * r * r + h * h) / 12.0
        deep = across
    elif kind == CONE:
        volume = kc.pi * r * r * h / 3.0
        centre = -h / 4.0
        along = 0.3 * r * r
        across = 0.15 * r * r + 0.0375 * h * h
        deep = across
    return volume, centre, across, along, deep


@kc.kernel
def shape_distances(
    kind: kc.Array[int],
    size: kc.Array[kc.float3],
    p: kc.Array[kc.float3],
    distance: kc.Array[float],
    normal: kc.Array[kc.float3],
):
    """Of point i from shape i: the distance and its gradient, the outward normal."""
    i = kc.tid()
    distance[i] = shape_distance(kind[i], size[i], p[i])
    _by_size, by_p = kc.grad(shape_distance)(kind[i], size[i], p[i])
    normal[i] = by_p


@kc.kernel
def shape_mass_properties(
    kind: kc.Array[int],
    size: kc.Array[kc.float3],
    density: kc.Array[float],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
):
    """Mass (kg), centre of mass (m), and inertia (kg m²) about it, of solid shapes of uniform density."""
    i = kc.tid()
    volume, centre, across, along, deep = shape_moments(kind[i], size[i])
    m = density[i] * volume
    mass[i] = m
    com[i] = kc.float3(0.0, centre, 0.0)
    inertia[i] = kc.diag(kc.float3(m * across, m * along, m * deep))
