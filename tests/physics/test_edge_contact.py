"""Laws of edges of cloth and solids that cross: what no vertex sees is held, kept momenta, no jumps, gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import edge_contact_kernels as edge_contact
from nablasim.physics.laws.contact import touching_kernels as touching
from nablasim.physics.laws.contact.edge_contact import near_edges
from nablasim.physics.laws.deformable import particles_kernels as particles

seeds = st.integers(0, 2**32 - 1)
GRID = ph.TriMesh.grid((1.0, 0.8), cells=(5, 4))
STRIP = ph.TriMesh.grid((0.6, 0.1), cells=(1, 1)).moved(pos=(-0.3, -0.05, 0)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
ACROSS = STRIP.moved(rot=ph.quat((0, 1, 0), np.pi / 2))
THICK = 0.04


def strips(gap, gravity=(0.0, 0.0, 0.0), others=None, turn=0.0, **contact):
    """One strip across another one, of two triangles each: their ends stick out far beyond what they cross."""
    made = ph.Scene(gravity=gravity)
    upper = ACROSS.moved(rot=ph.quat((0, 1, 0), turn))
    for name, mesh, height in (("lower", STRIP, 0.0), ("upper", upper, gap)):
        made.add_cloth(name, mesh, mass=0.02, stretch=100.0, shear=60.0, damping=0.01, bend=2e-3, bend_damping=1e-4,
                       pos=(0, height, 0))  # fmt: skip
        made.add_self_contact(name, **{"thickness": THICK, "ke": 30.0, "kd": 0.02, "kf": 0.05, "mu": 0.4, **contact})
    return made


def fade(x):
    y = np.clip(x, 0, 1)
    return y**3 * (10 - 15 * y + 6 * y * y)


def along(a, b):
    return (a * b).sum(-1)


def stored(p1, q1, p2, q2, thick, ke=1.0):
    """The energy of a crossing, from the distances of the ends to the line of the other edge, seen along the normal."""
    n = np.cross(q1 - p1, q2 - p2)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    apart, w = abs(along(n, p1 - p2)), 1.0
    for (p, q), (a, b) in (((p1, q1), (p2, q2)), ((p2, q2), (p1, q1))):
        aside = np.cross(n, b - a) / np.linalg.norm(b - a, axis=-1, keepdims=True)
        ends = np.array([along(p - a, aside), along(q - a, aside)])
        w = w * fade(np.abs(ends) / (0.5 * thick)).prod(0) * (ends.prod(0) < 0)
    return 0.5 * ke * w * np.maximum(thick - apart, 0.0) ** 2


@given(seeds)
def test_every_crossing_is_found_and_counted_once(seed):
    rng = np.random.default_rng(seed)
    made = ph.Scene().add_cloth("flag", GRID, mass=0.3)
    model = made.add_self_contact("flag", thickness=0.09, ke=50.0).build("float64")
    x, edges = 0.35 * rng.normal(size=GRID.vertices.shape), GRID.edges
    near = {tuple(pair) for pair in near_edges(GRID, 0.09)}
    pairs = [(i, j) for i in range(len(edges)) for j in range(i + 1, len(edges)) if (i, j) not in near]
    first, second = (x[edges[side]] for side in np.array(pairs).T)
    expected = stored(first[:, 0], first[:, 1], second[:, 0], second[:, 1], 0.09, 50.0).sum()
    found = ph.energy(model, model.state0.replace({"flag.x": x}))["edge_contacts"]
    assert expected > 0 and found == pytest.approx(expected, rel=1e-9)


def test_edges_that_share_a_vertex_do_not_touch():
    for thickness in (0.01, 0.1):
        near = {tuple(pair) for pair in near_edges(GRID, thickness)}
        e = GRID.edges
        assert near >= {(i, j) for i in range(len(e)) for j in range(i + 1, len(e)) if set(e[i]) & set(e[j])}


def test_strips_that_cross_between_their_vertices_rest_on_each_other():
    model = strips(0.06, gravity=(0, -9.81, 0), kd=0.2).fix("lower").build("float64")
    frames = ph.rollout(model, dt=5e-4, steps=4000, every=100)
    y = frames["upper"].x[..., 1]
    assert all(ph.energy(model, frames.state(k))["self_contacts"] == 0.0 for k in range(len(frames)))  # no vertex
    assert y.min() > 0.0
    # At rest it lies just below the thickness: nine pairs of two long edges and a diagonal each carry its weight.
    sag = 0.02 * 9.81 / (9 * 30.0)
    assert float(y[-1].mean()) == pytest.approx(THICK - sag, rel=0.02) and frames["upper"].v[-1].abs().max() < 1e-3
    through = model.replace({f"{name}.self_{q}": 0.0 for name in ("lower", "upper") for q in ("ke", "kd")})
    assert ph.rollout(through, dt=5e-4, steps=600)["upper"].x[-1, :, 1].max() < -0.2


def test_edges_can_be_left_out():
    assert "edge_contacts" not in ph.energy(strips(0.03, edges=False).build("float64"))
    assert ph.energy(strips(0.03).build("float64"))["edge_contacts"] > 0


def moving(model, rng=None):
    rng = rng or np.random.default_rng(0)
    v = {"lower.v": 0.2 * rng.normal(size=(4, 3)), "upper.v": [0.3, -1.0, 0.4] + 0.2 * rng.normal(size=(4, 3))}
    return model.replace(v)


@given(seeds)
def test_momenta_are_kept_and_the_motion_turns_with_its_start(seed):
    rng = np.random.default_rng(seed)
    model = moving(strips(0.03, turn=rng.uniform(-1.0, 1.0)).build("float64"), rng)
    dt, steps, names = 2e-4, 200, ("lower", "upper")
    m = {n: ph.vertex_masses(STRIP, 0.02 / 0.06)[:, None] for n in names}
    frames = ph.rollout(model, dt=dt, steps=steps, every=steps // 10)
    assert any(ph.energy(model, frames.state(k))["edge_contacts"] > 0 for k in range(len(frames)))
    first, last = frames.state(0), frames.state(-1)
    for moment in (lambda s: sum((m[n] * s[n].v).sum(axis=0) for n in names),
                   lambda s: sum(np.cross(s[n].x, m[n] * s[n].v).sum(axis=0) for n in names)):  # fmt: skip
        np.testing.assert_allclose(moment(last), moment(first), atol=1e-14)
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R = R * np.sign(np.linalg.det(R))
    turned = model.replace({f"{n}.{q}": getattr(first[n], q) @ R.T for n in names for q in "xv"})
    there = ph.rollout(turned, dt=dt, steps=steps, every=steps).state()
    for n in names:
        np.testing.assert_allclose(there[n].x, last[n].x @ R.T, rtol=0, atol=1e-10)


def bare(x, v, thick=THICK, mu=0.3, smoothing=0.0, ke=1.0):
    """Forces on the ends of two edges, by the kernel alone."""
    given = particles.Particles(*(kc.array(np.array(a, float), dtype=kc.float3) for a in (x, v)))
    f = kc.zeros(4, dtype=kc.float3, real=kc.float64)
    kc.launch(edge_contact.edge_contact_forces, 2, [given, *table(4, thick, [ke, 0.1, 0.2, mu], smoothing)], [f])
    return f.numpy().copy()


def table(n, thick, four, smoothing, requires_grad=False):
    """Two edges, of which the first crosses the second."""
    reals = kc.array(np.full(n, thick), requires_grad=requires_grad)
    numbers = kc.array(np.tile(four, (n, 1)).astype(float), dtype=kc.float4, requires_grad=requires_grad)
    law, touch, smooth = kc.array(np.ones(n, np.int32)), kc.array(np.full(n, 0.01)), kc.array(np.full(n, smoothing))
    ends = kc.array(np.arange(n, dtype=np.int32).reshape(-1, 2))
    contacts = touching.Contacts(*(kc.array(np.array(numbers, np.int32)) for numbers in ([0, 1, 1], [1])))
    rows = kc.array(np.arange(n, dtype=np.int32))
    return [touching.Vertices(rows, reals, numbers, law, touch, smooth), ends, contacts]


@given(seeds)
def test_a_crossing_that_spins_as_a_whole_is_not_rubbed_and_one_that_slides_is(seed):
    rng = np.random.default_rng(seed)
    x = np.array([[-1, 0, 0], [1, 0.1, 0], [0.2, 0.03, -1], [0, 0.04, 1]]) + 0.003 * rng.normal(size=(4, 3))
    still, spun = bare(x, 0 * x), bare(x, rng.normal(size=3) + np.cross(rng.normal(size=3), x))
    np.testing.assert_allclose(spun, still, rtol=0, atol=1e-12)
    sliding = np.array([[0.5, 0, 0.2]] * 2 + [[0, 0, 0]] * 2)
    rubbed = bare(x, sliding) - still
    assert (rubbed * sliding).sum() < -1e-4  # It takes energy.
    np.testing.assert_allclose(rubbed.sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(np.cross(x, rubbed).sum(axis=0), 0, atol=1e-14)


def test_nothing_jumps_where_a_crossing_runs_off_an_end_or_edges_become_parallel():
    one = np.array([[-0.5, 0, 0], [0.5, 0, 0]])

    def off(s):
        return np.array([[0.7 * s, 0.01, -0.4], [0.7 * s, 0.01, 0.6]])

    def parallel(s):
        return np.array([[h * np.sin(s), 0.01, h * np.cos(s)] for h in (-0.5, 0.5)])

    def swept(other, last, steps):
        return np.array([bare([*one, *other(s)], np.zeros((4, 3))) for s in np.linspace(0, last, steps)])

    for way in ((off, 1.0), (parallel, np.pi / 2)):
        rough, fine = (np.abs(np.diff(swept(*way, steps), axis=0)).max() for steps in (2001, 8001))
        assert fine < 0.3 * rough  # A jump would be as large in short steps.
        f = swept(*way, 3)
        assert np.abs(f[0]).max() > 0.01 and not f[-1].any()


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5])
def test_parallel_edges_have_finite_gradients_and_no_force(angle):
    x = np.array([[-0.5, 0, 0], [0.5, 0, 0], [-0.5, 0.01, -0.5 * angle], [0.5, 0.01, 0.5 * angle]])
    a = [kc.array(values, dtype=kc.float3, requires_grad=True) for values in (x, np.ones((4, 3)))]
    f = kc.zeros(4, dtype=kc.float3, real=kc.float64)
    with kc.Tape() as tape:
        given = [particles.Particles(*a), *table(4, THICK, [1.0, 0.1, 0.2, 0.3], 0.0)]
        kc.launch(edge_contact.edge_contact_forces, 2, given, [f])
    tape.backward(grads={f: np.ones((4, 3))})
    assert np.abs(f.numpy()).max() < 1e-12 and all(np.abs(part.grad.numpy()).max() < 1e-6 for part in a)


@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_the_adjoint_of_the_kernels(smoothing):
    # The crossing of the second is near an end, where its weight falls; edges of any length and direction.
    rng = np.random.default_rng(1)
    for aside in (0.0, 0.45, 0.49):
        x = np.array([[-0.5, 0, 0], [0.5, 0.1, 0], [aside, 0.09, -0.6], [aside - 0.05, 0.06, 0.4]])
        reals = [kc.array(values, dtype=kc.float3, requires_grad=True) for values in (x, rng.normal(size=(4, 3)))]
        rest = table(4, 0.1, [2.0, 0.3, 0.4, 0.5], smoothing, requires_grad=True)
        f, e = kc.zeros(4, dtype=kc.float3, real=kc.float64), kc.zeros(2, real=kc.float64)
        given, wrt = [particles.Particles(*reals), *rest], [rest[0].thickness, rest[0].four]
        kc.testing.gradcheck(edge_contact.edge_contact_forces, 2, given, [f], wrt=[*reals, *wrt], rtol=1e-4)
        given, wrt = [reals[0], *rest], [reals[0], *wrt]
        kc.testing.gradcheck(edge_contact.edge_contact_energies, 2, given, [e], wrt=wrt, rtol=1e-4)
        kc.launch(edge_contact.edge_contact_energies, 2, given, [e])
        assert e.numpy()[0] > 0


def far(values, model, dt, steps, **settings):
    frames = ph.rollout(model.replace(values), dt=dt, steps=steps, every=steps // 5, **settings)
    return sum((frames[n].x * torch.sin(7 * frames[n].x)).sum() + frames[n].v.pow(2).sum() for n in frames)


NAMES = ["upper.thickness", "upper.self_ke", "lower.self_kd", "upper.self_kf", "lower.self_mu", "upper.x", "lower.v",
         "upper.mass", "lower.stretch"]  # fmt: skip


@pytest.mark.parametrize("law", [{}, {"damping": "linear"}, {"smoothing": 0.004}])
@pytest.mark.parametrize("settings", [{}, {"integrator": ph.BackwardEuler(tol=1e-12)}], ids=["explicit", "implicit"])
def test_every_parameter_against_central_differences(law, settings):
    model = moving(strips(0.034, turn=0.3, **law).build("float64"))
    how = {"dt": 2e-4, "steps": 200} if not settings else {"dt": 2e-3, "steps": 20, **settings}
    frames = ph.rollout(model, dt=how["dt"], steps=how["steps"], **settings)
    energies = [ph.energy(model, frames.state(k)) for k in range(0, len(frames), 5)]
    assert max(e["edge_contacts"] for e in energies) > 0 and not any(e["self_contacts"] for e in energies)
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in NAMES}
    far(values, model, **how).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(2)
    for name, value in values.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-6 * float(value.detach().abs().max())
        two = [float(far({**fixed, name: fixed[name] + s * h * way}, model, **how)) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=1e-4, abs=1e-7), name
        assert found != 0.0, f"{name} has no effect"


def test_copies_of_a_batch_do_not_touch_each_other():
    model = moving(strips(0.03).build("float64"))
    alone = ph.rollout(model, dt=5e-4, steps=100, every=100)
    several = ph.rollout(model.batched(3), dt=5e-4, steps=100, every=100)
    for k in range(3):
        np.testing.assert_array_equal(several["upper"].x[k], alone["upper"].x)


def test_blocks_lie_on_each_other_with_their_edges():
    # Two slender bars, one across the other, turned on their edges: no corner is near a face of the other.
    bar, soft = ph.TetMesh.box((0.6, 0.06, 0.06), cells=(3, 1, 1)), ph.NeoHookean(E=5e4, nu=0.3)
    made = ph.Scene()
    for name, height in (("lower", 0.0), ("upper", 0.1)):
        mesh = bar.moved(pos=(-0.3, -0.03, -0.03)).moved(rot=ph.quat((1, 0, 0), np.pi / 4))
        mesh = mesh if name == "lower" else mesh.moved(rot=ph.quat((0, 1, 0), np.pi / 2))
        made.add_soft(name, mesh, density=200.0, material=soft, damping=30.0, pos=(0, height, 0))
        made.add_self_contact(name, thickness=0.01, ke=2e3, kd=2.0, kf=2.0, mu=0.5)
    model = made.fix("lower").build()
    frames = ph.rollout(model, dt=1 / 500, steps=200, every=50, substeps=16)
    # Held for 0.4 s, in which it would have fallen by 0.8 m; it may tip over later.
    assert frames["upper"].x[-1, :, 1].mean() > 0.06


def test_sheets_do_not_gain_energy_at_the_stable_step():
    # One sheet slams on another one, shifted and turned so that edges cross everywhere.
    flat = ph.TriMesh.grid((0.5, 0.5), cells=(5, 5)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
    made = ph.Scene(gravity=(0, 0, 0))
    turned = flat.moved(rot=ph.quat((0, 1, 0), 0.4))
    for name, mesh, pos, speed in (("lower", flat, (0, 0, 0), 0.0), ("upper", turned, (0.05, 0.06, 0.1), 2.0)):
        made.add_cloth(name, mesh, mass=0.05, stretch=5.0, shear=3.0, pos=pos, vel=(0, -speed, 0))
        made.add_self_contact(name, thickness=0.04, ke=500.0, kd=0.0, kf=0.0, mu=0.0)
    model = made.build("float64")
    frames = ph.rollout(model, dt=ph.stable_dt(model), steps=600, every=5)
    energies = [ph.energy(model, frames.state(k)) for k in range(len(frames))]
    assert max(e["edge_contacts"] for e in energies) > 0.01 * energies[0]["total"]
    assert max(e["total"] for e in energies) < 1.1 * energies[0]["total"]
