"""The ten errors of the code that was published with the gradSim paper: each is shown not to be here.

The numbers are those of the list in the specification of the physics. Every law has more tests beside its system.
"""

import gc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

G = 9.81
seeds = st.integers(0, 2**32 - 1)
BLOCK = ph.TetMesh.box((0.3, 0.2, 0.2), cells=(2, 1, 1))
SHEET = ph.TriMesh.grid((0.5, 0.4), cells=(3, 2))
POINTS, PAIRS = ph.spring_grid((0.4, 0.4), (2, 2))


def deformables(gravity=(0.0, 0.0, 0.0), **cloth):
    """A solid, a cloth and springs, all damped."""
    made = ph.Scene(gravity=gravity)
    made.add_soft("block", BLOCK, density=100.0, material=ph.NeoHookean(E=2e3, nu=0.3), damping=20.0)
    made.add_cloth("sheet", SHEET, **{"mass": 0.2, "stretch": 30.0, "shear": 20.0, "damping": 0.5, "bend": 0.05,
                                      "bend_damping": 0.01, **cloth})  # fmt: skip
    made.add_springs("net", POINTS, PAIRS, ke=20.0, kd=2.0, mass=0.05)
    return made


MODEL = deformables().build("float64")
REST = {"block": BLOCK.vertices, "sheet": SHEET.vertices, "net": POINTS}


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def forces(model, x, v):
    state = model.state0.replace({f"{n}.x": a for n, a in x.items()}).replace({f"{n}.v": a for n, a in v.items()})
    return {name: part.f for name, part in ph.forces(model, state).items()}


@given(seeds)
def test_1_a_rotated_undeformed_solid_has_no_force(seed):
    rng = np.random.default_rng(seed)
    R, shift = rotation(rng), rng.normal(size=3)
    x = {name: points @ R.T + shift for name, points in REST.items()}
    for f in forces(MODEL, x, {name: np.zeros(3) for name in x}).values():
        np.testing.assert_allclose(f, 0, atol=1e-10)


@given(seeds)
def test_2_damping_forgets_no_node_and_brakes_no_rigid_motion(seed):
    rng = np.random.default_rng(seed)
    undamped = MODEL.replace({"block.damping": 0.0, "sheet.damping": 0.0, "sheet.bend_damping": 0.0, "net.kd": 0.0})
    x = {name: points + 0.02 * rng.normal(size=points.shape) for name, points in REST.items()}
    v = {name: rng.normal(size=points.shape) for name, points in REST.items()}
    with_it, without = forces(MODEL, x, v), forces(undamped, x, v)
    for name in REST:
        damping = with_it[name] - without[name]
        assert np.abs(damping).max() > 1e-3
        np.testing.assert_allclose(damping.sum(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(np.cross(x[name], damping).sum(axis=0), 0, atol=1e-9)
    # Deformed as it is, what translates and spins as a whole is not braked.
    spin, boost = rng.normal(size=(2, 3))
    rigid = {name: boost + np.cross(spin, points) for name, points in x.items()}
    moving, still = forces(MODEL, x, rigid), forces(MODEL, x, {name: np.zeros(3) for name in x})
    for name in REST:
        np.testing.assert_allclose(moving[name], still[name], atol=1e-9)


def test_3_spin_keeps_angular_momentum_and_inertia_turns_with_the_body():
    # A body of three different moments, turned in space, whose origin is far from its centre of mass.
    rng = np.random.default_rng(0)
    q = rng.normal(size=4)
    brick = ph.Box(0.2, 0.5, 1.0).mesh().moved(pos=(0.4, -0.3, 0.7), rot=rng.normal(size=4))
    scene = ph.Scene(gravity=(0, 0, 0)).add_rigid("brick", brick, density=300.0, rot=q / np.linalg.norm(q),
                                                  vel=(0.3, 0.1, -0.2), omega=(2.0, 3.0, -1.0))  # fmt: skip
    model = scene.build("float64")
    mass = ph.solid_mass_properties(brick, 300.0)

    def momenta(state):
        x, y, z, w = state.rot[0] if state.rot.ndim == 2 else state.rot
        R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                      [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                      [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])  # fmt: skip
        arm, omega = R @ mass.com, np.ravel(state.omega)
        p = mass.mass * (np.ravel(state.v) + np.cross(omega, arm))
        spin = R @ mass.inertia @ R.T @ omega
        return p, np.cross(np.ravel(state.x) + arm, p) + spin, omega

    frames = ph.rollout(model, dt=1e-4, steps=20_000, every=5_000)
    p0, L0, omega0 = momenta(frames.state(0)["brick"])
    for k in range(1, len(frames)):
        p, L, omega = momenta(frames.state(k)["brick"])
        np.testing.assert_allclose(p, p0, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(L, L0, rtol=2e-3, atol=2e-3 * np.linalg.norm(L0))
    # Without the gyroscopic term the angular velocity would not change at all.
    assert np.linalg.norm(omega - omega0) > 0.5


@given(st.floats(0, 2 * np.pi))
def test_4_friction_is_the_same_in_all_directions_and_for_bodies_and_particles(angle):
    # Sliding, both are slowed by mu g t, along the motion.
    mu, t, way = 0.3, 0.1, np.array([np.cos(angle), 0.0, np.sin(angle)])
    model = SLIDING.replace({"dust.v": 2.0 * way, "cube.v": 2.0 * way})
    end = ph.rollout(model, dt=1e-3, steps=100, every=100).state()
    for v in (end["dust"].v[0], np.ravel(end["cube"].v)):
        np.testing.assert_allclose(v @ way, 2.0 - mu * G * t, atol=0.02)
        np.testing.assert_allclose(np.cross(v, way)[1], 0, atol=5e-3)


def sliding():
    """A particle and a flat, heavy box that lie on the ground, as deep as their weight presses them."""
    made = ph.Scene()
    made.add_particles("dust", [[0.0, -1.0 * G / 1e4, 0]], mass=1.0)
    made.add_rigid("cube", ph.Box(1.0, 0.02, 1.0), mass=4.0, pos=(5, 0.01 - G / 1e4, 0))
    return made.add_ground("floor", ke=1e4, kd=0.0, kf=1e3, mu=0.3).build("float64")


SLIDING = sliding()


@given(seeds)
def test_5_and_6_drag_has_the_right_slope_and_acts_once_per_triangle(seed):
    # From either side of the plate: force drag A u², and the derivative of |n·u| u by u.
    rng = np.random.default_rng(seed)
    area, drag, speed = SHEET.areas.sum(), 0.8, rng.uniform(0.5, 3.0) * rng.choice([-1, 1])
    wind = torch.tensor([0.3, -0.2, speed], dtype=torch.float64, requires_grad=True)
    model = AIRY.replace({"wind": wind})
    f = forces(AIRY.replace({"wind": wind.detach()}), {}, {})["sheet"].sum(axis=0)
    np.testing.assert_allclose(f, drag * area * abs(speed) * wind.detach().numpy(), rtol=1e-12)
    v = ph.rollout(model, dt=1e-3, steps=1)["sheet"].v[-1]
    weights = torch.tensor(ph.vertex_masses(SHEET, 0.2 / area))
    (v[:, 2] * weights).sum().backward()
    expected = 1e-3 * drag * area * np.array([0, 0, 2 * abs(speed)])
    np.testing.assert_allclose(wind.grad, expected, rtol=1e-9, atol=1e-15)


AIRY = (
    ph.Scene(gravity=(0, 0, 0)).add_cloth("sheet", SHEET, mass=0.2, stretch=30.0, shear=20.0, drag=0.8).build("float64")
)


@given(seeds)
def test_7_bending_of_a_flat_cloth_has_the_right_gradient(seed):
    # The curvature of the energy where it is flat: 2 k_b (1 - cos(phi/2)) has the slope k_b phi / 2 there.
    rng, h = np.random.default_rng(seed), 1e-4
    way = rng.normal(size=SHEET.vertices.shape) * [0, 0, 1]
    z = torch.tensor(SHEET.vertices, requires_grad=True)
    end = ph.rollout(MODEL.replace({"sheet.x": z}), dt=1e-3, steps=1)["sheet"].v[-1]
    weights = torch.tensor(way * ph.vertex_masses(SHEET, 0.2 / SHEET.areas.sum())[:, None])
    (end * weights).sum().backward()
    found = float((z.grad * torch.tensor(way)).sum()) / 1e-3
    energy = ph.energy(MODEL, MODEL.state0.replace({"sheet.x": SHEET.vertices + h * way}))["bending"]
    assert energy > 0
    assert found == pytest.approx(-2 * energy / h**2, rel=1e-5)


def test_8_masses_add_up_and_everything_has_contacts_of_its_own_material():
    for cells in ((1, 1), (5, 3)):
        grid = ph.TriMesh.grid((0.5, 0.4), cells=cells)
        np.testing.assert_allclose(ph.vertex_masses(grid, 3.0).sum(), 3.0 * 0.2)
        solid = ph.TetMesh.box((0.3, 0.2, 0.1), cells=(*cells, 2))
        np.testing.assert_allclose(ph.vertex_masses(solid, 100.0).sum(), 0.6)
    # The inertia of a mesh grows with its mass.
    light, heavy = (ph.solid_mass_properties(ph.Box(1, 2, 3).mesh(), rho) for rho in (1.0, 7.0))
    np.testing.assert_allclose(heavy.inertia, 7 * light.inertia)
    np.testing.assert_allclose(np.diag(light.inertia), 6 / 12 * np.array([13, 10, 5]))
    # Boxes rest on planes; and of many floors each has its own stiffness.
    made = ph.Scene().add_rigid("box", ph.Box(1, 1, 1), mass=1.0, pos=(0, 0.5, 0))
    made.add_particles("dust", [[0.0, -1.0, 0]], mass=1.0)
    for k in range(20):
        made.add_plane(f"floor{k}", normal=(0, 1, 0), offset=-0.05 * k, ke=100.0 + k, kd=0.0, kf=0.0, mu=0.0)
    state = made.build("float64").state0.replace({"box.x": [0, 0.45, 0]})
    model = made.build("float64")
    found = ph.forces(model, state)
    np.testing.assert_allclose(found["dust"].f[0, 1], sum((100.0 + k) * (1 - 0.05 * k) for k in range(20)))
    # Four corners 0.05 m deep in the first floor.
    np.testing.assert_allclose(np.ravel(found["box"].f)[1], 4 * 100.0 * 0.05)


@given(st.floats(-3, 3))
def test_9_what_falls_does_not_depend_on_its_mass(exponent):
    mass, n, dt = 10.0**exponent, 20, 1e-3
    # Stiff in proportion to the mass, so that the step is as short for all.
    model = FALLING.replace({"block.density": 100.0 * mass, "block.mu": 500.0 * mass, "block.lam": 700.0 * mass,
                             "block.damping": 0.0, "sheet.mass": 0.2 * mass, "sheet.stretch": 30.0 * mass,
                             "sheet.shear": 20.0 * mass, "sheet.damping": 0.0, "sheet.bend": 0.05 * mass,
                             "sheet.bend_damping": 0.0, "net.mass": 0.05 * mass, "net.ke": 20.0 * mass,
                             "net.kd": 0.0})  # fmt: skip
    end = ph.rollout(model, dt=dt, steps=n, every=n).state()
    for name, points in REST.items():
        np.testing.assert_allclose(end[name].x, points + [0, -G * dt**2 * n * (n + 1) / 2, 0], atol=1e-12)


FALLING = deformables(gravity=(0, -G, 0)).build("float64")


def test_10_gradients_do_not_need_the_last_state_to_be_kept():
    def gradient(rude):
        ke = torch.tensor(20.0, dtype=torch.float64, requires_grad=True)
        frames = ph.rollout(FALLING.replace({"net.ke": ke, "net.x": 1.1 * POINTS}), dt=1e-3, steps=50, every=50)
        loss = frames["net"].x[-1].square().sum()
        if rude:
            del frames
            gc.collect()
            ph.rollout(FALLING, dt=1e-3, steps=50, every=50)
        loss.backward()
        return ke.grad

    assert torch.equal(gradient(True), gradient(False))
    assert gradient(True) != 0
