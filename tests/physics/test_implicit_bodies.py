"""Rigid bodies in steps of backward Euler: laws, long steps, and gradients by the implicit function theorem."""

import numpy as np
import pytest
import torch
from test_body_gradients import loss

import kernelc as kc
from nablasim import physics as ph

EXACT = ph.BackwardEuler(tol=1e-12)
G = 9.81


def brick(**settings):
    """A body of three different moments, whose origin is not its centre of mass."""
    mesh = ph.Box(0.2, 0.5, 1.0).mesh().moved(pos=(0.4, -0.3, 0.7), rot=ph.quat((1, 2, 3), 0.8))
    made = ph.Scene(gravity=settings.pop("gravity", (0, 0, 0)))
    made.add_rigid("brick", mesh, density=300.0, rot=ph.quat((3, 1, 2), 1.1), vel=(0.3, 0.1, -0.2),
                   omega=(2.0, 3.0, -1.0), **settings)  # fmt: skip
    return made.build("float64"), ph.solid_mass_properties(mesh, 300.0)


def momenta(part, mass):
    """Momentum, and angular momentum about the world's origin, of each frame of a body."""
    found = []
    for x, q, v, omega in zip(part.x, part.rot, part.v, part.omega):
        R = np.asarray(kc.quat_to_matrix(np.asarray(q)))
        arm = R @ mass.com
        p = mass.mass * (v + np.cross(omega, arm))
        found.append(np.concatenate([p, np.cross(x + arm, p) + R @ mass.inertia @ R.T @ omega]))
    return np.array(found)


# -- laws
def test_free_fall():
    dt, n = 0.1, 20
    model, mass = brick(gravity=(0, -G, 0))
    part = ph.rollout(model, dt=dt, steps=n, integrator=EXACT).numpy()["brick"]
    centre = part.x + np.array([np.asarray(kc.quat_to_matrix(q)) @ mass.com for q in part.rot])
    v0 = part.v[0] + np.cross(part.omega[0], centre[0] - part.x[0])
    expected = centre[0] + n * dt * v0 + np.array([0, -G, 0]) * dt**2 * n * (n + 1) / 2
    np.testing.assert_allclose(centre[-1], expected, rtol=1e-10)


def test_a_free_body_keeps_its_momenta_and_turns_nearly_as_it_should():
    model, mass = brick()
    errors = []
    exact = ph.rollout(model, dt=1e-3, steps=300, every=300).numpy()["brick"].omega[-1]
    for steps in (30, 60, 120):
        part = ph.rollout(model, dt=0.3 / steps, steps=steps, every=steps, integrator=EXACT).numpy()["brick"]
        both = momenta(part, mass)
        np.testing.assert_allclose(both[-1, :3], both[0, :3], rtol=1e-10)
        # About the centre of mass it is kept; a step moves that along its momentum.
        np.testing.assert_allclose(both[-1, 3:], both[0, 3:], rtol=1e-9, atol=1e-9 * np.abs(both).max())
        errors.append(np.abs(part.omega[-1] - exact).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (rates > 0.8).all() and (rates < 1.2).all(), (errors, rates)


def collision():
    """A ball, a box, and a net that it hits, in empty space."""
    made = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=2e3, kd=5.0, kf=5.0, mu=0.4)
    made.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0, 0.3, 0.02), vel=(0.2, -3.0, 0), omega=(0, 1, 3))
    made.add_rigid("box", ph.Box(0.4, 0.2, 0.3), mass=2.0, pos=(0.03, 0.05, 0), rot=ph.quat((0, 0, 1), 0.1))
    points, pairs = ph.spring_grid((0.3, 0.3), (3, 3))
    made.add_springs("net", points[:, [0, 2, 1]] + [-0.15, -0.07, -0.15], pairs, ke=200.0, kd=0.5, mass=0.02)
    return made.build("float64")


def test_what_collides_keeps_its_momentum_and_its_angular_momentum_the_better_the_shorter_the_step():
    model, errors = collision(), []
    solids = {"ball": (1.0, 0.004 * np.eye(3)), "box": (2.0, 2 / 12 * np.diag([0.13, 0.25, 0.2]))}
    for steps in (20, 40):
        frames = ph.rollout(model, dt=0.2 / steps, steps=steps, integrator=EXACT).numpy()
        total = 0.0
        for name, (mass, inertia) in solids.items():
            total = total + momenta(frames[name], ph.MassProperties(mass, np.zeros(3), inertia))
        p = 0.02 * frames["net"].v
        total = total + np.concatenate([p.sum(axis=1), np.cross(frames["net"].x, p).sum(axis=1)], axis=1)
        assert np.abs(frames["net"].v[-1]).max() > 0.05 and np.abs(frames["box"].omega[-1]).max() > 0.05
        np.testing.assert_allclose(total[:, :3], np.broadcast_to(total[0, :3], total[:, :3].shape), atol=2e-10)
        # Forces at the end of a step turn about where it began: backward Euler keeps this only to first order.
        errors.append(np.abs(total[-1, 3:] - total[0, 3:]).max())
    assert errors[1] < 0.7 * errors[0], errors


def test_first_order_towards_short_explicit_steps():
    model = collision()
    fine = ph.rollout(model, dt=1e-5, steps=10_000, every=10_000).state()
    errors = []
    for steps in (60, 120):
        coarse = ph.rollout(model, dt=0.1 / steps, steps=steps, every=steps, integrator="backward_euler").state()
        errors.append(max(np.abs(coarse[n].x - fine[n].x).max() for n in ("ball", "box", "net")))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (rates > 0.7).all() and (rates < 1.4).all(), (errors, rates)


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
def test_a_cube_falls_and_rests_on_hard_ground_at_the_rate_of_a_video(mass):
    made = ph.Scene().add_rigid("cube", ph.Box(0.2, 0.2, 0.2), mass=mass, pos=(0, 0.3, 0), rot=ph.quat((1, 2, 3), 0.4))
    made.add_ground("floor", ke=1e6 * mass, kd=2e3 * mass, kf=1e4 * mass, mu=0.5)
    model = made.build()
    with pytest.raises(ph.StepTooLarge):
        ph.rollout(model, dt=1 / 60, steps=1)
    frames = ph.rollout(model, dt=1 / 60, steps=120, integrator="backward_euler").numpy()
    assert np.abs(frames["cube"].v[-1]).max() < 1e-3 and np.abs(frames["cube"].omega[-1]).max() < 1e-2
    assert abs(frames["cube"].x[-1, 1] - 0.1) < 1e-4 and frames.vertices("cube")[..., 1].min() > -5e-3


def test_a_soft_block_carries_a_stone():
    made = ph.Scene()
    made.add_soft("block", ph.TetMesh.box((0.3, 0.2, 0.3), cells=(3, 2, 3)), density=300.0, damping=20.0,
                  material=ph.NeoHookean(E=2e4, nu=0.3), pos=(-0.15, 0, -0.15))  # fmt: skip
    made.add_rigid("stone", ph.Box(0.2, 0.1, 0.2), mass=2.0, pos=(0, 0.27, 0))
    made.set_contact(ke=2e3, kd=20.0, kf=50.0, mu=0.5).add_ground("floor", ke=2e3, kd=20.0, kf=50.0)
    frames = ph.rollout(made.build("float64"), dt=1 / 100, steps=150, integrator="backward_euler").numpy()
    assert np.abs(frames["stone"].v[-1]).max() < 2e-3
    assert 0.2 < frames["stone"].x[-1, 1] < 0.25


# -- gradients
def pile():
    """Bodies on the ground, on each other and under a net; every kind of load. All of it touches something."""
    made = ph.Scene().set_contact(mu=0.4, smoothing=0.002)
    made.add_rigid("base", ph.Box(0.3, 0.2, 0.25), density=500.0, pos=(0, 0.11, 0), rot=ph.quat((0.2, 0.5, 1), 0.2),
                   vel=(1, -1, 0.3), omega=(3, 1, -1), ke=2e4, kd=60.0, kf=200.0, mu=0.4)  # fmt: skip
    wedge = ph.TriMesh([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    made.add_rigid("wedge", wedge.moved(pos=(-0.075, -0.075, -0.075)), mass=2.0, pos=(0.02, 0.32, 0.01),
                   inertia=np.diag([0.02, 0.03, 0.025]) + 0.001, vel=(0.2, -2, 0.1), omega=(1, 2, 1))  # fmt: skip
    points, pairs = ph.spring_grid((0.3, 0.3), (2, 2))
    made.add_springs("net", points[:, [0, 2, 1]] + [-0.1, 0.235, -0.1], pairs, ke=50.0, kd=0.2, mass=0.05,
                     vel=(0, -2, 0))  # fmt: skip
    made.add_obstacle("rock", ph.Sphere(0.1), pos=(0.26, 0.12, 0.02), vel=(-0.5, 0.1, 0), omega=(0, 0, 1),
                      smoothing=0.002)  # fmt: skip
    made.add_force("base", (3, 2, 1), at=(0.1, 0.1, 0.1), t=(0.01, 0.08))
    made.add_impulse("wedge", (0.3, 0.2, 1), at=(0.1, 0.1, 0.1), t=0.012).add_torque("base", (0.3, 0.2, 0.1))
    return made.add_ground("floor", ke=2e4, kd=100.0, kf=50.0, mu=0.5, smoothing=0.002).build("float64")


SETTINGS = {"dt": 5e-3, "steps": 5, "every": 5, "integrator": EXACT}


def check_by_groups(model, names, size=7):
    """Differences along ways on which all parameters of a group weigh the same: a wrong gradient of any is seen."""
    values = {n: torch.tensor(np.array(model.layout.parameters[n].value), requires_grad=True) for n in names}
    loss(model, values, **SETTINGS).backward()
    fixed, rng, ways = {n: v.detach() for n, v in values.items()}, np.random.default_rng(1), {}
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        weight = float((value.grad * way).sum())
        assert weight != 0.0, f"{name} has no effect"
        ways[name] = way / weight
    for k in range(0, len(names), size):
        group, expected = names[k : k + size], float(len(names[k : k + size]))
        # A difference must not reach over a kink, such as a touch: where it does, a smaller one does not.
        for h in (1e-5, 1e-6):
            two = [float(loss(model, {**fixed, **{n: fixed[n] + s * h * ways[n] for n in group}}, **SETTINGS))
                   for s in (1, -1)]  # fmt: skip
            found = (two[0] - two[1]) / (2 * h)
            if found == pytest.approx(expected, rel=2e-5):
                break
        else:
            pytest.fail(f"one of {group}: {found} by differences, {expected} by gradients")


def test_every_parameter_against_central_differences_through_contact():
    model = pile()
    check_by_groups(model, model.names())
    check_by_groups(model, ["base.mass", "wedge.density", "base.inertia"])


EGG = ph.SignedDistance.sample(
    lambda p: np.linalg.norm(p * [1, 1.5, 1], axis=1) - 0.3, (-0.6, -0.6, -0.6), (0.6, 0.6, 0.6), cells=10
)


def stones():
    """Bodies and a particle on a rock of signed distances, which moves."""
    made, fast = ph.Scene().set_contact(smoothing=0.002), {"vel": (0.3, -1, 0.2), "omega": (2, 1, -1)}
    made.add_obstacle("rock", EGG, rot=ph.quat((0, 1, 1), 0.3), vel=(0.1, 0, 0), omega=(0, 0.5, 0), ke=8e3, kd=40.0,
                      kf=20.0, mu=0.3, smoothing=0.002)  # fmt: skip
    made.add_rigid("can", ph.Cylinder(0.1, 0.2), mass=1.0, pos=(0.1, 0.3, 0), rot=ph.quat((1, 2, 3), 0.7), kd=100.0,
                   **fast)  # fmt: skip
    made.add_rigid("cone", ph.Cone(0.1, 0.2), mass=1.0, pos=(-0.1, 0.25, 0.15), rot=ph.quat((1, 0.3, 0.2), 0.7), **fast)
    return made.add_particles("dust", [[-0.1, 0.2, -0.05]], mass=0.1, vel=(0.1, -1, 0)).build("float64")


@pytest.mark.nightly
def test_every_parameter_on_signed_distances():
    model = stones()
    soft = {name: 0.0 for name in model.names() if name.rpartition(".")[2] in ("ke", "kd", "kf")}
    apart, together = (ph.rollout(m, **SETTINGS).numpy() for m in (model.replace(soft), model))
    assert all(np.abs(apart[name].x - together[name].x).max() > 1e-3 for name in ("can", "cone", "dust"))
    check_by_groups(model, [n for n in model.names() if not n.startswith("contact.")])  # They do not meet each other.


@pytest.mark.parametrize("other", ["box", "plane"])
def test_particles_that_only_touch(other):
    """Without springs or elements, their Jacobian has nothing but contacts."""
    made = ph.Scene().add_particles("dust", [[0, 0.01, 0]], mass=0.1)
    if other == "plane":
        made.add_ground("floor", ke=1e3, kd=20.0)
    else:
        made.add_obstacle("box", ph.Box(1, 1, 1), pos=(0, -0.5, 0), ke=1e3, kd=20.0)
    frames = ph.rollout(made.build("float64"), dt=5e-3, steps=400, integrator=EXACT)["dust"]
    assert float(frames.x[-1, 0, 1]) == pytest.approx(-0.1 * 9.81 / 1e3, rel=1e-4)


@pytest.mark.xfail(raises=ph.NotConverged, reason="stiffer contact by default: a pile without its base", strict=True)
def test_everything_touches_something_in_that_test():
    model = pile()
    together = ph.rollout(model, **SETTINGS).numpy()
    for name in ("base", "wedge", "net"):
        others = [n for n in ("base", "wedge", "net", "rock") if n != name]
        away = {f"{n}.x": np.asarray(model[f"{n}.x"]) + [9, 0, 0] for n in others} | {"floor.offset": -9.0}
        alone = ph.rollout(model.replace(away), **SETTINGS).numpy()
        assert np.abs(alone[name].x - together[name].x).max() > 1e-3, name


@pytest.mark.parametrize("checkpoint", ["sqrt", 3])
def test_checkpoints_do_not_change_a_bit(checkpoint):
    model, found = collision(), []
    for kept in ("all", checkpoint):
        mass = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        frames = ph.rollout(model.replace({"box.mass": mass}), dt=5e-3, steps=12, integrator=EXACT, checkpoint=kept)
        (frames["net"].x[-1].sum() + frames["ball"].omega[-1].sum()).backward()
        found.append(mass.grad)
    assert torch.equal(*found) and found[0] != 0


def test_copies_of_a_batch_move_as_alone():
    model = collision()
    models = [model.replace({"box.mass": m}) for m in (1.0, 3.0)]
    settings = {"dt": 5e-3, "steps": 20, "integrator": EXACT}
    together = ph.rollout(ph.batch(models), **settings)
    for k, one in enumerate(models):
        alone = ph.rollout(one, **settings)
        for name in ("ball", "box", "net"):
            assert float((together[name].x[k] - alone[name].x).abs().max()) < 1e-10


# -- refusals
def test_an_equation_that_is_not_solved_names_the_body():
    made = ph.Scene().add_rigid("cube", ph.Box(1, 1, 1), density=5.0, pos=(0, 0.4, 0), omega=(1, 2, 3))
    model = made.add_ground("floor").build("float64")
    with pytest.raises(ph.NotConverged, match="largest at the body 'cube'"):
        ph.rollout(model, dt=5e-3, steps=3, integrator=ph.BackwardEuler(tol=1e-14, iterations=1))


def test_hard_ground_is_refused():
    made = ph.Scene().add_rigid("cube", ph.Box(1, 1, 1), density=5.0).add_ground("floor", hard=True)
    with pytest.raises(ValueError, match="'floor' is hard"):
        ph.rollout(made.build(), dt=1 / 60, steps=1, integrator="backward_euler")
