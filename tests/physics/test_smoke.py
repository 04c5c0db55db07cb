"""Laws of smoke: no divergence, what symmetry and exact solutions say, and gradients of every quantity."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws import smoke_kernels as kernels
from nablasim.physics.laws.projection import Projection, Staggered

SEEDS = st.integers(0, 10_000)
BOUNDARIES = ["periodic", "closed", ("periodic", "closed"), ("closed", "periodic")]
CELLS = (9, 7)


def disc(x, y):
    return (x - 0.45) ** 2 + (y - 0.6) ** 2 < 0.03


def stirred(seed=0, cells=CELLS, **changes):
    """Everything in motion, nothing at a special place."""
    rng = np.random.default_rng(seed)
    settings = {
        "size": (1.0, 1.2), "cells": cells, "real": "float64",
        "velocity": rng.normal(size=(*cells, 2)), "density": rng.uniform(size=cells),
        "force": rng.normal(size=(*cells, 2)), "source": rng.uniform(size=cells), "buoyancy": 0.7, "decay": 0.3,
    }  # fmt: skip
    return ph.Smoke(**{**settings, **changes})


def divergence(smoke, frames):
    u, v = (np.asarray(a) for a in (frames.u, frames.v))
    flat = np.concatenate([u.reshape(len(u), -1), v.reshape(len(v), -1)], axis=1)
    return np.abs(smoke.grid.divergence() @ flat.T).max() * min(smoke.grid.h) / np.abs(flat).max()


# -------------------------------------------------------------------------------------------------------- projection
@given(seed=SEEDS, wrap=st.tuples(st.booleans(), st.booleans()), solid=st.sampled_from([0.0, 0.1, 0.4]))
def test_the_projection_is_orthogonal_and_leaves_no_divergence(seed, wrap, solid):
    """Also with pools of air that are cut off, and with single cells."""
    rng = np.random.default_rng(seed)
    grid = Staggered((8, 6), (0.3, 0.2), wrap, rng.uniform(size=(8, 6)) < solid)
    P, D = Projection(grid), grid.divergence()
    w, g = rng.normal(size=(2, len(grid.open)))
    u = P(w)
    assert np.abs(D @ u).max() < 1e-13
    assert np.array_equal(u[~grid.open], np.zeros((~grid.open).sum()))
    assert np.allclose(P(u), u, atol=1e-14)  # a projection
    assert np.isclose(g @ u, P(g) @ w)  # its own adjoint
    # The nearest one: what was taken away is at right angles to every flow without divergence.
    assert abs((np.where(grid.open, w, 0) - u) @ P(g)) < 1e-12


@given(seed=SEEDS, wrap=st.tuples(st.booleans(), st.booleans()))
def test_waves_and_factors_agree(seed, wrap):
    grid = Staggered((8, 6), (0.3, 0.2), wrap, np.zeros((8, 6), bool))
    by_waves, by_factors = Projection(grid), Projection(grid)
    by_factors._solve = by_factors._by_factors
    w = np.random.default_rng(seed).normal(size=(3, len(grid.open)))
    assert np.allclose(by_waves(w), by_factors(w), atol=1e-13)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("obstacle", [None, disc])
@pytest.mark.parametrize(("real", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_no_frame_has_divergence(boundary, obstacle, real, tolerance):
    smoke = stirred(boundary=boundary, obstacle=obstacle, real=real)
    frames = ph.rollout(smoke, dt=0.05, steps=8, every=2)
    assert divergence(smoke, frames) < tolerance


# --------------------------------------------------------------------------------------------------------- the model
def test_a_uniform_wind_carries_smoke_from_cell_to_cell():
    density = np.random.default_rng(0).uniform(size=(8, 6))
    smoke = ph.Smoke((2.0, 1.5), (8, 6), velocity=(0.5, -0.25), density=density, boundary="periodic", real="float64")
    frames = ph.rollout(smoke, dt=0.5, steps=4)  # one cell along x, half a cell along y per step
    assert np.allclose(frames.velocity, [0.5, -0.25])
    half = 0.5 * (np.roll(density, (1, 0), axis=(0, 1)) + np.roll(density, (1, -1), axis=(0, 1)))
    assert np.allclose(frames.density[1], half)
    assert np.allclose(np.asarray(frames.density).sum(axis=(1, 2)), density.sum())


def test_a_steady_vortex_stays_the_better_the_finer_the_grid():
    """u = (sin x cos y, -cos x sin y) solves Euler's equations. First order in the step and second in the cells."""

    def error(n):
        side = 2 * np.pi / n
        x, y = np.meshgrid(*[(np.arange(n) + 0.5) * side] * 2, indexing="ij")
        flow = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)], axis=-1)
        smoke = ph.Smoke((2 * np.pi,) * 2, (n, n), velocity=flow, boundary="periodic", real="float64")
        # Steps of one cell: interpolating loses something at every step, not per second.
        return np.abs(np.asarray(ph.rollout(smoke, dt=side, steps=n // 8, every=n // 8).velocity[-1]) - flow).max()

    errors = [error(n) for n in (16, 32, 64)]
    assert errors[2] < 0.05 and errors[0] > 1.7 * errors[1] > 2.9 * errors[2]


def test_smoke_of_even_density_does_not_rise_in_a_box():
    frames = ph.rollout(ph.Smoke(cells=CELLS, density=2.0, buoyancy=5.0, real="float64"), dt=0.1, steps=5)
    assert np.abs(np.asarray(frames.velocity)).max() < 1e-12  # pressure carries it
    assert np.allclose(frames.density, 2.0)


def test_a_warm_puff_rises_and_mirrors():
    x, y = np.meshgrid((np.arange(16) + 0.5) / 16, (np.arange(24) + 0.5) / 16, indexing="ij")
    puff = np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.02)
    smoke = ph.Smoke((1, 1.5), (16, 24), density=puff, buoyancy=3.0, real="float64")
    frames = ph.rollout(smoke, dt=0.02, steps=30, every=10)
    density, velocity = np.asarray(frames.density), np.asarray(frames.velocity)
    height = (density * y).sum(axis=(1, 2)) / density.sum(axis=(1, 2))
    assert (np.diff(height) > 0.01).all()
    assert np.allclose(density, density[:, ::-1], atol=1e-12)
    assert np.allclose(velocity, velocity[:, ::-1] * [-1, 1], atol=1e-12)


def test_nothing_flows_through_an_obstacle():
    smoke = stirred(cells=(12, 10), obstacle=disc, boundary="closed")
    frames = ph.rollout(smoke, dt=0.05, steps=6)
    solid = smoke.grid.solid
    u, v = np.asarray(frames.u), np.asarray(frames.v)
    assert solid.sum() > 3
    assert not u[:, :-1][:, solid].any() and not u[:, 1:][:, solid].any()
    assert not v[:, :, :-1][:, solid].any() and not v[:, :, 1:][:, solid].any()
    assert not u[:, [0, -1]].any() and not v[:, :, [0, -1]].any()
    assert not np.asarray(frames.density)[1:, solid].any()


def test_a_source_feeds_and_decay_fades():
    smoke = ph.Smoke(cells=CELLS, density=1.0, source=0.5, decay=0.2, real="float64")
    rho = 1.0
    for k, frame in enumerate(np.asarray(ph.rollout(smoke, dt=0.1, steps=5).density)):
        assert np.allclose(frame, rho), k
        rho = rho * np.exp(-0.02) + 0.05


# --------------------------------------------------------------------------------------------------------- gradients
@pytest.mark.parametrize("boundary", ["periodic", "closed"])
def test_kernels_have_the_right_gradients(boundary):
    smoke = stirred(cells=(4, 5), boundary=boundary, obstacle=lambda x, y: (x < 0.3) & (y < 0.3))
    layout, rng = smoke._model.layout, np.random.default_rng(1)
    cells, faces = layout.count["gas_cells"], layout.count["gas_faces"]

    def leaf(n):
        return kc.array(rng.normal(size=n), requires_grad=True)

    def indices(table, *names):
        return [kc.array(layout.indices[f"{table}.{name}"]) for name in names]

    grids = kernels.Grids(*indices("gas_grids", "numbers", "first_cell", "first_face"), kc.array(smoke.grid.h))
    gas, dt = kernels.Gas(leaf(faces), leaf(cells)), kc.array([0.07])
    given = [gas, leaf(cells), leaf(1), kernels.Cells(*indices("gas_cells", "grid", "place")), grids, dt]
    assert kc.testing.gradcheck(kernels.advect_smoke, cells, given, [kc.zeros(cells, real=kc.float64)])
    given = [gas, leaf(2 * cells), leaf(1), kernels.Faces(*indices("gas_faces", "grid", "place", "cells")), grids, dt]
    assert kc.testing.gradcheck(kernels.push_air, faces, given, [kc.zeros(faces, real=kc.float64)])


QUANTITIES = ["velocity", "density", "force", "source", "buoyancy", "decay"]


def tensors(smoke, left_out=()):
    """All quantities as leaves, so that the adjoints are compiled once."""
    return {n: torch.tensor(smoke[n], requires_grad=True) for n in QUANTITIES if n not in left_out}


CASES = {"periodic": ("periodic", None, False), "box": ("closed", disc, False), "control": (BOUNDARIES[2], None, True)}


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_every_quantity_through_a_rollout_are_right(case):
    boundary, obstacle, varied = CASES[case]
    smoke, rng = stirred(3, boundary=boundary, obstacle=obstacle), np.random.default_rng(5)
    weights = {name: torch.from_numpy(rng.normal(size=shape)) for name, shape in
               (("density", (3, *CELLS)), ("velocity", (3, *CELLS, 2)))}  # fmt: skip

    def loss(values):
        control = {"force": values["control"]} if varied else {}
        model = smoke.replace({name: v for name, v in values.items() if name != "control"})
        frames = ph.rollout(model, dt=0.03, steps=6, every=3, control=control)
        return sum((frames[name] * w).sum() for name, w in weights.items()) + frames.u[1].pow(2).sum()

    leaves = tensors(smoke, ["force"] if varied else [])
    if varied:
        leaves["control"] = torch.tensor(rng.normal(size=(6, *CELLS, 2)), requires_grad=True)
    loss(leaves).backward()
    fixed = {name: leaf.detach().numpy() for name, leaf in leaves.items()}
    for name, leaf in leaves.items():
        direction, h = rng.normal(size=leaf.shape), 1e-7
        ends = [float(loss({**fixed, name: fixed[name] + s * h * direction})) for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert np.isclose(float((leaf.grad.numpy() * direction).sum()), slope, rtol=1e-5, atol=1e-6), name


def gradient(checkpoint):
    smoke = stirred(2)
    leaves = tensors(smoke)
    frames = ph.rollout(smoke.replace(leaves), dt=0.02, steps=24, every=4, checkpoint=checkpoint)
    frames.density.pow(2).sum().backward()
    return leaves["velocity"].grad


@pytest.mark.parametrize("checkpoint", ["sqrt", 3])
def test_checkpoints_do_not_change_a_bit(checkpoint):
    assert torch.equal(gradient(checkpoint), gradient("all"))


def test_a_rollout_runs_on_a_tape_and_again():
    smoke = stirred(6)
    arrays = {n: kc.array(np.atleast_1d(np.array(smoke[n])), requires_grad=True) for n in QUANTITIES}
    with kc.Tape() as tape:
        frames = ph.rollout(smoke.replace(arrays), dt=0.02, steps=4)
    weights = np.random.default_rng(0).normal(size=(5, *CELLS))
    tape.backward(grads={frames.density: weights, frames.u: np.ones(frames.u.shape)})
    leaves = tensors(smoke)
    wanted = ph.rollout(smoke.replace(leaves), dt=0.02, steps=4)
    ((wanted.density * torch.from_numpy(weights)).sum() + wanted.u.sum()).backward()
    for name, array in arrays.items():
        assert np.allclose(array.grad.numpy(), leaves[name].grad, atol=1e-14), name
    arrays["velocity"].assign(np.zeros((*CELLS, 2)))
    tape.replay()
    still = ph.rollout(smoke.replace(velocity=0.0), dt=0.02, steps=4)
    for name in frames:
        assert np.array_equal(frames[name].numpy(), np.asarray(still[name])), name


# ------------------------------------------------------------------------------------------------------ batch, errors
def test_a_batch_is_many_boxes():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(3, *CELLS, 2))
    many = stirred(velocity=v, batch=3, obstacle=disc)
    frames = ph.rollout(many, dt=0.03, steps=4, every=2)
    assert tuple(frames.density.shape) == (3, 3, *CELLS) and tuple(frames.velocity.shape) == (3, 3, *CELLS, 2)
    for k in range(3):
        alone = ph.rollout(stirred(velocity=v[k], obstacle=disc), dt=0.03, steps=4, every=2)
        assert np.allclose(frames.density[k], alone.density, atol=1e-14)
        assert np.allclose(frames.u[k], alone.u, atol=1e-14)


def controlled(**control):
    return ph.rollout(ph.Smoke(cells=(4, 4)), dt=0.1, steps=2, control=control)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ph.Smoke(cells=(1, 4)), "cells are two whole numbers from 2 on"),
        (lambda: ph.Smoke(size=(1, 0)), "size is two lengths"),
        (lambda: ph.Smoke(boundary="open"), 'boundary is "closed" or "periodic"'),
        (lambda: ph.Smoke(cells=(4, 4), obstacle=np.ones((4, 4), bool)), "there is no air"),
        (lambda: ph.Smoke(cells=(4, 4), obstacle=np.ones((3, 4), bool)), "obstacle is a mask of shape"),
        (lambda: ph.Smoke(cells=(4, 4), density=np.ones((4, 5))), "density has shape"),
        (lambda: ph.Smoke(cells=(4, 4), velocity=np.full((4, 4, 2), np.nan)), "velocity has an entry that is not"),
        (lambda: ph.Smoke(decay=-1.0), "decay must not be below 0"),
        (lambda: controlled(density=np.ones((2, 4, 4))), "control varies force or source, not 'density'"),
        (lambda: controlled(source=np.ones((3, 4, 4))), r"control of 'source' has shape \(3, 4, 4\)"),
        (lambda: ph.rollout(ph.Smoke(cells=(4, 4)), dt=-0.1, steps=2), "dt must be positive"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_parameters_have_names_units_and_shapes():
    smoke = stirred()
    assert smoke.names() == QUANTITIES
    assert {p.name: p.full for p in smoke.parameters()}["velocity"] == (*CELLS, 2)
