"""Links of robots against bodies, obstacles, particles, each other and themselves."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph


def rod(free=True, damped=False):
    robot = ph.Robot().add_link("rod", ph.Capsule(0.05, 0.4), mass=1.0)
    if free:
        return robot.add_joint("root", "free", child="rod", damping=0.1 if damped else 0.0)
    return robot.add_joint("hinge", "revolute", child="rod", axis=(0, 0, 1))


def hit(damped=False, **ball):
    """A ball flies against a rod that floats."""
    scene = ph.Scene(gravity=(0, 0, 0)).add_robot("it", rod(damped=damped))
    return scene.add_rigid("ball", ph.Sphere(0.1), mass=0.5, pos=(0.4, 0.1, 0.02), vel=(-2, 0, 0), omega=(0, 5, 0),
                           **ball).build(real="float64")  # fmt: skip


def test_momentum_is_exchanged_with_bodies():
    model = hit()
    traj = ph.rollout(model, dt=1e-3, steps=400, every=100)
    link, ball = traj["it"], traj["ball"]
    assert float(link.qd[-1, 0]) < -0.5 and float(link.qd[-1, 3:].abs().max()) > 1.0
    momentum = 1.0 * link.qd[:, :3] + 0.5 * ball.v
    torch.testing.assert_close(momentum, momentum[:1].expand_as(momentum), rtol=0, atol=1e-12)
    I = ph.Capsule(0.05, 0.4).mass_properties(1.0)
    across = I.inertia / I.mass
    spin = torch.zeros(len(momentum), 3, dtype=torch.float64)
    for k in range(len(momentum)):
        R = torch.as_tensor(_matrix(link.q[k, 3:].numpy()))
        turning = R @ torch.as_tensor(across) @ R.T @ link.qd[k, 3:]
        own = 0.4 * 0.5 * 0.1**2 * ball.omega[k]
        spin[k] = turning + torch.linalg.cross(link.q[k, :3], link.qd[k, :3]) + own
        spin[k] += 0.5 * torch.linalg.cross(ball.x[k], ball.v[k])
    torch.testing.assert_close(spin, spin[:1].expand_as(spin), rtol=0, atol=2e-3)


def _matrix(q):
    from nablasim.physics.geometry import rotation_matrix

    return rotation_matrix(q)


def test_a_link_is_hit_as_a_body_of_the_same_shape_is():
    """The contact of a free link is that of a rigid body; it goes on at the mean of both velocities of a step, and so
    is thrown back a little harder."""
    scene = ph.Scene(gravity=(0, 0, 0)).add_rigid("rod", ph.Capsule(0.05, 0.4), mass=1.0)
    scene.add_rigid("ball", ph.Sphere(0.1), mass=0.5, pos=(0.4, 0.1, 0.02), vel=(-2, 0, 0), omega=(0, 5, 0))
    body = ph.rollout(scene.build(real="float64"), dt=2e-4, steps=2000, every=2000)
    link = ph.rollout(hit(), dt=2e-4, steps=2000, every=2000)
    np.testing.assert_allclose(link["it"].qd[-1, :3], body["rod"].v[-1], atol=0.04)
    np.testing.assert_allclose(link["ball"].v[-1], body["ball"].v[-1], atol=0.07)


def test_gradients_through_a_hit_are_central_differences():
    model = hit(damped=True, ke=2e3, kd=5.0)
    names = ["it.q", "it.qd", "it.rod.mass", "it.root.damping", "ball.x", "ball.v", "ball.mass", "ball.ke", "ball.kd"]
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    rng = np.random.default_rng(0)

    def loss(values):
        traj = ph.rollout(model.replace(values), dt=1e-3, steps=250, every=250)
        return (traj["it"].q[-1] * weight[:7]).sum() + (traj["ball"].x[-1] * weight[7:]).sum()

    weight = torch.tensor(rng.normal(size=10))
    loss(values).backward()
    for name in names:
        direction = torch.tensor(rng.normal(size=values[name].shape))
        with torch.no_grad():
            up, down = (float(loss(values | {name: values[name] + s * 1e-6 * direction})) for s in (1, -1))
        found = float((values[name].grad * direction).sum())
        assert found == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8), name


def test_a_hand_pushes_a_box():
    """A sliding hand moves a box along the ground as fast as it goes itself."""
    robot = ph.Robot().add_link("hand", ph.Box(0.1, 0.2, 0.2), mass=1.0)
    robot.add_joint("slide", "prismatic", child="hand", axis=(1, 0, 0)).add_motor("slide", kp=2e4, kd=1e3)
    scene = ph.Scene().add_robot("arm", robot, pos=(0, 0.15, 0)).add_ground("floor")
    scene.add_rigid("box", ph.Box(0.3, 0.3, 0.3), mass=2.0, pos=(0.25, 0.15, 0))
    target = 0.2 * np.arange(1000) * 2e-3
    traj = ph.rollout(scene.build(real="float64"), dt=2e-3, steps=1000, control={"arm.slide.target": target})
    gone = float(traj["box"].x[-1, 0] - traj["box"].x[0, 0])
    assert gone == pytest.approx(0.34, abs=0.03)
    assert float(traj["box"].v[-1, 0]) == pytest.approx(0.2, abs=0.02)


def test_links_touch_obstacles_particles_and_other_robots():
    swing = rod(free=False)
    scene = ph.Scene(gravity=(0, 0, 0)).add_robot("it", swing, qd=[2.0])
    scene.add_obstacle("post", ph.Sphere(0.05), pos=(-0.2, 0.2, 0))
    end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=1000, every=1000)["it"]
    assert float(end.qd[-1, 0]) < 0.1  # Thrown back, or held.
    scene = ph.Scene(gravity=(0, 0, 0)).add_robot("it", swing, qd=[2.0])
    scene.add_particles("dust", [[-0.1, 0.15, 0.0]], mass=0.2)
    end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=1000, every=1000)
    assert float(end["dust"].v[-1].norm()) > 0.2 and float(end["it"].qd[-1, 0]) < 2.0
    scene = ph.Scene(gravity=(0, 0, 0)).add_robot("it", swing, qd=[2.0])
    scene.add_robot("other", rod(), q=[-0.25, 0.2, 0, 0, 0, 0, 1])
    end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=1000, every=1000)
    assert float(end["other"].qd[-1, 0]) < -0.1


def fingers(**more):
    """Two fingers on a palm that close."""
    robot = ph.Robot().add_link("palm", ph.Box(0.3, 0.05, 0.1), mass=1.0).add_joint("base", "fixed", child="palm")
    for name, x, to in (("left", -0.1, 1), ("right", 0.1, -1)):
        robot.add_link(name, ph.Capsule(0.03, 0.2), mass=0.2, pos=(0, 0.15, 0))
        robot.add_joint(f"{name}_joint", "revolute", parent="palm", child=name, pos=(x, 0, 0), axis=(0, 0, -to))
        robot.add_motor(f"{name}_joint", kp=5.0, kd=0.5, target=1.0)
    return robot, more


def closed(robot, **more):
    scene = ph.Scene(gravity=(0, 0, 0)).add_robot("hand", robot, **more)
    return ph.rollout(scene.build(real="float64"), dt=1e-3, steps=1500, every=1500)["hand"].q[-1]


def test_links_of_one_robot_touch_unless_they_are_excluded():
    robot, _ = fingers()
    held = closed(robot)
    assert 0.2 < float(held[0]) < 0.6 and float(held[0]) == pytest.approx(float(held[1]), abs=1e-3)
    assert float(closed(robot, self_contact=False)[0]) == pytest.approx(1.0, abs=1e-2)
    assert float(closed(robot.exclude("left", "right"))[0]) == pytest.approx(1.0, abs=1e-2)


def test_bits_of_mjcf_say_who_touches(tmp_path):
    text = """<mujoco><worldbody>
    <geom name="table" type="box" size="0.5 0.5 0.05" pos="0 0 0.05"/>
    <body name="a" pos="0 0 1"><freejoint/><geom size="0.1" contype="{}" conaffinity="{}"/></body>
    <body name="b" pos="0 0 0.21"><freejoint/><geom size="0.1" contype="1" conaffinity="1"/></body>
    </worldbody></mujoco>"""
    path = tmp_path / "two.xml"
    for bits, rests in (((1, 1), True), ((2, 2), False), ((2, 1), True)):
        path.write_text(text.format(*bits))
        scene = ph.Scene(gravity=(0, 0, -9.81)).add_robot("it", ph.load_robot(path))
        end = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=600, every=50)["it"].q
        assert 0.15 < float(end[-1, 9]) < 0.3  # On the table, which is an obstacle, or just above it.
        assert (float(end[:, 2].min()) > 0.3) == rests


def test_implicit_steps_refuse_contact_of_links():
    model = hit()
    with pytest.raises(ValueError, match="semi_implicit"):
        ph.rollout(model, dt=1e-3, steps=1, integrator="backward_euler")
