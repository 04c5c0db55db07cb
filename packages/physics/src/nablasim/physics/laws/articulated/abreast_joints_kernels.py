"""What one joint does in one step, as functions of numbers alone: so `kc.grad` has their derivatives.

The laws are those of `joints_kernels.py`, `ties_kernels.py` and `tree_kernels.py`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.joints_kernels import STICK
from nablasim.physics.laws.articulated.ties_kernels import BACK
from nablasim.physics.laws.contact.compliant_kernels import hinge


# -- where joints put what hangs on them
@kc.struct
class Mount:
    """Where a joint sits: the frame of its parent in the world, the joint in that frame, and the anchor behind it."""

    x: kc.float3
    turned: kc.quat
    pos: kc.float3
    rot: kc.quat
    anchor: kc.float3


@kc.func
def before_joint(x: kc.float3, turned: kc.quat, pos: kc.float3, rot: kc.quat):
    """Where a joint is, from where its parent is."""
    return x + kc.quat_rotate(turned, pos), turned * kc.normalize(rot)


@kc.func
def behind_joint(at: kc.float3, turned: kc.quat, anchor: kc.float3) -> kc.float3:
    return at - kc.quat_rotate(turned, anchor)


@kc.func
def revolve(turned: kc.quat, axis: kc.float3, angle: float):
    """How a frame turns about an axis, and the axis in the world."""
    u = kc.normalize(axis)
    s = u * kc.sin(0.5 * angle)
    return turned * kc.quat(s.x, s.y, s.z, kc.cos(0.5 * angle)), kc.quat_rotate(turned, u)


@kc.func
def rot_dot(a: kc.quat, b: kc.quat) -> float:
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w


@kc.func
def unit_dot(a: kc.quat, b: kc.quat) -> float:
    return rot_dot(kc.normalize(a), b)


@kc.func
def fixed_dot(m: Mount, ax: kc.float3, arot: kc.quat) -> float:
    at, now = before_joint(m.x, m.turned, m.pos, m.rot)
    return kc.dot(ax, behind_joint(at, now, m.anchor)) + rot_dot(arot, now)


@kc.func
def revolute_dot(m: Mount, axis: kc.float3, q: float, ref: float, ax: kc.float3, arot: kc.quat, aturn: kc.float3,
                 aslide: kc.float3) -> float:  # fmt: skip
    at, now = before_joint(m.x, m.turned, m.pos, m.rot)
    end, a = revolve(now, axis, q - ref)
    return (kc.dot(ax, behind_joint(at, end, m.anchor)) + rot_dot(arot, end) + kc.dot(aturn, a)
            + kc.dot(aslide, kc.cross(at, a)))  # fmt: skip


@kc.func
def prismatic_dot(m: Mount, axis: kc.float3, q: float, ref: float, ax: kc.float3, arot: kc.quat,
                  aslide: kc.float3) -> float:  # fmt: skip
    at, now = before_joint(m.x, m.turned, m.pos, m.rot)
    a = kc.quat_rotate(now, kc.normalize(axis))
    return kc.dot(ax, behind_joint(at + a * (q - ref), now, m.anchor)) + rot_dot(arot, now) + kc.dot(aslide, a)


@kc.func
def ball_dot(m: Mount, move: kc.float3, q: kc.quat, root: float, ax: kc.float3, arot: kc.quat, aturn: kc.mat33,
             aslide: kc.mat33, amove: kc.mat33) -> float:  # fmt: skip
    """A spherical joint, or a free one; `root` is 1 where its rates are those of the world. Rows are directions."""
    at, now = before_joint(m.x, m.turned, m.pos, m.rot)
    at = at + kc.quat_rotate(now, move)
    # Of what is the same for all, the derivative is zero: no branch is needed.
    side = now * (1.0 - root) + kc.quat_identity() * root
    axes = kc.transpose(kc.quat_to_matrix(side))
    end = now * kc.normalize(q)
    total = kc.dot(ax, behind_joint(at, end, m.anchor)) + rot_dot(arot, end)
    for k in (0, 1, 2):
        a = kc.float3(axes[k, 0], axes[k, 1], axes[k, 2])
        total += kc.dot(kc.float3(aturn[k, 0], aturn[k, 1], aturn[k, 2]), a)
        total += kc.dot(kc.float3(aslide[k, 0], aslide[k, 1], aslide[k, 2]), kc.cross(at, a))
        total += kc.dot(kc.float3(amove[k, 0], amove[k, 1], amove[k, 2]), a)
    return total


@kc.func
def moments(x: kc.float3, rot: kc.quat, com: kc.float3, mass: float, inertia: kc.mat33):
    """First moment, diagonal and other entries of the second moment, about the origin."""
    c = x + kc.quat_rotate(rot, com)
    R = kc.quat_to_matrix(rot)
    I = R * inertia * kc.transpose(R)
    diag = kc.float3(I[0, 0] + mass * (c.y * c.y + c.z * c.z), I[1, 1] + mass * (c.x * c.x + c.z * c.z),
                     I[2, 2] + mass * (c.x * c.x + c.y * c.y))  # fmt: skip
    off = kc.float3(I[0, 1] - mass * c.x * c.y, I[0, 2] - mass * c.x * c.z, I[1, 2] - mass * c.y * c.z)
    return c * mass, diag, off


@kc.func
def moments_dot(x: kc.float3, rot: kc.quat, com: kc.float3, mass: float, inertia: kc.mat33, afirst: kc.float3,
                adiag: kc.float3, aoff: kc.float3) -> float:  # fmt: skip
    first, diag, off = moments(x, rot, com, mass, inertia)
    return kc.dot(afirst, first) + kc.dot(adiag, diag) + kc.dot(aoff, off)


# -- how coordinates move
@kc.func
def turned_by(q: kc.quat, w: kc.float3, dt: float) -> kc.quat:
    return kc.normalize(kc.quat_from_rotvec(w * dt) * kc.normalize(q))


@kc.func
def ball_ahead(q: kc.quat, w: kc.float3, dt: float) -> kc.quat:
    return turned_by(q, w, dt)


@kc.func
def ball_ahead_dot(q: kc.quat, w: kc.float3, dt: float, aq: kc.quat) -> float:
    return rot_dot(aq, ball_ahead(q, w, dt))


@kc.func
def free_ahead(q: kc.quat, v: kc.float3, w: kc.float3, side: kc.quat, dt: float):
    """How far a free joint moves, and how it is turned then; `side` is the frame in which q is, seen from the rates."""
    return kc.quat_rotate_inv(side, v) * dt, turned_by(q, kc.quat_rotate_inv(side, w), dt)


@kc.func
def free_ahead_dot(q: kc.quat, v: kc.float3, w: kc.float3, base: kc.quat, rot: kc.quat, root: float, dt: float,
                   amove: kc.float3, aq: kc.quat) -> float:  # fmt: skip
    move, end = free_ahead(q, v, w, free_side(base, rot, root), dt)
    return kc.dot(amove, move) + rot_dot(aq, end)


@kc.func
def free_side(base: kc.quat, rot: kc.quat, root: float) -> kc.quat:
    return kc.normalize(base) * kc.normalize(rot) * root + kc.quat_identity() * (1.0 - root)


# -- dynamics
@kc.func
def power(lw: kc.float3, lv: kc.float3, w: kc.float3, v: kc.float3, dw: kc.float3, dv: kc.float3, mass: float,
          first: kc.float3, diag: kc.float3, off: kc.float3) -> float:  # fmt: skip
    """What the inertial wrench of a link does along a twist."""
    n, f = wrench(w, v, dw, dv, mass, first, diag, off)
    return kc.dot(lw, n) + kc.dot(lv, f)


@kc.func
def wrench(w: kc.float3, v: kc.float3, dw: kc.float3, dv: kc.float3, mass: float, first: kc.float3, diag: kc.float3,
           off: kc.float3):  # fmt: skip
    """I a + v ×* I v: moment and force."""
    p = v * mass + kc.cross(w, first)
    h = times(diag, off, w) + kc.cross(first, v)
    f = dv * mass + kc.cross(dw, first) + kc.cross(w, p)
    n = times(diag, off, dw) + kc.cross(first, dv) + kc.cross(w, h) + kc.cross(v, p)
    return n, f


@kc.func
def times(diag: kc.float3, off: kc.float3, v: kc.float3) -> kc.float3:
    """A symmetric matrix, given by its diagonal and xy, xz, yz, times a vector."""
    return kc.float3(
        diag.x * v.x + off.x * v.y + off.y * v.z,
        off.x * v.x + diag.y * v.y + off.z * v.z,
        off.y * v.x + off.z * v.y + diag.z * v.z,
    )


# -- what acts in joints
@kc.struct
class Drive:
    """What acts in one degree of freedom; see `Drives`. `torque` is all of it, `low` and `high` are the limits."""

    damping: float
    stiffness: float
    rest: float
    friction: float
    kp: float
    kd: float
    limit: float
    target: float
    torque: float
    low: float
    high: float
    stop_ke: float
    stop_kd: float
    apparent: float


@kc.func
def drive_of(dof, k: int, l: int) -> Drive:
    return Drive(
        damping=dof[k, am.DAMPING, l], stiffness=dof[k, am.STIFFNESS, l], rest=dof[k, am.SPRING_REST, l],
        friction=dof[k, am.FRICTION, l], kp=dof[k, am.KP, l], kd=dof[k, am.KD, l], limit=dof[k, am.LIMIT, l],
        target=dof[k, am.TARGET, l], torque=dof[k, am.TORQUE, l], low=dof[k, am.LOW, l], high=dof[k, am.HIGH, l],
        stop_ke=dof[k, am.STOP_KE, l], stop_kd=dof[k, am.STOP_KD, l], apparent=dof[k, am.APPARENT, l])  # fmt: skip


@kc.func
def lean_of(damping: float, kd: float, stiffness: float, kp: float, apparent: float, dt: float) -> float:
    z = dt * (damping + kd + dt * (stiffness + kp)) / apparent
    return 0.5 + 0.5 * z / (z + 2.0)


@kc.func
def rate_at_end(v: float, a: float, damping: float, kd: float, stiffness: float, kp: float, apparent: float,
                dt: float) -> float:  # fmt: skip
    """The rate by which coordinates go through the step."""
    return v + lean_of(damping, kd, stiffness, kp, apparent, dt) * dt * a


@kc.func
def motor_torque(q: float, v: float, kp: float, kd: float, target: float, torque: float) -> float:
    return kp * (target - q) - kd * v + torque


@kc.func
def stop_torque(end: float, ke: float, kd: float, q: float, v: float) -> float:
    return ke * (end - q) - kd * v


@kc.func
def soft_torque(q: float, v: float, a: float, dt: float, d: Drive) -> float:
    """All that acts in a degree of freedom but dry friction, at the acceleration a."""
    ahead = lean_of(d.damping, d.kd, d.stiffness, d.kp, d.apparent, dt)
    v_e, v_1 = v + ahead * dt * a, v + dt * a
    q_e, q_1 = q + ahead * dt * v_e, q + dt * v_1
    u = kc.clamp(motor_torque(q_e, v_e, d.kp, d.kd, d.target, d.torque), -d.limit, d.limit)
    push = kc.max(stop_torque(d.low, d.stop_ke, d.stop_kd, q_1, v_1), 0.0)
    pull = kc.min(stop_torque(d.high, d.stop_ke, d.stop_kd, q_1, v_1), 0.0)
    return u + push + pull - d.damping * v_e - d.stiffness * (q_e - d.rest)


@kc.func
def dry_torque(v: float, a: float, dt: float, friction: float, apparent: float) -> float:
    """Dry friction: what it may, or what it needs to hold."""
    rub = kc.stop_grad(STICK * apparent / dt) * (v + dt * a)
    return kc.clamp(rub, -friction, friction) if friction > 0.0 else 0.0


@kc.func
def pull_of(q: float, v: float, a: float, q_of: float, v_of: float, a_of: float, ratio: float, offset: float,
            tie: float, dt: float) -> float:  # fmt: skip
    """What holds a joint to the one that it follows."""
    off = q - ratio * q_of - offset
    rate = v + dt * a - ratio * (v_of + dt * a_of)
    return tie / dt * (rate + BACK / dt * off)


@kc.func
def drive_torque(q: float, v: float, a: float, dt: float, d: Drive) -> float:
    """All that acts in a degree of freedom."""
    return soft_torque(q, v, a, dt, d) - dry_torque(v, a, dt, d.friction, d.apparent)


@kc.func
def pull_power(q: float, v: float, a: float, q_of: float, v_of: float, a_of: float, ratio: float, offset: float,
               tie: float, dt: float, mine: float, of: float) -> float:  # fmt: skip
    return pull_of(q, v, a, q_of, v_of, a_of, ratio, offset, tie, dt) * (ratio * of - mine)


# -- contact of a point with a plane: see `contacts_kernels.py`
@kc.struct
class Moving:
    """A node: where it is, its velocity at the end of the step, and the twist along which power is counted."""

    x: kc.float3
    rot: kc.quat
    w: kc.float3
    v: kc.float3
    lw: kc.float3
    lv: kc.float3


@kc.struct
class Plane:
    """A plane, and how what touches it is pushed and held."""

    normal: kc.float3
    offset: float
    ke: float
    kd: float
    mu: float


@kc.struct
class Pair:
    """A point and a plane; see `Contacts`. Nobody asks for its gradient. `origin` is that of the robot."""

    origin: kc.float3
    local: kc.float3
    ball: float
    light: float
    touch: float
    smoothing: float
    grip: float


@kc.func
def touch_power(m: Moving, p: Plane, c: Pair, dt: float, law: int) -> float:
    """What contact does along a twist."""
    arm = m.x + kc.quat_rotate(m.rot, c.local) - p.normal * c.ball
    gap = kc.dot(p.normal, arm + c.origin) - p.offset
    u = m.v + kc.cross(m.w, arm)
    rate, deep = kc.dot(u, p.normal), hinge(-gap, c.smoothing)
    damper = p.kd * deep / (deep + c.touch) if law == 1 else (p.kd if deep > 0.0 and rate < 0.0 else 0.0)
    stiff = dt * dt * p.ke * c.light
    ahead = dt * (0.5 + 0.5 * stiff / (stiff + 2.0))
    fn = hinge(-p.ke * (gap + ahead * rate) - damper * rate, p.ke * c.smoothing)
    along = u - p.normal * rate
    slip, most = kc.length(along), p.mu * p.ke * deep
    rub = c.grip / dt
    if rub * slip > most:
        rub = most / slip
    force = p.normal * fn - along * rub
    if fn <= 0.0 and most <= 0.0:
        force = kc.float3()
    return kc.dot(force, m.lv + kc.cross(m.lw, arm))
