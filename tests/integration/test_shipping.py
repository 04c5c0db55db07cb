"""Wheels bring the kernels in the form in which scenes and pictures launch them.

A kernel is there with its numbers as numbers or as arrays, and for elements that lie side by side: what is launched
otherwise would need a compiler. Here the interpreter runs, so that nothing is compiled; test_wheels.py runs wheels.
"""

import importlib

import bare
import pytest
import torch

import kernelc as kc
from kernelc.runtime.kernels import Kernel
from nablasim import physics as ph
from nablasim import render

MODES = ("softras", "dibr", "hard")
AHEAD = {"physics": "nablasim.physics.ahead", "render": "nablasim.render.kernels.ahead"}
OUTPUTS = ("rgba", "silhouette", "depth", "normals", "face", "object", "flow")


@pytest.fixture
def launched(monkeypatch):
    """The plans of what is launched."""
    plans = []
    make = Kernel.plan

    def plan(self, args):
        made = make(self, args)
        plans.append(made[0])
        return made

    monkeypatch.setattr(Kernel, "plan", plan)
    monkeypatch.setattr(kc.config, "device", "python")
    return plans


def missing(plans, package):
    """What the wheel of a package would not have: kernels, by the numbers given as arrays and the members left out."""
    declared = importlib.import_module(AHEAD[package]).AHEAD
    known = {(one.kernel, one.given_as_arrays, one.left_out) for one in declared}
    own = [plan for plan in plans if plan.kernel.source.function.__module__.startswith(f"nablasim.{package}.")]
    assert own
    wrong = {f"{p.kernel.name} with {p.variant.boxed} as arrays, without {p.variant.lacks}" for p in own
             if (p.kernel, p.variant.boxed, p.variant.lacks) not in known}  # fmt: skip
    apart = {p.kernel.name for p in own if set(p.contiguous) != set(p.arrays)}
    return wrong | apart


@pytest.mark.parametrize("on_tape", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_pictures(launched, mode, on_tape):
    """Near enough that faces may have to be cut off; on a tape they always may."""
    vertices = torch.tensor([[-1.0, -1, 0], [1, -1, 0], [0, 1, 3.95]], requires_grad=True)
    given = kc.array(vertices.detach().numpy(), requires_grad=True) if on_tape else vertices
    renderer = render.Renderer(
        render.Camera.look_at((0, 0, 4), (0, 0, 0), fov=60), [render.Ambient(0.5)], mode=mode, size=(4, 4)
    )
    with kc.Tape():
        renderer(given, [[0, 1, 2]], output=OUTPUTS, moved=given, objects=[0])
    assert any(plan.kernel.name == "clip_faces" for plan in launched)
    assert not missing(launched, "render")


SUN = [render.Ambient(0.5), render.Directional((1, 2, 1))]


@pytest.mark.parametrize(("mode", "textures"), [("softras", "one"), ("softras", "some"), ("hard", "clear")])
def test_pictures_of_textures_and_shadows(launched, mode, textures):
    vertices = torch.tensor([[-1.0, -1, 0], [1, -1, 0], [0, 1, 0.5]], requires_grad=True)
    texture = torch.ones(2, 2, 4 if textures == "clear" else 3, requires_grad=True)
    mesh = render.Mesh(vertices, [[0, 1, 2]], uvs=[[0, 0], [1, 0], [0, 1.0]], texture=texture)
    if textures == "some":
        mesh = render.Mesh.join([mesh, mesh.replace(texture=None, uvs=None)])
    camera = render.Camera.look_at((0, 0, 4), (0, 0, 0), fov=60)
    for lights, shadows in ((None, False), (SUN, False), (SUN, True)):
        mipmaps = textures == "clear" and shadows
        render.Renderer(camera, lights, mode=mode, size=(2, 2), shadows=shadows, mipmaps=mipmaps)(mesh)
    assert not missing(launched, "render")


@pytest.mark.parametrize("scene", [bare.springs, bare.cloth, bare.solid, bare.bodies], ids=lambda f: f.__name__)
def test_scenes(launched, monkeypatch, scene):
    monkeypatch.setattr(bare, "rolled", one_step)
    scene("float32")
    assert not missing(launched, "physics")


def one_step(scene, real, names):
    model = scene.build(real)
    values = {name: torch.tensor(model.layout.parameters[name].value, requires_grad=True) for name in names}
    ph.rollout(model.replace(values), dt=1e-3, steps=1)


@pytest.mark.parametrize("on_tape", [False, True])
def test_hard_ground_and_self_contact(launched, on_tape):
    scene = ph.Scene().add_particles("dust", [[0.0, 0.001, 0.0], [0.0, 0.01, 0.0]], mass=0.1)
    scene.add_self_contact("dust", thickness=0.02, ke=10.0)
    scene.add_rigid("cube", ph.Box(0.2, 0.2, 0.2), density=500.0, pos=(1, 0.05, 0))
    scene.add_rigid("ball", ph.Sphere(0.2), density=500.0, pos=(1.1, 0.2, 0))
    scene.add_cloth("flag", ph.TriMesh.grid((0.3, 0.2), cells=(2, 2)), mass=0.1, pos=(0, 1, 0))
    scene.add_self_contact("flag", thickness=0.01, ke=10.0).add_ground("floor", hard=True)
    model = scene.build()
    x = model.layout.parameters["dust.x"].value
    given = kc.array(x, dtype=kc.float3, requires_grad=True) if on_tape else torch.tensor(x, requires_grad=True)
    with kc.Tape():
        ph.rollout(model.replace({"dust.x": given}), dt=1e-3, steps=1)
    ph.energy(model)
    names = {plan.kernel.name for plan in launched}
    assert {"self_contact_forces", "edge_contact_forces", "point_contact_forces", "face_hit_forces"} <= names
    assert not missing(launched, "physics")


@pytest.mark.parametrize("integrator", ["semi_implicit", "backward_euler"])
@pytest.mark.parametrize("ground", [False, True])
def test_bodies_with_and_without_planes(launched, ground, integrator):
    scene = ph.Scene().add_rigid("cube", ph.Box(0.2, 0.2, 0.2), mass=1.0, pos=(0, 0.09, 0))
    model = (scene.add_ground("floor") if ground else scene).build()
    mass = torch.tensor(1.0, requires_grad=True)
    ph.rollout(model.replace({"cube.mass": mass}), dt=1e-3, steps=1, integrator=integrator)["cube"].x.sum().backward()
    assert not missing(launched, "physics")


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("ground", [False, True])
def test_robots_with_and_without_contact(launched, ground, ball):
    robot = ph.Robot().add_link("rod", ph.Sphere(0.1), mass=1.0)
    robot.add_joint("hinge", "revolute", child="rod", pos=(0, 0.5, 0), axis=(0, 0, 1))
    scene = ph.Scene().add_robot("arm", robot)
    scene = scene.add_ground("floor") if ground else scene
    model = (scene.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0.15, 0.5, 0)) if ball else scene).build()
    mass = torch.tensor(1.0, requires_grad=True)
    ph.rollout(model.replace({"arm.rod.mass": mass}), dt=1e-3, steps=1)["arm"].q.sum().backward()
    assert not missing(launched, "physics")


def test_bounces(launched):
    mass = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    ph.Bounce(mass=mass).rollout(dt=0.01, steps=2).x.sum().backward()
    assert not missing(launched, "physics")


def test_pendula(launched):
    ph.Pendulum(angle=0.5).rollout(dt=0.01, steps=2)
    ph.DoublePendulum(angle=(0.5, 1.0)).rollout(dt=0.01, steps=2)
    assert not missing(launched, "physics")
