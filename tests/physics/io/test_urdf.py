"""Robots from URDF: links with their masses, shapes in their places, joints in order, and errors with their line."""

import math

import numpy as np
import pytest

from nablasim import physics as ph
from nablasim.physics.geometry.rotation import rotation_matrix

pytest.importorskip("yourdfpy")

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <joint name="elbow" type="revolute">
    <parent link="upper"/>
    <child link="lower"/>
    <origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 2 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="shoulder" type="continuous">
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 0 1"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="lower"/>
    <child link="hand"/>
    <limit upper="0.3" effort="1" velocity="1"/>
    <mimic joint="elbow" multiplier="0.5"/>
  </joint>
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/>
      <mass value="2"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="3"/>
    </inertial>
    <visual>
      <origin xyz="0 0 0.5"/>
      <geometry><cylinder radius="0.1" length="1"/></geometry>
    </visual>
    <collision>
      <geometry><box size="1 2 3"/></geometry>
    </collision>
  </link>
  <link name="lower">
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
  </link>
  <link name="hand">
    <visual><geometry><mesh filename="package://arm/meshes/hand.stl" scale="0.001 0.001 0.001"/></geometry></visual>
  </link>
</robot>
"""


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    return ph.io.load_urdf(tmp_path / "arm.urdf")


def test_joints_stand_behind_those_of_their_parents(arm):
    assert arm.name == "arm" and arm.base == "base" and set(arm.links) == {"base", "upper", "lower", "hand"}
    assert [j.name for j in arm.joints] == ["shoulder", "elbow", "slide"]
    shoulder, elbow, slide = arm.joints
    assert (shoulder.lower, shoulder.upper) == (-math.inf, math.inf)
    assert (elbow.lower, elbow.upper, elbow.effort, elbow.velocity) == (-1, 2, 10, 3)
    assert (elbow.damping, elbow.friction) == (0.1, 0.2)
    assert np.allclose(elbow.axis, (0, 1, 0)) and np.allclose(elbow.pos, (0, 0, 1))
    assert np.allclose(rotation_matrix(elbow.rot) @ (1, 0, 0), (0, 1, 0))
    assert (slide.lower, slide.upper) == (0.0, 0.3) and slide.mimic == ("elbow", 0.5, 0.0)


def test_masses_stand_in_the_frame_of_their_link(arm):
    upper = arm.links["upper"]
    assert upper.mass == 2.0 and np.allclose(upper.com, (0, 0, 0.5))
    assert np.allclose(upper.inertia, np.diag([2, 1, 3]))  # turned by a quarter about z
    assert arm.links["base"].mass is None and arm.links["base"].inertia is None


def test_shapes_lie_as_urdf_means_them(arm, tmp_path):
    cylinder, box = arm.links["upper"].visual[0], arm.links["upper"].collision[0]
    assert cylinder.shape == ph.Cylinder(0.1, 1.0) and box.shape == ph.Box(1, 2, 3)
    assert np.allclose(np.abs(rotation_matrix(cylinder.rot) @ (0, 1, 0)), (0, 0, 1))  # along z
    points = cylinder.shape.mesh().moved(pos=cylinder.pos, rot=cylinder.rot).vertices
    assert np.allclose([points[:, 2].min(), points[:, 2].max()], [0, 1])
    assert arm.links["lower"].collision[0].shape == ph.Sphere(0.2)
    hand = arm.links["hand"].visual[0]
    assert hand.shape == tmp_path / "meshes/hand.stl" and np.allclose(hand.scale, 1e-3)


BROKEN = {
    "cut": ('  <link name="hand">', "", None, "this is not XML"),
    "root": ('<robot name="arm">', '<world name="arm">', None, "this is not XML|the root is"),
    "type": ('type="prismatic"', 'type="sliding"', 16, "joint slide has the type 'sliding'; known: revolute"),
    "parent": ('    <parent link="base"/>\n', "", 11, "joint shoulder has no parent"),
    "unknown": ('<child link="hand"/>', '<child link="foot"/>', 18, "joint slide names the child 'foot'"),
    "twice": ('<link name="base"/>', '<link name="base"/><link name="base"/>', 22, "link base is there twice"),
    "number": ('<mass value="2"/>', '<mass value="two"/>', 26, "<mass> has value='two'; expected 1 number"),
    "nan": ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 nan"/>', 14, "<axis> has xyz='0 0 nan'; expected 3 numbers"),
    "negative": ('<mass value="2"/>', '<mass value="-2"/>', 26, "a mass is -2"),
    "count": ('<box size="1 2 3"/>', '<box size="1 2"/>', 34, "<box> has size='1 2'; expected 3 numbers"),
    "shape": ('<box size="1 2 3"/>', '<torus size="1"/>', 34, "<geometry> holds exactly one of box, cylinder"),
    "two parents": (
        '<child link="hand"/>',
        '<child link="upper"/>',
        16,
        "link upper hangs on two joints, shoulder and slide",
    ),
    "circle": ('<parent link="base"/>', '<parent link="hand"/>', 3, "is part of a circle"),
    "name": ('<link name="base"/>', "<link/>", 22, "a <link> has no name"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_robot_is_refused_with_its_line(tmp_path, case):
    old, new, line, words = BROKEN[case]
    assert old in ARM
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace(old, new))
    with pytest.raises(ph.RobotError, match=words) as caught:
        ph.io.load_urdf(path)
    assert caught.value.file == str(path)
    if line is not None:
        assert caught.value.line == line


def test_loose_links_are_refused(tmp_path):
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="b"/><link name="c"/></robot>')
    with pytest.raises(ph.RobotError, match="2 links hang on no joint: b, c"):
        ph.io.load_urdf(tmp_path / "a.urdf")
    (tmp_path / "b.urdf").write_text('<robot name="a"/>')
    with pytest.raises(ph.RobotError, match="there are no links"):
        ph.io.load_urdf(tmp_path / "b.urdf")
    with pytest.raises(ph.RobotError, match="there is no such file"):
        ph.io.load_urdf(tmp_path / "c.urdf")


def with_mesh(folder, name):
    path = folder / "robot.urdf"
    mesh = f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
    path.write_text(f'<robot name="r">\n<link name="base">\n{mesh}\n</link></robot>')
    return path


@pytest.mark.parametrize("name", [
    "../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "package://../../secret.stl", "package://arm/../../x.stl",
    "meshes/../../x.stl", "http://somewhere/x.stl", "package://arm//etc/passwd",
])  # fmt: skip
def test_a_mesh_that_leaves_the_folder_is_refused_with_its_line(tmp_path, name):
    path = with_mesh(tmp_path, name)
    with pytest.raises(ph.RobotError, match=r"robot.urdf:3: the mesh .* (is outside of|is behind)"):
        ph.io.load_urdf(path)


def test_meshes_beside_the_folder_are_found_where_that_is_said(tmp_path):
    folder = tmp_path / "arm" / "urdf"
    folder.mkdir(parents=True)
    for name in ("../meshes/hand.stl", "package://arm/meshes/hand.stl"):
        robot = ph.io.load_urdf(with_mesh(folder, name), within=tmp_path / "arm")
        found = robot.links["base"].visual[0].shape
        assert found.resolve() == (tmp_path / "arm" / "meshes" / "hand.stl").resolve()
    beside = ph.io.load_urdf(with_mesh(folder, "package://arm/meshes/hand.stl")).links["base"].visual[0].shape
    assert beside == folder / "meshes/hand.stl"


def test_a_mesh_without_a_name_is_refused_with_its_line(tmp_path):
    with pytest.raises(ph.RobotError, match=r"robot.urdf:3: a <mesh> has no filename"):
        ph.io.load_urdf(with_mesh(tmp_path, ""))
