"""Memory of the steps of robots whose copies stand side by side, one in each SIMD lane.

A thread is a robot in one copy of the scene; `LANES` copies are a group. A number of a node, a degree of freedom or a
coordinate is memory[group, row, field, lane]: rows are those of the first copy, since all copies have the same tree, so
everything but the numbers themselves is the same for all lanes. Vectors are three fields in a row, and so on.
"""
# mypy: ignore-errors

import kernelc as kc

LANES = 16
"""Copies in a group: one or two registers of the widest kind."""

# Of nodes: where a node is, relative to the robot's origin; what it weighs about that: mass, first and second moments.
X, ROT, MASS, FIRST, DIAG, OFF = 0, 3, 7, 8, 11, 14
W, V, DW, DV = 17, 20, 23, 26
"""Velocity and acceleration about the origin."""
N, F = 29, 32
"""The wrench that a joint carries."""
ORIGIN = 35
"""Of the first node of a robot: the origin."""
HEAP, HEAP_FIRST, HEAP_DIAG, HEAP_OFF = 17, 18, 21, 24
"""Mass and moments of a node and all behind it, in the order of MASS, FIRST, DIAG, OFF: before there are velocities."""
EW, EV, EN, EF = 38, 41, 44, 47
"""Velocities at the end of the step, and what contact does there."""
PULL = 50
"""The stiffness of contact: three matrices, of forces by speeds, forces by rates, and moments by rates."""
NODE = 77
LW, LV = 44, 47
"""The twist that the adjoint of the accelerations makes."""
AW, AV, ADW, ADV, ALW, ALV, AEW, AEV = 50, 53, 56, 59, 62, 65, 68, 71
AMASS, AFIRST, ADIAG, AOFF, AX, AROT = 74, 75, 78, 81, 84, 87
NODE_BACK = 91

# Of degrees of freedom: how they move, and what acts in them.
TURN, SLIDE, PLACE, RATE, BIAS, ACC, REST, WAY, STIFF, HOLD, MID = 0, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14
DAMPING, STIFFNESS, SPRING_REST, FRICTION, KP, KD, LIMIT, TARGET, TORQUE, LOW, HIGH = range(15, 26)
STOP_KE, STOP_KD, APPARENT, ARMATURE, LEAN, PUSH, TIE, RATIO, OFFSET = range(26, 35)
DOF = 35
ATURN, ASLIDE, ARATE, AMID, LAMBDA = 35, 38, 41, 42, 43
(ADAMPING, ASTIFFNESS, AREST, AFRICTION, AKP, AKD, ALIMIT, ATARGET, ATORQUE, ALOW, AHIGH, AARMATURE, ARATIO, AOFFSET,
 APUSH) = range(44, 59)  # fmt: skip
DOF_BACK = 59

# Of points that may touch planes.
ARM, UP, GAP, KE, SOFT, AHEAD, DAMPER, MOST, GRIP, SLIDES, WAYS, PIECE = 0, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17
TOUCH = 18

# Of coordinates: at the start of the step and in the middle of it.
Q, Q_MID, AQ, AQ_MID = range(4)
COORD = 4


@kc.struct
class Abreast:
    """Memory that one launch needs; `M` are the mass matrices, by rows."""

    node: kc.Array[float, 4]
    dof: kc.Array[float, 4]
    coord: kc.Array[float, 4]
    M: kc.Array[float, 3]
    touch: kc.Array[float, 4]


@kc.struct
class Found:
    """What a step found: accelerations with the inertial forces of its start (0) and of its middle (1), and the factors
    of the matrix of the step at both; and what was left over of the equations of each robot."""

    a: kc.Array[float, 4]
    L: kc.Array[float, 4]
    left: kc.Array[float]


@kc.struct
class Ends:
    """Coordinates and rates at the end of a step, or their gradients."""

    q: kc.Array[float]
    qd: kc.Array[float]


@kc.struct
class Enough:
    """How well equations are solved: at most the part `tol` of the energy in play is left over. The whole of that is
    zero until it is known."""

    tol: float
    whole: float


@kc.struct
class Wanted:
    """Which gradients of parameters are asked for: none (0), or all, of where joints are, of what weighs, of what
    acts in joints, and of the ties of joints."""

    frames: int
    weights: int
    laws: int
    ties: int


@kc.struct
class PlaneSlopes:
    """Where the gradients of the planes go that links touch; all of them are asked for, or none (0)."""

    wanted: int
    normal: kc.Array[kc.float3]
    offset: kc.Array[float]
    ke: kc.Array[float]
    kd: kc.Array[float]
    mu: kc.Array[float]


@kc.struct
class Slopes:
    """Where the gradients go; those that nobody asked for are memory that nobody reads."""

    q: kc.Array[float]
    qd: kc.Array[float]
    base_x: kc.Array[kc.float3]
    base_rot: kc.Array[kc.quat]
    pos: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    axis: kc.Array[kc.float3]
    anchor: kc.Array[kc.float3]
    ref: kc.Array[float]
    gravity: kc.Array[kc.float3]
    mass: kc.Array[float]
    com: kc.Array[kc.float3]
    inertia: kc.Array[kc.mat33]
    armature: kc.Array[float]
    damping: kc.Array[float]
    stiffness: kc.Array[float]
    rest: kc.Array[float]
    friction: kc.Array[float]
    kp: kc.Array[float]
    kd: kc.Array[float]
    limit: kc.Array[float]
    target: kc.Array[float]
    torque: kc.Array[float]
    more_torque: kc.Array[float]
    limits: kc.Array[kc.float2]
    ratio: kc.Array[float]
    offset: kc.Array[float]
    push: kc.Array[float] | None
    wanted: Wanted
    planes: PlaneSlopes | None


@kc.struct
class Sizes:
    """How many copies there are, and what one of them has."""

    worlds: int
    robots: int
    coords: int


@kc.func
def copy_of(z: Sizes, group: int, lane: int) -> int:
    """The copy in a lane. What is left over of the last group does again what the last copy does."""
    return kc.min(group * LANES + lane, z.worlds - 1)


@kc.func
def more(dof, k: int, f: int, l: int, value: float):
    dof[k, f, l] = dof[k, f, l] + value


@kc.func
def get3(m, i: int, f: int, l: int) -> kc.float3:
    return kc.float3(m[i, f, l], m[i, f + 1, l], m[i, f + 2, l])


@kc.func
def put3(m, i: int, f: int, l: int, v: kc.float3):
    m[i, f, l] = v.x
    m[i, f + 1, l] = v.y
    m[i, f + 2, l] = v.z


@kc.func
def add3(m, i: int, f: int, l: int, v: kc.float3):
    put3(m, i, f, l, get3(m, i, f, l) + v)


@kc.func
def get4(m, i: int, f: int, l: int) -> kc.quat:
    return kc.quat(m[i, f, l], m[i, f + 1, l], m[i, f + 2, l], m[i, f + 3, l])


@kc.func
def put4(m, i: int, f: int, l: int, v: kc.quat):
    m[i, f, l] = v.x
    m[i, f + 1, l] = v.y
    m[i, f + 2, l] = v.z
    m[i, f + 3, l] = v.w


@kc.func
def add4(m, i: int, f: int, l: int, v: kc.quat):
    put4(m, i, f, l, get4(m, i, f, l) + v)
