"""Scenes and models: names, values, what is refused and how."""

import pickle

import numpy as np
import pytest
import torch

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.model import Column

MESH = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))


def scene():
    made = ph.Scene()
    made.add_soft("gear", MESH, density=1e3, material=ph.NeoHookean(E=2e4, nu=0.3), activation=True)
    made.add_springs("net", [[0, 1, 0], [1, 1, 0], [2, 1, 0]], [[0, 1], [1, 2]], ke=[50.0, 60.0])
    made.add_ground("floor", mu=0.7)
    return made


MODEL = scene().build()


def test_parameters_have_names_shapes_units_and_bounds():
    found = {p.name: p for p in MODEL.parameters()}
    assert list(found) == MODEL.names()
    assert found["gear.mu"].shape == () and found["gear.mu"].full == (len(MESH.tets),)
    assert found["net.ke"].shape == (2,)
    assert found["gear.x"].shape == MESH.vertices.shape
    assert found["floor.mu"].value == 0.7 and found["floor.mu"].bounds == (0.0, None)
    assert found["gravity"].shape == (3,) and found["gravity"].unit == "m/s²"
    assert all(p.unit for p in found.values())
    assert "Parameter('floor.mu', shape=(), unit='1', bounds=(0, None))" in repr(found["floor.mu"])


def test_only_what_can_have_an_effect_is_listed():
    quiet = ph.Scene()
    quiet.add_soft("gear", MESH, density=1e3, material=ph.NeoHookean(E=2e4, nu=0.3))
    assert "gear.activation" not in quiet.build().names()
    with pytest.raises(KeyError, match=r"there is no parameter 'gear.activation'"):
        quiet.build().replace({"gear.activation": 0.1})
    assert "gear.mass" not in MODEL.names() and "gear.density" in MODEL.names()


def test_replace_makes_another_model_and_takes_every_kind_of_value():
    tensor = torch.tensor(2.0, requires_grad=True)
    array = kc.array(np.full(2, 70.0))
    other = MODEL.replace({"gear.mu": tensor, "net.ke": array, "floor.mu": 0.2, "gravity": [0, -1, 0]})
    assert other["gear.mu"] is tensor and other["net.ke"] is array
    assert other["floor.mu"] == 0.2 and MODEL["floor.mu"] == 0.7
    np.testing.assert_array_equal(other.columns["springs.ke"][0], [70.0, 70.0])
    np.testing.assert_array_equal(MODEL.columns["springs.ke"][0], [50.0, 60.0])
    assert other.columns["particles.x"] is MODEL.columns["particles.x"], "what is not replaced is shared"


def test_a_model_cannot_be_written_through_its_columns():
    with pytest.raises(ValueError, match="read-only"):
        MODEL.columns["springs.ke"][...] = 0


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"gear.mew": 1.0}, KeyError, r"no parameter 'gear.mew': did you mean 'gear.mu'"),
        ({"net.ke": np.ones(3)}, ValueError, r"net.ke has shape \(3,\); expected \(\) or \(2,\)"),
        ({"gravity": [1.0, 2.0]}, ValueError, r"gravity has shape \(2,\); expected \(\) or \(3,\)"),
        ({"net.ke": "stiff"}, TypeError, "net.ke: a value is a number, .* not str"),
    ],
)
def test_wrong_replacements_are_named(values, error, message):
    with pytest.raises(error, match=message):
        MODEL.replace(values)


def test_a_value_that_is_not_finite_is_found_when_it_is_used():
    with pytest.raises(ValueError, match=r"net.ke has an entry that is not finite, at \(1,\)"):
        ph.rollout(MODEL.replace({"net.ke": np.array([1.0, np.nan])}), dt=1e-3, steps=1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.add_particles("net", [[0, 0, 0]], mass=1.0), ValueError, "an object 'net' already"),
        (lambda s: s.add_ground("net"), ValueError, "an object 'net' already"),
        (lambda s: s.add_particles("a.b", [[0, 0, 0]], mass=1.0), ValueError, "a name is a word without dots"),
        (lambda s: s.add_particles("dust", np.zeros((0, 3)), mass=1.0), ValueError, "dust: there are no points"),
        (lambda s: s.fix("floor"), KeyError, "no object 'floor' with particles"),
        (lambda s: s.build(real="float16"), ValueError, 'real is "float32" or "float64"'),
        (lambda s: s.build(batch=0), ValueError, "batch is how many copies there are"),
        (lambda s: s.add_soft("b", MESH, density=1.0, material=3.0), TypeError, "material is ph.NeoHookean"),
        (lambda s: ph.Scene().build(), ValueError, "the scene is empty"),
        (lambda s: ph.Scene(gravity=9.81), ValueError, r"gravity has shape \(\); expected \(3\)"),
    ],
)
def test_wrong_scenes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(scene())


def test_a_scene_can_grow_after_it_was_built():
    made = scene()
    before = made.build()
    made.add_particles("dust", [[0, 2, 0]], mass=1.0)
    assert "dust.mass" in made.build().names() and "dust.mass" not in before.names()
    assert made.build().columns["plane_contacts.mu"].shape == (1, len(MESH.vertices) + 4)


def test_an_object_is_put_where_it_is_told():
    made = ph.Scene().add_soft("gear", MESH, density=1.0, material=ph.NeoHookean(E=1e3, nu=0.2), pos=(1, 2, 3),
                               rot=ph.quat((0, 0, 1), np.pi / 2), vel=(0, 0, 5))  # fmt: skip
    state = made.build("float64").state0["gear"]
    x, y, z = MESH.vertices.T
    np.testing.assert_allclose(state.x, np.stack([1 - y, 2 + x, 3 + z], axis=1), atol=1e-12)
    np.testing.assert_array_equal(state.v, np.broadcast_to([0, 0, 5], state.x.shape))


def test_models_travel_between_processes():
    ph.rollout(MODEL, dt=1e-3, steps=5)
    there = pickle.loads(pickle.dumps(MODEL.replace({"floor.mu": 0.3})))
    assert there["floor.mu"] == 0.3
    here = ph.rollout(MODEL.replace({"floor.mu": 0.3}), dt=1e-3, steps=5)["gear"].x
    assert torch.equal(ph.rollout(there, dt=1e-3, steps=5)["gear"].x, here)


def test_a_system_of_that_name_is_there_already():
    from nablasim.physics.laws import register
    from nablasim.physics.laws.deformable.springs import Springs

    with pytest.raises(ValueError, match=r"a system that is there already has .*springs.ke"):
        register(Springs())


def test_states_are_looked_at_by_object():
    state = MODEL.state0
    assert list(state) == ["gear", "net"]
    with pytest.raises(KeyError, match="no object 'floor' has a state"):
        state["floor"]
    with pytest.raises(AttributeError, match="'net' has no 'rot': it has x, v"):
        state["net"].rot  # noqa: B018
    moved = state.replace({"net.x": np.ones((3, 3))})
    assert (moved["net"].x == 1).all() and not (state["net"].x == 1).all()
    there = MODEL.at(moved)
    np.testing.assert_array_equal(there["net.x"], np.ones((3, 3)))


def test_a_rollout_goes_on_from_its_last_state():
    whole = ph.rollout(MODEL, dt=1e-3, steps=20)
    half = ph.rollout(MODEL, dt=1e-3, steps=10)
    rest = ph.rollout(MODEL.at(half.state()), dt=1e-3, steps=10)
    assert torch.equal(rest["gear"].x, whole["gear"].x[10:])
    with pytest.raises(KeyError, match="there is no object 'gaer': did you mean 'gear'"):
        whole["gaer"]


def test_a_name_that_is_taken_does_not_take_another_value():
    draft = ph.Scene().add_rigid("ball", ph.Sphere(0.1), density=100.0)._draft
    column, rows = Column("halos.radius"), draft.rows("halos", 1)
    draft.parameter("ball.radius", column, rows, 0.1, unit="m")
    with pytest.raises(ValueError, match=r"there is a parameter 'ball\.radius' already, whose value is 0\.1, not 0\.5"):
        draft.parameter("ball.radius", column, rows, 0.5, unit="m")


NO_NUMBERS = {
    "masked": (np.ma.array([0.0, 1, 0], mask=[0, 1, 0]), "masked entries"),
    "complex": (np.ones(3) * 1j, "real numbers|kernelc array"),
    "text": (("0", "1", "0"), "real numbers|kernelc array"),
    "texts": (np.array(["0", "1", "0"]), "real numbers"),
    "spans of time": (np.ones(3, "m8[s]"), "real numbers"),
    "complex tensors": (torch.ones(3) * 1j, "real numbers"),
}


@pytest.mark.parametrize(("value", "words"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_numpy_would_make_other_numbers_of_is_refused(value, words):
    """It forgets masks and imaginary parts, and reads texts: the body would start somewhere else without a word."""

    def ball(**place):
        return ph.Scene().add_rigid("ball", ph.Sphere(0.1), mass=1.0, **place)

    with pytest.raises(ValueError, match=words):
        ball(pos=value)
    with pytest.raises((TypeError, ValueError), match=words):
        ball().build().replace({"ball.x": value})
    with pytest.raises((TypeError, ValueError), match=words):
        ph.Pendulum().replace({"length": value[1]})
    if np.ndim(value):
        with pytest.raises((ph.MeshError, TypeError, ValueError)):
            ph.TriMesh(np.ma.stack([np.ma.asarray(value)] * 3), [[0, 1, 2]])


@pytest.mark.parametrize("make", [torch.tensor, kc.array])
def test_a_scene_says_where_gradients_go(make):
    with pytest.raises(ValueError, match=r"requires a gradient.*model\.replace"):
        ph.Scene().add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=make([0.0, 1.0, 0.0], requires_grad=True))


def test_what_an_adder_from_elsewhere_wrote_is_whole_or_not_there():
    scene = ph.Scene().add_rigid("ball", ph.Sphere(0.1), density=100.0)
    with pytest.raises(KeyError), scene.draft() as draft:
        draft.rows("struts", 1)
        draft.things["cube"]
    with scene.draft() as draft:
        assert "struts" not in draft.count
        assert draft.things["ball"].rows["bodies"].count == 1


# -- what a model takes, a scene would take
def _slope():
    scene = ph.Scene()
    scene.add_rigid("box", ph.Box(1, 1, 1), density=1.0, pos=(0, 2, 0))
    scene.add_ground("floor")
    return scene.build(real="float64")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"floor.mu": -1.0}, "floor.mu must not be negative, and is -1"),
        ({"floor.ke": torch.tensor(-5.0)}, "floor.ke must not be negative"),
        ({"box.mass": -2.0}, "the mass is -2 kg"),
        ({"box.mass": 2.0, "box.a": -1.0}, "box.a must not be negative"),
        ({"box.rot": np.zeros(4)}, "box.rot is a quaternion"),
        ({"box.rot": torch.zeros((1, 4), requires_grad=True)}, "box.rot is a quaternion"),
    ],
)
def test_a_model_refuses_numbers_that_no_scene_has(values, message):
    with pytest.raises(ValueError, match=message):
        ph.rollout(_slope().replace(values), dt=1e-3, steps=2)


def test_central_differences_may_step_across_zero():
    ph.rollout(_slope().replace({"floor.kd": -1e-6, "floor.mu": -1e-6}), dt=1e-3, steps=2)


def test_a_model_keeps_the_numbers_that_it_was_given():
    """Whoever fills one array again and again has as many models."""
    velocity, models = np.zeros((1, 3)), []
    for k in range(3):
        velocity[0, 0] = k
        models.append(_slope().replace({"box.v": velocity}))
    assert [float(m["box.v"][0, 0]) for m in models] == [0.0, 1.0, 2.0]
    assert ph.rollout(models[1], dt=1e-3, steps=1)["box"].v[-1][0] == 1.0
