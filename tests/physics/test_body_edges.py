"""Edges of bodies meet what crosses them between their points: planks, blades and rods that lie across each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.geometry import solid
from nablasim.physics.laws.contact.body_contacts_kernels import FAMILIES
from nablasim.physics.laws.rigid import bodies_kernels as bodies
from nablasim.physics.laws.rigid.bodies import moving
from nablasim.physics.laws.rigid.surfaces import surfaces
from nablasim.physics.time.program import Program

LOW, TOP = ph.Box(1.0, 0.03, 0.1), ph.Box(0.1, 0.03, 1.0)
BLADE = ph.TriMesh([[0, 0, -0.5], [0.1, 0, -0.5], [0.05, 0.08, -0.5],
                    [0, 0, 0.5], [0.1, 0, 0.5], [0.05, 0.08, 0.5]],
                   [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3],
                    [2, 3, 5]])  # fmt: skip


def across(low, top, *, height, spin=0.0, speed=0.0, shift=(0.0, 0.0), **how):
    """One lies on the ground, and another one falls across it."""
    scene = ph.Scene()
    scene.add_rigid("low", low, density=500.0, pos=(0, how.pop("rest", 0.015), 0), rot=how.pop("lies", (0, 0, 0, 1)))
    scene.add_rigid("top", top, density=500.0, pos=(shift[0], height, shift[1]), vel=(0, -speed, 0), **how)
    scene.add_ground("floor", ke=None, kd=None, kf=None)
    return ph.rollout(scene.build("float64"), dt=5e-4, steps=2000, every=100).numpy()


@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.3, 0.02)])
@pytest.mark.parametrize("turn", [0.0, 0.6])
@pytest.mark.parametrize("kinds", ["box box", "mesh mesh", "mesh box"])
def test_planks_that_cross_hold_each_other(kinds, turn, shift):
    low, top = (shape.mesh() if kind == "mesh" else shape for kind, shape in zip(kinds.split(), (LOW, TOP)))
    found = across(low, top, height=0.06, shift=shift, speed=1.0, rot=ph.quat((0, 1, 0), turn))["top"]
    assert found.x[:, 1].min() > 0.03
    assert found.x[-1, 1] > 0.042


def test_rods_that_cross_between_their_balls_hold_each_other():
    rod, flat = ph.Capsule(0.02, 1.0), ph.quat((0, 0, 1), np.pi / 2)
    # At 11 cm from the middle, half-way between two balls: it tips over, and does not go through.
    found = across(rod, rod, rest=0.02, height=0.07, shift=(0.11, 0.0), lies=flat, rot=ph.quat((1, 0, 0), np.pi / 2))
    assert found["top"].x[:, 1].min() > 0.05


@pytest.mark.parametrize("low", [LOW, LOW.mesh()], ids=["box", "mesh"])
def test_a_rod_lies_on_a_plank_between_its_balls(low):
    rod = ph.Capsule(0.02, 1.0)
    found = across(low, rod, height=0.06, shift=(0.0, 0.11), rot=ph.quat((1, 0, 0), np.pi / 2))["top"]
    # It is not in balance, and tips over the edge: but never goes through the plank.
    assert found.x[2:4, 1].min() > 0.04


def test_sharp_edges_hold_each_other():
    # A wedge lies under another one that is upside down: two sharp edges, and not one vertex.
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=1e4, kd=0.0, kf=0.0)
    scene.add_obstacle("low", BLADE, pos=(-0.05, 0, 0), mu=0.0, kd=0.0)
    scene.add_rigid("top", BLADE, mass=1.0, pos=(0.0, 0.16, -0.02), rot=ph.quat((0, 0, 1), np.pi))
    state = scene.build("float64").state0
    turned = ph.quat((0, 1, 0), np.pi / 2)
    x, y, z, w = turned
    ax, ay, az, aw = state["top"].rot
    q = np.array([w * ax + x * aw + y * az - z * ay, w * ay - x * az + y * aw + z * ax,
                  w * az + x * ay - y * ax + z * aw, w * aw - x * ax - y * ay - z * az])  # fmt: skip
    state = state.replace({"top.rot": q, "top.x": (0.0, 0.158, -0.05)})
    found = ph.forces(scene.build("float64"), state)["top"]
    assert found.f[1] > 1.0 and abs(found.f[0]) < 1e-9 and abs(found.f[2]) < 1e-9


# --------------------------------------------------------------------------------------------------------------- laws
SHAPES = {
    "plank": LOW, "blade": BLADE, "rod": ph.Capsule(0.05, 0.6), "can": ph.Cylinder(0.1, 0.3), "cone": ph.Cone(0.1, 0.3),
    "mesh": ph.Box(0.3, 0.05, 0.4).mesh(),
}  # fmt: skip


def heap():
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=1e3, kd=0.0, kf=0.0, mu=0.4)
    for name, shape in SHAPES.items():
        scene.add_rigid(name, shape, mass=1.0)
    return scene.build("float64")


HEAP = heap()


@given(st.integers(0, 2**32 - 1))
def test_springs_are_minus_the_slope_of_their_energy_by_motions_and_turns(seed):
    rng, h, start, way = np.random.default_rng(seed), 1e-8, {}, {}
    for name in SHAPES:
        q = rng.normal(size=4)
        start |= {f"{name}.x": 0.1 * rng.normal(size=3), f"{name}.rot": q / np.linalg.norm(q)}
        way[name] = rng.normal(size=3), rng.normal(size=3)
    model, state = HEAP.replace(start), HEAP.replace(start).state0
    coms = {n: solid(n, shape, 1.0).unit.com for n, shape in SHAPES.items()}

    def at(s):
        moved = {}
        for n, (shift, turn) in way.items():
            q = _times(ph.quat(turn, s * h * np.linalg.norm(turn)), state[n].rot)
            # About the centre of mass.
            arm = _turned(state[n].rot, coms[n]) - _turned(q, coms[n])
            moved |= {f"{n}.rot": q, f"{n}.x": state[n].x + arm + s * h * shift}
        found = ph.energy(model, state.replace(moved))
        return found["shape_pairs"] + found["mesh_pairs"]

    forces = ph.forces(model)
    power = sum(forces[n].f @ shift + forces[n].torque @ turn for n, (shift, turn) in way.items())
    assert (at(1) - at(-1)) / (2 * h) == pytest.approx(-power, rel=1e-4, abs=1e-2)


def _times(p, q):
    v = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.array([*v, p[3] * q[3] - p[:3] @ q[:3]])


def _turned(q, v):
    return v + 2 * np.cross(q[:3], np.cross(q[:3], v) + q[3] * v)


@pytest.mark.parametrize("other", ["plank", "blade", "rod", "can", "cone"])
def test_the_adjoint_of_crossing_edges(other):
    scene = ph.Scene().set_contact(ke=50.0, kd=0.2, kf=0.3, mu=0.4)
    places = {"plank": (0, 0, 0), "blade": (-0.03, -0.06, 0.02), "rod": (0, -0.03, 0), "can": (0, -0.07, 0),
              "cone": (-0.01, -0.02, 0)}  # fmt: skip
    turns = {"rod": ph.quat((0, 0, 1), 1.4), "can": ph.quat((1, 0.1, 0), 1.6), "cone": ph.quat((1, 0, 0), 1.5)}
    scene.add_rigid("low", SHAPES[other], mass=2.0, pos=places[other], rot=turns.get(other, (0, 0, 0, 1)),
                    omega=(0.3, 0.1, -0.2))  # fmt: skip
    turn = ph.quat((0.3, 1, 0.1), 0.7 if other != "cone" else 1.3)
    scene.add_rigid("top", TOP.mesh() if other == "rod" else TOP, mass=1.0, pos=(0.02, 0.022, 0.013), rot=turn,
                    vel=(0.3, -0.5, 0.1), omega=(0.5, -1.0, 1.0))  # fmt: skip
    model = scene.build("float64")
    program = Program(model.layout, "float64", grads=frozenset(), present=model.present, varied=frozenset(),
                      integrator=None)  # fmt: skip
    program.load(None, model.columns, 2e-3)
    wrt = [f"bodies.{q}" for q in ("x", "rot", "v", "omega", "mass", "com", "inverse")]
    wrt += ["surfaces.points.local", "surfaces.points.ball", "surfaces.size", "pairs.contact.four"]

    def look(s):
        pushed = 0.0
        for system in program.systems:
            if system.name in ("shape_pairs", "mesh_pairs"):
                n = model.layout.rows(system.name)
                f = bodies.Forces(kc.zeros(2, dtype=kc.float3, real=kc.float64),
                                  kc.zeros(2, dtype=kc.float3, real=kc.float64))  # fmt: skip
                given = [moving(s), surfaces(s), system.pairs(s)]
                kernels = FAMILIES[system.family]
                kc.testing.gradcheck(kernels.pair_forces, n, [*given, 2e-3], [f], wrt=wrt, rtol=1e-4)
                kc.testing.gradcheck(kernels.pair_energies, n, given, [kc.zeros(n, real=kc.float64)],
                                     wrt=["bodies.x", "bodies.rot", *wrt[-4:]])  # fmt: skip
                kc.launch(kernels.pair_forces, n, [*given, 2e-3], [f])
                pushed += np.abs(f.f.numpy()).max()
        assert pushed > 0

    program.look(model.state0.columns, look)


def test_edges_of_a_mesh_are_those_that_stick_out():
    assert len(solid("", ph.Box(1, 2, 3), 1.0).features.edges) == 12
    found = solid("", ph.Box(1, 2, 3).mesh(cells=2), 1.0)
    ends = found.vertices[found.features.edges]
    assert len(ends) == 24  # Two each: diagonals and seams of the sides are flat.
    assert (np.isclose(np.abs(ends), [0.5, 1, 1.5]).all(axis=1).sum(axis=1) >= 2).all()
    notch = ph.TriMesh(*_notched())
    ends = notch.vertices[solid("", notch, 1.0).features.edges]
    assert not (np.isclose(ends, [0.5, 0.5, 0])[..., :2].all(axis=(1, 2))).any()  # What points inwards touches nothing.


def _notched():
    """An L, whose inner edge is at x = y = 0.5."""
    outline = np.array([[0, 0], [1, 0], [1, 0.5], [0.5, 0.5], [0.5, 1], [0, 1]], float)
    vertices = np.concatenate([np.c_[outline, np.full(6, z)] for z in (0.0, 1.0)])
    caps = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]
    faces = [[c, b, a] for a, b, c in caps] + [[a + 6, b + 6, c + 6] for a, b, c in caps]
    for i in range(6):
        j = (i + 1) % 6
        faces += [[i, j, j + 6], [i, j + 6, i + 6]]
    return vertices, faces
