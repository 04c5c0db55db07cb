"""Draws the moving pictures of the README with our own renderer: `python docs/gifs.py` (a few minutes)."""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid import scenery
from nablasim.sysid.demo import Bounce

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "examples"))
SIZE, FPS = (168, 256), 15
LIGHTS = [render.Ambient(0.45), render.Directional((-1.0, 2.4, 1.6), color=0.6)]
RED, GOLD = (0.84, 0.25, 0.2), (0.87, 0.66, 0.2)


def draw(name: str, camera: render.Camera, parts: list[tuple[np.ndarray, np.ndarray, tuple]]) -> None:
    """A gif of bodies: vertices (frames, n, 3), faces and colours."""
    renderer = render.Renderer(
        camera, LIGHTS, mode="hard", size=SIZE, sampling=2, smooth=False, two_sided=True, shadows=True, near=0.02,
        background=scenery.sky(SIZE),
    )  # fmt: skip
    ground = scenery.floor(24.0, 24, height=-0.005)
    still = [render.Mesh(x[0], f, face_colors=np.broadcast_to(c, (len(f), 3))) for x, f, c in parts]
    scene, frames = render.Mesh.join([ground, *still]), []
    for k in range(len(parts[0][0])):
        x = np.concatenate([ground.vertices, *(part[0][k] for part in parts)]).astype(np.float32)
        with torch.no_grad():
            frames.append(renderer(scene.replace(vertices=x)).numpy()[..., :3].clip(0, 1))
    pictures = [Image.fromarray((255 * f).astype(np.uint8)).quantize(64, dither=Image.Dither.NONE) for f in frames]
    path = HERE / "gifs" / f"{name}.gif"
    path.parent.mkdir(exist_ok=True)
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=1000 // FPS, loop=0, optimize=True)
    print(path, f"{path.stat().st_size / 1024:.0f} kB")


def cube() -> None:
    bounce = Bounce()
    model = bounce.model().replace(bounce.truth)
    moved = ph.rollout(model, dt=bounce.dt, steps=60 * bounce.every, every=2 * bounce.every)
    camera = render.Camera.look_at(eye=(1.4, 2.4, 7.5), target=(0, 0.95, 0), fov=33)
    draw("cube", camera, [(moved.vertices("cube").numpy(), np.asarray(model.surfaces["cube"].faces), scenery.ORANGE)])


def learned(task: str, name: str, goal: np.ndarray, camera: render.Camera) -> None:
    """What was learned of a task of control, and a red mark where it is to end."""
    from nablasim.sysid.experiments.controls import TASKS
    from nablasim.sysid.experiments.steering import PICTURE, train

    chosen = TASKS[task]
    run = train(chosen.staged("desk"), PICTURE, 0, chosen.scale("desk").iterations)
    print(f"{task}: {run.watched[run.best][0]:.4f} m from the goal")
    x = run.motion().vertices(name).numpy()[:: max(1, round(1 / FPS / run.task.dt))]
    x = np.concatenate([x, np.repeat(x[-1:], FPS, axis=0)])
    mark = ph.TetMesh.box((0.14, 0.006, 0.14)).surface
    marked = np.repeat((mark.vertices + goal - [0.07, 0, 0.07])[None], len(x), axis=0)
    faces = np.asarray(run.task.model.surfaces[name].faces)
    draw(task, camera, [(x, faces, GOLD), (marked, mark.faces, RED)])


def fem() -> None:
    from nablasim.sysid.experiments.control_fem import Gear

    camera = render.Camera.look_at(eye=(0.0, 1.7, 1.8), target=(0.0, 0.0, 0.0), fov=40)
    learned("fem", "gear", Gear().goal(0) * [1, 0, 1], camera)


def walker() -> None:
    from nablasim.sysid.experiments.control_walker import Walker

    camera = render.Camera.look_at(eye=(0.15, 0.5, 1.9), target=(0.15, 0.2, 0.0), fov=33)
    learned("walker", "walker", np.array([Walker().goal(0), 0.0, 0.0]), camera)


def gear() -> None:
    import soft_gear

    mesh = soft_gear.gear()
    v = np.cross([0, 0, -4.0], mesh.vertices) + np.array([1.0, 0, 0])
    scene = ph.Scene()
    scene.add_soft("gear", mesh, density=200.0, material=ph.NeoHookean(E=3e4, nu=0.35), damping=8.0, pos=(-1.1, 0.9, 0),
                   vel=v)  # fmt: skip
    scene.add_ground("floor", ke=300.0, kd=0.5, kf=2.0, mu=0.8)
    x = ph.rollout(scene.build(), dt=1 / FPS, steps=2 * FPS, substeps=320).numpy()["gear"].x
    camera = render.Camera.look_at(eye=(1.0, 1.5, 4.2), target=(-0.2, 0.5, 0), fov=33)
    draw("gear", camera, [(x, np.asarray(mesh.surface.faces), GOLD)])


def flag() -> None:
    import cloth

    model = cloth.build()
    wind = cloth.gusts(2 * cloth.FPS)
    control = {"wind": wind}
    moved = ph.rollout(model, dt=1 / cloth.FPS, steps=len(wind), substeps=cloth.SUBSTEPS, control=control).numpy()
    camera = render.Camera.look_at(eye=(1.5, 2.1, 5.5), target=(-0.3, 0.95, 0), fov=33)
    parts = [(moved["flag"].x[::2], np.asarray(model.surfaces["flag"].faces), RED),
             (moved["sheet"].x[::2], np.asarray(model.surfaces["sheet"].faces), scenery.BLUE)]  # fmt: skip
    draw("cloth", camera, parts)


def robot() -> None:
    import dropped

    model, moved, _ = dropped.drop(None, seconds=2.0)
    camera = render.Camera.look_at(eye=(1.1, 1.1, 3.3), target=(-0.15, 0.72, 0), fov=40)
    draw("robot", camera, [(moved.vertices("figure")[::2], np.asarray(model.surfaces["figure"].faces), scenery.BLUE)])


if __name__ == "__main__":
    for name in sys.argv[1:] or ["cube", "gear", "flag", "robot", "fem", "walker"]:
        globals()[name]()
