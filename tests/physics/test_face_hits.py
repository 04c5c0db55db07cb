"""Laws of bodies that meet deformable surfaces between the vertices: held, kept momenta, gradients, and no more."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import face_hits_kernels as face_hits
from nablasim.physics.laws.contact import pairing_kernels as pairing
from nablasim.physics.laws.contact.compliant_kernels import Contact
from nablasim.physics.laws.contact.planes_kernels import Particles
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points
from nablasim.physics.laws.rigid.surfaces_kernels import Edges, Grids, Meshes, Surfaces

seeds = st.integers(0, 2**32 - 1)
SHEET = ph.TriMesh.grid((0.6, 0.6), cells=(2, 2)).moved(pos=(-0.3, -0.3, 0)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
BLOCK = ph.TetMesh.box((0.6, 0.3, 0.6), cells=(2, 1, 2)).moved(pos=(-0.3, -0.3, -0.3))
BETWEEN = np.array([-0.1, 0.1, -0.2])
"""Above the middle of a triangle, whose vertices are more than 10 cm away."""
WEDGE = ph.TriMesh([[0, -0.05, 0], [0.05, 0.03, 0], [-0.03, 0.03, 0.04], [-0.03, 0.03, -0.04]],
                   [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]).moved(pos=(0.0025, -0.01, 0))  # fmt: skip


def scene(shape=None, surface="cloth", thickness=None, gravity=(0, -9.81, 0), pos=BETWEEN, held=True, **contact):
    made = ph.Scene(gravity=gravity).set_contact(**{"ratio": 0.5, **contact})
    if surface == "cloth":
        made.add_cloth("sheet", SHEET, mass=0.1, stretch=200.0, shear=100.0, damping=0.5)
    else:
        made.add_soft("sheet", BLOCK, density=100.0, material=ph.NeoHookean(E=1e4, nu=0.3), damping=50.0)
    if thickness is not None:
        made.add_self_contact("sheet", thickness=thickness)
    made.add_rigid("stone", ph.Sphere(0.05) if shape is None else shape, mass=0.05, pos=pos)
    if held:
        edge = (lambda x: np.abs(x[:, [0, 2]]).max(axis=1) > 0.29) if surface == "cloth" else lambda x: x[:, 1] < -0.29
        made.fix("sheet", where=edge)
    return made


@pytest.mark.parametrize("surface", ["cloth", "soft"])
@pytest.mark.parametrize(("shape", "thickness"), [
    (ph.Sphere(0.05), None), (ph.Sphere(0.05), 0.02), (ph.Capsule(0.04, 0.06), None), (ph.Box(0.08, 0.06, 0.07), 0.04),
    (WEDGE, 0.04),
], ids=["ball", "thick", "capsule", "box", "mesh"])  # fmt: skip
def test_what_falls_between_the_vertices_is_held(surface, shape, thickness):
    model = scene(shape, surface, thickness, ratio=0.1).build("float64")
    frames = ph.rollout(model, dt=5e-4, steps=1400)
    assert frames["stone"].x[:, 1].min() > -0.05
    # In the second half the surface carries its weight, and what its momentum changes by; dampers are bounded a little.
    pushed = np.mean([ph.forces(model, frames.state(k))["stone"].f[1] for k in range(700, 1400)])
    gained = 0.05 * float(frames["stone"].v[1400, 1] - frames["stone"].v[700, 1]) / 0.35
    assert pushed == pytest.approx(0.05 * 9.81 + gained, rel=0.01)
    free = ph.rollout(model.replace({"contact.rate": 1e-6}), dt=5e-4, steps=800, every=800)
    assert free["stone"].x[-1, 1] < -0.5


def test_what_vertices_hold_is_left_to_them():
    # A ball as large as the cells, and corners on what has no thickness.
    for shape in (ph.Sphere(0.5), ph.Box(0.1, 0.1, 0.1), WEDGE):
        assert "face_hits" not in scene(shape).build().layout.count
    assert scene(ph.Sphere(0.5), thickness=0.02).build().layout.count.get("face_hits", 0) == 0
    net = ph.Scene().add_rigid("stone", ph.Sphere(0.05), mass=1.0)
    net.add_springs("net", SHEET.vertices, SHEET.edges, ke=1.0)
    assert "face_hits" not in net.build().layout.count


def test_a_ball_between_vertices_lies_as_deep_as_one_spring_says():
    # The sheet is held whole: one triangle, one spring.
    model = scene(ke=100.0, pos=BETWEEN).fix("sheet").build("float64")
    for x, depth in (((-0.1, 0.04, -0.2), 0.01), ((-0.1, -0.045, -0.2), 0.005), ((-0.1, 0.06, -0.2), 0.0)):
        state = model.state0.replace({"stone.x": x})
        assert ph.energy(model, state)["face_hits"] == pytest.approx(0.5 * 100.0 * depth**2)
        expected = 100.0 * depth * np.sign(x[1])
        np.testing.assert_allclose(ph.forces(model, state)["stone"].f, [0, expected, 0], atol=1e-12)


def tossed(rng, **changes):
    """A free sheet, crumpled a little, and a body that is thrown at it."""
    model = scene(gravity=(0, 0, 0), held=False, pos=(-0.1, 0.06, -0.2), **changes).build("float64")
    return model.replace({
        "sheet.x": SHEET.vertices + 0.01 * rng.normal(size=SHEET.vertices.shape),
        "sheet.v": 0.3 * rng.normal(size=SHEET.vertices.shape),
        "stone.v": [0.5, -2.0, 0.3] + 0.2 * rng.normal(size=3), "stone.omega": 3 * rng.normal(size=3),
    })  # fmt: skip


@given(seeds, st.sampled_from([{}, {"shape": ph.Box(0.08, 0.06, 0.07), "thickness": 0.04}, {"smoothing": 0.004}]))
def test_momenta_are_kept(seed, changes):
    rng = np.random.default_rng(seed)
    model = tossed(rng, **changes)
    frames = ph.rollout(model, dt=2e-4, steps=300, every=30)
    first, last = frames.state(0), frames.state(-1)
    assert max(ph.energy(model, frames.state(k))["face_hits"] for k in range(len(frames))) > 0
    m = ph.vertex_masses(SHEET, 0.1 / 0.36)[:, None]
    I = np.eye(3) * (0.4 * 0.05 * 0.05**2)
    if "shape" in changes:
        a = np.array([0.08, 0.06, 0.07]) ** 2
        I = np.diag(a.sum() - a) * 0.05 / 12

    def momentum(s):
        return (m * s["sheet"].v).sum(axis=0) + 0.05 * s["stone"].v

    def turning(s):
        R = rotation(s["stone"].rot)
        own = R @ I @ R.T @ s["stone"].omega + 0.05 * np.cross(s["stone"].x, s["stone"].v)
        return np.cross(s["sheet"].x, m * s["sheet"].v).sum(axis=0) + own

    np.testing.assert_allclose(momentum(last), momentum(first), atol=1e-13)
    # Bodies end a step between two of its places: angular momentum is kept but for the rounding of the free turning.
    np.testing.assert_allclose(turning(last), turning(first), atol=1e-9)


def rotation(q):
    x, y, z, w = q
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


@given(seeds)
def test_forces_are_minus_the_slope_of_the_energy(seed):
    rng, h = np.random.default_rng(seed), 1e-6
    model = tossed(rng, mu=0.0).replace({"sheet.v": 0.0, "stone.v": [0.0, 0, 0], "stone.omega": [0.0, 0, 0]})
    model = model.replace({"sheet.stretch": 0.0, "sheet.shear": 0.0})
    model = model.replace({"stone.x": [-0.1, 0.02, -0.2] + 0.002 * rng.normal(size=3)})
    way, shift = rng.normal(size=SHEET.vertices.shape), rng.normal(size=3)

    def at(s):
        x = {"sheet.x": model["sheet.x"] + s * h * way, "stone.x": model["stone.x"] + s * h * shift}
        return ph.energy(model, model.state0.replace(x))["face_hits"]

    f = ph.forces(model)
    expected = (f["sheet"].f * way).sum() + f["stone"].f @ shift
    assert expected != 0 and -(at(1) - at(-1)) / (2 * h) == pytest.approx(expected, rel=1e-6)


NAMES = ["stone.x", "stone.v", "stone.omega", "stone.mass", "sheet.x", "sheet.v", "sheet.mass", "sheet.stretch",
         "contact.mu"]  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"integrator": ph.BackwardEuler(tol=1e-12)}], ids=["explicit", "implicit"])
@pytest.mark.parametrize("changes", [
    {"names": ["stone.radius", "contact.rate", "contact.ratio"]},
    {"names": ["stone.radius", "contact.ke", "contact.kd", "contact.kf"], "ke": 100.0, "kd": 0.2, "kf": 0.3,
     "damping": "linear"},
    {"names": ["sheet.thickness", "contact.rate"], "shape": ph.Box(0.08, 0.06, 0.07), "thickness": 0.04,
     "smoothing": 0.002},
], ids=["by mass", "numbers", "box"])  # fmt: skip
def test_every_parameter_against_central_differences(changes, settings):
    changes = dict(changes)
    names = NAMES + changes.pop("names")
    model = tossed(np.random.default_rng(0), mu=0.12, **changes)
    how = {"dt": 2e-4, "steps": 200, "every": 40} if not settings else {"dt": 2e-3, "steps": 20, "every": 4, **settings}
    frames = ph.rollout(model, **{**how, "every": 1})
    assert max(ph.energy(model, frames.state(k))["face_hits"] for k in range(0, len(frames), 5)) > 0

    def far(values):
        frames = ph.rollout(model.replace(values), **how)
        return sum((frames[n].x * torch.sin(7 * frames[n].x)).sum() + frames[n].v.pow(2).sum() for n in frames)

    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    far(values).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(2)
    for name, value in values.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-6 * float(value.detach().abs().max())
        two = [float(far({**fixed, name: fixed[name] + s * h * way})) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=2e-4, abs=1e-7), name
        assert found != 0.0, f"{name} has no effect"


def test_the_adjoint_of_the_kernels():
    rng, n = np.random.default_rng(0), 4

    def real(values, element=float):
        return kc.array(np.array(values, float), dtype=element, requires_grad=True)

    def whole(values):
        return kc.array(np.array(values, np.int32))

    px = real([[-0.3, 0, -0.2], [0.4, 0.02, -0.3], [0, 0.01, 0.5], [0.5, 0.1, 0.4]], kc.float3)
    corners, body = whole([[0, 1, 2], [1, 3, 2]]), whole([0, 1])

    def zeros(count, element=kc.float3):
        return kc.zeros(count, dtype=element, real=kc.float64)

    local, ball = real([[0.01, 0, 0], [0.1, 0, 0], [-0.1, 0.02, 0]], kc.float3), real([0.06, 0.05, 0.04])
    points = Points(local, ball, zeros(3, float), real([1.0, 0.4, 0.6]), whole([0, 1]), whole([1, 2]))
    place = [real([[0.05, 0.04, 0.02], [0.3, 0.1, 0.2]], kc.float3), real(rng.normal(size=(2, 4)), kc.quat)]
    velocities = [real(rng.normal(size=(2, 3)), kc.float3), real(rng.normal(size=(2, 3)), kc.float3)]
    com, mass = real(0.02 * rng.normal(size=(2, 3)), kc.float3), real([1.0, 2.0])
    inverse, crowd = real([np.eye(3)] * 2, kc.mat33), real([[1, 2, 2], [1, 3, 3]], kc.float3)
    bodies = Bodies(*place, *velocities, zeros(2), mass, com, zeros(2, kc.mat33), inverse, whole([0, 0]), crowd)
    none = whole([0, 0])
    meshes = Meshes(whole([[0, 0, 0]]), none, none, none, none, zeros(2), zeros(2))
    grids = Grids(none, whole([[0, 0, 0]] * 2), zeros(2), zeros(2), zeros(2, float))
    edges = Edges(whole([[0, 0]]), none, none)
    surfaces = Surfaces(none, zeros(2), real([[0, 0, 0, 1], [0, 0, 0, 1]], kc.float4), points, edges, meshes, grids)
    four = real([[2, 0.1, 0.2, 0.3], [3, 0.2, 0.1, 0.4]], kc.float4)
    contact = Contact(four, whole([1, 1]), kc.array(np.full(2, 0.02)), kc.array(np.full(2, 0.005)))
    hits = face_hits.FaceHits(corners, body, real([0.02, 0.03]), contact)
    pv, weight = real(rng.normal(size=(n, 3)), kc.float3), real([1.0, 2.0, 0.0, 1.5])
    given = [Particles(px, pv, zeros(n), weight, zeros(n)), bodies, surfaces, hits]
    wrt = ["particles.x", "bodies.x", "bodies.rot", "surfaces.points.local", "surfaces.points.ball",
           "surfaces.points.share", "hits.thickness", "hits.contact.four"]  # fmt: skip
    moves = ["particles.v", *(f"bodies.{member}" for member in ("v", "omega", "com", "mass", "inverse"))]
    sums = [Forces(zeros(2), zeros(2))]
    kc.testing.gradcheck(face_hits.face_hit_forces, 2, [*given, 0.01], sums, wrt=[*wrt, *moves], rtol=1e-4)
    e = zeros(2, float)
    kc.testing.gradcheck(face_hits.face_hit_energies, 2, given, [e], wrt=wrt, rtol=1e-4)
    kc.launch(face_hits.face_hit_energies, 2, given, [e])
    assert (e.numpy() > 0).all()
    unset = [real([-1e30] * 2) for _ in range(4)]
    scene = pairing.Defaults(*unset, real([3.0, 4.0]), real([0.1, 0.2]))
    partners = pairing.Partners(real(np.full((2, 4), -1e30), kc.float4), real([1.0, 2.0]), whole([0, 1]))
    given = [scene, corners, body, partners, real(rng.uniform(1, 2, n))]
    wrt = ["scene.rate", "scene.ratio", "bodies.mass", "particle_mass"]
    kc.testing.gradcheck(pairing.pair_with_triangle, 2, given, [zeros(2, kc.float4)], wrt=wrt)


def test_copies_of_a_batch_do_not_touch_each_other():
    model = tossed(np.random.default_rng(0))
    alone = ph.rollout(model, dt=5e-4, steps=100, every=100)
    several = ph.rollout(model.batched(3), dt=5e-4, steps=100, every=100)
    for k in range(3):
        np.testing.assert_array_equal(several["stone"].x[k], alone["stone"].x)


@pytest.mark.parametrize("mass", [1e-3, 1.0])
@pytest.mark.parametrize("pos", [(-0.1, 0.1, -0.2), (0.0, 0.1, 0.0)], ids=["between", "on a vertex"])
def test_no_explosion_at_the_stable_step(mass, pos):
    made = ph.Scene().set_contact(ke=1e3, kd=1.0, kf=10.0)
    made.add_cloth("sheet", SHEET, mass=0.1, stretch=20.0, shear=10.0)
    made.add_rigid("stone", ph.Sphere(0.05), mass=mass, pos=pos, vel=(0, -3, 0))
    model = made.fix("sheet", where=lambda x: np.abs(x[:, [0, 2]]).max(axis=1) > 0.29).build("float64")
    dt = ph.stable_dt(model)
    frames = ph.rollout(model, dt=dt, steps=round(0.5 / dt), every=1)
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    # While it touches, a step this long sees its energy only roughly.
    assert np.isfinite(energies).all() and max(energies) < 2 * energies[0] and energies[-1] < energies[0]
    with pytest.raises(ph.StepTooLarge, match="its contact"):
        ph.rollout(model.replace({"contact.ke": 1e5}), dt=dt, steps=1)
