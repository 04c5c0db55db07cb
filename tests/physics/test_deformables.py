"""Laws that hold for solids, cloth and springs alike, in one scene: whatever state they are in."""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

seeds = st.integers(0, 2**32 - 1)
BLOCK = ph.TetMesh.box((0.3, 0.2, 0.2), cells=(2, 1, 1))
SHEET = ph.TriMesh.grid((0.5, 0.4), cells=(3, 2))
POINTS, PAIRS = ph.spring_grid((0.4, 0.4), (2, 2))
REST = {"block": BLOCK.vertices, "sheet": SHEET.vertices, "net": POINTS}


def build():
    made = ph.Scene(gravity=(0, 0, 0))
    made.add_soft("block", BLOCK, density=100.0, material=ph.NeoHookean(E=2e3, nu=0.3), damping=20.0)
    made.add_cloth("sheet", SHEET, mass=0.2, stretch=30.0, shear=20.0, damping=0.5, bend=0.05, bend_damping=0.01)
    made.add_springs("net", POINTS, PAIRS, ke=20.0, kd=2.0, mass=0.05)
    return made.build("float64")


MODEL = build()


def start(x, v):
    return MODEL.replace({f"{name}.{what}": values for what, part in (("x", x), ("v", v))
                          for name, values in part.items()})  # fmt: skip


@given(st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 1.0])] * 3))
def test_collapsed_and_inverted_states_have_finite_motions_and_gradients(size):
    leaves = {f"{name}.x": torch.tensor(points * size, requires_grad=True) for name, points in REST.items()}
    frames = ph.rollout(MODEL.replace(leaves), dt=1e-7, steps=2, check=False)
    sum(frames[name].x[-1].sum() + frames[name].v[-1].sum() for name in REST).backward()
    assert all(torch.isfinite(frames[name].x).all() for name in REST)
    assert all(torch.isfinite(leaf.grad).all() for leaf in leaves.values())


@given(seeds)
def test_the_energy_of_what_is_damped_never_grows(seed):
    rng = np.random.default_rng(seed)
    model = start({n: p + 0.03 * rng.normal(size=p.shape) for n, p in REST.items()},
                  {n: rng.normal(size=p.shape) for n, p in REST.items()})  # fmt: skip
    frames = ph.rollout(model, dt=2e-4, steps=400, every=50)
    energy = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert all(after <= before * (1 + 1e-3) + 1e-9 for before, after in pairwise(energy))


@given(seeds)
def test_a_whole_motion_turns_with_its_start_and_keeps_its_momenta(seed):
    rng = np.random.default_rng(seed)
    x = {n: p + 0.02 * rng.normal(size=p.shape) for n, p in REST.items()}
    v = {n: 0.5 * rng.normal(size=p.shape) for n, p in REST.items()}
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R, boost = R * np.sign(np.linalg.det(R)), rng.normal(size=3)
    dt, steps = 2e-4, 100
    here = ph.rollout(start(x, v), dt=dt, steps=steps, every=steps).state()
    turned = start({n: a @ R.T for n, a in x.items()}, {n: a @ R.T + boost for n, a in v.items()})
    there = ph.rollout(turned, dt=dt, steps=steps, every=steps).state()
    mass = {"block": ph.vertex_masses(BLOCK, 100.0), "sheet": ph.vertex_masses(SHEET, 1.0), "net": np.full(9, 0.05)}
    for name in REST:
        expected = here[name].x @ R.T + boost * (dt * steps)
        np.testing.assert_allclose(there[name].x, expected, rtol=0, atol=1e-10)
        p = [mass[name][:, None] * part for part in (v[name], here[name].v)]
        np.testing.assert_allclose(p[1].sum(axis=0), p[0].sum(axis=0), atol=1e-11)
        L = [np.cross(part, q).sum(axis=0) for part, q in zip((x[name], here[name].x), p)]
        np.testing.assert_allclose(L[1], L[0], atol=1e-11)
