"""Scenes of every kind, forward and backward, that use kernels of the packages only: what came out goes to a file.

    python bare.py arrays.npz                        all of them
    python bare.py arrays.npz adjoints-for-all       pictures, by the adjoints that come with wheels

Run by test_wheels.py, in an environment without a compiler and in one with: the same comes out.
"""

import json
import sys

import numpy as np
import torch

import kernelc as kc
from nablasim import physics as ph
from nablasim import render

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def arrays(results, gradients=()):
    """What a case gives, by names."""
    named = {f"result {n}": t for n, t in enumerate(results)} | {f"gradient {n}": t for n, t in enumerate(gradients)}
    found = {name: t.detach().numpy() if isinstance(t, torch.Tensor) else t for name, t in named.items()}
    assert all(np.isfinite(data).all() for data in found.values())
    return found


def rolled(scene, real, names, steps=40):
    """The last frame of a scene, and its gradient by some quantities."""
    model = scene.build(real)
    values = {
        name: torch.tensor(np.array(model.layout.parameters[name].value, real), requires_grad=True) for name in names
    }
    trajectory = ph.rollout(model.replace(values), dt=1e-3, steps=steps, every=steps)
    frames = [getattr(trajectory[name], quantity)[-1] for name in trajectory for quantity in trajectory[name].names]
    sum(
        (frame * torch.cos(torch.arange(frame.numel(), dtype=frame.dtype)).reshape(frame.shape)).sum()
        for frame in frames
    ).backward()
    assert all(value.grad is not None and value.grad.abs().max() > 0 for value in values.values())
    return arrays(frames, [value.grad for value in values.values()])


def springs(real):
    scene = ph.Scene()
    scene.add_springs("net", [[0.0, 0, 0], [0.3, 0, 0], [0.3, 0.3, 0]], [[0, 1], [1, 2]], mass=0.1, ke=9.0, kd=0.05)
    scene.add_ground("floor", ke=1e3)
    return rolled(scene, real, ["net.ke", "net.v"])


def cloth(real):
    scene = ph.Scene()
    sheet = ph.TriMesh.grid((0.3, 0.2), cells=(6, 5)).moved(rot=ph.quat((1, 0, 0), 1.8))
    scene.add_cloth("flag", sheet, mass=0.1, stretch=40.0, shear=30.0, damping=0.02, bend=0.01, bend_damping=1e-4,
                    lift=0.5, drag=0.8, springs=True, spring_ke=5.0, spring_kd=0.01, pos=(0, 0.05, 0),
                    vel=(0.2, -1, 0.3))  # fmt: skip
    scene.add_wind((1.0, 0.5, 0.3)).add_ground("floor", ke=2e2, kd=0.5, kf=0.5, mu=0.5)
    return rolled(scene, real, ["flag.stretch", "flag.bend", "flag.x"])


def solid(real):
    scene = ph.Scene()
    scene.add_soft("block", ph.TetMesh.box((0.2, 0.2, 0.2), cells=(2, 2, 2)), density=500.0,
                   material=ph.NeoHookean(E=5e3, nu=0.3), damping=1.0, pos=(0, 0.11, 0), vel=(0, -1, 0))  # fmt: skip
    scene.add_ground("floor", ke=1e3, kd=1.0, kf=1.0, mu=0.5)
    return rolled(scene, real, ["block.E", "block.v"])


def bodies(real):
    scene = ph.Scene()
    scene.add_rigid("cube", ph.Box(0.3, 0.2, 0.25), density=500.0, pos=(0, 0.2, 0), rot=ph.quat((0.2, 0.5, 1), 0.5),
                    vel=(1, -1, 0.3), omega=(3, 1, -1))  # fmt: skip
    scene.add_rigid("ball", ph.Sphere(0.1), mass=2.0, pos=(0.1, 0.45, 0), vel=(0, -2, 0))
    scene.add_force("cube", (3, 2, 1), at=(0.1, 0.1, 0.1), t=(0.01, 0.08))
    scene.add_ground("floor", ke=2e4, kd=100.0, kf=50.0, mu=0.5)
    return rolled(scene, real, ["cube.density", "ball.v", "floor.mu"])


def smoke(real):
    rng = np.random.default_rng(0)
    start = torch.tensor(rng.uniform(size=(9, 7)), dtype=PRECISIONS[real], requires_grad=True)
    moved = ph.Smoke(size=(1.0, 1.2), cells=(9, 7), velocity=rng.normal(size=(9, 7, 2)), density=start, real=real)
    density = moved.rollout(dt=0.01, steps=5).density[-1]
    (density**2).sum().backward()
    return arrays([density], [start.grad])


def pictures(real):
    """A lit, a textured and a plain picture, by vertices, camera, texture and light."""
    ball = render.Mesh.sphere(2).painted((0.9, 0.4, 0.2))
    images, gradients = [], []
    for mode in ("softras", "dibr", "hard"):
        vertices = torch.tensor(ball.vertices, dtype=PRECISIONS[real], requires_grad=True)
        high = torch.tensor(20.0, dtype=PRECISIONS[real], requires_grad=True)
        lights = [render.Ambient(0.3), render.Directional(to_light=(1, 2, 1), color=0.7)]
        camera = render.Camera.orbit(4.0, high, 30.0, fov=45)
        renderer = render.Renderer(camera, lights, mode=mode, size=(24, 32))
        image = renderer(ball.replace(vertices=vertices), camera=camera)
        (image * torch.linspace(0, 1, image.numel(), dtype=image.dtype).reshape(image.shape)).sum().backward()
        images.append(image)
        gradients += [g for g in (vertices.grad, high.grad) if g is not None]
    return arrays(images, gradients)


def layers(real):
    """Every kind of picture, from so near that faces are cut off, on a tape."""
    vertices = kc.array(2 * render.Mesh.sphere(2).vertices.astype(real), dtype=kc.float3, requires_grad=True)
    renderer = render.Renderer(render.Camera.look_at((0, 0, 2.5), (0, 0, 0), fov=60), mode="dibr", size=(24, 32))
    faces = render.Mesh.sphere(2).faces
    names = ("rgba", "silhouette", "depth", "normals", "face", "object", "flow")
    with kc.Tape() as tape:
        found = renderer(vertices, faces, output=names, moved=vertices, objects=np.zeros(len(faces), int))
    tape.backward(grads={found[name]: np.ones(found[name].numpy().shape) for name in ("rgba", "silhouette", "depth")})
    return arrays([found[name].numpy() for name in names], [vertices.grad.numpy()])


def neighbours(real):
    """The tables of kernelc itself."""
    points = np.random.default_rng(0).uniform(size=(50, 3)).astype(real)
    grid = kc.HashGrid(50, width=0.2).build(points)
    tree = kc.Bvh(50).build(points, points + np.asarray(0.1, real))
    return arrays([grid.index.numpy(), tree.order.numpy(), tree.boxes.numpy()])


def doctor():
    from nablasim.sysid.doctor import examine

    return [check.name for check in examine() if check.essential and not check.ok]


def of_mine():
    @kc.kernel
    def triple(x: kc.Array[float], y: kc.Array[float]):
        y[kc.tid()] = 3.0 * x[kc.tid()]

    y = kc.zeros(3, dtype=float)
    try:
        kc.launch(triple, 3, [kc.array([1.0, 2.0, 3.0])], [y])
    except kc.KernelError as error:
        return f"{type(error).__name__}: {error.message}"
    return y.numpy().tolist()


CASES = (springs, cloth, solid, bodies, smoke, pictures, layers, neighbours)


def use_adjoints_for_all():
    """Where there is a compiler, too: gradients by some arrays come from the adjoint for all, as in wheels."""
    from kernelc.runtime.compile import Variant

    Variant.served = lambda self, seeds, *_: self.all_reals if self.adjoint_reads(seeds)[0] else seeds


if __name__ == "__main__":
    if sys.argv[2:] == ["adjoints-for-all"]:
        use_adjoints_for_all()
        CASES = (pictures,)
    where = {module.__name__: module.__file__ for module in (kc, ph, render)}
    found = {f"{case.__name__} {real}": case(real) for case in CASES for real in PRECISIONS}
    np.savez(sys.argv[1], **{f"{case} {name}": a for case, made in found.items() for name, a in made.items()})
    json.dump({"where": where, "doctor": doctor(), "of_mine": of_mine()}, sys.stdout)
