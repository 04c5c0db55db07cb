"""Every kernel of the physics: its adjoint against central differences, by kernelc's own checker."""

import numpy as np
import pytest

import kernelc as kc
from nablasim.physics.laws.contact import planes_kernels as planes
from nablasim.physics.laws.deformable import air_kernels as air
from nablasim.physics.laws.deformable import bending_kernels as bending
from nablasim.physics.laws.deformable import loads_kernels as loads
from nablasim.physics.laws.deformable import membrane_kernels as membrane
from nablasim.physics.laws.deformable import particles_kernels as particles
from nablasim.physics.laws.deformable import springs_kernels as springs
from nablasim.physics.laws.deformable import tets_kernels as tets

N, M = 6, 7


@pytest.fixture
def make():
    return Maker(np.random.default_rng(0))


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def points(self, n=N):
        return kc.array(self.rng.normal(size=(n, 3)), dtype=kc.float3, requires_grad=True)

    def particles(self):
        return particles.Particles(self.points(), self.points())

    def positive(self, n, low=0.5, high=2.0):
        return kc.array(self.rng.uniform(low, high, n), requires_grad=True)

    def rows(self, n, width, count=N):
        picked = [self.rng.choice(count, width, replace=False) for _ in range(n)]
        return kc.array(np.array(picked, dtype=np.int32).reshape(n, width))

    def matrices(self, n):
        return kc.array(np.eye(3) + 0.2 * self.rng.normal(size=(n, 3, 3)), dtype=kc.mat33, requires_grad=True)


def zeros(n=N, dtype=kc.float3):
    return kc.zeros(n, dtype=dtype, real=kc.float64)


def test_springs(make):
    net = springs.Springs(make.rows(M, 2), make.positive(M), make.positive(M), make.positive(M))
    kc.testing.gradcheck(springs.spring_forces, M, [make.particles(), net], [zeros()])
    kc.testing.gradcheck(springs.spring_energies, M, [make.points(), net], [zeros(M, float)])
    net.actuation = make.positive(M, 0, 0.5)
    kc.testing.gradcheck(springs.spring_forces, M, [make.particles(), net], [zeros()])
    kc.testing.gradcheck(springs.spring_energies, M, [make.points(), net], [zeros(M, float)])


def test_particles(make):
    weight = kc.array(np.array([1.5, 0.0, 0.7, 2.0, 0.0, 1.0]), requires_grad=True)
    now, f, gravity, after = make.particles(), make.points(), make.points(), particles.Particles(zeros(), zeros())
    moving = kc.array(np.array([1.5, 0.5, 0.7, 2.0, 0.2, 1.0]), requires_grad=True)
    for contact_f in (None, make.points()):
        given = [now, f, contact_f, weight, gravity, 0.1]
        smooth = [now, f, gravity] if contact_f is None else [now, f, contact_f, gravity]
        kc.testing.gradcheck(particles.integrate_particles, N, given, [after], wrt=smooth)
        kc.testing.gradcheck(particles.integrate_particles, N, [now, f, contact_f, moving, gravity, 0.1], [after])
    free = kc.array(np.array([1, 0, 1, 1, 0, 1], dtype=np.int32))
    kc.testing.gradcheck(particles.invert_masses, N, [make.positive(N), free], [zeros(N, float)])
    kc.testing.gradcheck(particles.copy_masses, N, [make.positive(N)], [zeros(N, float)])
    given = [make.particles(), make.positive(N), make.points()]
    kc.testing.gradcheck(particles.kinetic_energies, N, given, [zeros(N, float)])


def test_tets(make):
    solid = [make.rows(M, 4), make.matrices(M), make.positive(M), make.positive(M), make.positive(M)]
    for activation in (None, make.positive(M, -0.3, 0.3)):
        for damping in (None, make.positive(M)):
            given = [make.particles(), tets.Tets(*solid, activation, damping)]
            kc.testing.gradcheck(tets.tet_forces, M, given, [zeros()])
        kc.testing.gradcheck(tets.tet_energies, M, [make.points(), tets.Tets(*solid, activation)], [zeros(M, float)])


def test_set_up_of_tets(make):
    out = [zeros(M, kc.mat33), zeros(M, float)]
    kc.testing.gradcheck(tets.rest_tets, M, [make.points(), make.rows(M, 4)], out, rtol=1e-4)
    given = [make.positive(M), make.positive(M), make.rows(M, 4)]
    kc.testing.gradcheck(tets.tet_masses, M, given, [zeros(N, float)])
    moduli = [zeros(M, float), zeros(M, float)]
    for young in (None, make.positive(M)):
        given = tets.Moduli(make.positive(M), make.positive(M), young, make.positive(M, 0.1, 0.4))
        kc.testing.gradcheck(tets.convert_moduli, M, [given], moduli)


def test_membranes(make):
    sheet = [make.rows(M, 3), make.points(M), make.positive(M), make.positive(M), make.positive(M)]
    for damping in (None, make.positive(M)):
        given = [make.particles(), membrane.Triangles(*sheet, damping)]
        kc.testing.gradcheck(membrane.membrane_forces, M, given, [zeros()])
    given = [make.points(), membrane.Triangles(*sheet)]
    kc.testing.gradcheck(membrane.membrane_energies, M, given, [zeros(M, float)])
    given = [make.points(), make.rows(M, 3)]
    kc.testing.gradcheck(membrane.rest_triangles, M, given, [zeros(M), zeros(M, float)], rtol=1e-4)
    cloth = kc.array(np.arange(M, dtype=np.int32) % 2)
    weighing = membrane.Weighing(make.positive(M), make.positive(M), cloth)
    kc.testing.gradcheck(membrane.cloth_areas, M, [make.positive(M), weighing], [zeros(2, float)])
    given = [make.positive(M), weighing, make.positive(2), make.rows(M, 3)]
    kc.testing.gradcheck(membrane.cloth_masses, M, given, [zeros(N, float)])


def test_bending(make):
    hinge = [make.rows(M, 4), make.positive(M), make.positive(M, -1, 1), make.positive(M, -1, 1)]
    for damping in (None, make.positive(M)):
        given = [make.particles(), bending.Hinges(*hinge, damping)]
        kc.testing.gradcheck(bending.hinge_forces, M, given, [zeros()], rtol=1e-4)
    given = [make.points(), bending.Hinges(*hinge)]
    kc.testing.gradcheck(bending.hinge_energies, M, given, [zeros(M, float)], rtol=1e-4)
    kc.testing.gradcheck(bending.rest_angles, M, [make.points(), make.rows(M, 4)], [zeros(M, float)], rtol=1e-4)


def test_air(make):
    given = [make.particles(), make.rows(M, 3), air.Air(make.points(M), make.positive(M), make.positive(M))]
    kc.testing.gradcheck(air.air_forces, M, given, [zeros()])


def test_loads(make):
    rows, impulse = kc.array(np.arange(M, dtype=np.int32) % N), kc.array(np.arange(M, dtype=np.int32) % 2)
    times = [kc.array(np.linspace(0, 0.2, M)), kc.array(np.full(M, 0.5))]
    given = loads.Loads(rows, make.points(M), make.positive(M), *times, impulse)
    first, wrt = kc.array(np.array([1], np.int32)), ["loads.force", "loads.share"]
    kc.testing.gradcheck(loads.load_forces, M, [given, first, 1, 0.05], [zeros()], wrt=wrt)


@pytest.mark.parametrize("law", [0, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_planes(make, law, smoothing):
    n = 40
    particle = kc.array(np.arange(n, dtype=np.int32) % N)
    normals = kc.zeros(n, dtype=kc.float3, real=kc.float64)
    kc.testing.gradcheck(planes.unit_normals, n, [make.points(n)], [normals])
    kc.launch(planes.unit_normals, n, [make.points(n)], [normals])
    normal = kc.array(normals.numpy(), dtype=kc.float3, requires_grad=True)
    four = [make.positive(n, 5, 20), make.positive(n, 0.1, 2), make.positive(n, 0.1, 20), make.positive(n, 0.1, 1)]
    fixed = [kc.array(np.full(n, law, np.int32)), kc.array(np.full(n, 0.1)), kc.array(np.full(n, smoothing))]
    offset, pushed = make.positive(n, -0.5, 0.5), [make.points(), make.points(), make.points(), make.positive(N)]
    given = [planes.Particles(*pushed, make.points()), planes.Planes(normal, offset, *four, *fixed, particle=particle)]
    kc.testing.gradcheck(planes.plane_forces, n, [*given, 0.05], [zeros()])
    kc.testing.gradcheck(planes.plane_energies, n, given, [zeros(n, float)])


def test_bounds_of_stiffness_hold_the_true_one(make):
    """Gershgorin's bounds are bounds: no vibration of a free solid is faster than they say."""
    from nablasim import physics as ph

    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    scene = ph.Scene(gravity=(0, 0, 0)).add_soft("b", mesh, density=1e3, material=ph.NeoHookean(E=1e4, nu=0.3))
    model, h = scene.build("float64"), 1e-6
    n = mesh.vertices.size
    K = np.empty((n, n))
    for i, e in enumerate(np.eye(n).reshape(n, -1, 3)):
        both = [ph.forces(model, model.state0.replace({"b.x": mesh.vertices + s * h * e}))["b"].f for s in (1, -1)]
        K[i] = ((both[1] - both[0]) / (2 * h)).ravel()
    mass = np.repeat(ph.vertex_masses(mesh, 1e3), 3)
    fastest = np.sqrt(np.linalg.eigvalsh(K / np.sqrt(np.outer(mass, mass)))[-1])
    assert ph.stable_dt(model) < 2 / fastest < 2.5 * ph.stable_dt(model)


def test_columns_are_passed_as_one_bundle():
    @kc.struct
    class Net:
        ke: kc.Array[float]
        stretched: kc.Array[float] | None

    from nablasim.physics.model import Arrays, Column

    ke, rest = Column("net.ke"), Column("net.rest", optional=True)
    k = kc.ones(3)
    left_out = Arrays(None, "float32", {"net.ke": k, "net.rest": k}, frozenset())
    bundle = left_out.bundle(Net, ke, stretched=rest)
    assert bundle.ke is k and bundle.stretched is None
    assert left_out.bundle(Net, ke, stretched=rest) is bundle, "made once: launches note what is in it"
    assert (
        Arrays(None, "float32", {"net.ke": k, "net.rest": k}, frozenset({"net.rest"}))
        .bundle(Net, ke, stretched=rest)
        .stretched
        is k
    )
