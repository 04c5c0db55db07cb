"""Which steps are stable: estimates that are sharp, refusals that help, and no explosions below the limit."""

import numpy as np
import pytest

from nablasim import physics as ph


def block(real="float64", damping=20.0, cells=(4, 2, 2)):
    mesh = ph.TetMesh.box((0.4, 0.2, 0.2), cells=cells)
    scene = ph.Scene(gravity=(0, 0, 0))
    scene.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=1e5, nu=0.3), damping=damping)
    noise = 1e-4 * np.random.default_rng(0).normal(size=mesh.vertices.shape)
    return scene.build(real).replace({"block.v": noise})


def limit_of(model):
    with pytest.raises(ph.StepTooLarge) as caught:
        ph.rollout(model, dt=1.0, steps=1)
    return caught.value.limit


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("damping", [0.0, 20.0])
def test_the_limit_of_a_solid_is_sharp(real, damping):
    # Just below it a small vibration stays small for a thousand steps; just above it the solid blows up.
    model = block(real, damping)
    limit = limit_of(model)
    assert ph.stable_dt(model) < limit
    calm = ph.rollout(model, dt=0.96 * limit, steps=1000, every=1000)["block"].v
    assert np.abs(calm.numpy()).max() < 20 * np.abs(model["block.v"]).max()
    with pytest.raises(ph.Diverged):
        ph.rollout(model, dt=1.08 * limit, steps=1000, every=1000, check=False)


def test_a_refusal_says_what_would_work():
    model = block()
    with pytest.raises(ph.StepTooLarge, match=r"dt = 0\.02 s is too large for 'block'.*substeps=\d") as caught:
        ph.rollout(model, dt=0.02, steps=1)
    substeps = int(str(caught.value).partition("substeps=")[2].partition(",")[0])
    ph.rollout(model, dt=0.02, steps=1, substeps=substeps)


def test_the_limit_follows_the_parameters():
    model = block(damping=0.0)
    stiff = model.replace({"block.mu": 4 * model["block.mu"], "block.lam": 4 * model["block.lam"]})
    assert limit_of(stiff) == pytest.approx(limit_of(model) / 2, rel=0.02)
    heavy = model.replace({"block.density": 4e3})
    assert limit_of(heavy) == pytest.approx(limit_of(model) * 2, rel=0.02)


def energies(ball, mass, ke):
    """Of a ball above or in the floor, per mass."""
    x, v = ball.x.numpy()[:, 0], ball.v.numpy()[:, 0]
    return 0.5 * (v**2).sum(axis=1) + 9.81 * x[:, 1] + 0.5 * ke / mass * np.maximum(-x[:, 1], 0) ** 2


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("damping", ["smooth", "linear"])
def test_no_explosion_from_a_gram_to_a_ton_at_the_limit_of_contact(mass, damping):
    # Thrown down at 10 m/s: it never has much more energy than at the start, and never carries a NaN.
    ke = 1e4
    scene = ph.Scene().add_particles("ball", [[0.0, 1.0, 0.0]], mass=mass, vel=(3.0, -10.0, 0.0))
    scene.add_ground("floor", ke=ke, kd=0.2 * np.sqrt(ke * mass), kf=10.0 * mass, mu=0.5, damping=damping)
    model = scene.build("float64")
    found = energies(ph.rollout(model, dt=min(ph.stable_dt(model), 0.02), steps=4000)["ball"], mass, ke)
    # While it touches, a step this long sees its energy only roughly.
    assert np.isfinite(found).all() and found.max() < 2 * found[0] and found[-500:].max() < found[0]
    with pytest.raises(ph.StepTooLarge, match=r"'ball': .* its contact \(ke\)"):
        ph.rollout(model, dt=2.02 * ph.stable_dt(model), steps=1)


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("damping", ["smooth", "linear"])
def test_strong_dampers_of_contact_do_not_limit_the_step(mass, damping):
    # By k dt² + 2 c dt < 4 m the dampers alone would ask for 0.02 ms at one gram; the spring allows forty times that.
    ke = 2e3
    scene = ph.Scene().add_particles("ball", [[0.0, 0.2, 0.0]], mass=mass, vel=(1.0, -2.0, 0.5))
    scene.add_ground("floor", ke=ke, kd=20.0, kf=100.0, mu=0.5, damping=damping)
    model = scene.build("float64")
    assert ph.stable_dt(model) == pytest.approx(np.sqrt(mass / ke))
    found = energies(ph.rollout(model, dt=min(ph.stable_dt(model), 0.02), steps=3000)["ball"], mass, ke)
    # While it touches, a step this long sees its energy only roughly.
    assert np.isfinite(found).all() and found.max() < 2 * found[0] and found[-500:].max() < found[0]


@pytest.mark.parametrize("mass", [1e-3, 1.0])
@pytest.mark.parametrize("kind", ["shape", "mesh", "grid", "held"])
def test_strong_dampers_of_obstacles_do_not_limit_the_step(mass, kind):
    ke, box = 2e3, ph.Box(2, 1, 2)
    grid = ph.SignedDistance.sample(box.distance, (-2.0, -1.5, -2.0), (2.0, 1.5, 2.0), cells=12)
    scene = ph.Scene().add_particles("ball", [[0.0, 0.01, 0.0]], mass=mass, vel=(1.0, -1.0, 0.5))
    four = {"ke": ke, "kd": 20.0, "kf": 100.0, "mu": 0.5, "pos": (0, -0.5, 0)}
    if kind == "held":
        scene.add_rigid("block", box, mass=1.0, **four).fix("block")
    else:
        scene.add_obstacle("block", {"shape": box, "mesh": box.mesh(), "grid": grid}[kind], **four)
    model = scene.build("float64")
    assert ph.stable_dt(model) == pytest.approx(np.sqrt(mass / ke))
    frames = ph.rollout(model, dt=min(ph.stable_dt(model), 0.01), steps=800)["ball"]
    found = energies(frames, mass, ke)
    assert np.isfinite(found).all() and found.max() < 2 * found[0] and found[-100:].max() < 0.2 * found[0]
    # It stops sliding, and lies about as deep as its weight presses it.
    assert frames.v[-1].abs().max() < 0.1 and abs(frames.x[-1, 0, 1].item() + mass * 9.81 / ke) < 1e-3


def test_dampers_at_the_end_of_the_step_are_the_law_for_short_steps():
    scene = ph.Scene(gravity=(0, 0, 0)).add_particles("ball", [[0.0, -0.01, 0.0]], mass=0.01, vel=(1.0, -0.5, 0))
    model = scene.add_ground("floor", ke=2e3, kd=20.0, kf=3.0, mu=0.5).build("float64")
    law = ph.forces(model)["ball"].f[0] / 0.01
    errors = []
    for dt in (1e-5, 5e-6):
        first = ph.rollout(model, dt=dt, steps=1)["ball"].v[1, 0].numpy()
        errors.append(np.abs((first - [1.0, -0.5, 0]) / dt - law).max())
    assert errors[0] < 0.05 * np.abs(law).max()
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.05)


def test_masses_that_are_not_positive_are_refused():
    scene = ph.Scene().add_particles("dust", [[0.0, 1, 0], [1, 1, 0]], mass=1.0)
    with pytest.raises(ValueError, match="dust: particle 1 has the mass 0 kg"):
        ph.rollout(scene.build().replace({"dust.mass": [1.0, 0.0]}), dt=0.01, steps=1)


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
def test_no_explosion_from_a_gram_to_a_ton_of_anything_at_the_documented_step(mass):
    # A solid, a cloth, a net and a cube of this mass each fall on the floor and on each other, in single precision.
    scene = ph.Scene()
    scene.add_soft("block", ph.TetMesh.box((0.2, 0.2, 0.2), cells=(2, 2, 2)), density=mass / 0.008, damping=0.1,
                   material=ph.NeoHookean(E=1e4, nu=0.3), pos=(0, 0.1, 0))  # fmt: skip
    sheet = ph.TriMesh.grid((0.5, 0.5), cells=(5, 5)).moved(rot=ph.quat((1, 0, 0), -1.4))
    scene.add_cloth("sheet", sheet, mass=mass, stretch=100.0, shear=50.0, bend=1e-3, damping=0.01, pos=(0.8, 0.3, 0))
    points, pairs = ph.spring_grid((0.4, 0.4), (4, 4))
    scene.add_springs("net", points + [1.6, 0.1, 0], pairs, ke=100.0, kd=0.01, mass=mass / 25)
    scene.add_rigid("cube", ph.Box(0.2, 0.2, 0.2), mass=mass, pos=(0.9, 0.6, -0.2), rot=ph.quat((1, 2, 3), 0.5))
    scene.add_ground("floor", ke=1e3, kd=0.1, kf=1.0, mu=0.5)
    model = scene.build("float32")
    dt = min(ph.stable_dt(model), 0.01)
    steps = round(0.5 / dt)
    frames = ph.rollout(model, dt=dt, steps=steps // 20 * 20, every=steps // 20)
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert np.isfinite(energies).all() and max(energies) < 1.02 * energies[0]
    for name in frames:
        assert float(frames[name].v.abs().max()) < 10.0, name
    with pytest.raises(ph.StepTooLarge):
        ph.rollout(model, dt=20 * dt, steps=1)


def test_a_step_that_is_too_large_for_what_begins_inside_of_something_is_blamed_on_that():
    points, pairs = ph.spring_grid((0.4, 0.4), (4, 4))

    def refusal(height, **springs):
        made = ph.Scene().add_springs("net", points + [-0.2, height, -0.2], pairs, kd=0.01, mass=0.01, **springs)
        made.add_obstacle("rock", ph.Sphere(0.3), ke=1e4)
        with pytest.raises(ph.StepTooLarge) as caught:
            ph.rollout(made.build(), dt=0.01, steps=1)
        return str(caught.value)

    inside = refusal(-0.1, ke=100.0)
    assert "the stiffness of the contacts that it begins in" in inside and "begin outside of what it touches" in inside
    assert "the stiffness of its elements" in refusal(0.4, ke=100.0)  # it begins outside
    assert "the stiffness of its elements" in refusal(-0.1, ke=1e6)  # they are far stiffer than the contact
