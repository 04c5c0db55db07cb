"""URDF files of others: those of pybullet_data and example-robot-data, with Pinocchio beside them."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from nablasim import physics as ph  # noqa: E402

PREFIXES = (Path(folder) / "cmeel.prefix/share/example-robot-data/robots" for folder in sys.path)
ROBOTS = next((folder for folder in PREFIXES if folder.is_dir()), None)
ARMS = ["panda_description/urdf/panda.urdf", "ur_description/urdf/ur5_robot.urdf",
        "talos_data/robots/talos_reduced.urdf", "anymal_b_simple_description/robots/anymal.urdf"]  # fmt: skip


def load(path, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Joints that copy others.
        return ph.load_robot(path, **more)


def all_files():
    bullet = pytest.importorskip("pybullet_data").getDataPath()
    return [*Path(bullet).rglob("*.urdf"), *(ROBOTS.rglob("*.urdf") if ROBOTS else ())]


@pytest.mark.slow
def test_every_file_loads_or_is_refused_with_its_line_and_a_reason():
    refused = []
    for path in all_files():
        try:
            load(path, meshes=False)
        except ph.RobotError as error:
            refused.append((path, error))
    for path, error in refused:
        assert error.reason and error.file == str(path), path
        assert error.line is not None, error
    assert len(refused) < 0.02 * len(all_files())


LEGGED = ["laikago_description/urdf/laikago.urdf", "anymal_b_simple_description/robots/anymal.urdf",
          "solo_description/robots/solo12.urdf", "go2_description/urdf/go2.urdf",
          "talos_data/robots/talos_reduced.urdf", "hyq_description/robots/hyq_no_sensors.urdf"]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("file", LEGGED)
def test_robots_that_are_dropped_with_their_meshes_come_to_rest(file):
    robot = load(ROBOTS / file, free=True)
    assert all(robot.link(link).looks for link in robot.links if robot.link(link).shapes)
    q = robot.start()
    q[2] = 1.5
    scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot, q=q).add_plane("floor", normal=(0, 0, 1))
    end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=10_000, every=1000)["it"]
    assert np.isfinite(end.q).all() and float(end.qd[-1].abs().max()) < 1e-2 and float(end.q[-1, 2]) > 0


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("file", ARMS)
def test_dynamics_of_a_file_are_those_of_pinocchio(file):
    path = ROBOTS / file
    if not path.is_file():
        pytest.skip("not in this release")
    model = pin.buildModelFromUrdf(str(path))
    robot, data = load(path, meshes=False), model.createData()
    rng = np.random.default_rng(0)
    q, v, tau = {}, {}, {}
    moving = [name for name in robot.joints if robot.joint(name).dofs]
    theirs = {name: model.joints[model.getJointId(name)] for name in moving}
    Q, V, T = np.zeros(model.nq), rng.normal(size=model.nv), rng.normal(size=model.nv)
    for name, joint in theirs.items():
        q[name] = rng.normal()
        # Pinocchio has cosine and sine of joints without limits.
        Q[joint.idx_q : joint.idx_q + joint.nq] = q[name] if joint.nq == 1 else [np.cos(q[name]), np.sin(q[name])]
        v[name], tau[name] = V[joint.idx_v], T[joint.idx_v]
    scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot, q=[q[n] for n in moving], qd=[v[n] for n in moving])
    ours = scene.build(real="float64")
    ours = ours.replace({n: 0.0 for n in ours if n.endswith((".damping", ".friction"))})
    model.armature[:] = 0
    expected = pin.aba(model, data, Q, V, T)
    found = ph.forward_dynamics(ours, None, {"it": np.array([tau[n] for n in moving])})["it"]
    expected = np.array([expected[theirs[n].idx_v] for n in moving])
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_a_free_root_comes_first():
    path = ROBOTS / "anymal_b_simple_description/robots/anymal.urdf"
    robot = load(path, free=True, meshes=False)
    assert robot.joint(robot.joints[0]).kind == "free" and robot.coords == robot.dofs + 1


def test_what_other_readers_forgive_is_read_as_they_read_it(tmp_path):
    """XML of version 0.0, an empty line in front, comments and a material in a geometry, capsules."""
    path = tmp_path / "odd.urdf"
    path.write_text("""
<?xml version="0.0" ?>
<robot name="r"><link name="a">
<collision><geometry><!-- a leg --><capsule radius="0.1" length="0.4"/><material name="grey"/></geometry></collision>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>""")
    (part,) = ph.load_robot(path).link("a").shapes
    assert isinstance(part.shape, ph.Capsule) and (part.shape.radius, part.shape.height) == (0.1, 0.4)
    path.write_text(path.read_text().replace("0.1", "-0.1"))
    with pytest.raises(ph.RobotError, match=r"odd\.urdf:3: .*radius must be positive"):
        ph.load_robot(path)


SEEN = """<robot name="r"><link name="a">
<visual><origin xyz="0 0 1"/><geometry><mesh filename="sheet.obj"/></geometry></visual>
<visual><geometry><mesh filename="odd.xyz"/></geometry></visual>
<collision><geometry><mesh filename="block.obj" scale="2 1 1"/></geometry></collision>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def test_meshes_are_drawn_and_touch_by_their_hulls(tmp_path):
    """A link of a mesh lies on the ground by the hull of it; what is drawn may be a sheet."""
    ph.TriMesh.from_shape(ph.Box(1, 1, 1)).save(tmp_path / "block.obj")
    ph.TriMesh.grid((1, 1), (2, 2)).save(tmp_path / "sheet.obj")
    (tmp_path / "odd.xyz").write_text("0 0 0")
    path = tmp_path / "seen.urdf"
    path.write_text(SEEN)
    with pytest.warns(UserWarning, match=r"seen\.urdf: some meshes are left out.*odd\.xyz \(a surface cannot be read"):
        robot = ph.load_robot(path, free=True)
    (block,), (sheet,) = robot.link("a").shapes, robot.link("a").looks
    np.testing.assert_allclose(np.ptp(block.shape.vertices, axis=0), [2, 1, 1])
    assert len(sheet.shape.faces) == 8
    scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot, q=[0, 0, 0.55, 0, 0, 0, 1])
    model = scene.add_plane("floor", normal=(0, 0, 1)).build(real="float64")
    traj = ph.rollout(model, dt=2e-3, steps=1000, every=1000)
    assert float(traj["it"].q[-1, 2]) == pytest.approx(0.5 - 9.81 / 4e4, abs=1e-6)
    assert float(traj.vertices("it")[-1, :, 2].min()) == pytest.approx(1.5, abs=1e-3)


MIMIC = """<robot name="r"><link name="base"/>{}
<joint name="a.1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
  <limit lower="0.2" upper="1" effort="1" velocity="1"/></joint>
<joint name="b" type="prismatic"><parent link="base"/><child link="b"/><axis xyz="0 0 1"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="{}" multiplier="2" offset="0.1"/></joint></robot>"""
PART = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>' \
       '</inertial></link>'


def test_joints_that_mimic_others_follow_them(tmp_path):
    path, links = tmp_path / "mimic.urdf", PART.format("a") + PART.format("b")
    path.write_text(MIMIC.format(links, "a.1"))
    with pytest.warns(UserWarning, match=r"mimic\.urdf: b follows a_1: kept as constraints"):
        robot = ph.load_robot(path)
    assert (robot.mimics["b"].leader, robot.mimics["b"].ratio, robot.mimics["b"].offset) == ("a_1", 2.0, 0.1)
    np.testing.assert_allclose(robot.start(), [0.2, 0.5])
    path.write_text(MIMIC.format(links, "c"))
    with pytest.raises(ph.RobotError, match=r"mimic\.urdf:4: there is no joint 'c'"):
        ph.load_robot(path)


def test_a_fixed_joint_follows_nobody(tmp_path):
    """Files whose joints were locked keep what they said of them before."""
    path, links = tmp_path / "locked.urdf", PART.format("a") + PART.format("b")
    path.write_text(MIMIC.format(links, "a.1").replace("prismatic", "fixed"))
    assert ph.load_robot(path).mimics == {}


def test_a_fine_mesh_is_drawn_by_few_triangles():
    from nablasim.physics.io.robot_meshes import coarser

    ball = ph.TriMesh.icosphere(subdivisions=5)
    few = coarser(ball, 2000)
    assert 500 < len(few.faces) <= 2000 and few.volume == pytest.approx(ball.volume, rel=0.05)


def test_a_file_with_an_entity_is_refused_with_its_line(tmp_path):
    path = tmp_path / "bomb.urdf"
    path.write_text('<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "aaaa">]>\n<robot name="&a;"/>')
    with pytest.raises(ph.RobotError, match=r"bomb\.urdf:2: .*entities"):
        ph.load_robot(path)


URDF = (
    '<robot name="r">\n<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="{}" ixy="0" '
    'ixz="0" iyz="0"/></inertial>{}</link>\n<link name="b"/>\n<joint name="j" type="revolute"><parent link="a"/>'
    '<child link="b"/><axis xyz="{}"/><limit lower="{}" upper="1" effort="1" velocity="1"/></joint></robot>'
)
MESH = '<visual><geometry><mesh filename="none.stl"/></geometry></visual>'


@pytest.mark.parametrize(("izz", "visual", "axis", "lower", "line", "reason"), [
    ("-1", "", "0 0 1", "0", 2, "the inertia is indefinite"),
    ("1", MESH, "0 0 1", "0", 2, "there is no mesh 'none.stl'"),
    ("1", "", "0 0 0", "0", 4, "the axis has length zero"),
    ("1", "", "0 0 1", "2", 4, "the limits are reversed"),
])  # fmt: skip
def test_broken_files_are_refused_with_their_line(tmp_path, izz, visual, axis, lower, line, reason):
    path = tmp_path / "broken.urdf"
    path.write_text(URDF.format(izz, visual, axis, lower))
    with pytest.raises(ph.RobotError, match=re.escape(f"broken.urdf:{line}: ") + ".*" + re.escape(reason)):
        ph.load_robot(path)
