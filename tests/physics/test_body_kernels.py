"""Every kernel of rigid bodies: its adjoint against central differences, by kernelc's own checker."""

import numpy as np
import pytest

import kernelc as kc
from nablasim.physics.kernels import bodies, body_friction, body_loads, body_planes, implicit_bodies, pairing
from nablasim.physics.kernels.hard import HARD

B, M = 4, 7


@pytest.fixture
def make():
    return Maker(np.random.default_rng(0))


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def points(self, n):
        return kc.array(self.rng.normal(size=(n, 3)), dtype=kc.float3, requires_grad=True)

    def positive(self, n, low=0.5, high=2.0):
        return kc.array(self.rng.uniform(low, high, n), requires_grad=True)


def zeros(n, dtype=kc.float3):
    return kc.zeros(n, dtype=dtype, real=kc.float64)


def quats(make, n=B):
    return kc.array(make.rng.normal(size=(n, 4)), dtype=kc.quat, requires_grad=True)


def inertias(make, n=B):
    """Symmetric and positive definite."""
    found = make.rng.normal(size=(n, 5, 3))
    found = np.einsum("nki,nkj->nij", found, found) + np.eye(3)
    return kc.array(found, dtype=kc.mat33, requires_grad=True), np.linalg.inv(found)


def test_motion_of_bodies(make):
    I, inverse = inertias(make)
    state = [make.points(B), quats(make), make.points(B), make.points(B)]
    of = [make.positive(B), make.points(B), I, kc.array(inverse, dtype=kc.mat33, requires_grad=True)]
    out = [zeros(B), zeros(B, kc.quat), zeros(B), zeros(B)]
    for motion in (bodies.FREE, bodies.HELD, bodies.DRIVEN):
        moves = kc.array(np.full(B, motion, np.int32))
        given = [*state, *(make.points(B) for _ in range(5)), *of, moves, 0.1]
        kc.testing.gradcheck(bodies.advance_bodies, B, given, out)
        given = [*state, make.points(B), *of[:3], moves]
        kc.testing.gradcheck(bodies.body_energies, B, given, [zeros(B, float)])


def test_implicit_motion_of_bodies(make):
    I, _ = inertias(make)
    x, rot, v, omega, com, speed, spin = make.points(B), quats(make), *(make.points(B) for _ in range(5))
    turned = quats(make)
    for motion in (bodies.FREE, bodies.HELD, bodies.DRIVEN):
        moves = kc.array(np.full(B, motion, np.int32))
        out = [zeros(B), zeros(B, kc.quat), zeros(B), zeros(B)]
        kc.testing.gradcheck(implicit_bodies.place_bodies, B, [x, rot, v, omega, com, moves, speed, spin, 0.1], out)
        made_of, pushed = [make.points(B), make.positive(B), com, I, moves], [make.points(B) for _ in range(4)]
        given = [rot, v, omega, *made_of, turned, speed, spin, *pushed, 0.1]
        kc.testing.gradcheck(implicit_bodies.lacking_momenta, B, given, [zeros(B), zeros(B)])


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("given", [False, True])
def test_set_up_of_bodies(make, kind, given):
    # Kind 5 is a mesh, by its moments: those of a body with r about its reference point.
    I, _ = inertias(make)
    second = kc.array(I.numpy() + 2 * np.eye(3), dtype=kc.mat33, requires_grad=True)
    first = kc.array(0.1 * make.rng.normal(size=(B, 3)), dtype=kc.float3, requires_grad=True)
    mesh = [make.points(B), kc.array(np.arange(B, dtype=np.int32)), make.positive(B), first, second]
    none = np.full(B, bodies.NONE)
    mass = make.positive(B) if given else kc.array(none)
    inertia = I if given else kc.array(np.full((B, 3, 3), bodies.NONE), dtype=kc.mat33)
    size = kc.array(make.rng.uniform(0.5, 2, (B, 3)), dtype=kc.float3, requires_grad=True)
    inputs = [kc.array(np.full(B, kind, np.int32)), size, *mesh, make.positive(B), mass, inertia]
    out = [zeros(B, float), zeros(B), zeros(B, kc.mat33), zeros(B, kc.mat33)]
    # The reference point only says where the moments are taken from: its own gradient is stopped.
    wrt = [1, 4, 5, 6, 7, *([8, 9] if given else [])]
    kc.testing.gradcheck(bodies.body_masses, B, inputs, out, wrt=wrt, rtol=1e-4)


def test_points_of_bodies(make):
    lengths = [make.positive(B) for _ in range(3)]
    kc.testing.gradcheck(bodies.body_sizes, B, lengths, [zeros(B)])
    rows = kc.array(np.arange(M, dtype=np.int32) % B)
    round = kc.array(make.rng.normal(size=(M, 2)), dtype=kc.float2)
    given = [make.points(M), kc.array(make.rng.normal(size=(M, 3, 3)), dtype=kc.mat33), round, rows, make.points(B)]
    kc.testing.gradcheck(bodies.body_points, M, given, [zeros(M), zeros(M, float), zeros(M, float)], wrt=[0, 4])


@pytest.mark.parametrize("law", [0, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_bodies_and_planes(make, law, smoothing):
    n = 40
    body, point = (kc.array(np.arange(n, dtype=np.int32) % k) for k in (B, M))
    normals = make.rng.normal(size=(n, 3))
    normal = kc.array(normals / np.linalg.norm(normals, axis=1, keepdims=True), dtype=kc.float3, requires_grad=True)
    four = kc.array(make.rng.uniform([5, 0.1, 0.1, 0.1], [20, 2, 20, 1], (n, 4)), dtype=kc.float4, requires_grad=True)
    fixed = [kc.array(np.full(n, law, np.int32)), kc.array(np.full(n, 0.1)), kc.array(np.full(n, smoothing))]
    pose, rates = [make.points(B), quats(make)], [make.points(B), make.points(B)]
    rim = kc.array(np.where(np.arange(M) % 2, make.rng.uniform(0.3, 1, M), 0.0), requires_grad=True)
    feature = [make.points(M), make.positive(M, 0.1, 0.5), rim]
    plane = [body, point, normal, make.positive(n, -0.5, 0.5), four]
    _, inverse = inertias(make)
    crowd = kc.array(make.rng.uniform(1, 3, (B, 3)), dtype=kc.float3)
    light = [make.positive(B), kc.array(inverse, dtype=kc.mat33, requires_grad=True), crowd, kc.array(np.full(1, 0.2))]
    given = [*pose, *rates, make.points(B), *light, *feature, *plane, *fixed]
    wrt = [i for i, a in enumerate(given) if a.requires_grad and i != 11]
    kc.testing.gradcheck(body_planes.body_plane_forces, n, given, [zeros(B), zeros(B), zeros(n, kc.float4)], wrt=wrt)
    given = [*pose, *feature, *plane, fixed[2]]
    wrt = [i for i, a in enumerate(given) if a.requires_grad and i != 4]
    kc.testing.gradcheck(body_planes.body_plane_energies, n, given, [zeros(n, float)], wrt=wrt)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("dt", [0.0, 0.02])
@pytest.mark.parametrize("law", [1, HARD])
def test_friction_of_bodies(make, law, dt, smoothing):
    planes, points = 2, 3
    n, rows = planes * B * points, np.arange(B, dtype=np.int32)
    I, inverse = inertias(make)
    motion = [make.points(B), quats(make), *(make.points(B) for _ in range(5))]
    of = [make.positive(B), make.points(B), I, kc.array(inverse, dtype=kc.mat33, requires_grad=True)]
    table = [kc.array(a.astype(np.int32)) for a in (rows, rows * points, 0 * rows + points, 0 * rows + planes,
                                                    0 * rows + B * points)]  # fmt: skip
    normal = make.rng.normal(size=(n, 3))
    normal = kc.array(normal / np.linalg.norm(normal, axis=1, keepdims=True), dtype=kc.float3, requires_grad=True)
    # Some stick, some slide, and some do not touch.
    four = kc.array(make.rng.uniform(0.2, 30.0, (n, 4)) * [1, 1, 1, 0.03], dtype=kc.float4, requires_grad=True)
    press = make.rng.normal(size=(n, 4)) + [0, 0, 0, 0.8]
    press = kc.array(press, dtype=kc.float4, requires_grad=True)
    laws, smooth = kc.array(np.full(n, law, np.int32)), kc.array(np.full(n, smoothing))
    given = [*motion, *of, dt, *table, normal, make.positive(n, -0.5, 0.5), four, laws, smooth, press]
    wrt = [i for i, a in enumerate(given) if getattr(a, "requires_grad", False)]
    kc.testing.gradcheck(body_friction.body_friction, B, given, [zeros(B), zeros(B)], wrt=wrt, rtol=1e-4)


def test_loads_on_bodies(make):
    n = 8
    flags = [kc.array(np.arange(n, dtype=np.int32) // k % 2) for k in (1, 2)]
    times = [kc.array(np.linspace(0, 0.2, n)), kc.array(np.full(n, 0.5)), kc.array(np.arange(n, dtype=np.int32) // 4)]
    load = [kc.array(np.arange(n, dtype=np.int32) % B), make.points(n), make.points(n), *flags, *times]
    given = [quats(make), make.points(B), *load, kc.array(np.array([1], np.int32)), 1, 0.05]
    kc.testing.gradcheck(body_loads.body_load_forces, n, given, [zeros(B), zeros(B)], wrt=[0, 1, 3, 4])


@pytest.mark.parametrize("given", [False, True])
def test_pairing(make, given):
    numbers = [make.positive(M) for _ in range(4)]
    kc.testing.gradcheck(pairing.join_four, M, numbers, [zeros(M, kc.float4)])
    own = make.rng.uniform(0.5, 2, (B, 4))
    if not given:
        own[0], own[1, 2:] = bodies.NONE, bodies.NONE
    of_body = kc.array(own, dtype=kc.float4, requires_grad=given)
    one, other = (kc.array((np.arange(M, dtype=np.int32) + k) % B) for k in (0, 1))
    four = [zeros(M, kc.float4)]
    kc.testing.gradcheck(pairing.pair_with_plane, M, [*numbers, one, of_body], four)
    none, moves = kc.array(np.full(M, bodies.NONE)), kc.array(np.arange(B, dtype=np.int32) % 2)
    scene = [*(numbers if given else [none] * 3 + numbers[3:]), make.positive(M), make.positive(M)]
    mass, tiny = make.positive(B), make.positive(M)
    kc.testing.gradcheck(pairing.pair_of_bodies, M, [*scene, one, other, of_body, mass, moves], four)
    particle = kc.array(np.arange(M, dtype=np.int32))
    kc.testing.gradcheck(pairing.pair_with_particle, M, [*scene, particle, one, of_body, tiny, mass, moves], four)
