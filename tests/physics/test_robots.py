"""Robots: how they are built and refused, and how they move. `test_robot_dynamics.py` has Pinocchio beside them."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph


def two_links(**joint):
    robot = ph.Robot()
    robot.add_link("upper", ph.Capsule(0.05, 0.4), mass=1.0, pos=(0, -0.2, 0))
    robot.add_link("lower", ph.Capsule(0.04, 0.4), mass=0.7, pos=(0, -0.2, 0))
    robot.add_joint("shoulder", "revolute", child="upper", pos=(0, 1, 0), axis=(0, 0, 1), **joint)
    robot.add_joint("elbow", "revolute", parent="upper", child="lower", pos=(0, -0.4, 0), axis=(1, 0, 0), **joint)
    return robot


def wheel(**joint):
    """A disc of inertia 0.5 kg m² about z, which gravity does not turn."""
    return (
        ph.Robot()
        .add_link("disc", mass=1.0, inertia=(0.3, 0.3, 0.5))
        .add_joint("hub", "revolute", child="disc", axis=(0, 0, 1), **joint)
    )


def built(robot, real="float64", **more):
    return ph.Scene().add_robot("arm", robot, **more).build(real=real)


# -- building
def test_a_robot_lists_its_links_and_joints_in_the_order_of_q():
    robot = two_links()
    assert robot.links == ["upper", "lower"] and robot.joints == ["shoulder", "elbow"]
    assert robot.coords == robot.dofs == 2


@pytest.mark.parametrize(("add", "message"), [
    (lambda r: r.add_link("upper", mass=1.0), "there is a link 'upper' already"),
    (lambda r: r.add_link("x", mass=-1.0), "the mass must be finite and not negative"),
    (lambda r: r.add_link("x", mass=1.0, inertia=[[1, 0, 0], [0, 1, 0], [0, 0, -1]]), "the inertia is indefinite"),
    (lambda r: r.add_link("x", mass=1.0, inertia=[[1, 1, 0], [0, 1, 0], [0, 0, 1]]), "the inertia is not symmetric"),
    (lambda r: r.add_joint("j", "hinge", child="upper"), "there is no kind 'hinge'"),
    (lambda r: r.add_joint("j", "revolute", child="uper", axis=(0, 0, 1)), "no link 'uper', its child: did you mean"),
    (lambda r: r.add_joint("j", "revolute", parent="upper", child="lower", axis=(0, 0, 0)), "axis has length zero"),
    (lambda r: r.add_joint("j", "revolute", parent="upper", child="lower"), "a revolute joint has an axis"),
    (lambda r: r.add_joint("j", "universal", parent="upper", child="lower", axis=((1, 0, 0), (2, 0, 0))), "parallel"),
    (lambda r: r.add_joint("j", "prismatic", parent="upper", child="lower", axis=(1, 0, 0), limits=(1, -1)),
     "the limits are reversed"),
    (lambda r: r.add_joint("j", "fixed", parent="world", child="lower"),
     "joint j closes a loop: link lower hangs on upper already, by joint elbow"),
    (lambda r: r.add_joint("elbow", "fixed", parent="upper", child="lower"), "there is a joint 'elbow' already"),
    (lambda r: r.add_joint("j", "fixed", parent="upper", child="upper"), "joins link upper to itself"),
    (lambda r: r.add_joint("j", "spherical", parent="upper", child="lower", stiffness=1.0), "no stiffness"),
    (lambda r: r.add_motor("knee"), "there is no joint 'knee'"),
    (lambda r: r.add_motor("elbow", kp=-1.0), "kp must be finite and not negative"),
    (lambda r: r.add_shape("leg", ph.Sphere(0.1)), "there is no link 'leg'"),
])  # fmt: skip
def test_what_cannot_be_is_refused(add, message):
    with pytest.raises(ph.RobotError, match=message):
        add(two_links())


def test_a_ring_of_links_is_refused_by_name():
    robot = ph.Robot()
    for name in "abc":
        robot.add_link(name, mass=1.0, inertia=(1, 1, 1))
    robot.add_joint("ab", "fixed", parent="a", child="b").add_joint("bc", "fixed", parent="b", child="c")
    with pytest.raises(ph.RobotError, match="joint ca closes a loop: a - b - c - a"):
        robot.add_joint("ca", "fixed", parent="c", child="a")
    with pytest.raises(ph.RobotError, match="link a hangs on no joint"):
        built(robot)


def test_a_joint_that_moves_no_mass_is_refused():
    robot = ph.Robot().add_link("hand", mass=1.0).add_joint("twist", "revolute", child="hand", axis=(0, 1, 0))
    with pytest.raises(ph.RobotError, match="joint twist moves nothing that has a mass"):
        built(robot)


def test_names_of_links_and_joints_that_clash_are_told_apart():
    robot = ph.Robot().add_link("thigh", ph.Sphere(0.1), mass=1.0)
    robot.add_joint("thigh", "revolute", child="thigh", axis=(0, 0, 1), damping=0.1)
    names = built(robot).names()
    assert {"arm.link.thigh.mass", "arm.joint.thigh.damping"} <= set(names) and "arm.thigh.mass" not in names


def test_several_shapes_share_the_mass_by_their_volume():
    robot = ph.Robot().add_link("dumbbell", ph.Sphere(0.1), mass=2.0, pos=(1, 0, 0))
    robot.add_shape("dumbbell", ph.Sphere(0.1), pos=(-1, 0, 0))
    link = robot.link("dumbbell")
    np.testing.assert_allclose(link.com, 0, atol=1e-12)
    own = 2 * 0.4 * 1.0 * 0.1**2
    np.testing.assert_allclose(np.diag(link.inertia), [own, own + 2, own + 2])


def test_two_joints_between_two_links_act_one_behind_the_other():
    robot = ph.Robot().add_link("head", mass=1.0, inertia=(1, 1, 1))
    robot.add_joint("yaw", "revolute", child="head", pos=(0, 1, 0), axis=(0, 1, 0))
    robot.add_joint("reach", "prismatic", child="head", pos=(0, 0, 0.5), axis=(1, 0, 0))
    pose = ph.kinematics(built(robot, q=[np.pi / 2, 2.0]))["arm"]["head"]
    np.testing.assert_allclose(pose.x, [0.5, 1.0, -2.0], atol=1e-12)  # y turns z to x, and x to -z.


# -- moving
def test_a_passive_arm_keeps_its_energy():
    """Twenty seconds at 1 ms, in space: below 1e-3 of what moves."""
    model = built(two_links(), q=[2.0, 1.0], qd=[0.5, -1.0])
    traj = ph.rollout(model, dt=1e-3, steps=20000, every=200)
    e = np.array([ph.energy(model, traj.state(k))["total"] for k in range(len(traj))])
    moving = 1.7 * 9.81 * 0.5
    assert np.abs(e - e[0]).max() < 1e-3 * moving


def test_the_step_is_of_second_order():
    def end(n, **joint):
        model = built(two_links(**joint).add_motor("elbow", kp=3.0, kd=0.1, target=0.5), q=[2.0, 1.0])
        return ph.rollout(model, dt=1.0 / n, steps=n, every=n)["arm"].q[-1].numpy()

    for joint in ({}, {"damping": 0.2, "stiffness": 1.0, "armature": 0.05}):
        exact = end(8000, **joint)
        errors = [np.abs(end(n, **joint) - exact).max() for n in (250, 500)]
        assert errors[1] < 0.3 * errors[0] and errors[1] < 1e-4


def test_a_free_body_flies_and_turns_as_it_does_outside_of_robots():
    """The middle axis flips: one link on a free joint against a rigid body."""
    I, omega = (1.0, 2.0, 3.0), (0.01, 5.0, 0.0)
    robot = ph.Robot().add_link("body", mass=1.0, inertia=I).add_joint("root", "free", child="body")
    model = built(robot, qd=[1.0, 2.0, 0.0, *omega])
    scene = ph.Scene().add_rigid("body", ph.Box(1, 1, 1), mass=1.0, inertia=I, vel=(1, 2, 0), omega=omega)
    ours = ph.rollout(model, dt=1e-3, steps=4000, every=100)["arm"]
    other = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=4000, every=100)["body"]
    assert float((ours.links["body"].rot * other.rot).sum(-1).abs().min()) > 1 - 1e-6
    t = torch.arange(41, dtype=torch.float64) * 0.1
    np.testing.assert_allclose(ours.links["body"].x[:, 1], 2 * t - 0.5 * 9.81 * t**2, atol=1e-9)


def test_the_double_pendulum_is_that_of_its_own_equations():
    lengths, masses, start = (1.0, 0.7), (1.0, 0.5), (1.2, -0.4)
    robot = ph.Robot()
    for k, name in enumerate("ab"):
        robot.add_link(name, mass=masses[k], com=(0, -lengths[k], 0), inertia=np.zeros((3, 3)))
    robot.add_joint("one", "revolute", child="a", axis=(0, 0, 1))
    robot.add_joint("two", "revolute", parent="a", child="b", pos=(0, -lengths[0], 0), axis=(0, 0, 1))
    ours = ph.rollout(built(robot, q=[start[0], start[1] - start[0]]), dt=1e-3, steps=3000, every=100)["arm"].q
    ode = ph.DoublePendulum(length=lengths, mass=masses, angle=start)
    theirs = ph.rollout(ode, dt=1e-3, steps=3000, every=100).angle
    np.testing.assert_allclose(torch.cumsum(ours, dim=1), theirs, atol=1e-4)


@pytest.mark.parametrize("gain", [1e2, 1e4, 1e6])
def test_gains_do_not_limit_the_step(gain):
    robot = two_links()
    for joint in robot.joints:
        robot.add_motor(joint, kp=gain, kd=gain / 50, target=0.7)
    end = ph.rollout(built(robot), dt=2e-3, steps=2000, every=100)["arm"]
    assert float((end.q[-1] - 0.7).abs().max()) < 10 / gain + 1e-6 and float(end.qd[-1].abs().max()) < 1e-3


def test_motors_are_clipped_and_torques_are_added_before_that():
    model = built(wheel().add_motor("hub", kp=10.0, limit=2.0))
    control = {"arm.hub.target": np.full(100, 100.0)}
    end = ph.rollout(model, dt=1e-2, steps=100, every=100, control=control)["arm"].qd[-1]
    assert float(end) == pytest.approx(2.0 / 0.5)
    control = {"arm.hub.torque": np.full(100, 1.0), "arm.torque": np.full((100, 1), 0.5)}
    model = built(wheel().add_motor("hub", limit=5.0))
    end = ph.rollout(model, dt=1e-2, steps=100, every=100, control=control)["arm"].qd[-1]
    assert float(end) == pytest.approx(1.5 / 0.5)


def test_stops_hold_a_falling_arm():
    robot = ph.Robot().add_link("rod", ph.Capsule(0.05, 1.0), mass=2.0, pos=(0, -0.5, 0))
    robot.add_joint("hip", "revolute", child="rod", axis=(0, 0, 1), limits=(0.5, 2.0))
    q = ph.rollout(built(robot, q=[1.5]), dt=2e-3, steps=2000, every=10)["arm"].q
    assert float(q.min()) > 0.48 and float(q[-1]) == pytest.approx(0.5, abs=2e-3)


def test_dry_friction_sticks():
    model = built(wheel(friction=1.0))
    held = ph.rollout(model.replace({"arm.torque": np.array([0.99])}), dt=2e-3, steps=1000, every=100)["arm"]
    assert float(held.qd.abs().max()) < 1e-6 and float(held.q.abs().max()) < 1e-6
    slides = ph.rollout(model.replace({"arm.torque": np.array([1.5])}), dt=2e-3, steps=500, every=500)["arm"]
    assert float(slides.qd[-1]) == pytest.approx(0.5 / 0.5 * 1.0, rel=1e-3)
    stops = ph.rollout(built(wheel(friction=1.0), qd=[1.0]), dt=2e-3, steps=500, every=50)["arm"]
    assert float(stops.q[-1]) == pytest.approx(0.5 * 1.0 / (2 * 1.0), rel=1e-2) and float(stops.qd[-1].abs()) < 1e-9


# -- gradients
def test_gradients_of_rollouts_by_every_parameter():
    """Motors, one of them clipped, a stop that is reached, dry friction that slides and springs, in one robot."""
    robot = ph.Robot()
    robot.add_link("base", ph.Box(0.2, 0.1, 0.3), mass=2.0)
    robot.add_link("upper", ph.Capsule(0.05, 0.4), mass=1.0, pos=(0, -0.2, 0))
    robot.add_link("lower", mass=0.7, com=(0, -0.2, 0.01), inertia=(0.02, 0.01, 0.02))
    robot.add_link("ball", ph.Sphere(0.1), mass=0.3)
    robot.add_joint("root", "free", child="base", damping=0.1, armature=0.02)
    robot.add_joint(
        "shoulder",
        "revolute",
        parent="base",
        child="upper",
        pos=(0.1, 0, 0),
        axis=(0, 0.1, 1),
        damping=0.1,
        armature=0.01,
        stiffness=2.0,
        rest=0.2,
        friction=0.2,
    )
    robot.add_joint(
        "elbow",
        "universal",
        parent="upper",
        child="lower",
        pos=(0, -0.4, 0),
        axis=((1, 0, 0), (0, 0, 1)),
        limits=(-0.6, 0.6),
        damping=0.05,
        armature=0.01,
        stiffness=0.5,
        rest=0.1,
        friction=0.01,
    )
    robot.add_joint("wrist", "spherical", parent="lower", child="ball", pos=(0, -0.4, 0), damping=0.02, armature=0.01)
    robot.add_motor("shoulder", kp=8.0, kd=0.3, limit=1.5, target=0.9).add_motor("elbow", kp=5.0, kd=0.1, target=0.8)
    q = np.concatenate([[0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.9], [0.3], [0.5, -0.2], [0.2, 0.1, 0.3, 0.9]])
    rng = np.random.default_rng(0)
    model = built(robot, q=q, qd=rng.normal(size=12), pos=(0.1, 0, 0), rot=(0, 0.1, 0, 1))
    names = [p.name for p in model.parameters()]
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    weight = torch.tensor(rng.normal(size=(14,)))
    where = torch.tensor(rng.normal(size=3))

    def loss(values):
        end = ph.rollout(model.replace(values), dt=2e-3, steps=60, every=20)["arm"]
        return (end.q[-1] * weight).sum() + (end.links["ball"].x * where).sum()

    loss(values).backward()
    assert len(names) >= 50
    for name in names:
        direction = torch.tensor(rng.normal(size=values[name].shape))
        if name.endswith("inertia"):
            direction = direction + direction.transpose(-1, -2)
        h = 1e-6
        with torch.no_grad():
            up, down = (float(loss(values | {name: values[name] + s * h * direction})) for s in (1, -1))
        found = float((values[name].grad * direction).sum())
        assert found == pytest.approx((up - down) / (2 * h), rel=2e-5, abs=2e-7), name


def test_gradients_by_control_and_in_batches():
    model = built(two_links().add_motor("shoulder", kp=5.0, kd=0.5), q=[1.0, 0.5]).batched(3)
    target = torch.zeros(50, dtype=torch.float64, requires_grad=True)
    mass = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    run = ph.rollout(
        model.replace({"arm.lower.mass": mass}), dt=1e-2, steps=50, every=10, control={"arm.shoulder.target": target}
    )
    assert run["arm"].q.shape == (3, 6, 2) and run["arm"].links["lower"].x.shape == (3, 6, 3)
    (run["arm"].links["lower"].x[:, -1].sum() + run["arm"].q[:, -1, 0].sum()).backward()
    assert target.grad.abs().min() > 0 and mass.grad.abs().min() > 0

    def end(t, m):
        with torch.no_grad():
            run = ph.rollout(
                model.replace({"arm.lower.mass": m}), dt=1e-2, steps=50, every=10, control={"arm.shoulder.target": t}
            )["arm"]
            return float(run.links["lower"].x[:, -1].sum() + run.q[:, -1, 0].sum())

    for leaf, k in ((target, 7), (mass, 1)):
        step = torch.zeros_like(leaf)
        step[k] = 1e-5
        sides = [end(target + s * step, mass) if leaf is target else end(target, mass + s * step) for s in (1, -1)]
        assert float(leaf.grad[k]) == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5)


@pytest.mark.nightly
def test_a_chain_of_a_hundred_links_stays_finite():
    robot = ph.Robot()
    for k in range(100):
        robot.add_link(f"l{k}", ph.Capsule(0.01, 0.05), density=1000.0, pos=(0, -0.025, 0))
        robot.add_joint(
            f"j{k}",
            "spherical",
            parent="world" if k == 0 else f"l{k - 1}",
            child=f"l{k}",
            pos=(0, 0 if k == 0 else -0.05, 0),
            damping=1e-5,
        )
    tilt = [*ph.quat((0, 0, 1), 1.0), *([0.0, 0.0, 0.0, 1.0] * 99)]
    # Links of 17 g that touch each other would need shorter steps, and say so: here they only hang.
    end = ph.rollout(built(robot, q=tilt, self_contact=False), dt=2e-3, steps=2000, every=100)["arm"]
    assert torch.isfinite(end.q).all() and float(end.links["l99"].x[-1, 1]) < 0


# -- contact
def test_a_box_comes_to_rest_on_the_ground():
    robot = ph.Robot().add_link("box", ph.Box(0.4, 0.2, 0.3), mass=2.0).add_joint("root", "free", child="box")
    scene = ph.Scene().add_robot("it", robot, q=[0, 0.5, 0, *ph.quat((1, 0, 1), 0.4)]).add_ground("floor")
    end = ph.rollout(scene.build(real="float64"), dt=2e-3, steps=3000, every=500)["it"]
    assert float(end.qd[-1].abs().max()) < 1e-6
    # Four corners carry it.
    assert float(end.q[-1, 1]) == pytest.approx(0.1 - 2.0 * 9.81 / (4 * 1e4), rel=1e-4)


def test_a_leg_pushes_the_ground_as_hard_as_the_robot_weighs():
    """A mass on a stiff leg that slides in a guide: the foot sinks in by the weight of both."""
    robot = ph.Robot().add_link("trunk", mass=5.0).add_link("foot", ph.Sphere(0.05), mass=0.5)
    robot.add_joint("guide", "prismatic", child="trunk", pos=(0, 0.6, 0), axis=(0, 1, 0))
    robot.add_joint("leg", "prismatic", parent="trunk", child="foot", pos=(0, -0.5, 0), axis=(0, 1, 0))
    robot.add_motor("leg", kp=1e5, kd=1e3)
    scene = ph.Scene().add_robot("it", robot).add_ground("floor")
    end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=3000, every=3000)["it"]
    assert float(end.links["foot"].x[-1, 1]) == pytest.approx(0.05 - 5.5 * 9.81 / 1e4, rel=1e-3)


def test_contact_of_links_limits_no_step():
    """Springs and dampers of contact are those of the end of the step."""
    robot = ph.Robot().add_link("ball", ph.Sphere(0.1), mass=0.01).add_joint("root", "free", child="ball")
    scene = ph.Scene().add_robot("it", robot, q=[0, 0.3, 0, 0, 0, 0, 1], qd=[1, 0, 0, 0, 0, 0])
    end = ph.rollout(scene.add_ground("floor", ke=1e7, kd=1e4).build(real="float64"), dt=5e-3, steps=400)["it"]
    assert float(end.q[:, 1].min()) > 0.08 and float(end.qd[-1, 1].abs()) < 1e-9


def on_a_slope(angle, **more):
    """A box of a robot on a slope, after 2 s: how fast it slides."""
    robot = ph.Robot().add_link("box", ph.Box(0.4, 0.2, 0.3), mass=2.0).add_joint("root", "free", child="box")
    turn, normal = ph.quat((0, 0, 1), angle), [-np.sin(angle), np.cos(angle), 0]
    scene = ph.Scene().add_robot("it", robot, q=[*(0.1 * np.array(normal)), *turn])
    model = scene.add_plane("slope", normal=normal, mu=0.5, **more).build(real="float64")
    return ph.rollout(model, dt=2e-3, steps=1000)["it"].qd[:, :3].norm(dim=1)


def test_links_stick_on_slopes_below_the_cone_and_slide_above_it():
    assert float(on_a_slope(np.arctan(0.48))[-1]) < 1e-6
    speed = on_a_slope(np.arctan(0.6))
    slid = 9.81 * (np.sin(np.arctan(0.6)) - 0.5 * np.cos(np.arctan(0.6)))
    assert float(speed[-1] - speed[-501]) == pytest.approx(slid, rel=1e-3)


def test_gradients_through_contact_are_central_differences():
    robot = ph.Robot()
    robot.add_link("trunk", ph.Box(0.3, 0.1, 0.2), mass=2.0).add_link("leg", ph.Capsule(0.05, 0.3), mass=0.5)
    robot.add_joint("root", "free", child="trunk")
    robot.add_joint("hip", "revolute", parent="trunk", child="leg", pos=(0.2, 0, 0), axis=(0, 0, 1), damping=0.1)
    robot.add_motor("hip", kp=5.0, kd=0.2, target=0.4)
    q = [0, 0.21, 0, *ph.quat((0.2, 0.1, 1), 0.3), 0.2]
    scene = ph.Scene().add_robot("it", robot, q=q, qd=[0.5, -1.0, 0.2, 0, 0, 0.3, 0.5])
    model = scene.add_ground("floor", ke=2e3, kd=30.0, kf=20.0, mu=0.4).build(real="float64")
    names = [
        "it.q",
        "it.qd",
        "it.leg.mass",
        "it.leg.com",
        "it.hip.pos",
        "it.hip.kp",
        "it.hip.damping",
        "gravity",
        "floor.ke",
        "floor.kd",
        "floor.kf",
        "floor.mu",
        "floor.offset",
        "floor.normal",
    ]
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    rng = np.random.default_rng(0)
    weight = torch.tensor(rng.normal(size=8))

    def loss(values):
        return (ph.rollout(model.replace(values), dt=1e-3, steps=150, every=150)["it"].q[-1] * weight).sum()

    loss(values).backward()
    with torch.no_grad():
        unmoved = float(loss(values | {"floor.offset": torch.tensor(-10.0, dtype=torch.float64)}))
        assert abs(unmoved - float(loss(values))) > 0.01  # It touches.
    for name in names:
        direction = torch.tensor(rng.normal(size=values[name].shape))
        with torch.no_grad():
            up, down = (float(loss(values | {name: values[name] + s * 1e-6 * direction})) for s in (1, -1))
        found = float((values[name].grad * direction).sum())
        assert found == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8), name


def test_a_step_that_is_not_solved_is_an_error_that_names_the_robot(monkeypatch):
    from nablasim.physics.laws.articulated import robots

    robot = ph.Robot().add_link("box", ph.Box(0.4, 0.2, 0.3), mass=2.0).add_joint("root", "free", child="box")
    model = ph.Scene().add_robot("it", robot, q=[0, 0.09, 0, 0, 0, 0, 1]).add_ground("floor").build(real="float64")
    monkeypatch.setitem(robots.UNSOLVED, "float64", -1.0)
    with pytest.raises(ph.NotConverged, match=r"^it: the equations of .* in step 1 ") as told:
        ph.rollout(model, dt=1e-3, steps=2)
    assert (told.value.thing, told.value.step) == ("it", 1)


# -- what is seen
def test_corners_of_links_move_with_them_and_have_gradients(tmp_path):
    robot = two_links()
    model = built(robot, q=[0.3, -0.2])
    model = model.replace({"arm.q": torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)})
    traj = ph.rollout(model, dt=2e-3, steps=20, every=10)
    corners, surface = traj.vertices("arm"), model.surfaces["arm"]
    assert corners.shape == (3, len(surface.points), 3) and surface.faces.max() == len(surface.points) - 1
    lower = torch.as_tensor(surface.link == surface.links.index("lower"))
    middle = corners[:, lower].mean(dim=1) - traj["arm"].links["lower"].x
    # The capsule's middle lies at its place in the link, however that is turned.
    placed = robot.link("lower").shapes[0].pos
    torch.testing.assert_close(middle.norm(dim=1), torch.full((3,), float(np.linalg.norm(placed)), dtype=torch.float64),
                               rtol=0, atol=1e-9)  # fmt: skip
    weight = torch.randn(corners.shape[1:], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (corners[-1] * weight).sum().backward()
    start = model["arm.q"]

    def loss(q):
        return float((ph.rollout(model.replace({"arm.q": q}), dt=2e-3, steps=20).vertices("arm")[-1] * weight).sum())

    for k in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[k] = 1e-6
        with torch.no_grad():
            slope = (loss(start.detach() + step) - loss(start.detach() - step)) / 2e-6
        assert float(start.grad[k]) == pytest.approx(slope, rel=1e-6)


# -- joints that follow others
def gripper():
    """Two fingers on a palm that swings; the right one follows the left one."""
    robot = ph.Robot().add_link("palm", ph.Box(0.3, 0.05, 0.1), mass=1.0)
    robot.add_joint("base", "revolute", child="palm", axis=(0, 0, 1), damping=0.1)
    for name, x in (("left", -0.1), ("right", 0.1)):
        robot.add_link(name, ph.Capsule(0.03, 0.2), mass=0.2, pos=(0, 0.15, 0))
        robot.add_joint(f"{name}_knuckle", "revolute", parent="palm", child=name, pos=(x, 0, 0), axis=(0, 0, 1))
    robot.add_motor("left_knuckle", kp=2.0, kd=0.1, target=0.8)
    return robot.add_mimic("right_knuckle", "left_knuckle", ratio=-1.5, offset=0.1)


def test_a_joint_follows_another_and_both_move_as_one():
    """Against the motion in the coordinates that are free: G^T M G and G^T tau, integrated by a high-order method."""
    from scipy.integrate import solve_ivp

    model = built(gripper(), self_contact=False)
    G, c = np.array([[1, 0], [0, 1], [0, -1.5]]), np.array([0.0, 0.0, 0.1])

    def slope(_, y):
        q, v = G @ y[:2] + c, G @ y[2:]
        now = model.replace({"arm.q": q, "arm.qd": v})
        M = np.asarray(ph.mass_matrix(now)["arm"])
        tau = -np.asarray(ph.inverse_dynamics(now, None, {"arm": np.zeros(3)})["arm"])
        tau[1] += 2.0 * (0.8 - q[1]) - 0.1 * v[1]
        return np.concatenate([y[2:], np.linalg.solve(G.T @ M @ G, G.T @ tau)])

    exact = solve_ivp(slope, (0, 0.5), [0, 0, 0, 0], rtol=1e-8, atol=1e-8).y[:2, -1]
    assert model["arm.q"][2] == pytest.approx(0.1)
    for real in ("float64", "float32"):
        hand = built(gripper(), real=real, self_contact=False)
        run = ph.rollout(hand, dt=5e-4, steps=1000, every=50)["arm"].q.numpy()
        assert np.abs(run @ [0, 1.5, 1] - 0.1).max() < 1e-4
        np.testing.assert_allclose(run[-1], G @ exact + c, atol=2e-4)


def test_gradients_of_joints_that_follow_are_central_differences():
    scene = ph.Scene().add_robot("arm", gripper(), self_contact=False, qd=[1.0, 0.5, -0.75])
    model = scene.add_ground("floor", height=-0.02, ke=2e3, kd=30.0, mu=0.3).build(real="float64")
    names = ["arm.right_knuckle.ratio", "arm.right_knuckle.offset", "arm.left_knuckle.kp", "arm.right.mass", "arm.q"]
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    weight = torch.tensor([0.3, 1.0, -0.7], dtype=torch.float64)

    def loss(values):
        return (ph.rollout(model.replace(values), dt=1e-3, steps=300, every=300)["arm"].q[-1] * weight).sum()

    loss(values).backward()
    rng = np.random.default_rng(0)
    for name in names:
        way = torch.tensor(rng.normal(size=values[name].shape))
        with torch.no_grad():
            up, down = (float(loss(values | {name: values[name] + s * 1e-6 * way})) for s in (1, -1))
        found = float((values[name].grad * way).sum())
        assert abs(found) > 1e-6 and found == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8), name


@pytest.mark.parametrize(("add", "message"), [
    (lambda r: r.add_mimic("left_knuckle", "right_knuckle"), "follow itself: left_knuckle - right_knuckle - left"),
    (lambda r: r.add_mimic("right_knuckle", "base"), "joint right_knuckle follows left_knuckle already"),
    (lambda r: r.add_mimic("base", "thumb"), "there is no joint 'thumb'"),
    (lambda r: r.add_mimic("base", "left_knuckle", ratio=np.nan), "ratio and offset must be finite"),
])  # fmt: skip
def test_what_cannot_follow_is_refused(add, message):
    with pytest.raises(ph.RobotError, match=message):
        add(gripper())
