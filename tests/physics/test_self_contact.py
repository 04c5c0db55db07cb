"""Laws of cloth and solids that touch themselves and each other: momentum, invariance, what is found, gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.laws.contact import self_contact_kernels as self_contact
from nablasim.physics.laws.contact import touching_kernels as touching
from nablasim.physics.laws.deformable import particles_kernels as particles

seeds = st.integers(0, 2**32 - 1)
GRID = ph.TriMesh.grid((1.0, 0.8), cells=(5, 4))
THICK = 0.09


def scene(gravity=(0.0, 0.0, 0.0), others=0, **changes):
    made = ph.Scene(gravity=gravity)
    for name in ("flag", *(f"other{k}" for k in range(others))):
        made.add_cloth(name, GRID, mass=0.3, stretch=40.0, shear=30.0)
        made.add_self_contact(name, **{"thickness": THICK, "ke": 50.0, "kd": 0.05, "kf": 0.1, "mu": 0.4, **changes})
    return made


MODEL = scene().build("float64")
TWO = scene(others=1).build("float64")


def crumpled(rng, size=0.35):
    """Vertices anywhere in a small ball: every vertex touches something, mostly."""
    return size * rng.normal(size=GRID.vertices.shape)


def contact_force(model, x, v):
    """Of the contact alone: forces with the membrane switched off."""
    off = {f"{name}.{what}": 0.0 for name in model.state0 for what in ("stretch", "shear")}
    state = model.state0.replace({f"{n}.x": x[n] for n in x}).replace({f"{n}.v": v[n] for n in v})
    return {name: f.f for name, f in ph.forces(model.replace(off), state).items()}


def brute_force(x, faces, thickness, exclude):
    """Pairs of vertex and triangle closer than the thickness, with their distances, by sampling nothing: exactly."""
    pairs = np.array([(v, t) for v in range(len(x)) for t in range(len(faces)) if (v, t) not in exclude], np.int32)
    apart = kc.zeros(len(pairs), real=kc.float64)
    kc.launch(touching.distances, len(pairs), [kc.array(x.copy(), dtype=kc.float3), kc.array(faces.copy()),
                                               kc.array(pairs)], [apart])  # fmt: skip
    return {(int(v), int(t)): d for (v, t), d in zip(pairs, apart.numpy()) if d < thickness}


OWN = {(int(v), t) for t, face in enumerate(GRID.faces) for v in face}


@given(seeds)
def test_every_contact_is_found_and_no_other(seed):
    # Σ ke (thickness - d)² / 2 over all pairs, which are found by looking at each.
    x = crumpled(np.random.default_rng(seed))
    found = brute_force(x, GRID.faces, THICK, OWN)
    expected = sum(0.5 * 50.0 * (THICK - d) ** 2 for d in found.values())
    energy = ph.energy(MODEL, MODEL.state0.replace({"flag.x": x}))["self_contacts"]
    assert found
    assert energy == pytest.approx(expected, rel=1e-12)


@given(seeds, st.sampled_from([MODEL, TWO]))
def test_there_is_no_net_force_and_no_net_torque(seed, model):
    rng = np.random.default_rng(seed)
    x, v = ({name: crumpled(rng, size) for name in model.state0} for size in (0.3, 1.0))
    f = contact_force(model, x, v)
    total, scale = sum(f.values()), max(np.abs(part).max() for part in f.values())
    assert scale > 0.01
    np.testing.assert_allclose(total.sum(axis=0), 0, atol=1e-11 * scale)
    torque = sum(np.cross(x[name], f[name]).sum(axis=0) for name in f)
    np.testing.assert_allclose(torque, 0, atol=1e-11 * scale)


@given(seeds)
def test_contact_turns_with_the_cloth_and_does_not_brake_its_motion_as_a_whole(seed):
    rng = np.random.default_rng(seed)
    x, v = crumpled(rng), rng.normal(size=GRID.vertices.shape)
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R = R * np.sign(np.linalg.det(R))
    spin, shift, boost = rng.normal(size=(3, 3))
    here = contact_force(MODEL, {"flag": x}, {"flag": v})["flag"]
    moved = x @ R.T + shift
    there = contact_force(MODEL, {"flag": moved}, {"flag": v @ R.T + boost + np.cross(spin, moved)})["flag"]
    # Friction and damping see the motion of parts against each other, and no rotation of all of them.
    np.testing.assert_allclose(there, here @ R.T, rtol=0, atol=1e-9 * np.abs(here).max())


@given(seeds)
def test_forces_are_minus_the_slope_of_the_energy(seed):
    rng, h = np.random.default_rng(seed), 1e-6
    x, way = crumpled(rng), rng.normal(size=GRID.vertices.shape)
    model = MODEL.replace({"flag.self_mu": 0.0})
    still = contact_force(model, {"flag": x}, {"flag": 0 * x})["flag"]

    def at(s):
        found = ph.energy(model, model.state0.replace({"flag.x": x + s * h * way}))
        return found["self_contacts"] + found["edge_contacts"]

    scale = np.linalg.norm(still) * np.linalg.norm(way)
    assert -(at(1) - at(-1)) / (2 * h) == pytest.approx((still * way).sum(), rel=1e-5, abs=1e-5 * scale)


def test_a_cloth_at_rest_does_not_touch_itself_however_thick():
    for thickness in (0.05, 0.3, 1.0):
        model = scene(thickness=thickness).build("float64")
        assert ph.energy(model)["self_contacts"] == 0.0
    ball = ph.Scene().add_cloth("ball", ph.TriMesh.icosphere(0.1, subdivisions=1), mass=0.1)
    assert ph.energy(ball.add_self_contact("ball", thickness=0.3).build("float64"))["self_contacts"] == 0.0


def test_the_default_thickness_is_half_of_the_shortest_edge():
    model = ph.Scene().add_cloth("flag", GRID, mass=0.1).add_self_contact("flag").build()
    assert model["flag.thickness"] == pytest.approx(0.1)


def test_a_cloth_lies_on_another_one():
    # The lower one is held, the upper one slides and falls on it: it stays above, at about the thickness.
    made = ph.Scene()
    flat = ph.TriMesh.grid((1.0, 1.0), cells=(6, 6)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
    for name, height in (("lower", 0.0), ("upper", 0.1)):
        made.add_cloth(name, flat, mass=0.2, stretch=100.0, shear=50.0, damping=0.05, bend=1e-3, pos=(0, height, 0.02))
        made.add_self_contact(name, thickness=0.04, ke=20.0, kd=0.05, kf=0.05, mu=0.5)
    model = made.fix("lower").build("float64")
    frames = ph.rollout(model, dt=1e-3, steps=4000, every=100)
    y = frames["upper"].x[..., 1]
    assert y.min() > 0.02
    assert 0.035 < y[-1].min() and y[-1].max() < 0.041
    assert frames["upper"].v[-1].abs().max() < 0.02


def test_what_was_found_does_not_depend_on_when_one_looks():
    # A list of candidates is kept over steps. In one go, in pieces and step by step, the bits are the same.
    x, v = folded(np.random.default_rng(2))
    model = MODEL.replace({"flag.x": x, "flag.v": v})
    whole = ph.rollout(model, dt=1e-3, steps=300, every=20)
    assert max(ph.energy(model, whole.state(k))["self_contacts"] for k in range(len(whole))) > 1e-3
    for pieces in (20, 1):
        state = whole.state(0)
        for k in range(1, 5):
            for _ in range(20 // pieces):
                state = ph.rollout(model.at(state), dt=1e-3, steps=pieces, every=pieces).state()
            np.testing.assert_array_equal(state["flag"].x, whole.state(k)["flag"].x)


def folded(rng):
    """One half of the cloth a little above the other, slamming down on it."""
    x = GRID.vertices.copy()
    over = x[:, 0] > 0.5
    x[over] = np.stack([1.03 - x[over, 0], x[over, 1] + 0.04, np.full(over.sum(), 0.1)], axis=1)
    v = np.where(over[:, None], [0.1, 0.2, -1.0], 0) + 0.1 * rng.normal(size=x.shape)
    return x + 0.004 * rng.normal(size=x.shape), v


X0, V0 = folded(np.random.default_rng(0))
NAMES = ["flag.x", "flag.v", "flag.mass", "flag.stretch", "flag.thickness", "flag.self_ke", "flag.self_kd",
         "flag.self_kf", "flag.self_mu"]  # fmt: skip


def loss(values, model, **settings):
    frames = ph.rollout(model.replace(values), dt=1e-3, steps=120, every=10, **settings)["flag"]
    random = torch.Generator().manual_seed(0)
    weights = torch.randn((2, *frames.x.shape), generator=random, dtype=torch.float64)
    return (frames.x * weights[0] + frames.v * weights[1]).sum()


def leaves(model):
    start = {"flag.x": X0, "flag.v": V0}
    return {n: torch.tensor(np.array(start.get(n, model[n])), requires_grad=True) for n in NAMES}


@pytest.mark.parametrize("law", [{}, {"damping": "linear"}, {"smoothing": 0.005}])
def test_every_parameter_against_central_differences(law):
    model = scene(**law).build("float64")
    values = leaves(model)
    loss(values, model).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(1)
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        # What decides when contacts begin is changed by little, so that few of them do in between.
        h = (1e-8 if name in ("flag.x", "flag.v", "flag.thickness") else 1e-6) * float(value.detach().abs().max())
        two = [float(loss({**fixed, name: fixed[name] + s * h * way}, model)) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=1e-4, abs=1e-5), name
        assert found != 0.0, f"{name} has no effect"


def test_checkpoints_do_not_change_a_bit():
    grads = []
    for checkpoint in ("all", "sqrt", 9):
        values = leaves(MODEL)
        loss(values, MODEL, checkpoint=checkpoint).backward()
        grads.append([v.grad for v in values.values()])
    for other in grads[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, grads[0]))


def test_copies_of_a_batch_do_not_touch_each_other():
    batch = scene().build("float64", batch=3)
    starts = [folded(np.random.default_rng(k)) for k in range(3)]
    values = {"flag.x": np.stack([x for x, _ in starts]), "flag.v": np.stack([v for _, v in starts])}
    frames = ph.rollout(batch.replace(values), dt=1e-3, steps=100, every=100)
    for k, (x, v) in enumerate(starts):
        one = ph.rollout(MODEL.replace({"flag.x": x, "flag.v": v}), dt=1e-3, steps=100, every=100)
        np.testing.assert_allclose(frames["flag"].x[k], one["flag"].x, rtol=0, atol=1e-12)


def test_another_thickness_finds_other_contacts():
    # The candidates of a model that ran before must not be those of a thicker cloth.
    x, v = folded(np.random.default_rng(0))
    thin = MODEL.replace({"flag.x": x, "flag.v": 0 * v, "flag.thickness": 0.01})
    fresh = scene(thickness=THICK).build("float64").replace({"flag.x": x, "flag.v": 0 * v})
    ph.rollout(thin, dt=1e-3, steps=20, every=20)
    thick = ph.rollout(thin.replace({"flag.thickness": THICK}), dt=1e-3, steps=20, every=20)
    expected = ph.rollout(fresh, dt=1e-3, steps=20, every=20)
    np.testing.assert_array_equal(thick["flag"].x, expected["flag"].x)


def test_too_many_layers_are_refused():
    with pytest.raises(kc.AssertFailed, match="too many layers touch in one place: make them thinner"):
        ph.forces(MODEL, MODEL.state0.replace({"flag.x": 0.01 * GRID.vertices}))


def test_the_step_is_limited_by_the_contact_of_layers():
    with pytest.raises(ph.StepTooLarge, match="its contact"):
        ph.rollout(MODEL.replace({"flag.self_ke": 1e6}), dt=1e-3, steps=1)


def test_wrong_input_is_named():
    made = ph.Scene().add_cloth("flag", GRID, mass=1.0).add_particles("dust", [[0.0, 0, 0]], mass=1.0)
    for changes, message in (
        ({"thickness": 0.0}, "flag.thickness must be positive, and is 0"),
        ({"ke": -1.0}, "flag.self_ke must not be negative"),
        ({"damping": "none"}, 'damping is "smooth" or "linear"'),
    ):
        with pytest.raises(ValueError, match=message):
            made.add_self_contact("flag", **changes)
    with pytest.raises(KeyError, match="there is nothing deformable named 'rust'"):
        made.add_self_contact("rust")
    made.add_self_contact("flag")
    with pytest.raises(ValueError, match="'flag' touches itself already"):
        made.add_self_contact("flag")


# -- solids
BLOCK = ph.TetMesh.box((0.2, 0.2, 0.2), cells=(2, 2, 2))


def tower(gravity=(0, -9.81, 0), gap=0.04, **contact):
    """A sheet on a soft block on another one, each a little askew."""
    made, soft = ph.Scene(gravity=gravity), ph.NeoHookean(E=2e4, nu=0.3)
    for name, pos, rot in (("lower", (0, 0, 0), None), ("upper", (0.01, 0.2 + gap, 0.02), ph.quat((0, 1, 0), 0.1))):
        made.add_soft(name, BLOCK, density=300.0, material=soft, damping=30.0, pos=pos, rot=rot)
    sheet = ph.TriMesh.grid((0.3, 0.3), cells=(4, 4)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
    made.add_cloth("sheet", sheet, mass=0.2, stretch=50.0, shear=30.0, damping=0.05, bend=1e-3,
                   pos=(-0.05, 0.4 + 2 * gap, 0.25))  # fmt: skip
    for name in ("lower", "upper", "sheet"):
        made.add_self_contact(name, **{"thickness": 0.04, "ke": 1000.0, "kd": 2.0, "kf": 4.0, "mu": 0.6, **contact})
    return made


def test_soft_solids_carry_each_other():
    """A sheet on a block on another block: once all have settled, each contact carries what is above it."""
    made, soft = ph.Scene(), ph.NeoHookean(E=2e4, nu=0.3)
    block = ph.TetMesh.box((0.4, 0.2, 0.4), cells=(2, 2, 2))
    for name, pos, rot in (("lower", (0, 0, 0), None), ("upper", (0.01, 0.23, 0.02), ph.quat((0, 1, 0), 0.1))):
        made.add_soft(name, block, density=300.0, material=soft, damping=300.0, pos=pos, rot=rot)
        made.add_self_contact(name, thickness=0.04, ke=1000.0, kd=60.0, kf=60.0, mu=0.6)
    sheet = ph.TriMesh.grid((0.3, 0.3), cells=(4, 4)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))
    made.add_cloth("sheet", sheet, mass=1.0, stretch=50.0, shear=30.0, damping=0.05, bend=1e-3, pos=(0.05, 0.46, 0.35))
    made.add_self_contact("sheet", thickness=0.04, ke=1000.0, kd=2.0, kf=4.0, mu=0.6)
    made.add_ground("floor", ke=2e3, kd=5.0, kf=50.0, mu=0.6)
    model = made.build()
    end = ph.rollout(model, dt=1 / 500, steps=1000, every=1000, substeps=16).state()
    low, high, top = (end[name].x[:, 1] for name in ("lower", "upper", "sheet"))
    assert low.max() < high.min() + 0.01 and high.max() < top.min() + 0.01
    # Of what solids and cloth do to each other, without the floor; and with it.
    lifted = ph.forces(model.replace({"floor.ke": 0.0, "floor.kd": 0.0, "floor.kf": 0.0}), end)
    layers, whole = ({name: found[name].f[:, 1].sum() for name in end} for found in (lifted, ph.forces(model, end)))
    block_weight, sheet_weight = 300.0 * 0.032 * 9.81, 9.81
    assert layers["sheet"] == pytest.approx(sheet_weight, rel=2e-3)
    assert layers["upper"] == pytest.approx(block_weight, rel=1e-3)
    assert -layers["lower"] == pytest.approx(block_weight + sheet_weight, rel=1e-3)
    assert whole["lower"] - layers["lower"] == pytest.approx(2 * block_weight + sheet_weight, rel=1e-3)


def test_solids_that_collide_keep_their_momenta():
    model = tower(gravity=(0, 0, 0)).build("float64").replace({"upper.v": np.array([0.2, -1.0, 0.1])})
    frames = ph.rollout(model, dt=1 / 2000, steps=300, every=300, substeps=4).numpy()
    mass = {"lower": ph.vertex_masses(BLOCK, 300.0)}
    mass["upper"] = mass["lower"]
    p = {name: m[:, None] * frames[name].v for name, m in mass.items()}
    sheet = ph.vertex_masses(ph.TriMesh.grid((0.3, 0.3), cells=(4, 4)), 0.2 / 0.09)[:, None] * frames["sheet"].v
    total = sum(part.sum(axis=1) for part in (*p.values(), sheet))
    np.testing.assert_allclose(total[1], total[0], atol=1e-12)
    assert p["lower"][1].sum(axis=0)[1] < -0.2  # It was hit.


def test_a_solid_at_rest_does_not_touch_itself_and_its_inside_touches_nothing():
    thin = ph.TetMesh.box((0.3, 0.02, 0.3), cells=(3, 1, 3))
    made = ph.Scene(gravity=(0, 0, 0)).add_soft("slab", thin, density=1.0, material=ph.NeoHookean(E=1e3, nu=0.3))
    made.add_self_contact("slab", thickness=0.05)
    np.testing.assert_allclose(ph.forces(made.build("float64"))["slab"].f, 0, atol=1e-12)
    deep = ph.TetMesh.box((0.3, 0.3, 0.3), cells=(3, 3, 3))
    made.add_soft("cube", deep, density=1.0, material=ph.NeoHookean(E=1e3, nu=0.3)).add_self_contact("cube")
    rows = made.build().layout.things["cube"].rows
    assert rows["touch_vertices"].count == 64 - 8 and rows["touch_triangles"].count == len(deep.surface.faces)


def test_gradients_go_through_the_contact_of_solids():
    model = tower(gap=0.03, smoothing=0.004).build("float64")
    names = ["upper.self_ke", "lower.self_kd", "lower.self_mu", "upper.thickness", "lower.mu", "upper.x", "sheet.mass"]
    start = {"upper.v": torch.tensor([0.3, -1.0, 0.2], dtype=torch.float64)}

    def far(values):
        frames = ph.rollout(model.replace({**start, **values}), dt=1 / 2000, steps=100, every=50, substeps=4)
        return sum((frames[n].x * torch.sin(7 * frames[n].x)).sum() + frames[n].v.pow(2).sum() for n in frames)

    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    far(values).backward()
    rng = np.random.default_rng(0)
    for name, value in values.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-6 * float(value.detach().abs().max())
        two = [float(far({**values, name: value.detach() + s * h * way}).detach()) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found != 0.0 and found == pytest.approx((two[0] - two[1]) / (2 * h), rel=1e-4), name


def test_the_adjoint_of_the_forces():
    # All contacts of a crumpled cloth: the kernel against central differences.
    rng = np.random.default_rng(3)
    n = len(GRID.vertices)
    x, v = crumpled(rng, 0.2), rng.normal(size=GRID.vertices.shape)
    found = brute_force(x, GRID.faces, 0.12, OWN)
    pairs = np.array(sorted(found), np.int32)
    start = np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int32)
    reals = (x, kc.float3), (v, kc.float3), (np.full(n, 0.13), float), (rng.uniform(0.5, 2.0, (n, 4)), kc.float4)
    arrays = [kc.array(values, dtype=element, requires_grad=True) for values, element in reals]
    rows = kc.array(np.arange(n, dtype=np.int32))
    law, touch, smoothing = kc.array(np.ones(n, np.int32)), kc.array(np.full(n, 0.02)), kc.array(np.full(n, 0.004))
    contacts = touching.Contacts(kc.array(start), kc.array(pairs[:, 1].copy()))
    f, e = kc.zeros(n, dtype=kc.float3, real=kc.float64), kc.zeros(n, real=kc.float64)
    mine = [touching.Vertices(rows, *arrays[2:], law, touch, smoothing), kc.array(GRID.faces.copy()), contacts]
    given = [particles.Particles(*arrays[:2]), *mine]
    kc.testing.gradcheck(self_contact.self_contact_forces, n, given, [f], wrt=arrays, rtol=1e-4)
    given, wrt = [arrays[0], *mine], [arrays[0], *arrays[2:]]
    kc.testing.gradcheck(self_contact.self_contact_energies, n, given, [e], wrt=wrt, rtol=1e-4)
