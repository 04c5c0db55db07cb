"""Laws of cloth: its membrane, its bending, the air around it, and its mass."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

seeds = st.integers(0, 2**32 - 1)

# A rectangle of unequal, irregular triangles, and a closed shell without any flat hinge.
RNG = np.random.default_rng(5)
GRID = ph.TriMesh.grid((1.0, 0.6), cells=(4, 3))
IRREGULAR = ph.TriMesh(GRID.vertices + 0.04 * RNG.normal(size=GRID.vertices.shape) * [1, 1, 0], GRID.faces)
BALL = ph.TriMesh.icosphere(0.5, subdivisions=1)
MESHES = {"flat": IRREGULAR, "ball": BALL}


def scene(mesh=IRREGULAR, gravity=(0.0, 0.0, 0.0), **changes):
    settings = {"mass": 0.3, "stretch": 40.0, "shear": 30.0, "bend": 0.2, "damping": 0.05, "bend_damping": 1e-3}
    return ph.Scene(gravity=gravity).add_cloth("flag", mesh, **{**settings, **changes})


# Compiled once: the values of a model are replaced, its structure stays.
MODELS = {name: scene(mesh).build("float64") for name, mesh in MESHES.items()}
AIRY = scene(lift=0.7, drag=0.4).add_wind((0.5, -0.2, 1.0)).build("float64")
meshes = st.sampled_from(sorted(MESHES))


def shaken(name, seed, amount=0.05, **values):
    """A cloth out of shape and in motion, actuated, with other parameters in every element."""
    rng, model = np.random.default_rng(seed), MODELS[name]
    x = MESHES[name].vertices
    return model.replace({
        "flag.x": x + amount * rng.normal(size=x.shape), "flag.v": rng.normal(size=x.shape),
        "flag.actuation": 0.5 * rng.normal(size=len(MESHES[name].hinges.faces)),
        "flag.shear": rng.uniform(10, 50, len(MESHES[name].faces)),
        "flag.bend": rng.uniform(0.1, 0.5, len(MESHES[name].hinges.faces)), **values,
    })  # fmt: skip


def last(model, **settings):
    return ph.rollout(model, every=settings["steps"], **settings).state()["flag"]


def force(model, **state):
    moved = model.state0.replace({f"flag.{name}": value for name, value in state.items()})
    return ph.forces(model, moved)["flag"].f


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


# -- momentum, invariance
@given(meshes, seeds)
def test_internal_forces_have_no_net_force_and_no_net_torque(name, seed):
    # Also for unequal triangles, folded in any way, moving in any way.
    model = shaken(name, seed, amount=0.2)
    f = ph.forces(model)["flag"].f
    scale = np.abs(f).max()
    np.testing.assert_allclose(f.sum(axis=0), 0, atol=1e-11 * scale)
    np.testing.assert_allclose(np.cross(model["flag.x"], f).sum(axis=0), 0, atol=1e-11 * scale)


@given(meshes, seeds)
def test_momentum_and_angular_momentum_are_kept(name, seed):
    mesh = MESHES[name]
    mass = np.random.default_rng(seed).uniform(0.01, 0.02, len(mesh.vertices))
    model = shaken(name, seed, **{"flag.vertex_mass": mass})
    end = last(model, dt=1e-3, steps=100)

    def momenta(x, v):
        p = mass[:, None] * v
        return np.concatenate([p.sum(axis=0), np.cross(x, p).sum(axis=0)])

    expected = momenta(model["flag.x"], model["flag.v"])
    np.testing.assert_allclose(momenta(end.x, end.v), expected, rtol=0, atol=1e-12)


@given(meshes, seeds)
def test_internal_forces_turn_with_the_cloth_and_ignore_its_uniform_motion(name, seed):
    rng, model = np.random.default_rng(seed), shaken(name, seed)
    R, shift, boost = rotation(rng), rng.normal(size=3), rng.normal(size=3)
    expected = ph.forces(model)["flag"].f @ R.T
    found = force(model, x=model["flag.x"] @ R.T + shift, v=model["flag.v"] @ R.T + boost)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@given(seeds)
def test_the_air_sees_only_the_velocity_against_it(seed):
    rng = np.random.default_rng(seed)
    x = IRREGULAR.vertices + 0.1 * rng.normal(size=IRREGULAR.vertices.shape)
    v, wind, boost, R = rng.normal(size=x.shape), rng.normal(size=3), rng.normal(size=3), rotation(rng)
    here = force(AIRY.replace({"wind": wind}), x=x, v=v)
    there = force(AIRY.replace({"wind": R @ (wind + boost)}), x=x @ R.T, v=(v + boost) @ R.T)
    np.testing.assert_allclose(there, here @ R.T, rtol=0, atol=1e-10 * np.abs(here).max())


# -- rest and rigid motion
@pytest.mark.parametrize("name", MESHES)
@given(seeds)
def test_a_cloth_at_rest_has_no_force_however_it_moves_as_a_whole(name, seed):
    # Neither elasticity nor damping: flat or curved, turned anywhere, translating and spinning.
    rng, mesh = np.random.default_rng(seed), MESHES[name]
    x = mesh.vertices @ rotation(rng).T + rng.normal(size=3)
    v = rng.normal(size=3) + np.cross(rng.normal(size=3), x)
    np.testing.assert_allclose(force(MODELS[name], x=x, v=v), 0, atol=1e-12)


@pytest.mark.parametrize("name", MESHES)
def test_a_cloth_comes_back_to_its_rest_shape(name):
    # Its lengths and angles, wherever it is then.
    model = MODELS[name].replace({"flag.damping": 0.2, "flag.bend_damping": 5e-3})
    bent = MESHES[name].vertices + 0.02 * RNG.normal(size=MESHES[name].vertices.shape)
    x = last(model.replace({"flag.x": bent}), dt=0.9 * ph.stable_dt(model), steps=20_000).x
    lengths = [np.linalg.norm(p[e[:, 0]] - p[e[:, 1]], axis=1) for p in (x, MESHES[name].vertices)
               for e in [MESHES[name].edges]]  # fmt: skip
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=1e-3)


def test_moduli_of_small_strain_are_those_documented():
    # Area modulus stretch + 2/9 shear, shear modulus 2/3 shear: energy per area of a small uniform strain.
    mesh, eps = ph.TriMesh.grid((1, 1), cells=(2, 2)), 1e-4
    model = scene(mesh, stretch=40.0, shear=30.0).build("float64")

    def energy(F):
        return ph.energy(model, model.state0.replace({"flag.x": mesh.vertices[:, :2] @ F.T}))["cloth"]

    swell, shear = np.eye(2, 3).T * (1 + eps), np.array([[1, eps], [0, 1], [0, 0]])
    assert energy(swell) == pytest.approx(0.5 * (40 + 30 * 2 / 9) * (2 * eps) ** 2, rel=1e-3)
    assert energy(shear) == pytest.approx(0.5 * (30 * 2 / 3) * eps**2, rel=1e-3)


# -- energy
@given(meshes, seeds)
def test_forces_are_minus_the_slope_of_the_energy(name, seed):
    model, h = shaken(name, seed, **{"flag.damping": 0.0, "flag.bend_damping": 0.0}), 1e-6
    way = np.random.default_rng(seed + 1).normal(size=MESHES[name].vertices.shape)

    def at(s):
        found = ph.energy(model, model.state0.replace({"flag.x": model["flag.x"] + s * h * way}))
        return found["cloth"] + found["bending"]

    f = ph.forces(model)["flag"].f
    scale = np.linalg.norm(f) * np.linalg.norm(way)
    assert -(at(1) - at(-1)) / (2 * h) == pytest.approx((f * way).sum(), rel=1e-5, abs=1e-7 * scale)


@given(meshes, seeds)
def test_damping_takes_energy_out(name, seed):
    # Power of the damping alone: forces with and without it.
    model = shaken(name, seed, **{"flag.damping": 0.3, "flag.bend_damping": 0.01})
    undamped = model.replace({"flag.damping": 0.0, "flag.bend_damping": 0.0})
    power = ((ph.forces(model)["flag"].f - ph.forces(undamped)["flag"].f) * model["flag.v"]).sum()
    assert power < 0


def test_energy_stays_bounded_without_damping():
    still = {"flag.damping": 0.0, "flag.bend_damping": 0.0, "flag.actuation": 0.0}
    model = shaken("ball", 3, amount=0.02, **still)
    frames = ph.rollout(model, dt=0.2 * ph.stable_dt(model), steps=2000, every=100)
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert max(energies) - min(energies) < 0.1 * energies[0]


def test_the_stable_step_is_a_bound():
    # No vibration of the free cloth is faster than the estimate says, nor very much slower.
    for name, mesh in MESHES.items():
        model, h = MODELS[name].replace({"flag.damping": 0.0, "flag.bend_damping": 0.0}), 1e-6
        n = mesh.vertices.size
        K = np.empty((n, n))
        for i, e in enumerate(np.eye(n).reshape(n, -1, 3)):
            two = [force(model, x=mesh.vertices + s * h * e) for s in (1, -1)]
            K[i] = ((two[1] - two[0]) / (2 * h)).ravel()
        mass = np.repeat(ph.vertex_masses(mesh, 0.3 / mesh.areas.sum()), 3)
        fastest = np.sqrt(np.linalg.eigvalsh(K / np.sqrt(np.outer(mass, mass)))[-1])
        assert ph.stable_dt(model) < 2 / fastest < 4 * ph.stable_dt(model)
    with pytest.raises(ph.StepTooLarge, match="'flag': at row"):
        ph.rollout(MODELS["flat"], dt=0.1, steps=1)


# -- bending
FOLD = ph.TriMesh([[0, 0, 0], [2, 0, 0], [0.5, 1, 0], [1.8, -0.4, 0]], [[0, 1, 2], [1, 0, 3]])


def folded(angle):
    """The two unequal triangles with this angle between them: the second one is turned down about the edge."""
    c, s = np.cos(angle), np.sin(angle)
    x = FOLD.vertices.copy()
    x[3] = [x[3, 0], x[3, 1] * c, x[3, 1] * s]
    return x


HINGE = scene(FOLD, stretch=0.0, shear=0.0, damping=0.0, bend_damping=0.0).build("float64")


@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))
def test_the_moment_of_a_hinge_is_that_of_the_paper(angle, alpha, rest):
    # k_b sin(phi/2 + alpha) about the edge, on either side: force times height of the tip over the edge.
    model = HINGE.replace({"flag.bend": 0.7, "flag.rest_angle": rest, "flag.actuation": alpha})
    f = force(model, x=folded(angle))
    moment = 0.7 * np.sin((angle - rest) / 2 + alpha)
    np.testing.assert_allclose(f[2], [0, 0, moment / 1.0], atol=1e-12)
    up = np.array([0, -np.sin(angle), np.cos(angle)])
    np.testing.assert_allclose(f[3], moment / 0.4 * up, atol=1e-12)


def test_bulged_edges_have_positive_angles():
    assert (MODELS["ball"]["flag.rest_angle"] > 0).all()
    np.testing.assert_allclose(MODELS["flat"]["flag.rest_angle"], 0, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, np.pi / 2, 3.0, -1e-9, -2.5])
def test_bending_is_smooth_when_flat_and_when_folded(angle):
    # The slope of the tip's force as it rises over its plane: -k_b/2 cos(phi/2) / height². No acos, no sqrt(0).
    z = torch.tensor(folded(angle), requires_grad=True)
    h = 1e-3
    end = ph.rollout(HINGE.replace({"flag.x": z, "flag.bend": 0.7}), dt=h, steps=1)["flag"].v[-1]
    weight = HINGE["flag.mass"] / 3 * (1.0 / FOLD.areas.sum())  # the first triangle's third, its area is 1
    end[2, 2].backward()
    assert z.grad[2, 2].item() == pytest.approx(h / weight * -0.35 * np.cos(angle / 2), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [(0, 0, 0), (1, 0, 0), (0, 1, 0)])
def test_a_cloth_that_has_collapsed_to_a_line_or_a_point_has_finite_forces_and_gradients(size):
    x = torch.tensor(IRREGULAR.vertices * size, requires_grad=True)
    end = ph.rollout(AIRY.replace({"flag.x": x}), dt=1e-6, steps=2, check=False)["flag"].x[-1]
    end.sum().backward()
    assert torch.isfinite(end).all() and torch.isfinite(x.grad).all()


def test_actuation_moves_the_balance():
    model = HINGE.replace({"flag.bend": 0.5, "flag.bend_damping": 0.05, "flag.actuation": -0.4, "flag.shear": 200.0,
                           "flag.stretch": 200.0, "flag.damping": 2.0})  # fmt: skip
    x = last(model, dt=5e-4, steps=20_000).x
    n = [np.cross(x[b] - x[a], x[c] - x[a]) for a, b, c in FOLD.faces]
    cos = n[0] @ n[1] / np.linalg.norm(n[0]) / np.linalg.norm(n[1])
    assert np.arccos(cos) == pytest.approx(0.8, abs=1e-6)


# -- air
PLATE = ph.TriMesh.grid((0.5, 0.5), cells=(2, 2)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2))


def test_a_plate_falls_with_its_terminal_velocity():
    # m g = drag A v²: each triangle counted once.
    m, drag = 0.1, 0.6
    model = scene(PLATE, gravity=(0, -9.81, 0), mass=m, drag=drag).build("float64")
    v = last(model, dt=1e-3, steps=5000).v
    np.testing.assert_allclose(v[:, 1], -np.sqrt(m * 9.81 / (drag * 0.25)), rtol=1e-9)
    np.testing.assert_allclose(v[:, [0, 2]], 0, atol=1e-9)


def test_a_plate_is_stopped_as_by_quadratic_drag():
    # m dv/dt = -drag A v²: v = v0 / (1 + drag A v0 t / m).
    m, drag, v0, t = 0.1, 0.6, 5.0, 0.5
    model = scene(PLATE, mass=m, drag=drag, vel=(0, v0, 0)).build("float64")
    v = last(model, dt=1e-4, steps=5000).v
    np.testing.assert_allclose(v[:, 1], v0 / (1 + drag * 0.25 * v0 * t / m), rtol=1e-3)


def test_a_plate_is_blown_until_it_has_the_speed_of_the_wind():
    model = scene(PLATE, drag=3.0).add_wind((0, 2.0, 0)).build("float64")
    early, late = (last(model, dt=1e-3, steps=n).v[:, 1].mean() for n in (1000, 20_000))
    assert 0.5 < early < late < 2.0
    assert late > 1.9


@given(st.floats(-1.5, 1.5), st.floats(0.1, 5), seeds)
def test_lift_is_across_the_flow_and_drag_along_it(angle, speed, seed):
    # Sizes of a flat plate: drag |sin|, lift |sin cos| of the angle between plate and flow, times A u².
    rng = np.random.default_rng(seed)
    turn = rotation(rng)
    flow = turn @ np.array([np.cos(angle), np.sin(angle), 0]) * speed
    x = PLATE.vertices @ turn.T
    for what, size in (("lift", abs(np.sin(angle) * np.cos(angle))), ("drag", abs(np.sin(angle)))):
        values = {"flag.lift": 0.0, "flag.drag": 0.0, "wind": flow, f"flag.{what}": 0.8}
        f = force(FLYING.replace(values), x=x).sum(axis=0)
        assert np.linalg.norm(f) == pytest.approx(0.8 * 0.25 * speed**2 * size, rel=1e-9, abs=1e-12)
        across = np.cross(f, flow) if what == "drag" else f @ flow
        np.testing.assert_allclose(across, 0, atol=1e-10 * speed**3)
        assert f @ flow >= -1e-10 * speed**3


FLYING = scene(PLATE, lift=1.0, drag=1.0).build("float64")


def test_lift_pushes_towards_the_side_that_the_flow_leaves():
    # Wind along x meets a plate whose front edge is raised: it is lifted, as a kite is.
    kite = ph.TriMesh.grid((1, 1), cells=(1, 1)).moved(rot=ph.quat((1, 0, 0), np.pi / 2))
    raised = kite.moved(rot=ph.quat((0, 0, 1), -0.3))
    f = force(scene(raised, lift=1.0).add_wind((3.0, 0, 0)).build("float64")).sum(axis=0)
    assert f[1] > 0.1 and abs(f[0]) < 1e-12


def test_still_air_and_flow_along_the_plate_have_finite_gradients():
    for wind in ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)):
        values = {"wind": torch.tensor(wind, dtype=torch.float64, requires_grad=True),
                  "flag.v": torch.zeros(PLATE.vertices.shape, dtype=torch.float64, requires_grad=True)}  # fmt: skip
        ph.rollout(FLYING.replace(values), dt=1e-3, steps=3)["flag"].v[-1].sum().backward()
        assert all(torch.isfinite(v.grad).all() for v in values.values())


# -- mass
def test_mass_is_shared_by_area():
    # One triangle of area 1 and one of area 0.4: a third of each to its corners.
    model = scene(FOLD, mass=4.2).build("float64")
    assert ph.energy(model, model.state0.replace({"flag.v": (2.0, 0, 0)}))["particles"] == pytest.approx(0.5 * 4.2 * 4)
    weights = []
    for k in range(4):
        v = np.zeros((4, 3))
        v[k, 0] = np.sqrt(2)
        weights.append(ph.energy(model, model.state0.replace({"flag.v": v}))["particles"])
    np.testing.assert_allclose(weights, [1.4, 1.4, 1.0, 0.4])


@pytest.mark.parametrize("given", [{"mass": 4.2}, {"density": 3.0}, {"vertex_mass": [1.4, 1.4, 1.0, 0.4]}])
def test_mass_density_and_vertex_masses_stand_for_each_other(given):
    free = ph.Scene(gravity=(0, -9.81, 0)).add_cloth("flag", FOLD, stretch=20.0, shear=10.0, bend=0.1, **given)
    model = free.add_impulse("flag", (1.0, 0, 2.0)).build("float64")
    assert [n for n in ("flag.mass", "flag.density", "flag.vertex_mass") if n in model] == [f"flag.{next(iter(given))}"]
    expected = last(model, dt=1e-3, steps=50).x
    for name in ("flag.mass", "flag.density", "flag.vertex_mass"):
        other = model.replace({name: model.layout.parameters[name].value})
        np.testing.assert_allclose(last(other, dt=1e-3, steps=50).x, expected, atol=1e-14)


def test_free_fall_does_not_depend_on_mass():
    n, dt, g = 50, 1e-3, np.array([0.0, -9.81, 0.0])
    for mass in (1e-3, 1.0, 1e3):
        x = last(scene(gravity=g, mass=mass, stretch=mass, shear=mass, bend=1e-2 * mass, damping=0.0,
                       bend_damping=0.0).build("float64"), dt=dt, steps=n).x  # fmt: skip
        np.testing.assert_allclose(x, IRREGULAR.vertices + g * dt**2 * n * (n + 1) / 2, atol=1e-12)


# -- control, springs, errors
def test_hinges_air_and_wind_vary_in_time_by_control():
    steps, rng = 60, np.random.default_rng(4)
    shapes = {"flag.actuation": (len(IRREGULAR.hinges.faces),), "flag.rest_angle": (), "flag.lift": (), "wind": (3,),
              "flag.drag": (len(IRREGULAR.faces),)}  # fmt: skip
    start = {name: rng.uniform(0.1, 0.5, (steps, *shape)) for name, shape in shapes.items()}
    weights = torch.tensor(rng.normal(size=IRREGULAR.vertices.shape))

    def loss(control):
        return (ph.rollout(AIRY, dt=1e-3, steps=steps, control=control)["flag"].x[-1] * weights).sum()

    control = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    loss(control).backward()
    for name, value in control.items():
        way, h = torch.tensor(rng.normal(size=value.shape)), 1e-5
        fixed = {n: v.detach() for n, v in control.items()}
        two = [loss({**fixed, name: fixed[name] + s * h * way}) for s in (1, -1)]
        assert float((value.grad * way).sum()) == pytest.approx(float(two[0] - two[1]) / (2 * h), rel=1e-5), name


def test_what_has_no_effect_is_not_offered():
    bare = scene(bend=0.0).build("float64")
    assert not {"wind", "flag.actuation", "flag.rest_angle"} & set(bare.names())
    assert {"flag.bend", "flag.lift", "flag.drag"} <= set(bare.names())
    # The angles at rest are known all the same.
    stiff = scene(BALL, bend=0.0).build("float64").replace({"flag.bend": 1.0})
    np.testing.assert_allclose(force(stiff), 0, atol=1e-12)


def test_springs_along_the_edges_hold_a_cloth_together():
    model = scene(FOLD, stretch=0.0, shear=0.0, bend=0.0, damping=0.0, bend_damping=0.0, springs=True,
                  spring_ke=50.0, spring_kd=1.0).build("float64")  # fmt: skip
    assert model["flag.spring_rest"].shape == (5,)
    x = last(model.replace({"flag.x": 1.1 * FOLD.vertices}), dt=1e-3, steps=10_000).x
    lengths = np.linalg.norm(x[FOLD.edges[:, 0]] - x[FOLD.edges[:, 1]], axis=1)
    np.testing.assert_allclose(lengths, model["flag.spring_rest"], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": 0.0}, "flag.mass must be positive, and is 0"),
        ({"density": 1.0}, "flag: give one of mass"),
        ({"mass": None}, "flag: give one of mass"),
        ({"mass": [1.0, 2.0]}, r"flag.mass has shape \(2,\)"),
        ({"stretch": -1.0}, "flag.stretch must not be negative, and is -1"),
        ({"drag": [1.0]}, r"flag.drag has shape \(1,\); expected one value, or shape \(24,\)"),
        ({"bend": np.nan}, "flag.bend has an entry that is not finite"),
        ({"rest_angle": np.zeros(3)}, r"flag.rest_angle has shape \(3,\); expected one value, or shape \(29,\)"),
        ({"springs": [[0, 99]]}, "flag.spring_pairs: row 0 names particle 99, but there are 20"),
        ({"mesh": ph.TriMesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]])}, "face 0 .* has no area"),
        ({"mesh": ph.TriMesh(FOLD.vertices, [[0, 1, 2]])}, "vertex 3 belongs to no face"),
        ({"mesh": ph.TriMesh(FOLD.vertices, [[0, 1, 2], [0, 1, 3]])}, "run the same way through their edge"),
    ],
)
def test_wrong_input_is_named_and_leaves_the_scene_as_it_was(changes, message):
    made = ph.Scene().add_particles("dust", [[0.0, 0, 0]], mass=1.0)
    settings = {"mesh": IRREGULAR, "mass": 1.0, **changes}
    with pytest.raises(ValueError, match=message):
        made.add_cloth("flag", **settings)
    assert list(made.build().state0) == ["dust"]


def test_wind_needs_a_cloth_and_three_numbers():
    with pytest.raises(ValueError, match="the wind acts on cloth, which is not there"):
        ph.Scene().add_particles("dust", [[0.0, 0, 0]], mass=1.0).add_wind((1, 0, 0)).build()
    with pytest.raises(ValueError, match="the wind acts on cloth, which has neither lift nor drag"):
        scene().add_wind((1, 0, 0)).build()
    with pytest.raises(ValueError, match=r"wind has shape \(2,\)"):
        scene().add_wind((1, 0))
    with pytest.raises(ValueError, match='not "gravity" or "wind"'):
        ph.Scene().add_cloth("wind", FOLD, mass=1.0)


def test_a_cloth_is_drawn_by_its_faces():
    model = MODELS["flat"]
    np.testing.assert_array_equal(model.surfaces["flag"].faces, IRREGULAR.faces)
    frames = ph.rollout(model, dt=1e-3, steps=1)
    assert torch.equal(frames.vertices("flag"), frames["flag"].x)
