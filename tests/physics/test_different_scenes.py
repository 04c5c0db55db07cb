"""Different scenes in one batch: each does what it does alone, in the same launches, and feels no other."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph

RUN = {"dt": 1e-3, "steps": 120, "every": 20}


def rigid():
    """A cube that slides and a ball that lands on it."""
    made = ph.Scene(gravity=(0, -9.81, 0.5))
    made.add_rigid("cube", ph.Box(0.2, 0.2, 0.2), density=500.0, pos=(0, 0.1, 0), omega=(0, 1, 2), vel=(0.3, 0, 0))
    made.add_rigid("ball", ph.Sphere(0.1), density=500.0, pos=(0.05, 0.302, 0.02), vel=(0, -0.5, 0))
    return made.add_ground("floor", ke=2e3, kd=5.0, kf=10.0, mu=0.5)


def soft():
    """A muscle that is thrown on the ground."""
    made = ph.Scene()
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=2e4, nu=0.3), damping=5.0, activation=0.05,
                  pos=(0, 0.01, 0), vel=(0.5, -1, 0.2))  # fmt: skip
    return made.add_ground("floor", ke=2e2, kd=1.0, kf=1.0, mu=0.5)


def cloth():
    """A flag in the wind beside a net, in weak gravity, without any ground."""
    made = ph.Scene(gravity=(0, -5, 0))
    made.add_cloth("flag", ph.TriMesh.grid((0.5, 0.5), cells=(4, 4)), mass=0.1, stretch=50, shear=50, bend=0.01,
                   lift=0.5, drag=0.3)  # fmt: skip
    made.add_wind((1, 0, 3))
    points, pairs = ph.spring_grid((0.3, 0.3), (2, 2))
    made.add_springs("net", points + [0, 0.01, 0.5], pairs, ke=50.0, kd=0.1, mass=0.01)
    return made.fix("net", where=[0, 1])


SCENES = [rigid, soft, cloth]
MODELS = [make().build("float64") for make in SCENES]
ASKED = [{"cube.density": 500.0, "floor.mu": 0.5, "gravity": (0, -9.81, 0.5)},
         {"block.activation": 0.05, "block.E": 2e4, "block.nu": 0.3, "floor.ke": 2e2},
         {"wind": (1.0, 0.0, 3.0), "net.ke": 50.0, "gravity": (0, -5, 0)}]  # fmt: skip


def assert_same(found, alone):
    """Every quantity of every object in every frame, to the last bit."""
    assert list(found) == list(alone)
    for name in alone:
        for quantity in alone[name].names:
            np.testing.assert_array_equal(getattr(found[name], quantity), getattr(alone[name], quantity))


def leaves(values):
    return {name: torch.tensor(v, dtype=torch.float64, requires_grad=True) for name, v in values.items()}


def losses(trajectories):
    """A number of each scene that depends on where all of its objects are at the end, and how fast."""
    return [sum(((0.3 + k) * at[name].x[-1] ** 2).sum() + at[name].v[-1].sum() for k, name in enumerate(at))
            for at in trajectories]  # fmt: skip


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_each_scene_moves_as_it_does_alone(real):
    models = [make().build(real) for make in SCENES]
    together = ph.rollout(ph.batch(models), **RUN)
    assert len(together.scenes) == 3
    for found, model in zip(together.scenes, models, strict=True):
        assert_same(found, ph.rollout(model, **RUN))
    # Things do happen: the cube holds the ball, the ground brakes the block, the wind blows the flag away.
    assert together["0/ball"].x[-1, 1] > 0.28 and together["1/block"].x[-1, :, 1].min() > -0.1
    assert together["2/flag"].x[-1, :, 2].max() > 0.02
    assert torch.equal(together["2/net"].x, together.scenes[2]["net"].x)


def test_gradients_are_those_of_each_scene_alone():
    together = [leaves(values) for values in ASKED]
    frames = ph.rollout(ph.batch([m.replace(v) for m, v in zip(MODELS, together)]), **RUN)
    sum(losses(frames.scenes)).backward()
    for model, values, mine in zip(MODELS, ASKED, together):
        alone = leaves(values)
        losses([ph.rollout(model.replace(alone), **RUN)])[0].backward()
        for name in alone:
            assert alone[name].grad.abs().max() > 0, name
            np.testing.assert_array_equal(mine[name].grad, alone[name].grad, err_msg=name)


@pytest.mark.parametrize("names", [("cube.density", "block.activation", "wind"), ("floor.mu", "block.E", "net.ke"),
                                   ("gravity", "floor.ke", "gravity")])  # fmt: skip
def test_gradients_are_those_of_differences(names):
    """Scenes share nothing, so that one pair of rollouts gives the differences of all of them."""
    many, rng = ph.batch(MODELS), np.random.default_rng(0)
    start = {f"{k}/{name}": np.array(ASKED[k][name], float) for k, name in enumerate(names)}
    if "block.E" in names:
        start["1/block.nu"] = np.array(0.3)
    way = {name: rng.normal(size=v.shape) * (np.abs(v).max() or 1.0) for name, v in start.items()}
    asked = leaves(start)
    sum(losses(ph.rollout(many.replace(asked), **RUN).scenes)).backward()
    h = 1e-6
    there, back = (losses(ph.rollout(many.replace({n: v + s * h * way[n] for n, v in start.items()}), **RUN).scenes)
                   for s in (1, -1))  # fmt: skip
    for k in range(3):
        slope = sum(float((asked[n].grad.numpy() * way[n]).sum()) for n in start if n.startswith(f"{k}/"))
        assert slope == pytest.approx(float(there[k] - back[k]) / (2 * h), rel=2e-5), (k, names[k])


def busy(bodies, hard):
    """Bodies of all kinds with loads, particles that hit them, a mesh, a grid of distances, and two planes."""
    made, rng = ph.Scene(), np.random.default_rng(bodies)
    room = np.fromfunction(lambda i, j, k: 0.15 - 0.1 * np.hypot(i - 4, k - 4), (9, 9, 9))
    made.add_obstacle("well", ph.SignedDistance(room, (-0.4, -0.1, -0.4), (0.4, 0.7, 0.4)), ke=500.0, kd=2.0)
    cube = ph.TetMesh.box((0.1, 0.1, 0.1)).surface
    shapes = [ph.Box(0.1, 0.08, 0.12), cube, ph.Capsule(0.04, 0.1), ph.Cone(0.05, 0.1)]
    for k in range(bodies):
        place = (0.06 * rng.normal(), 0.05 + 0.07 * k, 0.06 * rng.normal())
        made.add_rigid(f"body{k}", shapes[k % 4], density=300.0 + 50 * k, pos=place, omega=(1, k, 2))
        made.add_impulse(f"body{k}", (0.02, 0, 0.01 * k), at=(0.01, 0.02, 0), t=0.004 * k)
    made.add_torque("body0", (0, 0.1, 0), t=(0.0, 0.01))
    made.add_particles("dust", 0.1 * rng.normal(size=(3 + bodies, 3)) + (0, 0.2, 0), mass=0.02)
    made.add_force("dust", (0.1, 0, 0), where=[0, 2])
    made.add_ground("floor", hard=hard, ke=500.0, kd=2.0, height=0.01)
    return made.add_plane("wall", normal=(1, 0, 0), offset=-0.03, ke=300.0, kd=2.0).build("float64")


def test_everything_else_is_where_it_belongs():
    """Rows of all tables that point at rows of others, in scenes that do not begin with the first row."""
    models = [MODELS[2], busy(2, hard=False), MODELS[1], busy(5, hard=True), busy(4, hard=False)]
    run = {"dt": 5e-4, "steps": 60, "every": 20}
    graded = ["body0.density", "body1.x", "body1.vertices", "well.distance", "wall.ke", "dust.force", "body1.impulse",
              "body0.torque", "floor.mu", "contact.mu"]  # fmt: skip
    asked, felt = {k: leaves({name: models[k][name] for name in graded}) for k in (1, 3, 4)}, set()
    together = ph.rollout(ph.batch([m.replace(asked.get(k, {})) for k, m in enumerate(models)]), **run)
    sum(losses(together.scenes)).backward()
    for k, mine in asked.items():
        own = leaves({name: models[k][name] for name in graded})
        alone = ph.rollout(models[k].replace(own), **run)
        losses([alone])[0].backward()
        assert_same(together.scenes[k].numpy(), alone.numpy())
        for name in graded:
            np.testing.assert_array_equal(mine[name].grad, own[name].grad, err_msg=f"{k}/{name}")
        felt |= {name for name in graded if own[name].grad.any()}
    assert felt == set(graded)


def test_a_tensor_may_be_shared_by_scenes():
    shared = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    two = [m.replace({"floor.mu": shared}) for m in MODELS[:2]]
    sum(losses(ph.rollout(ph.batch(two), **RUN).scenes)).backward()
    both, shared.grad = shared.grad, None
    for model in two:
        losses([ph.rollout(model, **RUN)])[0].backward()
    assert both == pytest.approx(shared.grad.item(), rel=1e-14) and both != 0


def test_on_a_tape_of_kernelc():
    """With the gradients of torch, and with other values when it runs again."""
    kinds = [(0, "cube.density", 500.0), (2, "net.ke", 50.0)]
    arrays = {f"{k}/{name}": kc.array(np.array([value]), requires_grad=True) for k, name, value in kinds}
    with kc.Tape() as tape:
        seen = ph.rollout(ph.batch(MODELS).replace(arrays), **RUN)
    cube, net = seen.scenes[0]["cube"].x, seen["2/net"].x
    tape.backward(grads={cube: np.ones(cube.numpy().shape), net: np.ones(net.numpy().shape)})
    asked = leaves({f"{k}/{name}": value for k, name, value in kinds})
    frames = ph.rollout(ph.batch(MODELS).replace(asked), **RUN)
    (frames["0/cube"].x.sum() + frames["2/net"].x.sum()).backward()
    for name in arrays:
        np.testing.assert_array_equal(arrays[name].grad.numpy()[0], asked[name].grad.numpy())
    arrays["2/net.ke"].numpy()[0] = 30.0
    tape.replay()
    softer = ph.rollout(MODELS[2].replace({"net.ke": 30.0}), **RUN)["net"].x
    np.testing.assert_array_equal(net.numpy(), softer)


@pytest.mark.parametrize("checkpoint", ["sqrt", 4])
def test_what_is_kept_changes_nothing(checkpoint):
    found = []
    for kept in ("all", checkpoint):
        asked = leaves({"0/cube.density": 500.0, "1/block.activation": 0.05})
        sum(losses(ph.rollout(ph.batch(MODELS).replace(asked), **RUN, checkpoint=kept).scenes)).backward()
        found.append([a.grad.item() for a in asked.values()])
    assert found[0] == found[1]


def test_large_scenes_are_the_same_up_to_rounding():
    """Where several cores share a launch, sums over all scenes are cut elsewhere than those of one."""
    models = []
    for cells in ((12, 12, 12), (11, 12, 9), (2, 1, 1)):
        made, mesh = ph.Scene(), ph.TetMesh.box((0.2, 0.1, 0.1), cells=cells)
        made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=2e3, nu=0.3), vel=(0.5, -1, 0.2))
        models.append(made.add_ground("floor", ke=1.0, kd=0.01, kf=0.01, mu=0.5).build("float64"))
    assert sum(m.layout.rows("tets") for m in models) > 2 * 8192 > models[1].layout.rows("tets")
    run = {"dt": 2e-4, "steps": 20, "every": 20}
    asked = [leaves({"block.mu": 800.0}) for _ in models]
    together = ph.rollout(ph.batch([m.replace(a) for m, a in zip(models, asked)]), **run)
    sum(losses(together.scenes)).backward()
    for found, model, mine in zip(together.scenes, models, asked):
        own = leaves({"block.mu": 800.0})
        alone = ph.rollout(model.replace(own), **run)
        losses([alone])[0].backward()
        np.testing.assert_allclose(found["block"].x.detach(), alone["block"].x.detach(), rtol=0, atol=1e-15)
        assert mine["block.mu"].grad == pytest.approx(own["block.mu"].grad.item(), rel=1e-9)


# -- in one launch
def nets(count):
    """Scenes of the same systems, each of another size."""
    made = []
    for k in range(count):
        points, pairs = ph.spring_grid((0.3, 0.3), (2 + k, 2))
        scene = ph.Scene(gravity=(0, -1.0 - k, 0))
        scene.add_springs("net", points + [0, 0.1 * k, 0], pairs, ke=50.0, kd=0.1, mass=0.01)
        scene.add_rigid("ball", ph.Sphere(0.05 + 0.01 * k), density=100.0, pos=(0.1, 0.4 + 0.1 * k, 0.0))
        made.append(scene.add_ground("floor", height=-0.01 * k, ke=50.0, kd=0.1, kf=0.1).build("float64"))
    return made


def test_more_scenes_are_no_more_launches(monkeypatch):
    launched, launch = [], kc.launch

    def counted(kernel, *args, **more):
        launched.append(kernel.name)
        return launch(kernel, *args, **more)

    monkeypatch.setattr(kc, "launch", counted)
    numbers = []
    for count in (2, 7):
        launched.clear()
        ph.rollout(ph.batch(nets(count)), dt=1e-3, steps=10, every=10)
        numbers.append(sorted(launched))
    assert numbers[0] == numbers[1] and "spring_forces" in numbers[0]


def test_the_same_scenes_use_what_was_compiled():
    models = nets(3)
    other = [m.replace({"net.ke": 30.0 + k}) for k, m in enumerate(models)]
    assert ph.batch(models).layout is ph.batch(other).layout
    assert ph.batch(models).layout is not ph.batch(models[::-1]).layout
    for found, model in zip(ph.rollout(ph.batch(other), **RUN).scenes, other):
        assert_same(found, ph.rollout(model, **RUN))


# -- apart
def things(*names):
    """Objects that touch when they are in one scene, all of them near the origin."""
    made = ph.Scene()
    if "ball" in names:
        made.add_rigid("ball", ph.Sphere(0.1), density=100.0, pos=(0.02, 0.1, 0.0))
    if "box" in names:
        made.add_rigid("box", ph.Box(0.2, 0.2, 0.2), density=100.0, pos=(0, 0, 0))
    for k, name in enumerate(("sheet", "rag")):
        if name in names:
            mesh = ph.TriMesh.grid((0.2, 0.2), cells=(4 + k, 4))
            made.add_cloth(name, mesh, mass=0.02, stretch=20, shear=20, pos=(0, 0, 0.005 * k))
            made.add_self_contact(name, thickness=0.02, ke=5.0)
    for k, name in enumerate(("grains", "dust")):
        if name in names:
            x = 0.05 * np.random.default_rng(k).uniform(size=(20 + k, 3))
            made.add_particles(name, x, mass=0.01).add_self_contact(name, thickness=0.02, ke=5.0)
    if "marble" in names:  # Smaller than a cell of the sheet.
        made.add_rigid("marble", ph.Sphere(0.01), density=1000.0, pos=(0.03, 0.06, 0.005))
    if "pad" in names:
        made.add_soft("pad", ph.TetMesh.box((0.2, 0.1, 0.1)), density=1e3, material=ph.NeoHookean(E=1e4, nu=0.3))
    return made.build("float64")


@pytest.mark.parametrize("pair", [("ball", "box"), ("sheet", "rag"), ("pad", "box"), ("sheet", "ball"),
                                  ("grains", "dust"), ("sheet", "grains"), ("sheet", "marble")])  # fmt: skip
def test_scenes_in_one_place_do_not_touch(pair):
    run = {"dt": 2e-4, "steps": 40, "every": 40}
    alone = [ph.rollout(things(name), **run) for name in pair]
    apart = ph.rollout(ph.batch([things(name) for name in pair]), **run)
    for found, own in zip(apart.scenes, alone):
        assert_same(found, own)
    in_one = ph.rollout(things(*pair), **run)
    assert all((in_one[name].x - own[name].x).abs().max() > 1e-5 for name, own in zip(pair, alone))


def test_ground_of_one_scene_holds_no_other():
    held, falls = nets(1)[0], things("ball")
    at = ph.rollout(ph.batch([held, falls]), dt=1e-3, steps=1000, every=1000)
    assert at["0/ball"].x[-1, 1] > 0 and at["1/ball"].x[-1, 1] == pytest.approx(0.1 - 9.81 / 2, abs=0.01)


def test_a_fine_cloth_beside_a_coarse_one():
    """Contacts are looked for at the size of each scene: at that of the coarse one, all of the fine one is near."""
    models = []
    for size in (0.02, 2.0):
        made = ph.Scene(gravity=(0, 0, 0))
        mesh = ph.TriMesh.grid((size, size), cells=(8, 8))
        made.add_cloth("sheet", mesh, mass=0.1 * size, stretch=2.0, shear=2.0, rot=ph.quat((1, 0, 0), 1.0))
        made.add_cloth("other", mesh, mass=0.1 * size, stretch=2.0, shear=2.0, rot=ph.quat((1, 0, 0), 1.1))
        for name in ("sheet", "other"):
            made.add_self_contact(name, ke=1e-2, kd=0.0, kf=0.0)
        models.append(made.build("float64"))
    run = {"dt": 1e-4, "steps": 100, "every": 100}
    for found, model in zip(ph.rollout(ph.batch(models), **run).scenes, models):
        own = ph.rollout(model, **run)
        size = own["sheet"].x.max()
        for name in own:  # Contacts of cloth with cloth are the same up to rounding, as in batches of copies.
            np.testing.assert_allclose(found[name].x, own[name].x, rtol=0, atol=1e-14 * size)
        assert own["sheet"].v[-1].abs().max() > 0


# -- backward Euler
def test_implicit_steps_are_those_of_each_scene():
    """Though one of them is a million times lighter than another."""
    light = MODELS[2].replace({"net.mass": 1e-5, "net.ke": 0.05, "net.kd": 1e-4, "flag.mass": 1e-4})
    heavy = MODELS[1].replace({"block.density": 1e5, "block.mu": 1e6, "block.lam": 1e6, "floor.ke": 1e4})
    models = [MODELS[0], heavy, light]
    run = {"dt": 4e-3, "steps": 15, "every": 5, "integrator": ph.BackwardEuler(tol=1e-9)}
    asked = [leaves({name: m[name]}) for m, name in zip(models, ("cube.density", "block.mu", "net.ke"))]
    together = ph.rollout(ph.batch([m.replace(a) for m, a in zip(models, asked)]), **run)
    sum(losses(together.scenes)).backward()
    assert together.solves.newton.max() < 1e-9
    for found, model, mine in zip(together.scenes, models, asked):
        ((name, tensor),) = mine.items()
        own = leaves({name: model[name]})
        alone = ph.rollout(model.replace(own), **run)
        losses([alone])[0].backward()
        for thing in alone:
            moved = (alone[thing].x - alone[thing].x[0]).abs().max()
            assert (found[thing].x - alone[thing].x).abs().max() < 1e-8 * moved, thing
        np.testing.assert_allclose(tensor.grad, own[name].grad, rtol=1e-6, atol=1e-7 * own[name].grad.abs().max())


# -- by name, and one by one
def test_parameters_states_forces_and_energies():
    many = ph.batch(MODELS)
    assert many.batch is None and len(many.names()) == sum(len(m.names()) for m in MODELS)
    np.testing.assert_array_equal(many["2/gravity"], (0, -5, 0))
    changed = many.replace({"0/cube.mass": 3.0, "1/gravity": (0, 0, 0)})
    assert "0/cube.density" not in changed and changed.scenes[0]["cube.mass"] == 3.0
    assert not changed.scenes[1]["gravity"].any() and changed.scenes[2]["gravity"][1] == -5
    for one, same in zip(many.scenes, MODELS, strict=True):
        assert one.layout is same.layout and one.names() == same.names()
    energy, forces = ph.energy(many), ph.forces(many)
    assert list(energy)[-1] == "total"
    np.testing.assert_array_equal(energy["total"], [ph.energy(m)["total"] for m in MODELS])
    np.testing.assert_array_equal(energy["tets"], [0, ph.energy(MODELS[1])["tets"], 0])
    np.testing.assert_array_equal(forces["1/block"].f, ph.forces(MODELS[1])["block"].f)
    assert ph.stable_dt(many) == pytest.approx(min(map(ph.stable_dt, MODELS)), rel=1e-12)
    end = ph.rollout(many, **RUN).state()
    np.testing.assert_array_equal(ph.energy(many, end)["total"],
                                  [ph.energy(m, s)["total"] for m, s in zip(MODELS, end.scenes)])  # fmt: skip
    np.testing.assert_array_equal(end.scenes[2]["net"].x, end["2/net"].x)
    again = ph.rollout(many.at(end), **RUN)
    assert_same(again.scenes[0], ph.rollout(MODELS[0].at(end.scenes[0]), **RUN))
    assert again.vertices("1/block").shape == (7, 12, 3)


def test_control_of_one_scene():
    pull = torch.linspace(0, 0.1, RUN["steps"], dtype=torch.float64, requires_grad=True)
    together = ph.rollout(ph.batch(MODELS), **RUN, control={"1/block.activation": pull})
    alone = ph.rollout(MODELS[1], **RUN, control={"block.activation": pull})
    assert_same(together.scenes[1].numpy(), alone.numpy())
    assert_same(together.scenes[2].numpy(), ph.rollout(MODELS[2], **RUN))
    one, other = (torch.autograd.grad(t.x.sum(), pull)[0] for t in (together["1/block"], alone["block"]))
    np.testing.assert_array_equal(one, other)


def test_copies_have_scenes_too():
    models = [MODELS[1].replace({"floor.mu": mu}) for mu in (0.1, 0.9)]
    copies = ph.batch(models).replace({"block.v": np.arange(6.0).reshape(2, 3), "floor.ke": 100.0})
    frames = ph.rollout(copies, **RUN)
    for k, (one, at) in enumerate(zip(copies.scenes, frames.scenes, strict=True)):
        assert_same(at, ph.rollout(one, **RUN))
        np.testing.assert_array_equal(at["block"].x, frames["block"].x[k])
    arrays = copies.replace({"floor.mu": kc.array(np.array([0.1, 0.9])), "block.mass": kc.array(np.full((2, 12), 0.2))})
    assert_same(ph.rollout(arrays.scenes[1], **RUN), ph.rollout(arrays, **RUN).numpy().scenes[1])
    alone = ph.rollout(MODELS[1], **RUN)
    assert alone.scenes == [alone] and MODELS[1].scenes == [MODELS[1]]


def test_batches_of_batches_of_scenes():
    inner = ph.batch(MODELS[:2])
    nested = ph.rollout(ph.batch([inner, MODELS[2]]), **RUN)
    assert torch.equal(nested["0/1/block"].x, ph.rollout(MODELS[1], **RUN)["block"].x)
    assert_same(nested.scenes[0].scenes[0], ph.rollout(MODELS[0], **RUN))
    copies = inner.batched(2).replace({"0/cube.density": [400.0, 600.0]})
    for run in (RUN, {**RUN, "integrator": ph.BackwardEuler(tol=1e-10)}):
        frames = ph.rollout(copies, **run)
        lighter = ph.rollout(MODELS[0].replace({"cube.density": 400.0}), **run)
        assert (frames.scenes[0].scenes[0]["cube"].x - lighter["cube"].x).abs().max() < 1e-11
        assert frames["0/cube"].x.shape == (2, 7, 3)


# -- what goes wrong
def test_what_cannot_be_shared_is_refused_by_number():
    with pytest.raises(ValueError, match="model 1 was built with real='float32' and model 0 with real='float64'"):
        ph.batch([MODELS[0], soft().build()])
    with pytest.raises(ValueError, match="model 1 is a batch of copies itself"):
        ph.batch([MODELS[0], MODELS[1].batched(2)])
    with pytest.raises(TypeError, match="model 2 is a Smoke"):
        ph.batch([MODELS[0], MODELS[1], ph.Smoke((8, 8))])
    with pytest.raises(KeyError, match=r"0/cube\.density"):
        ph.batch(MODELS).replace({"0/cube.densty": 1.0})
    with pytest.raises(ValueError, match=r"'0/cube.mass' and .* exclude each other: give the mass once"):
        ph.batch(MODELS).replace({"0/cube.density": 1.0, "0/cube.mass": 1.0})


def test_what_goes_wrong_names_the_scene():
    many = ph.batch(MODELS)
    with pytest.raises(ph.StepTooLarge, match="too large for '2/net'") as caught:
        ph.rollout(many.replace({"2/net.ke": 1e6}), **RUN)
    assert caught.value.thing == "2/net"
    with pytest.raises(ph.Diverged, match="'2/net' blew up"):
        ph.rollout(many.replace({"2/net.ke": 1e9}), **RUN, check=False)
    with pytest.raises(ValueError, match="1/block: particle 0 has the mass -1 kg"):
        ph.rollout(many.replace({"1/block.mass": -1.0}), **RUN)
    hard = ph.batch([MODELS[1], soft().add_ground("ice", hard=True).build("float64")])
    with pytest.raises(ValueError, match="'1/ice' is hard"):
        ph.rollout(hard, **RUN, integrator="backward_euler")
