"""Many bodies find each other as they move: with the same forces and gradients as where all pairs are listed."""

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import adding_contacts, neighbours


def heap(many, real="float64", batch=None, count=27):
    """Balls, boxes, rods and meshes that fall onto each other and a table; they find each other if `many` is small."""
    rng = np.random.default_rng(0)
    shapes = [ph.Sphere(0.1), ph.Box(0.15, 0.1, 0.2), ph.Capsule(0.06, 0.15), ph.Box(0.1, 0.15, 0.15).mesh()]
    scene = ph.Scene()
    scene.add_obstacle("table", ph.Box(3, 0.2, 3), pos=(0, -0.1, 0))
    for k in range(count):
        q = rng.normal(size=4)
        at = 0.21 * np.array([k % 3 - 1, 0.8 + k // 9, k // 3 % 3 - 1]) + 0.01 * rng.normal(size=3)
        scene.add_rigid(f"b{k}", shapes[k % 4], density=500.0 + 10 * k, pos=at, rot=q, vel=(0, -1, 0),
                        **({"ke": 2e4, "mu": 0.3} if k % 5 == 0 else {}))  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adding_contacts, "MANY", many)
        return scene.build(real, batch=batch)


def test_forces_motion_and_gradients_are_those_of_all_pairs():
    found, ends, grads = heap(2), [], []
    listed = heap(1000)
    assert found.layout.count["swarm"] == 27 and "swarm" not in listed.layout.count
    for model in (found, listed):
        mu = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        v = torch.tensor([0.3, -1.0, 0.1], dtype=torch.float64, requires_grad=True)
        end = ph.rollout(model.replace({"contact.mu": mu, "b13.v": v}), dt=1e-3, steps=120, every=120)
        weights = [torch.tensor([1.0, 0.5, 0.2 * k], dtype=torch.float64) for k in range(27)]
        sum((end[f"b{k}"].x[-1] * weights[k]).sum() for k in range(27)).backward()
        ends.append(np.stack([end[f"b{k}"].x[-1].detach().numpy() for k in range(27)]))
        grads.append(np.array([*v.grad.numpy(), mu.grad.item()]))
    # Sums are in another order; a heap makes more of it.
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5)
    assert ph.stable_dt(found) <= ph.stable_dt(listed) * 1.0001
    one, other = ph.energy(found), ph.energy(listed)
    assert one["total"] == pytest.approx(other["total"], rel=1e-12)


def test_every_run_and_every_copy_of_a_batch_has_the_same_bits():
    alone, batch = heap(2, "float32", count=12), heap(2, "float32", batch=3, count=12)
    first = ph.rollout(alone, dt=5e-4, steps=200, every=200).state()
    again = ph.rollout(alone, dt=5e-4, steps=200, every=200, checkpoint=20).state()
    copies = ph.rollout(batch, dt=5e-4, steps=200, every=200)
    mixed = ph.rollout(ph.batch([heap(2, "float32", count=8), alone]), dt=5e-4, steps=200, every=200).scenes[1]
    for k in range(12):
        name = f"b{k}"
        np.testing.assert_array_equal(first[name].x, again[name].x)
        np.testing.assert_array_equal(mixed[name].x[-1].numpy(), first[name].x)
        for scene in copies.scenes:
            np.testing.assert_array_equal(scene[name].x[-1].numpy(), first[name].x)


def test_a_fast_ball_does_not_pass_between_two_looks():
    scene = ph.Scene(gravity=(0, 0, 0))
    for k in range(30):
        scene.add_rigid(f"b{k}", ph.Box(0.01, 0.1, 0.1), mass=1.0, pos=(0.3 * k, 0, 0))
    scene.add_rigid("shot", ph.Sphere(0.01), mass=0.01, pos=(1.0, 0.01, 0.02), vel=(300.0, 0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adding_contacts, "MANY", 2)
        model = scene.build()
    with pytest.raises(ph.PassedThrough) as caught:
        ph.rollout(model, dt=1e-3, steps=20)
    assert "shot" in caught.value.things
    assert len(set(caught.value.things)) == 2


def test_more_neighbours_than_there_are_rows_for_are_refused():
    scene = ph.Scene()
    for k in range(27):
        scene.add_rigid(f"b{k}", ph.Sphere(0.1), mass=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adding_contacts, "MANY", 2)
        patch.setattr(neighbours, "LITTLE", 0)
        model = scene.build()
    assert model.layout.count["shape_pairs"] == 27 * neighbours.ROOM_OF_BALLS
    with pytest.raises(kc.AssertFailed, match="do they lie in each other"):
        ph.rollout(model, dt=1e-4, steps=1)
