"""Magnets in rigid bodies: Newton's third law, the derivative of an energy, gradients and batches."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.rigid import bodies_kernels, magnets_kernels
from nablasim.physics.laws.rigid.bodies_kernels import FREE

DT, STEPS = 1e-3, 40
PLACES = {"ball": (0, 0, 0), "rod": (0.12, 0.03, 0), "cube": (0.02, -0.1, 0.09)}
MASS = {"ball": 0.07, "rod": 0.05, "cube": 0.012}


def scene():
    """Three magnets of different shapes, so close that they move each other within a few steps."""
    made = ph.Scene(gravity=(0, 0, 0))
    made.add_rigid("ball", ph.Sphere(0.02), mass=MASS["ball"], pos=PLACES["ball"], vel=(0.1, 0, 0))
    made.add_rigid("rod", ph.Capsule(0.01, 0.02), mass=MASS["rod"], pos=PLACES["rod"], rot=ph.quat((1, 2, 3), 0.6))
    made.add_rigid("cube", ph.Box(0.02, 0.03, 0.02), mass=MASS["cube"], pos=PLACES["cube"], omega=(0, 3, 0))
    for k, name in enumerate(PLACES):
        made.add_magnet(name, np.roll((20.0, 5.0, -10.0), k), softening=0.02)
    return made


@pytest.fixture(scope="module")
def model():
    return scene().build("float64")


def test_adjoints_of_the_kernels_equal_central_differences():
    rng, n = np.random.default_rng(0), 4

    def real(*shape, dtype, scale=1.0):
        return kc.array(scale * rng.normal(size=(n, *shape)), dtype=dtype, requires_grad=True)

    x, v, omega, gravity, com = (real(3, dtype=kc.float3) for _ in range(5))
    inertia, inverse = (real(3, 3, dtype=kc.mat33) for _ in range(2))
    mass, motion = kc.array(np.ones(n)), kc.array(np.full(n, FREE, np.int32))
    moving = bodies_kernels.Bodies(x, real(4, dtype=kc.quat), v, omega, gravity, mass, com, inertia, inverse, motion,
                                   real(3, dtype=kc.float3))  # fmt: skip
    body = kc.array(np.arange(n, dtype=np.int32))
    # In units in which the forces are about one: differences see the slopes.
    softening = kc.array(rng.uniform(0.3, 0.6, n), requires_grad=True)
    magnets = magnets_kernels.Magnets(body, real(3, dtype=kc.float3, scale=3e3), softening)
    pairs = magnets_kernels.Pairs(*(kc.array(i.astype(np.int32)) for i in np.triu_indices(n, 1)))
    wrt = ["bodies.x", "bodies.rot", "bodies.com", "magnets.moment", "magnets.softening"]
    sums = bodies_kernels.Forces(*(kc.zeros(n, dtype=kc.float3, real=kc.float64) for _ in range(2)))
    kc.testing.gradcheck(magnets_kernels.magnet_forces, 6, [moving, magnets, pairs], [sums], wrt=wrt)
    energies = kc.zeros(6, real=kc.float64)
    kc.testing.gradcheck(magnets_kernels.magnet_energies, 6, [moving, magnets, pairs], [energies], wrt=wrt)


def test_two_magnets_in_a_line_attract_as_point_dipoles_do_from_afar():
    made = ph.Scene(gravity=(0, 0, 0))
    for name, x in (("one", 0.0), ("other", 0.5)):
        made.add_rigid(name, ph.Sphere(0.01), mass=0.1, pos=(x, 0, 0)).add_magnet(name, (2, 0, 0), softening=1e-4)
    f = ph.forces(made.build("float64"))
    np.testing.assert_allclose(f["one"].f, [6e-7 * 2 * 2 / 0.5**4, 0, 0], rtol=1e-5)  # 6 μ0/4π m² / r⁴
    np.testing.assert_allclose(f["one"].f, -f["other"].f, rtol=1e-14)


def turned(rot, axis, angle):
    """A rotation (x, y, z, w), turned once more about an axis of the world."""
    u, w = np.sin(angle / 2) * np.eye(3)[axis], np.cos(angle / 2)
    return np.append(w * rot[:3] + rot[3] * u + np.cross(u, rot[:3]), w * rot[3] - u @ rot[:3])


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("axis", range(3))
def test_forces_and_torques_are_those_of_the_energy(model, name, axis):
    h, x, rot = 1e-6, model[f"{name}.x"], model[f"{name}.rot"]

    def slope(values):
        ahead, behind = (ph.energy(model.replace(values(sign * h)))["magnets"] for sign in (1, -1))
        return (ahead - behind) / (2 * h)

    found = ph.forces(model)[name]
    force, torque = (-slope(lambda h: {f"{name}.x": x + h * np.eye(3)[axis]}),
                     -slope(lambda h: {f"{name}.rot": turned(rot, axis, h)}))  # fmt: skip
    np.testing.assert_allclose([found.f[axis], found.torque[axis]], [force, torque], rtol=1e-6, atol=1e-9)


def test_momentum_angular_momentum_and_energy_are_kept(model):
    moved = ph.rollout(model, dt=DT / 10, steps=10 * STEPS, every=10 * STEPS)
    first, last = moved.state(0), moved.state(-1)
    assert np.abs(last["rod"].v - first["rod"].v).max() > 0.1  # Something happened.
    found = ph.forces(model, last)
    x = {name: np.asarray(last[name].x) for name in PLACES}  # These shapes have their centres at their origins.
    np.testing.assert_allclose(sum(found[n].f for n in PLACES), 0, atol=1e-13)
    turning = sum(np.cross(x[n], found[n].f) + found[n].torque for n in PLACES)
    np.testing.assert_allclose(turning, 0, atol=1e-14)

    def momentum(state):
        return sum(MASS[n] * np.asarray(state[n].v) for n in PLACES)

    np.testing.assert_allclose(momentum(last), momentum(first), atol=1e-12)
    before, after = (ph.energy(model, s)["total"] for s in (first, last))
    assert abs(after - before) < 1e-2 * abs(ph.energy(model, last)["bodies"] - ph.energy(model, first)["bodies"])


def end(model, values):
    return ph.rollout(model.replace(values), dt=DT, steps=STEPS, every=STEPS)["rod"].x[..., -1, :]


@pytest.mark.parametrize("name", ["ball.moment", "cube.softening", "rod.rot", "ball.x"])
def test_the_gradient_of_a_rollout_equals_differences(model, name):
    value = torch.tensor(np.asarray(model[name], np.float64), requires_grad=True)
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    (end(model, {name: value}) @ weights).backward()
    way = torch.tensor(np.random.default_rng(1).normal(size=value.shape)) * 1e-5 * value.detach().abs().max().clip(1e-2)
    ahead, behind = (end(model, {name: value.detach() + sign * way}) @ weights for sign in (1, -1))
    slope = (ahead - behind) / 2
    assert abs(slope) > 0
    np.testing.assert_allclose(float((value.grad * way).sum()), float(slope), rtol=1e-6)


@pytest.mark.parametrize("copies", [2, 4000])
def test_copies_have_the_bits_of_each_alone(model, copies):
    """4000: launches are so large that several cores share them."""
    rng = np.random.default_rng(2)
    moments, seeds = (rng.normal(size=(copies, 3)) * 20 for _ in range(2))

    def run(model, moment, seed):
        leaf = torch.tensor(moment, requires_grad=True)
        x = ph.rollout(model.replace({"ball.moment": leaf}), dt=DT, steps=5, every=5)["rod"].x[..., -1, :]
        x.backward(torch.tensor(seed))
        return x.detach().numpy(), leaf.grad.numpy()

    x, grads = run(scene().build("float64", batch=copies), moments, seeds)
    for k in {0, 1, copies // 3, copies // 2, copies - 1}:
        alone, own = run(model, moments[k], seeds[k])
        np.testing.assert_array_equal(x[k], alone)
        np.testing.assert_array_equal(grads[k], own)


def test_a_single_magnet_moves_nothing_and_wrong_ones_are_named():
    made = ph.Scene(gravity=(0, 0, 0)).add_rigid("ball", ph.Sphere(0.02), density=2e3)
    with pytest.raises(KeyError, match="no rigid body 'bell': did you mean 'ball'"):
        made.add_magnet("bell", (1, 0, 0), softening=0.01)
    with pytest.raises(ValueError, match=r"ball.softening must be positive, and is 0"):
        made.add_magnet("ball", (1, 0, 0), softening=0.0)
    with pytest.raises(ValueError, match=r"ball.moment has shape \(2,\); expected \(3\)"):
        made.add_magnet("ball", (1, 0), softening=0.01)
    made.add_magnet("ball", (1, 0, 0), softening=0.01)
    with pytest.raises(ValueError, match="'ball' is a magnet already"):
        made.add_magnet("ball", (1, 0, 0), softening=0.01)
    np.testing.assert_array_equal(ph.forces(made.build("float64"))["ball"].f, 0)


def test_a_coil_that_nothing_moves_pulls_while_it_is_on():
    made = ph.Scene(gravity=(0, 0, 0)).add_obstacle("coil", ph.Cylinder(0.02, 0.01))
    made.add_rigid("ball", ph.Sphere(0.01), mass=0.02, pos=(0, 0.1, 0))
    made.add_magnet("coil", (0, 0, 0), softening=0.02).add_magnet("ball", (0, 5, 0), softening=0.01)
    model = made.build("float64")
    current = torch.zeros(20, 3, dtype=torch.float64)
    current[:10, 1] = 5.0
    current.requires_grad_()
    moved = ph.rollout(model, dt=1e-3, steps=20, every=10, control={"coil.moment": current})
    v = moved["ball"].v[:, 1]
    assert v[1] < -1e-3 and v[2] == v[1]
    np.testing.assert_array_equal(moved["coil"].x.detach(), 0)
    v[2].backward()
    assert (current.grad[:, 1] < 0).all()
