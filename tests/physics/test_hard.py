"""Hard contact with planes: nothing is inside, nothing bounces, friction is Coulomb's, and gradients are right."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import hard_kernels as hard
from nablasim.physics.laws.contact import planes_kernels as planes
from nablasim.physics.laws.contact.body_planes_kernels import Planes
from nablasim.physics.laws.contact.compliant_kernels import Contact
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points

DT = 1 / 400


def scene(real="float64", **ground):
    made = ph.Scene()
    made.add_particles("grain", [[0.0, 0.02, 0.0], [0.3, 0.01, 0.1]], mass=[0.001, 100.0], vel=(0.5, -1.0, 0.2))
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    made.add_soft("block", mesh, density=500.0, material=ph.NeoHookean(E=5e3, nu=0.3), damping=2.0, pos=(0, 0.01, 1),
                  vel=(0.5, -1, 0.2))  # fmt: skip
    made.add_rigid("cube", ph.Box(0.2, 0.2, 0.2), density=300.0, pos=(0, 0.25, 2), rot=ph.quat((1, 2, 3), 0.6),
                   vel=(0.8, -0.5, 0.1), omega=(1.0, -2.0, 3.0))  # fmt: skip
    made.add_ground("floor", mu=0.4, hard=True, **ground)
    return made.build(real)


MODEL = scene()


def test_no_particle_is_inside_at_the_end_of_any_step_whatever_its_mass():
    frames = ph.rollout(MODEL, dt=DT, steps=400)
    assert float(frames["grain"].x[..., 1].min()) > -1e-12
    assert float(frames["block"].x[..., 1].min()) > -1e-12
    assert frames["grain"].v[-1].abs().max() == pytest.approx(0.0, abs=1e-12)


def test_a_body_sinks_in_little_and_comes_to_rest():
    frames = ph.rollout(MODEL, dt=DT, steps=1200)
    corners = frames.vertices("cube")
    assert float(corners[..., 1].min()) > -0.02
    assert float(corners[-1, :, 1].min()) > -2e-3 and float(frames["cube"].v[-1].norm()) < 1e-3
    speed = frames["cube"].v[:, 1].abs()
    assert float(speed[-100:].max()) < 1e-3


@pytest.mark.parametrize("mu", [0.2, 0.6])
def test_a_block_slides_as_far_as_coulomb_says(mu):
    v, g = 1.5, 9.81
    made = ph.Scene().add_particles("p", [[0.0, 0.0, 0.0]], mass=0.3, vel=(0.6 * v, 0.0, 0.8 * v))
    made.add_rigid("box", ph.Box(0.4, 0.05, 0.4), density=100.0, pos=(3, 0.025, 0), vel=(0.6 * v, 0.0, 0.8 * v))
    frames = ph.rollout(made.add_ground("floor", mu=mu, hard=True).build("float64"), dt=1e-3, steps=1200)
    for name, rel in (("p", 0.01), ("box", 0.03)):
        x = frames[name].x[:, 0] if name == "p" else frames[name].x
        assert float((x[-1] - x[0])[[0, 2]].norm()) == pytest.approx(v * v / (2 * mu * g), rel=rel), name


def test_the_step_has_no_limit_from_the_contact():
    light = ph.Scene().add_particles("p", [[0.0, 1.0, 0.0]], mass=1e-6).add_ground("floor", hard=True).build()
    assert ph.stable_dt(light) == np.inf
    assert float(ph.rollout(light, dt=0.1, steps=30)["p"].x[..., 1].min()) >= -1e-6


def test_only_what_counts_is_a_parameter():
    assert [n for n in MODEL.names() if n.startswith("floor.")] == ["floor.mu", "floor.normal", "floor.offset"]


def test_every_parameter_against_central_differences():
    weights = torch.Generator().manual_seed(0)
    draws = {}

    def loss(values):
        frames = ph.rollout(MODEL.replace(values), dt=DT, steps=60, every=12)
        total = torch.zeros((), dtype=torch.float64)
        for name in frames:
            for part in (frames[name].x, frames[name].v):
                key = name, tuple(part.shape), part is frames[name].v
                if key not in draws:
                    draws[key] = torch.randn(part.shape, generator=weights, dtype=part.dtype)
                total = total + (part * draws[key]).sum()
        return total

    values = {n: torch.tensor(np.array(MODEL[n]), requires_grad=True) for n in MODEL.names()}
    loss(values).backward()
    rng, fixed = np.random.default_rng(1), {n: v.detach() for n, v in values.items()}
    for name, value in values.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-7 * max(0.1, float(value.detach().abs().max()))
        two = [float(loss({**fixed, name: fixed[name] + s * h * way})) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=1e-4, abs=1e-5), name


def test_adjoints_of_the_kernels():
    rng, n, b, m = np.random.default_rng(0), 40, 3, 5

    def real(*shape, element=float, low=-1.0, high=1.0):
        values = rng.uniform(low, high, shape)
        return kc.array(values, dtype=element, requires_grad=True)

    def whole(count):
        return kc.array(np.arange(n, dtype=np.int32) % count)

    def points(count):
        return real(count, 3, element=kc.float3)

    def zeros(count, element=float):
        return kc.zeros(count, dtype=element, real=kc.float64)

    normals = rng.normal(size=(n, 3))
    normal = kc.array(normals / np.linalg.norm(normals, axis=1, keepdims=True), dtype=kc.float3, requires_grad=True)
    law = kc.array(np.full(n, hard.HARD, np.int32))
    offset, mu = real(n, low=0.0, high=0.5), real(n, low=0.1)
    particles = planes.Particles(points(b), points(b), points(b), real(b, low=0.5), points(b))
    unused = kc.array(np.ones(n))
    pairs = planes.Planes(normal, offset, unused, unused, unused, mu, law, unused, unused, particle=whole(b))
    kc.testing.gradcheck(hard.hard_plane_forces, n, [particles, pairs, 0.3], [zeros(b, kc.float3)])

    rot = rng.normal(size=(b, 4))
    rot = kc.array(rot / np.linalg.norm(rot, axis=1, keepdims=True), dtype=kc.quat, requires_grad=True)
    root = rng.normal(size=(b, 3, 3))
    inverse = kc.array(root @ root.transpose(0, 2, 1) + np.eye(3), dtype=kc.mat33, requires_grad=True)
    state, gravity, com = [points(b), rot, points(b), points(b)], points(b), points(b)
    bodies = Bodies(*state, gravity, real(b, low=0.5), com, inverse, inverse, whole(1), gravity)
    features = Points(points(m), real(m, low=0.1, high=0.3), real(m, low=0.3), unused, whole(1), whole(1))
    plane = Planes(whole(b), whole(m), normal, offset, Contact(zeros(n, kc.float4), law, unused, unused))
    given = [bodies, features, plane, 0.3]
    kc.testing.gradcheck(hard.hard_body_weights, n, given, [zeros(b)])
    out = [Forces(zeros(b, kc.float3), zeros(b, kc.float3)), zeros(n, kc.float4)]
    kc.testing.gradcheck(hard.hard_body_forces, n, [*given, real(b, low=0.5)], out)


def test_implicit_steps_refuse_it():
    with pytest.raises(ValueError, match="'floor' is hard"):
        ph.rollout(ph.Scene().add_particles("p", [[0, 1, 0]], mass=1.0).add_ground("floor", hard=True).build(),
                   dt=0.1, steps=1, integrator="backward_euler")  # fmt: skip
