"""Gradients of rigid bodies: every parameter against central differences, through rollouts with contact."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph

WEDGE = ph.TriMesh([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
MOVING = {"vel": (1, -1, 0.3), "omega": (3, 1, -1)}


def scene(**ground):
    made = ph.Scene()
    made.add_rigid("cube", ph.Box(0.3, 0.2, 0.25), density=500.0, pos=(0, 0.2, 0), rot=ph.quat((0.2, 0.5, 1), 0.5),
                   ke=2e4, kd=60.0, kf=200.0, mu=0.4, **MOVING)  # fmt: skip
    made.add_rigid("wedge", WEDGE, mass=2.0, pos=(1, 0.105, 0), rot=ph.quat((1, 0.5, 0.2), 2.5), **MOVING)
    made.add_rigid("ball", ph.Sphere(0.1), mass=2.0, inertia=np.diag([0.01, 0.02, 0.015]) + 0.001, pos=(2, 0.12, 0),
                   **MOVING)  # fmt: skip
    made.add_rigid("can", ph.Cylinder(0.1, 0.3), mass=2.0, pos=(3, 0.2, 0), rot=ph.quat((1, 0.1, 0.4), 0.8), **MOVING)
    made.add_rigid("cone", ph.Cone(0.1, 0.3), mass=2.0, pos=(4, 0.2, 0), rot=ph.quat((1, 0.1, 0.4), 1.8), **MOVING)
    made.add_rigid("pill", ph.Capsule(0.1, 0.3), mass=2.0, pos=(5, 0.2, 0), rot=ph.quat((1, 0.1, 0.4), 1.8), **MOVING)
    made.add_force("cube", (3, 2, 1), at=(0.1, 0.1, 0.1), t=(0.01, 0.08))
    made.add_impulse("wedge", (0.3, 0.2, 1), at=(0.1, 0.1, 0.1), t=0.02)
    made.add_torque("ball", (0.3, 0.2, 0.1))
    made.add_force("cone", (1, 2, 3))
    return made.add_ground("floor", ke=2e4, kd=100.0, kf=50.0, mu=0.5, **ground)


def loss(model, values, steps=150, **settings):
    """A random weighting of every frame of everything."""
    trajectory = ph.rollout(model.replace(values), **{"dt": 1e-3, "steps": steps, "every": 10, **settings})
    random = torch.Generator().manual_seed(0)
    total = torch.zeros((), dtype=torch.float64)
    for name in trajectory:
        for quantity in trajectory[name].names:
            frames = getattr(trajectory[name], quantity)
            total = total + (frames * torch.randn(frames.shape, generator=random, dtype=frames.dtype)).sum()
    return total


def check(model, names, **settings):
    values = {n: torch.tensor(np.array(model.layout.parameters[n].value), requires_grad=True) for n in names}
    loss(model, values, **settings).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(1)
    for name, value in fixed.items():
        way = torch.tensor(rng.normal(size=value.shape))
        found = float((values[name].grad * way).sum())
        differences = []
        # A difference must not reach over a kink, such as a touch: where it does, a smaller one does not.
        for h in (1e-6, 1e-7, 1e-8):
            h *= min(max(0.3, float(value.abs().max())), 1e4)
            two = [float(loss(model, {**fixed, name: value + s * h * way}, **settings)) for s in (1, -1)]
            differences.append((two[0] - two[1]) / (2 * h))
            if found == pytest.approx(differences[-1], rel=3e-5, abs=1e-6):
                break
        else:
            pytest.fail(f"{name}: the gradient is {found}, differences are {differences}")
        assert found != 0.0, f"{name} has no effect"


OTHERS = [pytest.param(law, marks=pytest.mark.nightly) for law in ({"damping": "linear"}, {"smoothing": 0.002})]


@pytest.mark.parametrize("ground", [{}, *OTHERS])
def test_every_parameter_against_central_differences_through_contact(ground):
    model = scene(**ground).build("float64")
    check(model, [name for name in model.names() if not name.startswith("contact.")])  # They do not meet each other.
    check(model, ["cube.mass", "wedge.density", "cube.inertia"])


CENTRED = ph.TriMesh(WEDGE.vertices - 0.075, WEDGE.faces)
EGG = ph.SignedDistance.sample(
    lambda p: np.linalg.norm(p * [1, 1.5, 1], axis=1) - 0.3, (-0.6, -0.6, -0.6), (0.6, 0.6, 0.6), cells=10
)


def heap(**law):
    """Bodies upon bodies, a mesh, a grid that moves, and dust: every kind of surface is met by bodies and particles."""
    made, fast = ph.Scene().set_contact(mu=0.4, **law), {"vel": (0.3, -1, 0.2), "omega": (2, 1, -1)}
    made.add_rigid("base", ph.Box(0.4, 0.3, 0.4), density=300.0, rot=ph.quat((1, 0.4, 0.2), 0.2), mu=0.5)
    made.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0.05, 0.29, 0.03), **fast)
    made.add_rigid(
        "cube", ph.Box(0.2, 0.2, 0.2), mass=1.0, pos=(-0.1, 0.37, -0.05), rot=ph.quat((1, 2, 3), 0.7), **fast
    )
    made.add_rigid("wedge", CENTRED, mass=1.0, pos=(2, 0, 0), omega=(0, 3, 1))
    made.add_rigid("pill", ph.Capsule(0.08, 0.2), mass=1.0, pos=(2.02, 0.22, 0.02), rot=ph.quat((1, 2, 3), 0.7), **fast)
    made.add_obstacle("rock", EGG, pos=(4, 0, 0), rot=ph.quat((0, 1, 1), 0.3), vel=(0.1, 0, 0), omega=(0, 0.5, 0),
                      ke=8e3, kd=40.0, kf=20.0, mu=0.3)  # fmt: skip
    made.add_rigid(
        "can", ph.Cylinder(0.1, 0.2), mass=1.0, pos=(4.1, 0.4, 0), rot=ph.quat((1, 2, 3), 0.7), kd=100.0, **fast
    )
    made.add_rigid("cone", ph.Cone(0.1, 0.2), mass=1.0, pos=(3.9, 0.35, 0.15), rot=ph.quat((1, 0.3, 0.2), 0.7), **fast)
    dust = [[0.12, 0.18, 0.1], [1.95, 0.09, 0.02], [3.9, 0.25, -0.05]]
    return made.add_particles("dust", dust, mass=0.1, vel=(0.1, -1, 0))


NUMBERS = {"ke": 1e4, "kd": 50.0, "kf": 20.0}


@pytest.mark.parametrize("law", [{}, *OTHERS])
def test_every_parameter_through_contact_with_surfaces(law):
    law = {**law, **NUMBERS} if law else {}
    model = heap(**law).build("float64")
    check(model, model.names(), dt=5e-4, steps=240)


def test_everything_touches_something_in_that_test():
    model = heap(**NUMBERS).build("float64")  # What has no numbers of its own cannot be switched off by them.
    soft = {name: 0.0 for name in model.names() if name.rpartition(".")[2] in ("ke", "kd", "kf", "rate")}
    apart, together = (ph.rollout(m, dt=5e-4, steps=240).numpy() for m in (model.replace(soft), model))
    for name in together:
        moved = np.abs(together[name].x - apart[name].x).reshape(241, -1, 3).max(axis=(0, 2))
        assert (moved > 1e-2).all() or name == "rock", name


def test_everything_touches_the_ground_in_that_test():
    # What never touches would be checked in free flight only.
    model = scene().build("float64")
    for name in ("cube", "wedge", "ball", "can", "cone", "pill"):
        apart = ph.rollout(model.replace({"floor.offset": -10.0}), dt=1e-3, steps=150)[name].x
        assert (ph.rollout(model, dt=1e-3, steps=150)[name].x - apart).abs().max() > 1e-2, name


@pytest.mark.parametrize("checkpoint", ["sqrt", 9, 1])
def test_checkpoints_do_not_change_a_bit(checkpoint):
    model, found = scene().build("float64"), []
    for kept in ("all", checkpoint):
        rho = torch.tensor(500.0, dtype=torch.float64, requires_grad=True)
        loss(model, {"cube.density": rho}, checkpoint=kept).backward()
        found.append(rho.grad.item())
    assert found[0] == found[1]


def test_a_tape_of_kernelc_holds_the_rollout_of_a_body():
    model, weights = scene().build("float64"), np.random.default_rng(0).normal(size=(16, 3))
    rho = kc.array(np.full(1, 500.0), requires_grad=True)
    with kc.Tape() as tape:
        x = ph.rollout(model.replace({"cube.density": rho}), dt=1e-3, steps=150, every=10)["cube"].x
    assert x.shape == (16,)
    tape.backward(grads={x: weights})
    by_torch = torch.tensor(500.0, dtype=torch.float64, requires_grad=True)
    frames = ph.rollout(model.replace({"cube.density": by_torch}), dt=1e-3, steps=150, every=10)["cube"].x
    (frames * torch.tensor(weights)).sum().backward()
    np.testing.assert_array_equal(rho.grad.numpy()[0], by_torch.grad.numpy())


def test_the_density_of_a_cube_is_found_from_its_path():
    made = ph.Scene().add_rigid("cube", ph.Box(1, 1, 1), density=5.0, pos=(0, 1, 0), rot=ph.quat((0, 0, 1), 0.5))
    made.add_impulse("cube", (4, 2, 0), at=(0.5, 0.5, 0.5)).add_ground("floor", ke=2e3, kd=20.0, kf=50.0, mu=0.5)
    model = made.build("float64")
    seen = ph.rollout(model, dt=1 / 480, steps=480, every=16)["cube"].x
    rho = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([rho], line_search_fn="strong_wolfe", max_iter=30)

    def error():
        optimiser.zero_grad()
        found = ph.rollout(model.replace({"cube.density": rho}), dt=1 / 480, steps=480, every=16)["cube"].x
        e = ((found - seen) ** 2).sum()
        e.backward()
        return e

    optimiser.step(error)
    assert rho.item() == pytest.approx(5.0, rel=1e-3)
