"""Every kernel of rigid bodies: its adjoint against central differences, by kernelc's own checker."""

import numpy as np
import pytest

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import body_friction_kernels as body_friction
from nablasim.physics.laws.contact import body_planes_kernels as body_planes
from nablasim.physics.laws.contact import pairing_kernels as pairing
from nablasim.physics.laws.contact.body_contacts_kernels import FAMILIES
from nablasim.physics.laws.contact.compliant_kernels import Contact
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.contact.planes import pushed
from nablasim.physics.laws.rigid import bodies_kernels as bodies
from nablasim.physics.laws.rigid import body_loads_kernels as body_loads
from nablasim.physics.laws.rigid import implicit_bodies_kernels as implicit_bodies
from nablasim.physics.laws.rigid.bodies import moving as moving_bodies
from nablasim.physics.laws.rigid.surfaces import surfaces
from nablasim.physics.time.program import Program

B, M = 4, 7
MOVING = [f"bodies.{member}" for member in ("x", "rot", "v", "omega", "gravity", "mass", "com", "inertia", "inverse")]


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


def moving(make, motion=bodies.FREE):
    """Bodies of any kind, all of whose members have gradients."""
    I, inverse = inertias(make)
    state = [make.points(B), quats(make), make.points(B), make.points(B)]
    of = [make.positive(B), make.points(B), I, kc.array(inverse, dtype=kc.mat33, requires_grad=True)]
    crowd = kc.array(make.rng.uniform(1, 3, (B, 3)), dtype=kc.float3)
    return bodies.Bodies(*state, make.points(B), *of, kc.array(np.full(B, motion, np.int32)), crowd)


def pushes(make):
    return bodies.Forces(make.points(B), make.points(B))


def sums():
    return bodies.Forces(zeros(B), zeros(B))


def end():
    return bodies.State(zeros(B), zeros(B, kc.quat), zeros(B), zeros(B))


MOTIONS = pytest.mark.parametrize("motion", [bodies.FREE, bodies.HELD, bodies.DRIVEN])


@MOTIONS
@pytest.mark.parametrize("rubs", [False, True])
def test_motion_of_bodies(make, motion, rubs):
    b = moving(make, motion)
    given = [b, pushes(make), pushes(make) if rubs else None, 0.1]
    kc.testing.gradcheck(bodies.advance_bodies, B, given, [end()])
    kc.testing.gradcheck(bodies.body_energies, B, [b], [zeros(B, float)])


@MOTIONS
@pytest.mark.parametrize("rubs", [False, True])
def test_implicit_motion_of_bodies(make, motion, rubs):
    b, speed, spin, turned = moving(make, motion), make.points(B), make.points(B), quats(make)
    kc.testing.gradcheck(implicit_bodies.place_bodies, B, [b, speed, spin, 0.1], [end()])
    given = [b, turned, speed, spin, pushes(make), pushes(make) if rubs else None, 0.1]
    kc.testing.gradcheck(implicit_bodies.lacking_momenta, B, given, [zeros(B), zeros(B)])


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("given", [False, True])
def test_set_up_of_bodies(make, kind, given):
    # Kind 5 is a mesh, by its moments: those of a body with r about its reference point.
    I, _ = inertias(make)
    second = kc.array(I.numpy() + 2 * np.eye(3), dtype=kc.mat33, requires_grad=True)
    first = kc.array(0.1 * make.rng.normal(size=(B, 3)), dtype=kc.float3, requires_grad=True)
    mesh = [kc.array(np.arange(B, dtype=np.int32)), make.positive(B), first, second]
    none = np.full(B, bodies.NONE)
    mass = make.positive(B) if given else kc.array(none)
    inertia = I if given else kc.array(np.full((B, 3, 3), bodies.NONE), dtype=kc.mat33)
    size = kc.array(make.rng.uniform(0.5, 2, (B, 3)), dtype=kc.float3, requires_grad=True)
    matter = bodies.Matter(kc.array(np.full(B, kind, np.int32)), size, *mesh, make.positive(B), mass, inertia)
    out = [zeros(B, float), zeros(B), zeros(B, kc.mat33), zeros(B, kc.mat33)]
    # The reference point only says where the moments are taken from: its own gradient is stopped.
    local = kc.array(make.rng.normal(size=(B, 3)), dtype=kc.float3)
    kc.testing.gradcheck(bodies.body_masses, B, [matter, local], out, rtol=1e-4)


def points(where):
    """Points with a place, a ball and a rim; what else they have is not looked at here."""
    whole = [kc.array(np.zeros(B, np.int32)) for _ in range(2)]
    return bodies.Points(*where, kc.array(np.ones(M)), *whole)


def test_points_of_bodies(make):
    lengths = [make.positive(B) for _ in range(3)]
    kc.testing.gradcheck(bodies.body_sizes, B, lengths, [zeros(B)])
    rows = kc.array(np.arange(M, dtype=np.int32) % B)
    round = kc.array(make.rng.normal(size=(M, 2)), dtype=kc.float2)
    given = [make.points(M), kc.array(make.rng.normal(size=(M, 3, 3)), dtype=kc.mat33), round, rows, make.points(B)]
    kc.testing.gradcheck(bodies.body_points, M, given, [points([zeros(M), zeros(M, float), zeros(M, float)])])


@pytest.mark.parametrize("law", [0, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_bodies_and_planes(make, law, smoothing):
    n = 40
    body, point = (kc.array(np.arange(n, dtype=np.int32) % k) for k in (B, M))
    normals = make.rng.normal(size=(n, 3))
    normal = kc.array(normals / np.linalg.norm(normals, axis=1, keepdims=True), dtype=kc.float3, requires_grad=True)
    four = kc.array(make.rng.uniform([5, 0.1, 0.1, 0.1], [20, 2, 20, 1], (n, 4)), dtype=kc.float4, requires_grad=True)
    fixed = [kc.array(np.full(n, law, np.int32)), kc.array(np.full(n, 0.1)), kc.array(np.full(n, smoothing))]
    rim = kc.array(np.where(np.arange(M) % 2, make.rng.uniform(0.3, 1, M), 0.0), requires_grad=True)
    feature = points([make.points(M), make.positive(M, 0.1, 0.5), rim])
    plane = body_planes.Planes(body, point, normal, make.positive(n, -0.5, 0.5), Contact(four, *fixed))
    given = [moving(make), feature, plane]
    wrt = [*MOVING, "points.local", "points.ball", "p.normal", "p.offset", "p.contact.four"]  # A rim of 0 is a kink.
    pushed = [sums(), zeros(n, kc.float4)]
    kc.testing.gradcheck(body_planes.body_plane_forces, n, [*given, kc.array(np.full(1, 0.2))], pushed, wrt=wrt)
    kc.testing.gradcheck(body_planes.body_plane_energies, n, given, [zeros(n, float)], wrt=wrt)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("dt", [0.0, 0.02])
@pytest.mark.parametrize("law", [1, HARD])
def test_friction_of_bodies(make, law, dt, smoothing):
    planes, points = 2, 3
    n, rows = planes * B * points, np.arange(B, dtype=np.int32)
    table = [kc.array(a.astype(np.int32)) for a in (rows, rows * points, 0 * rows + points, 0 * rows + planes,
                                                    0 * rows + B * points)]  # fmt: skip
    normal = make.rng.normal(size=(n, 3))
    normal = kc.array(normal / np.linalg.norm(normal, axis=1, keepdims=True), dtype=kc.float3, requires_grad=True)
    # Some stick, some slide, and some do not touch.
    four = kc.array(make.rng.uniform(0.2, 30.0, (n, 4)) * [1, 1, 1, 0.03], dtype=kc.float4, requires_grad=True)
    press = make.rng.normal(size=(n, 4)) + [0, 0, 0, 0.8]
    press = kc.array(press, dtype=kc.float4, requires_grad=True)
    contact = Contact(four, kc.array(np.full(n, law, np.int32)), kc.array(np.ones(n)), kc.array(np.full(n, smoothing)))
    unused = kc.array(np.zeros(n, np.int32))
    pairs = body_planes.Planes(unused, unused, normal, make.positive(n, -0.5, 0.5), contact)
    given = [moving(make), pushes(make), body_friction.Rubbing(*table, press), pairs, dt]
    kc.testing.gradcheck(body_friction.body_friction, B, given, [sums()], rtol=1e-4)


def test_loads_on_bodies(make):
    n = 8
    flags = [kc.array(np.arange(n, dtype=np.int32) // k % 2) for k in (1, 2)]
    times = [kc.array(np.linspace(0, 0.2, n)), kc.array(np.full(n, 0.5)), kc.array(np.arange(n, dtype=np.int32) // 4)]
    body = kc.array(np.arange(n, dtype=np.int32) % B)
    loads = body_loads.Loads(body, make.points(n), make.points(n), *flags, *times)
    given = [moving(make), loads, kc.array(np.array([1], np.int32)), 1, 0.05]
    kc.testing.gradcheck(body_loads.body_load_forces, n, given, [sums()])


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
    none, moves = kc.array(np.full(M, bodies.NONE)), kc.array(np.arange(B, dtype=np.int32) % 2)
    known = numbers if given else [none] * 3 + numbers[3:]
    scene, tiny = pairing.Defaults(*known, make.positive(M), make.positive(M)), make.positive(M)
    bodies_there = pairing.Partners(of_body, make.positive(B), moves)
    kc.testing.gradcheck(pairing.pair_with_plane, M, [scene, one, bodies_there], four)
    kc.testing.gradcheck(pairing.pair_of_bodies, M, [scene, one, other, bodies_there], four)
    particle = kc.array(np.arange(M, dtype=np.int32))
    kc.testing.gradcheck(pairing.pair_with_particle, M, [scene, particle, one, bodies_there, tiny], four)


ROUGH = ph.SignedDistance.sample(
    lambda p: np.linalg.norm(p, axis=1) - 0.3, (-0.5, -0.5, -0.5), (0.5, 0.5, 0.5), cells=5
)
MET = {
    "shape": (ph.Box(0.5, 0.6, 0.4), "surfaces.size"), "grid": (ROUGH, "surfaces.grids.distance"),
    "mesh": (ph.TriMesh.icosphere(0.3, subdivisions=1), "bodies.com"),
}  # fmt: skip


@pytest.mark.parametrize("family", MET)
def test_contact_with_surfaces(family):
    shape, own = MET[family]
    scene = ph.Scene().set_contact(ke=50.0, kd=0.2, kf=0.3, mu=0.4)
    scene.add_rigid("box", ph.Box(0.3, 0.25, 0.2), mass=1.0, pos=(0.05, 0.36, 0.02), rot=ph.quat((1, 2, 3), 0.4),
                    vel=(0.3, -0.5, 0.1), omega=(0.5, -1.0, 1.0))  # fmt: skip
    scene.add_particles("dust", [[0.26, 0.02, 0.11], [-0.17, 0.12, 0.17]], mass=[0.2, 0.5], vel=(0.3, -0.6, 0.2))
    if family == "grid":
        scene.add_obstacle("rock", shape, vel=(0.1, 0.2, 0.0))
    else:
        scene.add_rigid("rock", shape, mass=2.0, vel=(0.1, 0.2, 0.0), omega=(0.3, 0.1, -0.2))
    model = scene.build("float64")
    program = Program(model.layout, "float64", grads=frozenset(), present=model.present, varied=frozenset(),
                      integrator=None)  # fmt: skip
    program.load(None, model.columns, 2e-3)
    pairs, hits = (s for s in program.systems if s.name in (f"{family}_pairs", f"{family}_hits"))
    moving = [*(m for m in MOVING if m not in ("bodies.gravity", "bodies.inertia")), own]
    points = [f"surfaces.points.{member}" for member in ("local", "ball", "share")]

    def check(kernel, system, given, out, wrt):
        n = model.layout.rows(system.name)
        kc.testing.gradcheck(getattr(FAMILIES[family], kernel), n, given, out, wrt=list(dict.fromkeys(wrt)), rtol=1e-4)
        kc.launch(getattr(FAMILIES[family], kernel), n, given, out)

    def look(s):
        f, e = bodies.Forces(zeros(2), zeros(2)), zeros(model.layout.rows(pairs.name), float)
        given = [moving_bodies(s), surfaces(s), pairs.pairs(s)]
        check("pair_forces", pairs, [*given, 2e-3], [f], [*moving, *points, "pairs.contact.four"])
        places = ["bodies.x", "bodies.rot", *points, "pairs.contact.four"]
        check("pair_energies", pairs, given, [e], places)
        assert np.abs(f.torque.numpy()).max() > 0 and e.numpy().max() > 0
        f, on_dust, e = bodies.Forces(zeros(2), zeros(2)), zeros(2), zeros(model.layout.rows(hits.name), float)
        given = [pushed(s), moving_bodies(s), surfaces(s), hits.hits(s)]
        dust = [f"particles.{member}" for member in ("x", "v", "f", "weight", "gravity")]
        check("hit_forces", hits, [*given, 2e-3], [on_dust, f], [*dust, *moving, "hits.contact.four"])
        check("hit_energies", hits, given, [e], ["particles.x", "bodies.x", "bodies.rot", "hits.contact.four"])
        assert np.abs(on_dust.numpy()).max() > 0 and e.numpy().max() > 0

    program.look(model.state0.columns, look)
