"""The solution of the contact of a scene: Newton's method, whose linear equations conjugate gradients solve.

What is solved, and why, stands in `rubbing_kernels.py`. Nothing here has a gradient: the residual carries it.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.body_friction_kernels import joined
from nablasim.physics.laws.contact.compliant_kernels import friction_slopes
from nablasim.physics.laws.contact.rubbing_kernels import Touches, pressing

SWEEPS = 100
"""At most; three to six are usual."""
CUTS = 40
"""How often a way that leads uphill is cut, at most."""
NEARLY = 0.01
"""Which part of the slope may be left where it is cut."""
CLOSE = 1e-13
"""The square of the residual, compared with that of points that all stick, below which sweeps end where they lead no
further, because of rounding."""
WITHIN = 1e-9
"""The same, by which each sweep solves its linear equations better than what it begins with."""
REFINED = 3
"""How often those of gradients are solved, each time for what the last solution lacks: pressure is what hard contact
makes of differences of velocities that are ten thousand times as small, and shows their rounding."""


@kc.struct
class Weights:
    """What resists: mass, and inertia about the centre of mass in world axes. start: the bodies of each scene."""

    mass: kc.Array[float]
    turn: kc.Array[kc.mat33]
    start: kc.Array[int]


@kc.struct
class Blocks:
    """The matrix A: a block for each body, and one for every two that touch, edges[w] of them in scene w."""

    own: kc.Array[kc.spatial_matrix]
    inverse: kc.Array[kc.spatial_matrix]
    one: kc.Array[int]
    other: kc.Array[int]
    block: kc.Array[kc.spatial_matrix]
    edges: kc.Array[int]


@kc.struct
class Vectors:
    """Numbers of all bodies: what is found, where a sweep leads, its right-hand side, and memory of the solver."""

    y: kc.Array[kc.spatial_vector]
    to: kc.Array[kc.spatial_vector]
    rhs: kc.Array[kc.spatial_vector]
    left: kc.Array[kc.spatial_vector]
    way: kc.Array[kc.spatial_vector]
    image: kc.Array[kc.spatial_vector]
    residual: kc.Array[float]
    scale: kc.Array[float]


@kc.func
def velocity_of(t: Touches, c: int, y: kc.Array[kc.spatial_vector]) -> kc.float3:
    """The velocity of one side against the other with the changes y."""
    a, b = t.one[c], t.other[c]
    u = t.free[c]
    if a >= 0:
        u += kc.spatial_top(y[a]) + kc.cross(kc.spatial_bottom(y[a]), t.arm[c])
    if b >= 0:
        u -= kc.spatial_top(y[b]) + kc.cross(kc.spatial_bottom(y[b]), t.brace[c])
    return u


@kc.func
def coupling(H: kc.mat33, L: kc.mat33, K: kc.mat33) -> kc.spatial_matrix:
    """-[I, -L]ᵀ H [I, -K]."""
    m = kc.spatial_matrix()
    right, lower = H * K, L * H
    both = lower * K
    for i in range(3):
        for j in range(3):
            m[i, j] = -H[i, j]
            m[i, j + 3] = right[i, j]
            m[i + 3, j] = -lower[i, j]
            m[i + 3, j + 3] = both[i, j]
    return m


@kc.func
def add_own(blocks: Blocks, b: int, H: kc.mat33, arm: kc.float3):
    L = kc.skew(arm)
    HL = H * L
    blocks.own[b] = blocks.own[b] + joined(H, -HL, -(L * HL))


@kc.func
def assemble(t: Touches, m: Weights, blocks: Blocks, s: Vectors, w: int, dt: float, begun: bool):
    """The matrix A and the right-hand side of a sweep from y; before it has begun, all points stick."""
    one, none = kc.diag(kc.float3(1.0, 1.0, 1.0)), kc.mat33()
    for b in range(m.start[w], m.start[w + 1]):
        blocks.own[b] = joined(one * m.mass[b], none, m.turn[b])
        s.rhs[b] = kc.spatial_vector()
    first, edges, last_a, last_b = w * (t.one.shape[0] // t.count.shape[0]), 0, -2, -2
    for c in range(first, first + t.count[w]):
        a, b, n, k, give = t.one[c], t.other[c], t.normal[c], t.law[c], t.give[c]
        v, free = velocity_of(t, c, s.y), t.free[c]
        w_end, w_free = kc.dot(n, v), kc.dot(n, free)
        u, free = v - n * w_end, free - n * w_free
        slip = kc.length(u)
        across, slope = k.y, k.y
        if begun:
            across, slope = friction_slopes(slip, t.cap[c], k.y, k.z)
        H, drive = (one - kc.outer(n, n)) * across, kc.float3()
        if slope < across:
            way = u / slip
            H += kc.outer(way, way) * (slope - across)
            drive = u * (slope - across)
        H = H * dt
        rest = drive * dt - H * free
        if give.x > give.y * w_end:
            H += kc.outer(n, n) * (dt * give.y)
            rest += n * (dt * (give.x - give.y * w_free))
        if a >= 0:
            add_own(blocks, a, H, t.arm[c])
            s.rhs[a] = s.rhs[a] + kc.spatial_join(rest, kc.cross(t.arm[c], rest))
        if b >= 0:
            add_own(blocks, b, H, t.brace[c])
            s.rhs[b] = s.rhs[b] - kc.spatial_join(rest, kc.cross(t.brace[c], rest))
        if a >= 0 and b >= 0:
            if a != last_a or b != last_b:
                blocks.one[first + edges] = a
                blocks.other[first + edges] = b
                blocks.block[first + edges] = kc.spatial_matrix()
                edges += 1
                last_a, last_b = a, b
            e = first + edges - 1
            blocks.block[e] = blocks.block[e] + coupling(H, kc.skew(t.arm[c]), kc.skew(t.brace[c]))
    blocks.edges[w] = edges
    for b in range(m.start[w], m.start[w + 1]):
        blocks.inverse[b] = kc.inverse(blocks.own[b])


@kc.func
def spread(m: Weights, blocks: Blocks, w: int, x: kc.Array[kc.spatial_vector], out: kc.Array[kc.spatial_vector]):
    """A x."""
    for b in range(m.start[w], m.start[w + 1]):
        out[b] = blocks.own[b] * x[b]
    first = w * (blocks.one.shape[0] // blocks.edges.shape[0])
    for e in range(first, first + blocks.edges[w]):
        a, b, K = blocks.one[e], blocks.other[e], blocks.block[e]
        out[a] = out[a] + K * x[b]
        out[b] = out[b] + kc.transpose(K) * x[a]


@kc.func
def solve_blocks(m: Weights, blocks: Blocks, s: Vectors, w: int, within: float, least: float) -> float:
    """A to = rhs by conjugate gradients from what is in `to`; the square of the residual that it began with."""
    low, high = m.start[w], m.start[w + 1]
    begun, size, k, going = 0.0, 0.0, 0, True
    for b in range(low, high):
        s.way[b] = s.to[b]
    while going:
        spread(m, blocks, w, s.way, s.image)
        curve, after = 0.0, 0.0
        for b in range(low, high):
            curve += kc.dot(s.way[b], s.image[b])
        step = size / curve if k > 0 else 0.0
        for b in range(low, high):
            left = s.rhs[b] - s.image[b]
            if k > 0:
                s.to[b] = s.to[b] + s.way[b] * step
                left = s.left[b] - s.image[b] * step
            s.left[b] = left
            s.image[b] = blocks.inverse[b] * left
            after += kc.dot(left, s.image[b])
        turn = after / size if k > 0 else 0.0
        for b in range(low, high):
            s.way[b] = s.image[b] + s.way[b] * turn
        if k == 0:
            begun = after
        size = after
        k += 1
        going = size > within * begun and size > least and k < 50 + 12 * (high - low)
    return begun


@kc.func
def slope_along(t: Touches, m: Weights, s: Vectors, w: int, dt: float, part: float) -> float:
    """The slope of the function whose minimum is sought, from y to `to`, at this part of the way."""
    total = 0.0
    for b in range(m.start[w], m.start[w + 1]):
        y, way = s.y[b], s.to[b] - s.y[b]
        y += way * part
        total += m.mass[b] * kc.dot(kc.spatial_top(y), kc.spatial_top(way))
        total += kc.dot(kc.spatial_bottom(way), m.turn[b] * kc.spatial_bottom(y))
    first = w * (t.one.shape[0] // t.count.shape[0])
    for c in range(first, first + t.count[w]):
        k, give, n = t.law[c], t.give[c], t.normal[c]
        v = velocity_of(t, c, s.y)
        change = velocity_of(t, c, s.to) - v
        v += change * part
        w_end = kc.dot(n, v)
        u = v - n * w_end
        across, _ = friction_slopes(kc.length(u), t.cap[c], k.y, k.z)
        total += dt * across * kc.dot(u, change)
        if give.y > 0.0:
            total -= dt * pressing(k, give, w_end) * kc.dot(n, change)
    return total


@kc.func
def lowest_along(t: Touches, m: Weights, s: Vectors, w: int, dt: float) -> float:
    """Which part of the way to `to` leads lowest: all of it, unless the function rises there."""
    low, high, part, at_low, at_high, begins = 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
    looks, going = 0, True
    while going:
        slope = slope_along(t, m, s, w, dt, part)
        if looks == 0:
            at_low, begins, part = slope, -slope, 1.0
            going = slope < 0.0
        else:
            if looks == 1:
                at_high = slope
            elif slope > 0.0:
                high, at_high = part, slope
            else:
                low, at_low, slope = part, slope, -slope
            going = slope > NEARLY * begins and looks <= CUTS and at_low < 0.0
            if going:
                # The slope only grows on the way. Where it is a straight line the first guess is right; at kinks,
                # halves are.
                part = 0.5 * (low + high)
                if looks % 2 == 1:
                    part = low - at_low * (high - low) / (at_high - at_low)
        looks += 1
    return part


@kc.kernel(lanes=0)
def settle(t: Touches, m: Weights, dt: float, begins: int, fine: float, blocks: Blocks, s: Vectors):
    """Find y, and leave the matrix there. A thread is a scene.

    begins: friction is held by the pressure that the step begins with; else by that of the y that was found before.
    fine: the square of the residual at which sweeps end, compared with that of points that all stick.
    Each part is in one place, in a loop, or the compiler would have several copies of it to work on.
    """
    w = kc.tid()
    low, high, first = m.start[w], m.start[w + 1], w * (t.one.shape[0] // t.count.shape[0])
    for c in range(first, first + t.count[w]):
        cap = t.law[c].x * t.law[c].w
        if begins == 0:
            cap = t.law[c].x * pressing(t.law[c], t.give[c], kc.dot(t.normal[c], velocity_of(t, c, s.y)))
        t.cap[c] = cap
    for b in range(low, high):
        if begins == 1:
            s.y[b] = kc.spatial_vector()
        s.to[b] = s.y[b]
    s.residual[w] = 0.0
    least, sweep, done, last = fine * s.scale[w], 0, False, 1e300
    if t.count[w] == 0:
        blocks.edges[w] = 0
        for b in range(low, high):
            blocks.own[b] = joined(kc.diag(kc.float3(1.0, 1.0, 1.0)) * m.mass[b], kc.mat33(), m.turn[b])
        done = True
    while not done:
        stick = begins == 1 and sweep == 0
        if stick:
            least = 0.0
        assemble(t, m, blocks, s, w, dt, not stick)
        size = solve_blocks(m, blocks, s, w, WITHIN, 0.01 * least)
        sweep += 1
        part = 1.0
        if stick:
            s.scale[w] = size
            least = fine * size
        else:
            s.residual[w] = max(size, 0.0)
            done = size <= least or (size <= CLOSE * s.scale[w] and size >= 0.5 * last) or sweep > SWEEPS
            if not done:
                last, part = size, lowest_along(t, m, s, w, dt)
        if not done:
            for b in range(low, high):
                s.y[b] = s.y[b] + (s.to[b] - s.y[b]) * part
                s.to[b] = s.y[b]


@kc.kernel(lanes=0)
def solve_linear(m: Weights, blocks: Blocks, s: Vectors):
    """A to = rhs for the adjoint and the tangents. A thread is a scene."""
    w = kc.tid()
    for b in range(m.start[w], m.start[w + 1]):
        s.to[b] = kc.spatial_vector()
        blocks.inverse[b] = kc.inverse(blocks.own[b])
    within, least = 1e-26, 0.0
    for k in range(REFINED):
        begun = solve_blocks(m, blocks, s, w, within, least)
        if k == 0:
            within, least = 1e-8, 1e-34 * begun
