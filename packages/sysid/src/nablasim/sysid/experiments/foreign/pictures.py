"""How a foreign clip is filmed: by a camera that nobody is told about, drawn by MuJoCo or by PyBullet's TinyRenderer.

MuJoCo draws with OpenGL: with a window system, or without one by EGL or OSMesa (`MUJOCO_GL`). Where it has neither,
TinyRenderer draws what MuJoCo moved.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.experiments.foreign.engines import States, mujoco_module
from nablasim.sysid.experiments.foreign.worlds import Body, Rng, Vector, World, on

FILLED = 0.86
"""Of the picture: how much of it the motion takes."""
WALL = 0.8
"""m, behind the motion."""
SHARE = 2
"""Pictures that are mixed for the exposure of a frame."""
Draw = Callable[[Vector, Vector], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole: `right`, `down` and `ahead` are the rows of `axes`."""

    eye: Vector
    axes: Vector
    fov: float
    """rad, from top to bottom"""
    size: tuple[int, int]
    """(height, width)"""

    @property
    def focal(self) -> float:
        return float(self.size[0] / 2 / np.tan(self.fov / 2))

    def see(self, places: Vector) -> Vector:
        """(n, 3) column, row and depth; middles of pixels are whole."""
        at = (places - self.eye) @ self.axes.T
        middle = np.array([self.size[1] / 2 - 0.5, self.size[0] / 2 - 0.5])
        return np.concatenate([middle + self.focal * at[:, :2] / at[:, 2:], at[:, 2:]], axis=1)

    @property
    def target(self) -> Vector:
        return np.asarray(self.eye + self.axes[2])


@dataclass(frozen=True)
class Shoot:
    """How it is filmed."""

    fps: float
    exposure: float
    """Of the time between frames."""
    noise: float
    fov: float
    """rad"""
    tilt: float
    side: float
    roll: float
    shadows: bool


def shooting(rng: Rng) -> Shoot:
    """A camera as people hold it."""
    fov, tilt, side, roll = (np.radians(v) for v in (on(32, 62, rng), on(-2, 9, rng), on(-9, 9, rng), on(-2, 2, rng)))
    return Shoot(float(rng.choice([30.0, 60.0])), on(0.05, 0.4, rng), on(1, 4, rng) / 255, fov, tilt, side, roll,
                 bool(rng.random() < 0.4))  # fmt: skip


def camera_of(shoot: Shoot, world: World, states: States, rows: int) -> Camera:
    """Far enough away that all of the motion is in the picture. `rows`: of the picture's longer side."""
    places = states.places.reshape(-1, 3)[:: max(1, len(states.times) // 200)]
    if world.string is not None:
        places = np.concatenate([places, [world.string.pivot]])
    reach = max(max(b.size) for b in world.bodies)
    wide, tall = np.ptp(places[:, 0]) + 2 * reach, np.ptp(places[:, 2]) + 2 * reach
    size = (rows, rows * 3 // 4) if tall > wide else (rows * 3 // 4, rows)
    ahead = np.array([np.sin(shoot.side) * np.cos(shoot.tilt), np.cos(shoot.side) * np.cos(shoot.tilt),
                      -np.sin(shoot.tilt)])  # fmt: skip
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    turned = np.stack([right * np.cos(shoot.roll) + down * np.sin(shoot.roll),
                       down * np.cos(shoot.roll) - right * np.sin(shoot.roll), ahead])  # fmt: skip
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    fov = shoot.fov if size[0] <= size[1] else 2 * np.arctan(np.tan(shoot.fov / 2) * size[0] / size[1])
    near, far = 0.2, 100.0
    for _ in range(40):
        away = (near * far) ** 0.5
        camera = Camera(middle - away * ahead, turned, float(fov), size)
        seen = camera.see(places)
        r = camera.focal * reach / np.maximum(seen[:, 2], 1e-3)
        off = np.abs(seen[:, :2] - (np.array(size[::-1]) - 1) / 2) + r[:, None]
        fits = seen[:, 2].min() > 2 * reach and (off < FILLED * np.array(size[::-1]) / 2).all()
        near, far = (near, away) if fits else (away, far)
    return replace(camera, eye=middle - far * ahead)


def film(world: World, states: States, shoot: Shoot, camera: Camera, engine: str, rng: Rng) -> Vector:
    """(n, height, width, 3) from 0 to 1, with motion blur and noise."""
    pictures = []
    gap, last = 1 / shoot.fps, float(states.times[-1])
    with _drawing(engine, world, camera, shoot, rng) as draw:
        for k in range(int(last * shoot.fps) + 1):
            moments = k * gap + gap * shoot.exposure * (np.arange(SHARE) - (SHARE - 1) / 2) / SHARE
            shots = [draw(*states.at(float(t))) for t in moments]
            light = np.mean([(s / 255.0) ** 2.2 for s in shots], axis=0)
            pictures.append(light ** (1 / 2.2) + rng.normal(scale=shoot.noise, size=light.shape))
    return np.clip(pictures, 0, 1)


@contextmanager
def _drawing(engine: str, world: World, camera: Camera, shoot: Shoot, rng: Rng) -> Any:
    open_gl = _open_gl(world, camera, shoot, rng.spawn(1)[0]) if engine == "mujoco" else None
    if open_gl is not None:
        draw, renderer = open_gl
        try:
            yield draw
        finally:
            renderer.close()
        return
    with _tiny(world, camera, rng.spawn(1)[0]) as draw:
        yield draw


def drawer(engine: str) -> str:
    """Who draws what an engine moved, on this machine."""
    if engine == "mujoco" and _renderer_class() is not None:
        return "MuJoCo"
    return "TinyRenderer"


# -- MuJoCo's
def _renderer_class() -> Any:
    """MuJoCo with OpenGL, if it can be had."""
    try:
        mujoco = mujoco_module()
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        mujoco.Renderer(model, 8, 8).close()
    except Exception:  # what OpenGL raises where there is none has many names
        return None
    return mujoco.Renderer


def _open_gl(world: World, camera: Camera, shoot: Shoot, rng: Rng) -> Any:
    make = _renderer_class()
    if make is None:
        return None
    mujoco = mujoco_module()
    model = mujoco.MjModel.from_xml_string(_stage(world, camera, rng))
    data = mujoco.MjData(model)
    renderer = make(model, *camera.size)

    def draw(places: Vector, turns: Vector) -> NDArray[np.uint8]:
        data.mocap_pos[: len(places)], data.mocap_quat[: len(places)] = places, turns
        if world.string is not None:
            data.mocap_pos[-1], data.mocap_quat[-1] = _rod(world, places[0])
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera="filmed")
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shoot.shadows
        return np.asarray(renderer.render(), np.uint8)

    return draw, renderer


def _stage(world: World, camera: Camera, rng: Rng) -> str:
    grey = rng.uniform(0.45, 0.8, size=3) * 0.3 + on(0.3, 0.5, rng)
    other = grey * on(0.85, 0.95, rng)
    height, width = camera.size
    axes = " ".join(f"{v:.9g}" for v in (*camera.axes[0], *-camera.axes[1]))
    slope = f"{np.cos(world.slope / 2):.9g} 0 {np.sin(world.slope / 2):.9g} 0"
    parts = []
    if world.ground:
        parts.append(f'<geom type="plane" size="6 {WALL} .1" quat="{slope}" material="floor"/>')
    for n, b in enumerate(world.bodies):
        shape = f'type="{"sphere" if b.ball else "box"}" size="{" ".join(f"{s:.9g}" for s in b.size)}"'
        parts.append(f'<body name="b{n}" mocap="true"><geom {shape} material="b{n}"/></body>')
    if world.string is not None:
        half = world.string.length / 2
        parts.append(f'<body mocap="true"><geom type="capsule" size=".0015 {half}" rgba=".3 .3 .3 1"/></body>')
    paints = "".join(
        f'<texture name="b{n}" type="cube" builtin="{"checker" if b.patched else "flat"}" width="64" height="64" '
        f'rgb1="{_rgb(b.color)}" rgb2="{_rgb(_other(b) if b.patched else b.color)}"/>'
        f'<material name="b{n}" texture="b{n}" texrepeat="1 1" specular=".3"/>'
        for n, b in enumerate(world.bodies)
    )
    pattern = f'type="2d" builtin="checker" width="256" height="256" rgb1="{_rgb(grey)}" rgb2="{_rgb(other)}"'
    eye = " ".join(f"{v:.9g}" for v in camera.eye)
    return (
        f'<mujoco><visual><quality offsamples="4" shadowsize="1024"/><global offwidth="{width}" offheight="{height}"/>'
        f'<map znear="0.01" zfar="60"/><headlight ambient=".35 .35 .35" diffuse=".35 .35 .35" specular="0 0 0"/>'
        f'</visual><statistic extent="1" center="0 0 0"/><asset>{paints}<texture name="g" {pattern}/>'
        f'<material name="wall" texture="g" texrepeat="14 9"/><material name="floor" texture="g" texrepeat="17 5"/>'
        f'</asset><worldbody><light pos="{on(-1, 1, rng):g} -1.5 4" dir="0 .3 -1" diffuse=".5 .5 .5"/>'
        f'<geom type="box" size="9 .01 6" pos="0 {WALL} 0" material="wall"/>'
        f'<camera name="filmed" pos="{eye}" xyaxes="{axes}" fovy="{np.degrees(camera.fov):.9g}"/>'
        f"{''.join(parts)}</worldbody></mujoco>"
    )


def _rgb(color: Any) -> str:
    return " ".join(f"{float(c):.4g}" for c in color)


def _other(b: Body) -> tuple[float, ...]:
    return tuple(0.55 * c + 0.25 for c in b.color)


def _rod(world: World, bob: Vector) -> tuple[Vector, Vector]:
    """Middle, and turn from z to the rod (w x y z), which stays in the plane of x and z."""
    assert world.string is not None
    way = bob - np.array(world.string.pivot)
    angle = float(np.arctan2(way[0], way[2]))
    return np.array(world.string.pivot) + way / 2, np.array([np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0])


# -- PyBullet's
@contextmanager
def _tiny(world: World, camera: Camera, rng: Rng) -> Any:
    import pybullet as p

    client = p.connect(p.DIRECT)
    where = {"physicsClientId": client}
    grey = rng.uniform(0.45, 0.8, size=3) * 0.3 + on(0.35, 0.55, rng)
    height, width = camera.size

    def solid(half: Any, color: Any, place: Any, turn: Any = (0, 0, 0, 1)) -> int:
        shape = p.createVisualShape(p.GEOM_BOX, halfExtents=list(half), rgbaColor=[*color, 1], **where)
        return int(p.createMultiBody(0, -1, shape, list(place), list(turn), **where))

    with TemporaryDirectory() as folder:
        still = [solid((9, 0.01, 9), grey, (0, WALL, 0))]
        for _ in range(30):  # posters
            x, z = rng.uniform(-2.5, 2.5), rng.uniform(-1.5, 2.5)
            still.append(solid((on(0.05, 0.2, rng), 0.006, on(0.05, 0.2, rng)), grey * on(0.8, 1.1, rng),
                               (x, WALL - 0.012, z)))  # fmt: skip
        if world.ground:
            turn = (0, np.sin(world.slope / 2), 0, np.cos(world.slope / 2))
            down = -0.01 * np.array([np.sin(world.slope), 0, np.cos(world.slope)])
            still.append(solid((9, WALL, 0.01), grey * 0.9, down, turn))
        made = [_painted(p, client, b, Path(folder), n) for n, b in enumerate(world.bodies)]
        rod = None if world.string is None else solid((0.0015, 0.0015, world.string.length / 2), (0.3,) * 3, (0, 0, 0))
        view = p.computeViewMatrix(camera.eye.tolist(), camera.target.tolist(), (-camera.axes[1]).tolist(), **where)
        lens = p.computeProjectionMatrixFOV(float(np.degrees(camera.fov)), width / height, 0.05, 60, **where)
        lamp = [on(-1, 1, rng), -1.5, 3]

        def take() -> Vector:
            _, _, colours, _, seen = p.getCameraImage(2 * width, 2 * height, view, lens, lamp, shadow=0,
                                                      lightAmbientCoeff=0.6, lightDiffuseCoeff=0.4,
                                                      lightSpecularCoeff=0.1, renderer=p.ER_TINY_RENDERER,
                                                      **where)  # fmt: skip
            rgb = np.reshape(np.asarray(colours, np.float32), (2 * height, 2 * width, 4))[..., :3]
            return np.concatenate([rgb, np.reshape(seen, (2 * height, 2 * width, 1)) >= 0], axis=2)

        def put(body: int, at: Any, turn: Any) -> None:
            w, x, y, z = (float(v) for v in turn)
            p.resetBasePositionAndOrientation(body, [float(v) for v in at], [x, y, z, w], **where)

        # What stands still is drawn once: a wall takes most of the time.
        for body in (*made, *([] if rod is None else [rod])):
            put(body, (0, 0, -50), (1, 0, 0, 0))
        behind = take()[..., :3]
        for body in still:
            put(body, (0, 0, -50), (1, 0, 0, 0))

        def draw(places: Vector, turns: Vector) -> NDArray[np.uint8]:
            for body, at, turn in zip(made, places, turns):
                put(body, at, turn)
            if rod is not None:
                put(rod, *_rod(world, places[0]))
            front = take()
            large = np.where(front[..., 3:] > 0, front[..., :3], behind).reshape(height, 2, width, 2, 3)
            # As a camera does: what meets in a pixel is light, which pictures store to the power of 1 / 2.2.
            light = ((large / 255) ** 2.2).mean(axis=(1, 3))
            return np.asarray(np.rint(255 * light ** (1 / 2.2)), np.uint8)

        try:
            yield draw
        finally:
            p.disconnect(client)


def _painted(p: Any, client: int, b: Body, folder: Path, n: int) -> int:
    from nablasim import render

    where = {"physicsClientId": client}
    color = [1, 1, 1, 1] if b.patched else [*b.color, 1]
    if b.ball:
        shape = p.createVisualShape(p.GEOM_SPHERE, radius=b.size[0], rgbaColor=color, **where)
    else:
        shape = p.createVisualShape(p.GEOM_BOX, halfExtents=list(b.size), rgbaColor=color, **where)
    body = p.createMultiBody(0, -1, shape, list(b.place), **where)
    if b.patched:
        squares = (np.add.outer(np.arange(32) // 16, np.arange(32) // 8) % 2)[..., None]
        file = render.write_image(folder / f"{n}.png", np.where(squares, np.array(b.color), np.array(_other(b))))
        p.changeVisualShape(body, -1, textureUniqueId=p.loadTexture(str(file), **where), **where)
    return int(body)
