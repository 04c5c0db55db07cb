"""Derivatives of forces, energies and rollouts: by name, and through torch in every way it has."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from nablasim import physics as ph


def net():
    scene = ph.Scene()
    points = [[0.0, 0.29, 0], [0.3, 0.31, 0], [0.3, 0.6, 0.1]]
    scene.add_springs("net", points, [[0, 1], [1, 2]], mass=0.1, ke=20.0, kd=0.1)
    scene.add_ground("floor", height=0.3, ke=1e3, kd=1.0, kf=10.0, mu=0.3)
    return scene.build(real="float64")


def block():
    scene = ph.Scene()
    soft = ph.NeoHookean(E=2e4, nu=0.3)
    scene.add_soft("jelly", ph.TetMesh.box((0.3, 0.3, 0.3)).moved(pos=(0, 0.15, 0)), density=300.0, material=soft)
    model = scene.build(real="float64")
    rng = np.random.default_rng(0)
    x = np.asarray(model["jelly.x"])
    return model, model.state0.replace({"jelly.x": x + 0.01 * rng.normal(size=x.shape)}), rng.normal(size=(2, *x.shape))


HOW = dict(dt=2e-3, steps=60, every=30)


def test_hessian_products_are_differences_of_forces():
    model, state, (v, w) = block()
    x = state["jelly"].x
    there, back = (ph.forces(model, state.replace({"jelly.x": x + s * v}))["jelly"].f for s in (1e-6, -1e-6))
    product = ph.hessian_vector(model, state, {"jelly.x": v})["jelly.x"]
    slope = -(there - back) / 2e-6  # nothing is damped here: all forces are those of the energy
    assert np.allclose(product, slope, rtol=1e-8, atol=1e-8 * np.abs(slope).max())
    both = ph.hessian_vector(model, state, {"jelly.x": np.stack([v, w])})["jelly.x"]
    assert np.array_equal(both[0], product) and both.shape == (2, *x.shape)
    assert np.isclose((w * both[0]).sum(), (v * both[1]).sum(), rtol=1e-12), "symmetric"
    assert np.allclose(ph.forces(model, state, tangents={"jelly.x": v})["jelly"].f[0], -product, rtol=1e-10, atol=1e-7)


def test_a_hessian_has_parameters_as_well():
    model, state, (v, _) = block()
    mixed = ph.hessian_vector(model, state, {"jelly.x": v, "jelly.mu": 0.0})["jelly.mu"]
    slope = ph.forces(model, state, tangents={"jelly.mu": 1.0})["jelly"].f[0]
    assert mixed.shape == () and np.isclose(mixed, -(slope * v).sum(), rtol=1e-10)


def test_copies_have_hessians_of_their_own():
    model, state, (v, _) = block()
    one = ph.hessian_vector(model, state, {"jelly.x": v})["jelly.x"]
    batch = ph.batch([model.at(state), model])
    two = ph.hessian_vector(batch, None, {"jelly.x": np.stack([v, 0 * v])})["jelly.x"]
    assert np.allclose(two[0], one, rtol=1e-12) and not two[1].any()


def test_forces_and_energies_through_torch():
    model, state, ways = block()
    base = model.at(state)
    x, (v, w) = torch.tensor(state["jelly"].x), map(torch.tensor, ways)

    def energy(x):
        return ph.energy(base.replace({"jelly.x": x}))["total"]

    def forces(x):
        return ph.forces(base.replace({"jelly.x": x}))["jelly"].f

    assert torch.autograd.gradcheck(energy, (x.clone().requires_grad_(),), fast_mode=True)
    assert torch.autograd.gradgradcheck(energy, (x.clone().requires_grad_(),), fast_mode=True)
    moved = torch.func.jvp(forces, (x,), (v,))[1]
    assert np.array_equal(moved[:].numpy(), ph.forces(model, state, tangents={"jelly.x": ways[0]})["jelly"].f[0])
    pulled = torch.func.vjp(forces, x)[1](w)[0]
    assert torch.isclose((pulled * v).sum(), (moved * w).sum(), rtol=1e-12)
    product = torch.func.jvp(torch.func.grad(energy), (x,), (v,))[1]
    assert np.array_equal(product.numpy(), ph.hessian_vector(model, state, {"jelly.x": ways[0]})["jelly.x"])
    by, along = torch.func.jacrev(forces)(x), torch.func.jacfwd(forces)(x)
    assert by.shape == (*x.shape, *x.shape) and torch.allclose(by, along, rtol=1e-10, atol=1e-8)
    hessian = torch.func.hessian(energy)(x)
    # Gravity is linear: what bends is the solid alone.
    assert torch.allclose(hessian, -by, rtol=1e-9, atol=1e-7)


def test_rollouts_through_transforms_of_torch():
    model = net()
    ke, v = torch.tensor(20.0, dtype=torch.float64), torch.tensor(np.asarray(model["net.v"]))

    def run(ke, v):
        return ph.rollout(model.replace({"net.ke": ke, "net.v": v}), **HOW)["net"].x

    frames, moved = torch.func.jvp(run, (ke, v), (torch.ones_like(ke), torch.ones_like(v)))
    exact = ph.jvp(model, {"net.ke": 1.0, "net.v": np.ones(v.shape)}, **HOW)["net"].x[0]
    assert np.array_equal(moved.numpy(), exact) and np.array_equal(frames.numpy(), run(ke, v).numpy())
    with forward_ad.dual_level():
        dual = run(forward_ad.make_dual(ke, torch.ones_like(ke)), forward_ad.make_dual(v, torch.ones_like(v)))
        assert np.array_equal(forward_ad.unpack_dual(dual).tangent.numpy(), exact)
    weights = torch.tensor(np.random.default_rng(0).normal(size=frames.shape))
    by_ke, by_v = torch.func.vjp(run, ke, v)[1](weights)
    assert torch.isclose(by_ke + by_v.sum(), (weights * moved).sum(), rtol=1e-12)
    by, along = (jacobian(run, argnums=1)(ke, v) for jacobian in (torch.func.jacrev, torch.func.jacfwd))
    assert by.shape == (*frames.shape, *v.shape) and by.abs().max() > 0
    assert torch.allclose(by, along, rtol=1e-12, atol=1e-14)
    both = torch.func.vmap(run, (0, None))(torch.stack([ke, 1.5 * ke]), v)
    assert np.array_equal(both[1].numpy(), run(1.5 * ke, v).numpy())


def test_a_batch_goes_forward_as_well():
    model = net()
    batch = ph.batch([model, model.replace({"net.ke": 30.0})])
    ke = torch.tensor([20.0, 30.0], dtype=torch.float64)
    moved = torch.func.jvp(lambda ke: ph.rollout(batch.replace({"net.ke": ke}), **HOW)["net"].x, (ke,), (ke,))[1]
    for k, copy in enumerate(batch.scenes):
        assert np.array_equal(moved[k].numpy(), ph.jvp(copy, {"net.ke": ke[k].item()}, **HOW)["net"].x[0])


def test_second_derivatives_are_those_of_differences_or_refused_and_never_constant():
    model = net()
    ke = torch.tensor(20.0, dtype=torch.float64, requires_grad=True)

    def height(ke):
        return ph.rollout(model.replace({"net.ke": ke}), **HOW)["net"].x[-1, :, 1].square().sum()

    def slope_at(value):
        at = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(height(at), at)[0].item()

    slope = torch.autograd.grad(height(ke), ke, create_graph=True)[0]
    (second,) = torch.autograd.grad(slope, ke)
    assert second.item() == pytest.approx((slope_at(20.001) - slope_at(19.999)) / 2e-3, rel=1e-6) != 0
    assert torch.func.hessian(height)(ke.detach()).item() == pytest.approx(second.item(), rel=1e-10)
    force = ph.forces(model.replace({"net.ke": ke}))["net"].f
    slope = torch.autograd.grad(force.square().sum(), ke, create_graph=True)[0]
    with pytest.raises(TypeError, match=r"ph\.hessian_vector"):
        torch.autograd.grad(slope, ke)


def test_a_compiled_function_runs_rollouts_between_its_graphs():
    model, ke = net(), torch.tensor(20.0, dtype=torch.float64, requires_grad=True)

    def height(ke):
        return 2 * ph.rollout(model.replace({"net.ke": ke * 2}), **HOW)["net"].x[-1, 0, 1]

    compiled = torch.compile(height, backend="eager")(ke)
    (found,), (expected,) = (torch.autograd.grad(y, ke) for y in (compiled, height(ke)))
    assert compiled == height(ke) and found == expected != 0


def test_tangents_that_do_not_fit_are_refused():
    model, state, (v, _) = block()
    for study in (lambda t: ph.hessian_vector(model, state, t), lambda t: ph.energy(model, state, tangents=t)):
        with pytest.raises(ValueError, match="no parameter moves"):
            study({})
        with pytest.raises(KeyError, match=r"jelly\.x"):
            study({"jelly.y": v})
        with pytest.raises(ValueError, match=r"has shape \(2,\)"):
            study({"jelly.x": [1.0, 2.0]})
