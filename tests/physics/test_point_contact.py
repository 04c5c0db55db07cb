"""Laws of particles and points of nets that touch each other: momenta, collisions, what is found, gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import point_contact_kernels as point_contact
from nablasim.physics.laws.contact import touching_kernels as touching
from nablasim.physics.laws.deformable import particles_kernels as particles

seeds = st.integers(0, 2**32 - 1)
POINTS, PAIRS = ph.spring_grid((0.4, 0.4), (4, 4))
FOUR = {"thickness": 0.06, "ke": 50.0, "kd": 0.05}


def grains(x, v=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), mass=0.1, **contact):
    made = ph.Scene(gravity=gravity).add_particles("grains", x, mass=mass, vel=v)
    return made.add_self_contact("grains", **{**FOUR, **contact})


@given(seeds)
def test_every_pair_is_found_and_counted_once(seed):
    rng = np.random.default_rng(seed)
    x = 0.12 * rng.normal(size=(60, 3))
    apart = np.linalg.norm(x[:, None] - x, axis=2)[np.triu_indices(60, 1)]
    expected = sum(25.0 * (0.06 - apart[apart < 0.06]) ** 2)
    model = grains(x).build("float64")
    assert expected > 0 and ph.energy(model)["point_contacts"] == pytest.approx(expected, rel=1e-12)
    f = ph.forces(model.replace({"grains.v": rng.normal(size=x.shape)}))["grains"].f
    np.testing.assert_allclose(f.sum(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(np.cross(x, f).sum(axis=0), 0, atol=1e-13)


@pytest.mark.parametrize("masses", [(0.1, 0.1), (0.05, 0.2)])
def test_two_balls_collide_as_balls_do(masses):
    # Head on, without damping: velocities as of an elastic impact, in the time pi sqrt(m / ke) of the reduced mass.
    dt, one, two = 1e-5, *masses
    made = grains([[-0.05, 0, 0], [0.05, 0, 0]], [[1.0, 0, 0], [0, 0, 0]], mass=np.array(masses), kd=0.0)
    frames = ph.rollout(made.build("float64"), dt=dt, steps=15_000)["grains"]
    expected = [(one - two) / (one + two), 2 * one / (one + two)]
    np.testing.assert_allclose(frames.v[-1, :, 0], expected, atol=1e-3)
    touching = float((frames.x[:, 1, 0] - frames.x[:, 0, 0] < 0.06).sum()) * dt
    assert touching == pytest.approx(np.pi * np.sqrt(one * two / (one + two) / 50.0), rel=2e-3)


def test_a_column_of_balls_stands():
    # Each contact carries what is above it.
    x = np.array([[0, 0.03 + 0.058 * k, 0] for k in range(4)])
    made = grains(x, gravity=(0, -9.81, 0), mass=0.01, kd=0.3, touch=2e-3).fix("grains", where=[0])
    last = ph.rollout(made.build("float64"), dt=1e-3, steps=4000, every=4000)["grains"]
    gaps = np.diff(last.x[-1, :, 1].numpy())
    np.testing.assert_allclose(gaps, 0.06 - 0.01 * 9.81 * np.array([3, 2, 1]) / 50.0, rtol=1e-4)


def tossed(rng, **contact):
    """A net that is thrown at another one, point upon point, and grains among them."""
    made = ph.Scene(gravity=(0, 0, 0))
    for name, height in (("lower", 0.0), ("upper", 0.07)):
        made.add_springs(name, POINTS + [0.02, height, 0.01], PAIRS, ke=20.0, kd=0.05, mass=0.02)
    made.add_particles("grains", 0.2 + [0.1, 0.05, 0.1] * rng.normal(size=(6, 3)), mass=0.03)
    for name in ("lower", "upper", "grains"):
        made.add_self_contact(name, **{**FOUR, **contact})
    v = {"lower.v": 0.2 * rng.normal(size=POINTS.shape), "grains.v": 0.3 * rng.normal(size=(6, 3)),
         "upper.v": [0.1, -1.0, 0.2] + 0.2 * rng.normal(size=POINTS.shape)}  # fmt: skip
    return made.build("float64").replace(v)


def test_a_net_at_rest_does_not_touch_itself_however_thick():
    for thickness in (0.05, 0.15, 1.0):
        made = ph.Scene().add_springs("net", POINTS, PAIRS, ke=1.0).add_self_contact("net", thickness=thickness)
        assert ph.energy(made.build("float64"))["point_contacts"] == 0.0


@given(seeds)
def test_momenta_are_kept_and_the_motion_turns_with_its_start(seed):
    rng = np.random.default_rng(seed)
    model = tossed(rng)
    frames = ph.rollout(model, dt=1e-3, steps=80, every=20)
    first, last, mass = frames.state(0), frames.state(-1), {"lower": 0.02, "upper": 0.02, "grains": 0.03}
    assert max(ph.energy(model, frames.state(k))["point_contacts"] for k in range(len(frames))) > 1e-4
    for moment in (lambda s: sum(m * s[n].v.sum(axis=0) for n, m in mass.items()),
                   lambda s: sum(m * np.cross(s[n].x, s[n].v).sum(axis=0) for n, m in mass.items())):  # fmt: skip
        np.testing.assert_allclose(moment(last), moment(first), atol=1e-13)
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R = R * np.sign(np.linalg.det(R))
    turned = model.replace({f"{n}.{q}": getattr(first[n], q) @ R.T for n in mass for q in "xv"})
    there = ph.rollout(turned, dt=1e-3, steps=80, every=80).state()
    for n in mass:
        np.testing.assert_allclose(there[n].x, last[n].x @ R.T, rtol=0, atol=1e-9)


def test_what_was_found_does_not_depend_on_when_one_looks():
    model = tossed(np.random.default_rng(1))
    whole = ph.rollout(model, dt=1e-3, steps=60, every=20)
    state = whole.state(0)
    for k in range(1, 4):
        for _ in range(20):
            state = ph.rollout(model.at(state), dt=1e-3, steps=1).state()
        np.testing.assert_array_equal(state["upper"].x, whole.state(k)["upper"].x)


def test_points_lie_on_triangles_and_rub_there():
    flat = ph.TriMesh.grid((0.6, 0.6), cells=(4, 4)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
    x, calm, rubs = [[0.2, 0.07, -0.25], [0.25, 0.13, -0.27]], {"kd": 0.3, "touch": 2e-3}, {"self_kf", "self_mu"}
    made = grains(x, (0.3, 0, 0), (0, -9.81, 0), 0.01, **calm)
    alone = {name.partition(".")[2] for name in made.build().names()}
    assert "self_ke" in alone and not rubs & alone  # There is nothing to rub against.
    made.add_cloth("sheet", flat, mass=0.2).add_self_contact("sheet", **{**FOUR, "kf": 0.2, **calm}).fix("sheet")
    model = made.build("float64")
    assert {f"grains.{name}" for name in rubs} <= set(model.names())
    frames = ph.rollout(model, dt=1e-3, steps=2000, every=100)
    assert (frames["grains"].x[..., 1] > 0.03).all() and frames["grains"].v[-1].abs().max() < 0.02
    free = ph.rollout(model.replace({"grains.self_mu": 0.0, "sheet.self_mu": 0.0}), dt=1e-3, steps=500, every=500)
    assert free["grains"].v[-1, :, 0].max() > 0.1


NAMES = ["lower.thickness", "upper.self_ke", "lower.self_kd", "upper.x", "grains.v", "grains.mass", "lower.ke"]


@pytest.mark.parametrize("law", [{}, {"damping": "linear"}, {"smoothing": 0.004}])
@pytest.mark.parametrize("settings", [{}, {"integrator": ph.BackwardEuler(tol=1e-12)}], ids=["explicit", "implicit"])
def test_every_parameter_against_central_differences(law, settings):
    model = tossed(np.random.default_rng(0), **law)
    how = {"dt": 2e-3, "steps": 30, "every": 10, **settings} if settings else {"dt": 5e-4, "steps": 120, "every": 40}

    def far(values):
        frames = ph.rollout(model.replace(values), **how)
        return sum((frames[n].x * torch.sin(7 * frames[n].x)).sum() + frames[n].v.pow(2).sum() for n in frames)

    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in NAMES}
    far(values).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(2)
    for name, value in values.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-7 * max(float(value.detach().abs().max()), 0.1)
        two = [float(far({**fixed, name: fixed[name] + s * h * way})) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=1e-4, abs=1e-6), name
        assert found != 0.0, f"{name} has no effect"


@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_the_adjoint_of_the_kernels(smoothing):
    rng, n = np.random.default_rng(0), 5
    x, v = (kc.array(s * rng.normal(size=(n, 3)), dtype=kc.float3, requires_grad=True) for s in (0.1, 1.0))
    four = kc.array(rng.uniform(0.5, 2.0, (n, 4)), dtype=kc.float4, requires_grad=True)
    thick = kc.array(rng.uniform(0.4, 0.5, n), requires_grad=True)
    same = kc.array(np.arange(n, dtype=np.int32))
    law, touch, smooth = kc.array(np.ones(n, np.int32)), kc.array(np.full(n, 0.02)), kc.array(np.full(n, smoothing))
    first, second = np.triu_indices(n, 1)
    start = kc.array(np.searchsorted(first, np.arange(n + 1)).astype(np.int32))
    f, e = kc.zeros(n, dtype=kc.float3, real=kc.float64), kc.zeros(n, real=kc.float64)
    vertices = touching.Vertices(same, thick, four, law, touch, smooth)
    mine, wrt = [vertices, same, touching.Contacts(start, kc.array(second.astype(np.int32)))], [thick, four]
    given = [particles.Particles(x, v), *mine]
    kc.testing.gradcheck(point_contact.point_contact_forces, n, given, [f], wrt=[x, v, *wrt], rtol=1e-4)
    kc.testing.gradcheck(point_contact.point_contact_energies, n, [x, *mine], [e], wrt=[x, *wrt], rtol=1e-4)


def test_copies_of_a_batch_do_not_touch_each_other():
    model = tossed(np.random.default_rng(0))
    alone = ph.rollout(model, dt=1e-3, steps=60, every=60)
    several = ph.rollout(model.batched(3), dt=1e-3, steps=60, every=60)
    for k in range(3):
        np.testing.assert_array_equal(several["upper"].x[k], alone["upper"].x)


def test_a_heap_does_not_explode_at_the_stable_step():
    rng = np.random.default_rng(0)
    x = 0.062 * np.array([[i, j, k] for i in range(3) for j in range(4) for k in range(3)])
    x += 0.002 * rng.random(x.shape)
    made = grains(x + [0, 0.05, 0], gravity=(0, -9.81, 0), mass=0.01, kd=0.0).add_ground("floor", ke=200.0, kd=0.0)
    model = made.build("float64")
    dt = ph.stable_dt(model)
    frames = ph.rollout(model, dt=dt, steps=round(1 / dt))
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert max(energies) < 1.1 * energies[0]
    with pytest.raises(ph.StepTooLarge, match="its contact"):
        ph.rollout(model.replace({"grains.self_ke": 1e5}), dt=dt, steps=1)


def test_wrong_input_is_named():
    made = ph.Scene().add_particles("grains", [[0.0, 0, 0]], mass=1.0)
    for changes, message in (
        ({}, "grains: give its thickness"),
        ({"thickness": 0.0}, "grains.thickness must be positive, and is 0"),
        ({"thickness": 0.1, "mu": -1.0}, "grains.self_mu must not be negative"),
        ({"thickness": 0.1, "damping": "none"}, 'damping is "smooth" or "linear"'),
    ):
        with pytest.raises(ValueError, match=message):
            made.add_self_contact("grains", **changes)
    crowd = grains(np.zeros((100, 3)) + 1e-3 * np.arange(100)[:, None])
    with pytest.raises(kc.AssertFailed, match="too many layers touch in one place: make them thinner"):
        ph.energy(crowd.build())
