"""MJCF: the files of gymnasium against MuJoCo, the parts of the format one by one, and files that are refused."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

from nablasim import physics as ph  # noqa: E402

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
FILES = sorted(path.name for path in ASSETS.glob("*.xml"))
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
WALKERS = ["ant.xml", "humanoid.xml", "hopper.xml", "half_cheetah.xml", "walker2d.xml", "swimmer.xml"]


def both(path, q=None, qd=None):
    """Ours, and MuJoCo's without constraints, actuators and a medium."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Tendons and the medium, which are named.
        robot = ph.load_robot(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    model.opt.density = model.opt.viscosity = 0
    scene = ph.Scene(gravity=model.opt.gravity)
    return robot, model, mujoco.MjData(model), scene.add_robot("it", robot, q=q, qd=qd).build(real="float64")


def to_ours(model, q, v=None, a=None):
    """Quaternions have w last here; angular rates of free and ball joints are those of the parent's side, not the
    body's own."""
    q, v = np.array(q), None if v is None else np.array(v)
    a = None if a is None else np.array(a)
    for j in range(model.njnt):
        kind, c, d = int(model.jnt_type[j]), model.jnt_qposadr[j], model.jnt_dofadr[j]
        if kind in (FREE, BALL):
            c, d = (c + 3, d + 3) if kind == FREE else (c, d)
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, q[c : c + 4] / np.linalg.norm(q[c : c + 4]))
            for rate in (v, a):
                if rate is not None:
                    rate[d : d + 3] = R.reshape(3, 3) @ rate[d : d + 3]
            q[c : c + 4] = np.roll(q[c : c + 4], -1)
    return q, v, a


def random_state(model, rng):
    q = model.qpos0 + rng.normal(size=model.nq) * 0.5
    for j in range(model.njnt):
        if int(model.jnt_type[j]) in (FREE, BALL):
            c = model.jnt_qposadr[j] + (3 if int(model.jnt_type[j]) == FREE else 0)
            q[c : c + 4] /= np.linalg.norm(q[c : c + 4])
    return q, rng.normal(size=model.nv)


def compare(path):
    rng = np.random.default_rng(0)
    robot, model, data, _ = both(path)
    assert (robot.coords, robot.dofs) == (model.nq, model.nv)
    np.testing.assert_allclose(to_ours(model, model.qpos0)[0], robot.start(), atol=1e-12)
    data.qpos[:], data.qvel[:] = random_state(model, rng)
    mujoco.mj_forward(model, data)
    q, qd, qdd = to_ours(model, data.qpos, data.qvel, data.qacc)
    ours = both(path, q, qd)[3]
    poses = ph.kinematics(ours)["it"]
    for k, link in enumerate(robot.links, 1):
        np.testing.assert_allclose(poses[link].x, data.xpos[k], atol=1e-9)
    found = ph.forward_dynamics(ours, None, {})["it"]
    np.testing.assert_allclose(found, qdd, atol=1e-8 * max(1.0, np.abs(qdd).max()))


@pytest.mark.parametrize("file", FILES)
def test_accelerations_of_gymnasium_are_those_of_mujoco(file):
    compare(ASSETS / file)


@pytest.mark.parametrize("file", WALKERS)
def test_trajectories_of_two_seconds_are_those_of_mujoco(file):
    robot, model, data, _ = both(ASSETS / file)
    rng = np.random.default_rng(1)
    data.qvel[:] = 0.3 * rng.normal(size=model.nv)
    start = to_ours(model, data.qpos, data.qvel)
    ours = both(ASSETS / file, start[0], start[1])[3]
    ours = ours.replace({name: (-1e20, 1e20) for name in ours if name.endswith(".limits")})
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    mujoco.mj_step(model, data, 2000)
    q = ph.rollout(ours, dt=5e-4, steps=4000, every=4000)["it"].q[-1]
    np.testing.assert_allclose(q, to_ours(model, data.qpos)[0], atol=1e-4)


PARTS = """<mujoco><compiler angle="radian" eulerseq="XYz" boundmass="0.01" boundinertia="0.001"/>
<option gravity="0 1 -9"/>
<default><geom density="700"/><joint armature="0.1"/>
  <default class="soft"><joint damping="0.3" stiffness="2" springref="0.2"/>
    <default class="softer"><joint stiffness="1"/></default></default></default>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3" childclass="soft">
  <joint name="one" axis="1 1 0" pos="0.1 0 0.2" ref="0.3"/><joint name="two" type="slide" axis="0 0 1" class="softer"/>
  <geom type="capsule" fromto="0 0 0 0.3 0.2 0.1" size="0.05"/><geom type="ellipsoid" size="0.1 0.2 0.3" mass="0.4"/>
  <body name="b" pos="0.3 0 0" axisangle="1 2 3 0.7"><joint type="ball" stiffness="0" pos="0 0.1 0"/>
    <geom type="box" size="0.1 0.2 0.1" pos="0.1 0 0" zaxis="1 1 0.2"/></body>
  <body name="c" pos="0 0.3 0" xyaxes="1 1 0 -1 1 0.3"><joint name="three"/>
    <inertial pos="0.1 0 0" mass="1" fullinertia="0.2 0.3 0.25 0.01 0.02 0.03" />
    <geom type="cylinder" size="0.1 0.2"/><body pos="0 0 1"><geom size="0.1"/></body></body></body>
<body pos="1 1 1" quat="1 2 3 4"><freejoint/><geom type="cylinder" size="0.1 0.2" euler="1 0 0"/></body>
</worldbody>
<actuator><motor joint="one" gear="3" ctrlrange="-0.5 2"/><position joint="two" kp="7" kv="2" gear="2"/></actuator>
<contact><exclude body1="a" body2="c"/></contact></mujoco>"""


def test_every_part_of_the_format_means_what_it_means_to_mujoco(tmp_path):
    path = tmp_path / "parts.xml"
    path.write_text(PARTS)
    compare(path)
    robot = ph.load_robot(path)
    assert robot.motors["one"].limit == 6.0 and robot.motors["two"].kp == 28.0 and robot.motors["two"].kd == 8.0
    assert frozenset("ac") in robot.exclusions


COUPLED = """<mujoco><default><equality active="true"/></default><worldbody><body name="a" pos="0 0 1">
<joint name="one" ref="10"/><geom size="0.1" pos="0.2 0 0"/>
<body name="b" pos="0.5 0 0"><joint name="two" ref="-20"/><geom size="0.1" pos="0.2 0 0"/></body></body></worldbody>
<equality><joint joint1="two" joint2="one" polycoef="{}"/></equality></mujoco>"""


def test_joints_that_are_coupled_in_proportion_follow_each_other(tmp_path):
    path = tmp_path / "coupled.xml"
    path.write_text(COUPLED.format("0.3 -2 0 0 0"))
    mimic = ph.load_robot(path).mimics["two"]
    model = mujoco.MjModel.from_xml_path(str(path))
    q = model.qpos0 + [0.1, 0.3 - 2 * 0.1]  # What MuJoCo means: from where both are drawn.
    assert mimic.leader == "one" and mimic.ratio * q[0] + mimic.offset == pytest.approx(q[1])
    path.write_text(COUPLED.format("0 1 2"))
    with pytest.raises(ph.RobotError, match=r"coupled\.xml:4: .*higher degree than 1"):
        ph.load_robot(path)


def test_included_files_stand_where_they_are_named(tmp_path):
    (tmp_path / "leg.xml").write_text('<mujoco><body name="leg"><joint/><geom size="0.1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="leg.xml"/></worldbody></mujoco>')
    assert ph.load_robot(main).links == ["leg"]
    broken = '<mujoco>\n<body name="leg">\n<joint axis="0 0 0"/><geom size="1"/></body></mujoco>'
    (tmp_path / "leg.xml").write_text(broken)
    with pytest.raises(ph.RobotError, match=re.escape("leg.xml:3: joint joint0: the axis has length zero")):
        ph.load_robot(main)


MESHES = """<mujoco><compiler meshdir="meshes"/>
<default><mesh scale="1 0.5 2"/><default class="seen"><geom contype="0" conaffinity="0"/></default></default>
<asset><mesh file="l.obj" refpos="0.1 0.2 0.3" refquat="1 2 3 4"/><mesh name="whole" file="l.obj" inertia="convex"/>
<mesh name="corner" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="1 1 1"/></asset>
<worldbody><geom type="mesh" mesh="corner"/><body name="a" pos="0 0 3"><freejoint/>
  <geom type="mesh" mesh="l" density="10" pos="1 2 3" euler="10 20 30"/>
  <geom type="mesh" class="seen" mesh="whole" mass="0"/><geom type="mesh" mesh="corner" mass="0" group="3"/>
  <body name="b"><joint axis="1 0 0"/><geom type="mesh" mesh="whole"/><geom type="mesh" mesh="corner" mass="2"/></body>
</body></worldbody></mujoco>"""


def an_l(path):
    """A corner of two beams: not convex."""
    flat = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], float)
    points = np.concatenate([np.insert(flat, 2, z, axis=1) for z in (0, 1)])
    top = [(6, 7, 8), (6, 8, 9), (6, 9, 10), (6, 10, 11)]
    faces = [*top, *((c - 6, b - 6, a - 6) for a, b, c in top)]
    for i in range(6):
        faces += [(i, (i + 1) % 6, (i + 1) % 6 + 6), (i, (i + 1) % 6 + 6, i + 6)]
    path.parent.mkdir(exist_ok=True)
    ph.TriMesh(points, faces).save(path)


def test_meshes_weigh_what_they_weigh_to_mujoco_and_touch_by_their_hulls(tmp_path):
    an_l(tmp_path / "meshes/l.obj")
    path = tmp_path / "meshes.xml"
    path.write_text(MESHES)
    compare(path)
    robot = ph.load_robot(path)
    a, b = robot.link("a"), robot.link("b")
    # What is in group 3 is not drawn, and what has no bits touches nothing.
    assert (len(a.shapes), len(a.visuals), len(b.shapes), list(robot.surroundings)) == (2, 2, 2, ["geom0"])
    assert a.shapes[0].shape.volume == pytest.approx(3.5) and a.visuals[0].shape.volume == pytest.approx(3.0)
    bare = ph.load_robot(path, meshes=False)
    assert not bare.link("a").shapes and bare.link("a").mass == a.mass


BODY = '<mujoco>\n<worldbody><body name="a">\n{}</body></worldbody>\n{}</mujoco>'


@pytest.mark.parametrize(("body", "more", "line", "reason"), [
    ('<joint type="screw"/>', "", 3, "a joint has the type 'screw'"),
    ('<joint range="1 -1"/>', "", 3, "the limits are reversed"),
    ('<joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 -1"/>', "", 3, "the mass or the inertia is negative"),
    ('<joint/><geom type="mesh" mesh="m"/>', "", 3, "there is no mesh 'm' in an <asset>"),
    ('<joint/><geom type="hfield" hfield="m"/>', "", 3, "a geom is a hfield"),
    ('<joint/><geom size="1"/>', '<asset><mesh file="none.stl"/></asset>', 4, "there is no mesh 'none.stl'"),
    ('<joint/><geom size="1"/>', '<asset><mesh file="../x.stl"/></asset>', 4, "the mesh '../x.stl' is outside of"),
    ('<joint/><geom size="1"/>', '<asset><mesh vertex="0 0 0 1 0 0"/></asset>', 4, "vertices or faces of a <mesh>"),
    ('<joint damping="much"/>', "", 3, "<joint> has damping='much'; expected 1 numbers"),
    ('<joint class="none"/>', "", 3, "there is no default class 'none'"),
    ('<joint/><geom size="-1"/>', "", 3, "a sphere has 1 positive sizes"),
    ("<replicate/>", "", 3, "<replicate> is not read"),
    ('<joint/><geom size="1"/>', '<equality><connect body1="a"/></equality>', 4, "<equality> connect '' closes a loop"),
    ('<joint/><geom size="1"/>', '<actuator><motor joint="knee"/></actuator>', 4, "names the joint 'knee'"),
    ("<include/>", "", 3, "an <include> has no file"),
    ('<include file="../x.xml"/>', "", 3, "is outside of"),
    ('<include file="x.xml"/>', "", 3, "there is no file 'x.xml' to include"),
])  # fmt: skip
def test_broken_files_are_refused_with_their_line(tmp_path, body, more, line, reason):
    path = tmp_path / "broken.xml"
    path.write_text(BODY.format(body, more))
    with pytest.raises(ph.RobotError, match=re.escape(f"broken.xml:{line}: ") + ".*" + re.escape(reason)):
        ph.load_robot(path)


@pytest.mark.parametrize("name", ["robot.urdf", "robot.xml"])
def test_entities_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text('<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<robot name="&b;"/>')
    with pytest.raises(ph.RobotError, match=f"{name}:2: the file declares entities"):
        ph.load_robot(path)


def test_what_is_not_modelled_is_named():
    with pytest.warns(UserWarning, match="option density, option viscosity not modelled"):
        ph.load_robot(ASSETS / "swimmer.xml")


def dropped(file, seconds, dt=2e-3):
    """How fast the joints of a robot are that falls on the ground, in the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = ph.load_robot(ASSETS / file)
    scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", robot).add_plane("floor", normal=(0, 0, 1))
    steps = round(seconds / dt)
    end = ph.rollout(scene.build(real="float64"), dt=dt, steps=steps, every=steps // 10)["it"]
    assert np.isfinite(end.q).all()
    return float(end.qd[-1].abs().max())


@pytest.mark.parametrize("file", ["ant.xml", "hopper.xml"])
def test_walkers_that_are_dropped_come_to_rest(file):
    assert dropped(file, 10.0) < 1e-4


def test_links_that_touch_each_other_limit_no_usual_step():
    assert dropped("humanoid.xml", 0.04) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("file", [*(set(WALKERS) - {"ant.xml", "hopper.xml"}), "humanoidstandup.xml"])
def test_all_walkers_that_are_dropped_come_to_rest(file):
    assert dropped(file, 10.0) < 1e-3
