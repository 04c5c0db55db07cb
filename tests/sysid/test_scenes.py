"""Scene files: what they become, and what is said about those that cannot be."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from thrown import SCENE, TRUTH

from nablasim import physics as ph
from nablasim import render, sysid
from nablasim.sysid.problem.parameters import Space
from nablasim.sysid.scenes import BadScene, Stage, parse_scene, read_scene
from nablasim.sysid.scenes.backgrounds import _from_file, behind, first_silhouette, level_of
from nablasim.sysid.scenes.estimates import params, quantities
from nablasim.sysid.scenes.restitution import restitution_of

SOFT = """\
camera: {eye: [0.5, 0.3, 2.5], target: [0.5, -0.1, 0], scale: 1 m}
gravity: 9.81 m/s^2
objects:
  beam:
    kind: soft
    box: [1 m, 30 cm, 30 cm]
    cells: [3, 1, 1]
    density: 0.1 g/cm^3
    young: 20 kPa
    fixed: {axis: x, below: 0}
  flag:
    kind: cloth
    size: [1, 1]
    cells: [2, 2]
    density: 100 g/m^2
    fixed: {axis: x, below: 0}
"""


def stage(text: str = SCENE) -> Stage:
    return Stage(parse_scene(text, name="scene.yaml"))


def test_a_rigid_scene_is_what_it_says():
    model = stage().model
    assert model["block.density"] == pytest.approx(5.0) and model["floor.ke"] == pytest.approx(900.0)
    assert model["block.a"] == pytest.approx(0.8) and model["block.b"] == pytest.approx(0.6)
    np.testing.assert_allclose(model["block.rot"], ph.quat((1, 2, 3), np.radians(40)), atol=1e-7)
    np.testing.assert_allclose(model["block.impulse"], [3, 0, 1])
    np.testing.assert_allclose(model["gravity"], [0, -9.81, 0])
    assert stage().time_step(30) == pytest.approx(1 / 480)
    assert stage(SCENE.replace("time_step: 1/480 s\n", "")).time_step(24) == pytest.approx(1 / 960)


def test_solids_and_cloth_are_what_they_say():
    made = stage(SOFT)
    model = made.model
    assert model["beam.E"] == pytest.approx(2e4) and model["beam.density"] == pytest.approx(100)
    assert model["flag.density"] == pytest.approx(0.1)
    still = ph.rollout(model, dt=1 / 480, steps=48, every=48).numpy()
    for name, x in (("beam", still["beam"].x), ("flag", still["flag"].x)):
        held = x[0, :, 0] < 1e-9
        assert held.any() and np.array_equal(x[-1, held], x[0, held])
        assert x[-1, ~held, 1].mean() < x[0, ~held, 1].mean() - 1e-3
    assert not made.camera.perspective


def test_mass_and_restitution_stand_for_density_and_damping():
    text = SCENE.replace("density: 5 kg/m^3", "mass: 2.4 kg").replace("damping: 30 N s/m", "restitution: 70 %")
    model = stage(text).model
    assert model["block.density"] == pytest.approx(5.0)
    assert restitution_of(model["floor.kd"], stiffness=900.0, mass=2.4) == pytest.approx(0.7)


def test_everyday_names_are_those_of_the_model():
    made = stage()
    density, mass, friction = (params(made, [n])[0] for n in ("density", "block.mass", "friction"))
    assert density.name == "block.density" and density.bounds == (1, 50) and density.kind == "log"
    assert dict(mass.into(4.8)) == {"block.density": pytest.approx(10.0)}
    assert friction.target == "floor.mu" and friction.bounds == (0.02, 2.0)
    velocity, rotation = params(made, ["velocity", "rotation"])
    assert velocity.target == "block.v" and velocity.kind == "linear" and rotation.kind == "sphere"
    assert params(made, ["floor.kd"])[0].target == "floor.kd"
    assert {"beam.young", "flag.bend", "beam.damping"} <= set(quantities(stage(SOFT)))


def test_restitution_follows_what_else_is_found():
    made = stage()
    space = Space(params(made, ["restitution", "density"]), {p.name: p for p in made.model.parameters()})
    values = space.values(np.array([[0.7, np.log(4.0)], [0.7, np.log(16.0)]]))
    # Four times the mass needs twice the damping, for the same bounce.
    np.testing.assert_allclose(values["block.density"], [4, 16])
    assert values["floor.kd"][1] == pytest.approx(2 * values["floor.kd"][0])
    mass = values["block.density"] * 0.48
    np.testing.assert_allclose(restitution_of(values["floor.kd"], stiffness=900.0, mass=mass), 0.7, rtol=1e-6)
    assert TRUTH["block.density"] * 0.48 == pytest.approx(3.36)


@pytest.mark.parametrize(("text", "name"), [
    (text, name) for text in (SCENE, SOFT) for name in quantities(stage(text))
], ids=lambda x: x if len(x) < 40 else "")  # fmt: skip
def test_every_estimate_goes_through_the_transforms_of_torch(text, name):
    """Whatever a name means to the model is made by operations of torch, which have slopes of every order and axes."""
    made = stage(text)
    space = Space(params(made, [name]), {p.name: p for p in made.model.parameters()})
    u, h = space.draw(np.random.default_rng(0)), 1e-6
    at = torch.from_numpy(u)
    for transform in (torch.func.jacfwd, torch.func.jacrev):
        for target, slope in transform(space.values)(at).items():
            ends = [(space.values(u + h * e)[target], space.values(u - h * e)[target]) for e in np.eye(len(u))]
            want = np.stack([(a - b) / (2 * h) for a, b in ends], -1)
            np.testing.assert_allclose(slope.numpy(), want, rtol=1e-5, atol=1e-6 * (1 + np.abs(want).max()))
    for target, values in torch.func.vmap(space.values)(torch.stack([at, at])).items():
        np.testing.assert_allclose(values[1].numpy(), space.values(u)[target], rtol=1e-12, atol=1e-12)
    assert all(torch.isfinite(v).all() for v in torch.func.hessian(space.values)(at).values())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("density: 5", "densty: 5", "line 12: objects.block: unknown key 'densty': did you mean 'density'?"),
        ("camera:", "camra:", "line 5: unknown key 'camra': did you mean 'camera'?"),
        ("5 kg/m^3", "5 kgs/m^3", "line 12: objects.block.density: unknown unit 'kgs': did you mean 'kg'?"),
        ("45 deg", "45 kg", "line 8: camera.fov: '45 kg' is of another kind: expected a quantity in deg"),
        ("30 fps", "fast", "line 2: video.fps: 'fast' is not a quantity"),
        ("box: [80 cm, 60 cm, 1 m]", "bocks: 1 m", "line 11: objects.block.shape: unknown key 'bocks'.*'box'"),
        ("box: [80 cm, 60 cm, 1 m]", "box: [80 cm, 60 cm]", "line 11: objects.block.shape.box"),
        ("box: [80 cm, 60 cm, 1 m]", "sphere: -1 m", "line 11: objects.block.shape: Sphere: .*positive"),
        ("box: [80 cm, 60 cm, 1 m]", "mesh: duck.obj", "line 11: objects.block.shape.mesh: there is no file duck.obj"),
        ("    shape:", "    kind: rigit\n    shape:", "unknown kind 'rigit': did you mean 'rigid'?"),
        ("    density: 5 kg/m^3\n", "", "line 10: objects.block: give density or mass"),
        ("friction: 0.35", "friction: -1", "line 22: floor.friction: input should be greater than or equal to 0"),
        ("  friction: 0.35", "  restitution: 0.5", "give damping or restitution, not both"),
        ("block:", "floor:", "cannot be called 'floor'"),
        ("camera:", "camera: [", "this is not YAML"),
        ("time_step:", "floor: {}\ntime_step:", "line 23: 'floor' is there twice"),
        ("  eye: [0, 1.5, 6]\n", "", "line 5: camera: eye is missing: give eye and target"),
        ("[1.2, 0.2, -0.3]", "[1.2, 0.2, -0.3 km/h]", "unknown unit 'h'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, says):
    assert old in SCENE
    with pytest.raises(BadScene, match=f"scene.yaml.*{says}"):
        _ = stage(SCENE.replace(old, new, 1)).model


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("densty", "nothing in this scene has a 'densty': did you mean 'density'?"),
        ("elasticity", "did you mean 'restitution'?"),
        ("ball.density", "there is no parameter 'ball.density' in this scene: did you mean 'block.density'?"),
        ("density,block.density", "asked for twice"),
    ],
)
def test_a_parameter_that_does_not_exist_is_answered_with_the_nearest(wanted, says):
    with pytest.raises(KeyError) as refused:
        params(stage(), wanted.split(","))
    assert says in refused.value.args[0]
    with pytest.raises(KeyError, match=r"several objects have a density: say which, beam.density or flag.density"):
        params(stage(SOFT), ["density"])


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{range: [1, 50], guess: 80}", r"guess: the guess 80.0 is outside of the bounds \(1, 50\)"),
        ("{range: [50, 1]}", "range: bounds are two finite numbers, the lower first"),
        ("{range: [1 m, 50 m]}", r"range: '1 m' is of another kind: expected a quantity in kg/m\^3"),
        ("{rang: [1, 50]}", "unknown key 'rang': did you mean 'range'?"),
    ],
)
def test_ranges_that_cannot_be(entry, says):
    text = SCENE.replace("density: {range: [1 kg/m^3, 50 kg/m^3]}", f"density: {entry}")
    with pytest.raises(BadScene, match=rf"scene.yaml, line 25: parameters.density.*{says}"):
        params(stage(text), ["density"])


def test_the_background_is_found_although_the_object_stays_in_view():
    rng, n = np.random.default_rng(0), 20
    wall = 0.6 + 0.1 * rng.random((40, 60, 3))
    frames, objects = np.repeat(wall[None], n, axis=0), np.zeros((n, 40, 60), bool)
    for k in range(n):
        # It stops after a third of the time; its upper half is nearly as bright as the wall.
        x = 6 + 3 * min(k, 6)
        objects[k, 12:24, x : x + 10] = True
        frames[k, 12:18, x : x + 10], frames[k, 18:24, x : x + 10] = 0.85, (0.2, 0.1, 0.1)
    frames += 0.01 * rng.normal(size=frames.shape)
    still = behind(frames, objects[0])
    assert np.abs(still - wall).max() < 0.1
    assert np.abs(np.median(frames, axis=0) - wall).max() > 0.3, "which the median is not"
    seen = np.abs(frames - still).max(axis=-1) > level_of(frames, still, objects[0])
    assert (seen & objects).sum() / (seen | objects).sum() > 0.95


def test_a_background_in_a_file_is_upright_and_not_stretched(tmp_path):
    """As frames are: a square stays one, and so does what a camera that lay on its side has noted."""
    wide = np.zeros((100, 400, 3), np.uint8)
    wide[40:60, 190:210] = 255
    stood = Image.Exif()
    stood[0x0112] = 6  # turn it by a quarter, to the right
    for picture, how in ((wide, {}), (np.rot90(wide).copy(), {"exif": stood})):
        Image.fromarray(picture).save(tmp_path / "wall.png", **how)
        (tmp_path / "scene.yaml").write_text(SCENE, encoding="utf-8")
        seen = _from_file(Stage(read_scene(tmp_path / "scene.yaml")), "wall.png", (50, 80))[..., 0] > 0.5
        assert seen.any(axis=0).sum() == seen.any(axis=1).sum() == 10
    (tmp_path / "wall.png").write_text("no picture")
    with pytest.raises(BadScene, match=r"wall\.png cannot be read as a picture"):
        _from_file(Stage(read_scene(tmp_path / "scene.yaml")), "wall.png", (50, 80))


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "scene.yaml").write_text(SCENE, encoding="utf-8")
    assert read_scene(tmp_path / "scene.yaml").entries.floor.friction == 0.35
    with pytest.raises(BadScene, match=r"there is no scene file .*scen.yaml: did you mean '.*scene.yaml'\?"):
        read_scene(tmp_path / "scen.yaml")
    with pytest.raises(BadScene, match="is a folder"):
        read_scene(tmp_path)
    (tmp_path / "void.yaml").write_text("", encoding="utf-8")
    with pytest.raises(BadScene, match="has no entries"):
        read_scene(tmp_path / "void.yaml")


@pytest.mark.parametrize("rest", [0, 16], ids=["leaves at once", "rests for long"])
@pytest.mark.parametrize("shift", [(0, 0), (1, -1), (2, 2)], ids=str)
@pytest.mark.parametrize("wall", ["floor", "door", "stripes", "line"])
def test_an_object_that_hides_an_edge_at_first_leaves_no_ghost(wall, shift, rest):
    """Where it starts there is the edge of a floor, of a door, a pattern; the camera is a little off."""
    rng, n = np.random.default_rng(0), 24
    i, j = np.mgrid[:80, :120]
    light = {"floor": i < 38, "door": j < 18, "stripes": j // 5 % 2 == 0, "line": abs(j - 27) > 1}[wall]
    texture = 0.02 * ndimage.gaussian_filter(rng.normal(size=light.shape), 1)
    still = np.where(light[..., None], (0.8, 0.75, 0.7), (0.35, 0.4, 0.3)) + texture[..., None]
    frames, objects = np.repeat(still[None], n, axis=0), np.zeros((n, *light.shape), bool)
    for k in range(n):
        moved = max(k - rest, 0)
        objects[k] = (i - 36 - 0.05 * moved**2) ** 2 + (j - 18 - 3 * moved) ** 2 < 81
        frames[k, objects[k]] = (0.8, 0.15, 0.1)
    frames += 0.01 * rng.normal(size=frames.shape)
    first = np.roll(objects[0], shift, axis=(0, 1))
    found = behind(frames, first)
    seen = np.abs(frames - found).max(axis=-1) > level_of(frames, found, first)
    ghost = seen[-1] & ~objects[-1]
    assert ghost.sum() <= 3, f"{ghost.sum()} pixels"
    assert (seen & objects).sum() / (seen | objects).sum() > 0.98


ARM = """\
camera: {eye: [0, 1, 4], target: [0, 1, 0]}
objects:
  arm: {kind: robot, file: arm.xml, q: [0.4], position: [0, 1, 0], rotation: {axis: [1, 0, 0], angle: -90 deg}}
"""
XML = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/></body></worldbody></mujoco>"""


def test_robots_are_read_simulated_and_drawn(tmp_path):
    (tmp_path / "arm.xml").write_text(XML)
    path = tmp_path / "scene.yaml"
    path.write_text(ARM)
    made = Stage(read_scene(path))
    traj = ph.rollout(made.model, dt=1 / 480, steps=48, every=48).numpy()
    assert traj["arm"].q[0, 0] == pytest.approx(0.4) and traj["arm"].q[-1, 0] < 0.39
    seen = first_silhouette(made, (60, 80))
    assert 20 < seen.sum() < 600
    assert "arm.hinge.damping" in quantities(made) and params(made, ["arm.rod.mass"])[0].name == "arm.rod.mass"
    path.write_text(ARM.replace("q: [0.4]", "velocity: [1, 0, 0]"))
    with pytest.raises(BadScene, match="a robot moves by its joints"):
        read_scene(path)
    path.write_text(ARM.replace("arm.xml", "leg.xml"))
    with pytest.raises(BadScene, match="there is no file"):
        Stage(read_scene(path)).model  # noqa: B018


def test_fits_of_drawn_robots_have_exact_slopes(tmp_path):
    (tmp_path / "arm.xml").write_text(XML)
    path = tmp_path / "scene.yaml"
    path.write_text(ARM)
    made = Stage(read_scene(path))
    how, camera = dict(dt=1 / 480, steps=96, every=24), render.Camera.look_at(eye=(0, 1, 4), target=(0, 1, 0))
    seen = render.Silhouette(camera, size=(30, 40), sigma_pixels=1.0)
    traj = ph.rollout(made.model, **how)
    film = sysid.Video(seen(traj.vertices("arm").float(), made.model.surfaces["arm"].faces).numpy(), traj.times)
    params = [sysid.Param("arm.q", (0.1, 1.0)), sysid.Param("arm.hinge.damping", (0.01, 1.0))]
    problem = sysid.Problem(made.model, target=film, observe=sysid.Pictures(seen, real="float64"), dt=1 / 480,
                            params=params)  # fmt: skip
    assert problem.slopes_by == "tangents"
    u = problem.space.vector({"arm.q": [0.5], "arm.hinge.damping": 0.2})
    (r, J), (_, near) = (problem.jacobian(u, by=by) for by in ("tangents", "differences"))
    assert np.abs(r).max() > 0 and (np.abs(J).max(axis=(1, 2)) > 0.03).all()
    # At the start differences step over the faint end of some edges, where silhouettes are cut off.
    assert np.allclose(J[:, 1:], near[:, 1:], rtol=1e-6, atol=1e-7)
    assert np.linalg.norm(J - near) < 0.05 * np.linalg.norm(J)


def test_a_wall_throws_back_what_flies_into_it():
    stage = Stage(
        parse_scene("""
camera: {eye: [0, 0, 5], target: [0, 0, 0], fov: 40}
objects: {ball: {shape: {sphere: 10 cm}, mass: 0.1 kg, velocity: [2, 0, 0]}}
walls: {right: {point: [0.4, 0, 0], normal: [-2, 0, 0], stiffness: 2000, damping: 0, friction: 0}}
gravity: [0, 0, 0]
""")
    )
    run = ph.rollout(stage.model, dt=1e-3, steps=400, every=400).numpy()["ball"]
    assert np.allclose(run.v[-1], [-2, 0, 0], atol=0.02) and run.x[-1, 0] < 0.2
    assert {"right.friction", "right.stiffness"} <= {
        p.name for p in params(stage, ["right.friction", "right.stiffness"])
    }
    with pytest.raises(BadScene, match="a wall's normal is not zero"):
        parse_scene("camera: {eye: [0, 0, 5], target: [0, 0, 0]}\nobjects: {b: {shape: {sphere: 1}, mass: 1}}\n"
                    "walls: {left: {point: [0, 0, 0], normal: [0, 0, 0]}}")  # fmt: skip
