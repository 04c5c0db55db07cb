"""Many copies of a scene in one rollout: each does what it does alone."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph

COPIES, STEPS = 5, 60


def scene():
    made = ph.Scene()
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=2e4, nu=0.3), damping=5.0, activation=True,
                  pos=(0, 0.01, 0), vel=(0.5, -1, 0.2))  # fmt: skip
    points, pairs = ph.spring_grid((0.3, 0.3), (2, 2))
    made.add_springs("net", points + [0, 0.01, 0.5], pairs, ke=50.0, kd=0.1, mass=0.01)
    made.add_ground("floor", ke=2e2, kd=1.0, kf=1.0, mu=0.5)
    return made


ONE = scene().build("float64")
rng = np.random.default_rng(0)
VALUES = {p.name: np.stack([p.value * (1 + 0.02 * rng.normal(size=p.shape)) for _ in range(COPIES)])
          for p in ONE.parameters()}  # fmt: skip


def pull(model, values, weights):
    """Frames of the block, and the gradients of a weighting of them."""
    leaves = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    x = ph.rollout(model.replace(leaves), dt=1e-3, steps=STEPS, every=20)["block"].x
    (x * torch.tensor(weights)).sum().backward()
    return x.detach().numpy(), {name: v.grad.numpy() for name, v in leaves.items()}


def test_each_copy_moves_as_it_does_alone_and_has_its_own_gradient():
    weights = rng.normal(size=(COPIES, 4, 12, 3))
    x, grads = pull(scene().build("float64", batch=COPIES), VALUES, weights)
    assert x.shape == (COPIES, 4, 12, 3)
    for b in range(COPIES):
        alone, own = pull(ONE, {name: v[b] for name, v in VALUES.items()}, weights[b])
        np.testing.assert_array_equal(x[b], alone)
        for name in own:
            np.testing.assert_array_equal(grads[name][b], own[name], err_msg=name)


@pytest.mark.parametrize(("cells", "copies"), [((2, 1, 1), 900), ((16, 11, 10), 2)])
def test_large_batches_have_the_same_bits_too(cells, copies):
    """Where launches are so large that several cores share them: by many copies, or by the size of each."""
    made = ph.Scene()
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=cells)
    made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=2e3, nu=0.3), damping=1.0, vel=(0.5, -1, 0.2))
    made.add_ground("floor", ke=10.0, kd=0.1, kf=0.1, mu=0.5)
    one, many = made.build(), made.build(batch=copies)
    n, r = len(mesh.vertices), np.random.default_rng(1)
    x = (one["block.x"] + 1e-3 * r.normal(size=(copies, n, 3))).astype(np.float32)
    mu, density = r.uniform(800, 1200, (copies, len(mesh.tets))), r.uniform(900, 1100, copies)
    seed = torch.tensor(r.normal(size=(copies, n, 3)), dtype=torch.float32)

    def gradients(model, x, mu, density, seed):
        leaves = {"block.x": x, "block.mu": mu, "block.density": density}
        leaves = {name: torch.tensor(v, dtype=torch.float32, requires_grad=True) for name, v in leaves.items()}
        end = ph.rollout(model.replace(leaves), dt=2e-4, steps=3, every=3)["block"].x[..., -1, :, :]
        end.backward(seed)
        return [end.detach().numpy(), *(v.grad.numpy() for v in leaves.values())]

    together = gradients(many, x, mu, density, seed)
    for b in range(min(copies, 5)):
        for all_of_them, alone in zip(together, gradients(one, x[b], mu[b], density[b], seed[b]), strict=True):
            np.testing.assert_array_equal(all_of_them[b], alone)


def test_a_batch_of_models_is_a_batch_of_their_values():
    stiff = torch.tensor(3e4, dtype=torch.float64, requires_grad=True)
    models = [ONE, ONE.replace({"block.mu": stiff}), ONE.replace({"floor.mu": 0.1, "block.v": (0.1, 0, 0)})]
    both = ph.batch(models)
    assert both.batch == 3
    x = ph.rollout(both, dt=1e-3, steps=STEPS, every=STEPS)["block"].x
    for b, model in enumerate(models):
        alone = ph.rollout(model, dt=1e-3, steps=STEPS, every=STEPS)["block"].x
        np.testing.assert_array_equal(x[b].detach(), alone.detach())
    x[1].sum().backward()
    assert stiff.grad != 0


def test_there_may_be_as_many_copies_as_an_object_has_particles():
    """Values by particle that the scene was built with are then not taken for values by copy."""
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    copies = len(mesh.vertices)
    made = ph.Scene()
    made.add_soft("block", mesh, density=1e3, material=ph.NeoHookean(E=2e4, nu=0.3), vel=(1, 0, 0))
    one = made.build("float64")
    stiffness = np.linspace(0.5e4, 1.5e4, copies)
    alone = ph.rollout(one.replace({"block.E": stiffness[3]}), dt=1e-3, steps=5)["block"].x
    for batch in (one.batched(copies), made.build("float64", batch=copies)):
        together = ph.rollout(batch.replace({"block.E": stiffness}), dt=1e-3, steps=5)["block"].x
        np.testing.assert_array_equal(together[3], alone)


def test_one_value_for_all_copies_has_the_sum_of_their_gradients():
    batch = scene().build("float64", batch=2)
    shared = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    each = torch.tensor([0.4, 0.4], dtype=torch.float64, requires_grad=True)
    for value in (shared, each):
        ph.rollout(batch.replace({"floor.mu": value}), dt=1e-3, steps=STEPS, every=STEPS)["block"].x.sum().backward()
    assert each.grad[0] == each.grad[1] != 0
    assert shared.grad == pytest.approx(each.grad.sum().item(), rel=1e-12)


def test_states_energies_and_forces_have_the_copies_in_front():
    batch = scene().build("float64", batch=3).replace({"block.v": np.arange(9.0).reshape(3, 3)})
    assert batch.state0["block"].v.shape == (3, 12, 3)
    np.testing.assert_array_equal(batch.state0["block"].v[:, 0], np.arange(9.0).reshape(3, 3))
    energy = ph.energy(batch)["total"]
    assert energy.shape == (3,) and energy[0] < energy[1] < energy[2]
    assert ph.forces(batch)["net"].f.shape == (3, 9, 3)
    trajectory = ph.rollout(batch, dt=1e-3, steps=10)
    np.testing.assert_array_equal(trajectory.state(3)["net"].x, trajectory["net"].x[:, 3])


def test_control_may_differ_between_copies():
    batch = scene().build("float64", batch=2)
    control = np.zeros((STEPS, 2))
    control[:, 1] = 0.1
    x = ph.rollout(batch, dt=1e-3, steps=STEPS, every=STEPS, control={"block.activation": control})["block"].x
    plain = ph.rollout(ONE, dt=1e-3, steps=STEPS, every=STEPS)["block"].x
    np.testing.assert_allclose(x[0], plain, atol=1e-14)
    assert (x[1] - plain).abs().max() > 1e-4


def test_what_goes_wrong_names_the_copy():
    batch = scene().build("float64", batch=3)
    with pytest.raises(ph.Diverged, match=r"'net \(copy 1\)' blew up"):
        ph.rollout(batch.replace({"net.ke": [50.0, 1e9, 50.0]}), dt=1e-3, steps=STEPS, check=False)
    with pytest.raises(ValueError, match=r"net.ke has shape \(4,\); expected .* with 3 in front"):
        batch.replace({"net.ke": np.ones(4)})
    with pytest.raises(ValueError, match="differs in which quantities are in force"):
        ph.batch([ONE, ONE.replace({"block.E": 2e4})])


def test_frames_and_vertices_of_a_batch_are_read_on_a_tape():
    """As with torch, to the last bit, gradients included."""
    scene = ph.Scene().add_rigid("cube", ph.Box(0.1, 0.2, 0.3), density=500.0, pos=(0, 0.3, 0), omega=(1, 2, 3))
    scene.add_rigid("ball", ph.Sphere(0.1), density=100.0, pos=(1, 0.2, 0))
    scene.add_ground("floor", ke=2e3)
    for batch in (None, 3):
        model = scene.build("float64", batch=batch)
        rng, start = np.random.default_rng(0), np.full(() if batch is None else (3,), 500.0)
        rho = kc.array(np.atleast_1d(start), requires_grad=True)
        with kc.Tape() as tape:
            traj = ph.rollout(model.replace({"cube.density": rho}), dt=1e-3, steps=300, every=100)
            x, corners = traj["cube"].x, traj.vertices("cube")
        by_torch = torch.tensor(start, requires_grad=True)
        other = ph.rollout(model.replace({"cube.density": by_torch}), dt=1e-3, steps=300, every=100)
        np.testing.assert_array_equal(x.numpy(), other["cube"].x.detach().numpy())
        np.testing.assert_allclose(corners.numpy(), other.vertices("cube").detach().numpy(), atol=1e-14)
        seeds = [rng.normal(size=a.numpy().shape) for a in (x, corners)]
        tape.backward(grads={x: seeds[0], corners: seeds[1]})
        seen = other["cube"].x, other.vertices("cube")
        sum((a * torch.tensor(seed)).sum() for a, seed in zip(seen, seeds)).backward()
        np.testing.assert_allclose(rho.grad.numpy().ravel(), by_torch.grad.numpy().ravel(), rtol=1e-9)
